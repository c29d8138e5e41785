r"""The theorem and the lemmas of the PSConRL paper, checked in numbers: ``python benchmarks/lemmas.py``.

For each it prints the models tried and the largest ratio of the left side to the right side. A ratio above 1 refutes
the statement; a ratio below 1 does not prove it. Proofs and gaps are in docs/theory.md.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

from collections import defaultdict
from math import log, sqrt
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.stats import binom

import psconrl
from psconrl.markov.hitting_times import diameter, hitting_times

OPTIMAL = psconrl.Status.OPTIMAL
ROUNDS = 10_000
THETAS = (0.2, 0.5, 0.9)  # the three models of the exact check of Lemma 4.3
WEIGHTS = (0.2, 0.3, 0.5)
THRESHOLD = 0.6  # feasible for theta of 2/3 and more
LARGEST_LEAK = 0.1


class Checked(NamedTuple):
    """A statement, the models tried, the largest ratio of left to right, and what follows."""

    number: str
    statement: str
    models: str
    worst: float
    result: str


# --- Lemma 4.3: posterior sampling


def share_of_go(theta: float) -> float:
    """Return the probability of "go" in s0 under the paper's rule: as rare as the threshold allows, or always."""
    rarest = (1.0 - THRESHOLD) / (THRESHOLD * theta)  # of the average cost 1 / (1 + go theta)
    return min(rarest, 1.0)


class Node(NamedTuple):
    """What an agent on Example 1 has seen, with the sample that it plays; the truth is apart."""

    state: int
    go: int  # visits of (s0, go)
    through: int  # how many of them went to s1
    stay: int
    elsewhere: int  # visits of s1
    length: int  # of the running episode
    last: int  # length of the episode before it
    sample: int


def posterior(go: int, through: int) -> np.ndarray:
    """Return the probabilities of the three models after ``go`` trials, by Bayes' rule."""
    theta = np.array(THETAS)
    weights = np.array(WEIGHTS) * theta**through * (1.0 - theta) ** (go - through)
    return weights / weights.sum()


def posterior_sampling_error(episode: int = 4) -> float:
    """Return the largest difference between P(p* = i, history) and P(p_k = i, history) at a stopping time t_k.

    All paths of PSConRL on Example 1 with three possible models are followed up to the start of an episode, which by
    Ouyang et al.'s rule depends on the data and on the samples. Then E[g(p_k, X)] = E[g(p*, X)] for every g and X.
    """
    differences = []
    nodes: dict[tuple[int, Node, Node], float] = {}
    for truth, weight in enumerate(WEIGHTS):
        for sample, likely in enumerate(WEIGHTS):
            start = Node(0, 0, 0, 0, 0, 0, 1, sample)
            nodes[truth, start, start] = weight * likely
    for k in range(2, episode + 1):
        ended: dict[tuple[int, Node], float] = defaultdict(float)
        while nodes:
            onward: dict[tuple[int, Node, Node], float] = defaultdict(float)
            for (truth, node, first), mass in nodes.items():
                for after, probability in steps(node, THETAS[truth]):
                    if after.length > node.last or _doubled(after, first):
                        ended[truth, after._replace(sample=-1)] += mass * probability
                    else:
                        onward[truth, after, first] += mass * probability
            nodes = onward
        nodes = {}
        histories = {history for _, history in ended}
        for history in histories:
            believed = posterior(history.go, history.through)
            true = np.array([ended.get((i, history), 0.0) for i in range(len(THETAS))])
            differences.append(np.abs(true - true.sum() * believed).max())
            for truth, mass in enumerate(true):
                for sample, likely in enumerate(believed):
                    begun = history._replace(sample=sample, last=history.length, length=0)
                    if mass and k < episode:
                        nodes[truth, begun, begun] = mass * likely
    return float(max(differences))


def steps(node: Node, theta: float) -> list[tuple[Node, float]]:
    """Return all outcomes of one round, with their probabilities."""
    longer = node._replace(length=node.length + 1)
    if node.state == 1:
        return [(longer._replace(state=0, elsewhere=node.elsewhere + 1), 1.0)]
    go = share_of_go(THETAS[node.sample])
    tried = longer._replace(go=node.go + 1)
    outcomes = [
        (longer._replace(stay=node.stay + 1), 1.0 - go),
        (tried._replace(state=1, through=node.through + 1), go * theta),
        (tried, go * (1.0 - theta)),
    ]
    return [(after, probability) for after, probability in outcomes if probability > 0.0]


def _doubled(after: Node, first: Node) -> bool:
    return after.go > 2 * first.go or after.stay > 2 * first.stay or after.elsewhere > 2 * first.elsewhere


# --- Lemma 4.4: feasibility


def least_excess(model: psconrl.CMDP) -> float:
    """Return the least possible value of the largest excess over a threshold, by linear programming."""
    S, A = model.n_states, model.n_actions
    P, pairs = model.transition.toarray(), S * A
    flow = np.repeat(np.eye(S), A, axis=0) - P
    equal = np.vstack([np.c_[flow.T, np.zeros(S)], np.r_[np.ones(pairs), 0.0]])
    above = np.c_[model.costs[1:].reshape(-1, pairs), -np.ones(len(model.costs) - 1)]
    objective = np.r_[np.zeros(pairs), 1.0]
    bounds = [(0, None)] * pairs + [(None, None)]
    found = linprog(objective, above, model.thresholds, equal, np.r_[np.zeros(S), 1.0], bounds)
    return float(found.fun)


def feasibility_ratio(model: psconrl.CMDP, other: np.ndarray) -> float:
    """Return by how much the least excess rises in other transitions (S*A, S), relative to delta D / 2."""
    distance = float(np.abs(other - model.transition.toarray()).sum(axis=1).max())
    moved = psconrl.CMDP(other.reshape(model.n_states, -1, model.n_states), model.costs, model.thresholds)
    return (least_excess(moved) - least_excess(model)) / (0.5 * distance * diameter(model))


def span_ratio(model: psconrl.CMDP, policy: np.ndarray) -> float:
    """Return the largest span of a bias of a policy, relative to the diameter."""
    return float(np.ptp(psconrl.evaluate(model, policy).biases, axis=1).max()) / diameter(model)


def nearby(model: psconrl.CMDP, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return transitions that differ from those of the model by a share of random rows."""
    P = model.transition.toarray()
    return (1.0 - share) * P + share * rng.dirichlet(np.full(P.shape[1], 0.1), size=len(P))


def worsened(model: psconrl.CMDP, share: float) -> np.ndarray:
    """Return transitions that go to the worst state for the first constrained cost with an additional probability."""
    P = model.transition.toarray()
    S = model.n_states
    alone = psconrl.plan(psconrl.CMDP(P.reshape(S, -1, S), model.costs[1:2]))
    return (1.0 - share) * P + share * np.eye(S)[alone.potential.argmax()]


def slow_slater(leak: float) -> np.ndarray:
    """Return a policy of the leaky islands that keeps the threshold by a sixth and hardly moves.

    It leaves state 0 with probability 2 leak in all, and state 1 with probability leak.
    """
    move = leak / (1.0 - leak)
    return np.array([[1.0 - move, move], [1.0, 0.0]])


# --- Lemma 4.5: exploration, and Lemma A.1


def crossroads(theta: float = 0.5) -> psconrl.CMDP:
    """Return three states, where action j < 3 moves to state j and the last to one of the two others.

    The last action is the fastest way to no state, so that no shortest path has it. No policy meets the threshold.
    """
    P = np.zeros((3, 4, 3))
    for state in range(3):
        P[state, range(3), range(3)] = 1.0
        P[state, 3, (state + 1) % 3], P[state, 3, (state + 2) % 3] = theta, 1.0 - theta
    return psconrl.CMDP(P, np.ones((2, 3, 4)), [0.5])


def exploring_rounds(model: psconrl.CMDP, rounds: int) -> tuple[int, int]:
    """Return when every state, and when every pair, has had sqrt(T/A) visits; T if not before.

    The paper's agent plays a model that is infeasible, so that it explores in every round.
    """
    S, A = model.n_states, model.n_actions
    prior = np.where(model.transition.toarray().reshape(S, A, S) > 0, 1.0, 0.0)
    agent = psconrl.agents.make("psconrl-paper", S, A, model.thresholds, model.costs, prior=prior, seed=0)
    rng, P = np.random.default_rng(0), model.transition.toarray().reshape(S, A, S)
    visits, state, enough = np.zeros((S, A)), 0, sqrt(rounds / A)
    states = pairs = rounds
    for t in range(1, rounds + 1):
        action = agent.act(state)
        visits[state, action] += 1
        after = int(rng.choice(S, p=P[state, action]))
        agent.observe(action, after, model.costs[:, state, action])
        state = after
        if states == rounds and visits.sum(axis=1).min() >= enough:
            states = t
        if visits.min() >= enough:
            pairs = t
            break
    return states, pairs


def exploration_bound(model: psconrl.CMDP, rounds: int) -> float:
    """Return 2 D S sqrt(A T) + 1."""
    return 2.0 * diameter(model) * model.n_states * sqrt(model.n_actions * rounds) + 1.0


def shortest_path_errors(model: psconrl.CMDP, target: int) -> tuple[float, float]:
    """Return the relative errors of v* = T and of v* = (1 - J*) T, for the cost 1 outside of the target."""
    away = np.ones((model.n_states, model.n_actions))
    away[target] = 0.0
    best = psconrl.plan(psconrl.CMDP(model.transition.toarray().reshape(model.n_states, -1, model.n_states), [away]))
    times = hitting_times(model, target)
    v = best.potential - best.potential[target]
    return (
        float(np.abs(v - times).max() / times.max()),
        float(np.abs(v - (1.0 - best.value) * times).max() / times.max()),
    )


# --- Theorem 4.1 and the lemmas of its proof


def leaky_regret(leak: float, rounds: int) -> float:
    """Return the expected regret of "stay, stay" from state 1: (1 - (1 - 2 leak)^T) / (4 leak)."""
    return -float(np.expm1(rounds * np.log1p(-2.0 * leak))) / (4.0 * leak)


def bayesian_regret(rounds: int, cells: int = 100_000) -> float:
    """Return a lower bound on the expected regret under the prior P(leak <= x) = 1 / (1 + ln(.1 / x)) on (0, .1].

    The regret falls with the leak, so that the sum over the right ends of equally likely intervals is too small.
    """
    share = np.arange(1, cells + 1) / cells  # P(leak <= x)
    leaks = np.maximum(LARGEST_LEAK * np.exp(1.0 - 1.0 / share), 1e-30)
    return float(np.mean([leaky_regret(leak, rounds) for leak in leaks]))


def theorem_bound(D: float, S: int, A: int, rounds: int) -> float:
    """Return the bound of Theorem 4.1 with all constants of its proof."""
    good = (D + 1) * sqrt(2 * S * A * rounds * log(rounds)) + 49 * D * S * sqrt(A * rounds * log(A * rounds))
    return good + 2 * D * S * sqrt(A * rounds) + 2.0


def confidence_ratio(p: float, n: int, t: int, delta: float = 1.0) -> float:
    """Return P(|p_hat - p|_1 > radius), exactly for two states and A = 1, relative to delta / (15 t^6)."""
    radius = sqrt(28 * log(2 * t / delta) / max(1, n))
    k = np.arange(n + 1)
    outside = 2 * np.abs(k / max(1, n) - p) > radius
    return float(binom.pmf(k, n, p)[outside].sum()) * 15 * float(t) ** 6 / delta


def episodes_ratio(name: str, rounds: int, **options: int) -> float:
    """Return the number of episodes of the paper's agent, relative to sqrt(2 S A T ln T)."""
    model = psconrl.load(name, **options)
    agent = psconrl.agents.make("psconrl-paper", model.n_states, model.n_actions, model.thresholds, model.costs, seed=0)
    lengths = psconrl.simulate(model, agent, rounds, seed=0).episodes.length
    pairs = model.n_states * model.n_actions
    return len(lengths) / sqrt(2 * pairs * rounds * log(rounds))


def mixing_over_diameter(length: int) -> float:
    """Return the longest expected hitting time of one fixed policy on a line, relative to the diameter.

    Actions move one state to the left or to the right; the policy moves right with probability 1/4.
    """
    P = np.zeros((length, 2, length))
    for s in range(length):
        P[s, 0, max(s - 1, 0)] = P[s, 1, min(s + 1, length - 1)] = 1.0
    line = psconrl.CMDP(P, np.zeros((1, length, 2)))
    fixed = psconrl.CMDP((0.75 * P[:, 0] + 0.25 * P[:, 1])[:, None], np.zeros((1, length, 1)))
    return diameter(fixed) / diameter(line)


def checks() -> list[Checked]:
    """Return all checks; a minute."""
    rng = np.random.default_rng(1)
    drawn = [psconrl.load("dirichlet", states=5, constraints=m, seed=s) for s in range(30) for m in (1, 2)]
    shares = (0.01, 0.1, 0.5)
    rises = [feasibility_ratio(model, nearby(model, share, rng)) for model in drawn for share in shares]
    rises += [feasibility_ratio(model, worsened(model, share)) for model in drawn for share in shares]
    leaky = psconrl.load("leaky-islands", leak=1e-3)
    slater = span_ratio(leaky, slow_slater(1e-3))
    optima = [span_ratio(model, best.policy) for model in drawn if (best := psconrl.plan(model)).status is OPTIMAL]
    lost = crossroads()
    states, pairs = exploring_rounds(lost, ROUNDS)
    bound = exploration_bound(lost, ROUNDS)
    named = [psconrl.load("garnet", states=6, seed=s) for s in range(10)] + [psconrl.load("counterexample")]
    errors = np.array([shortest_path_errors(m, target) for m in named for target in range(m.n_states)])
    islands = span_ratio(leaky, psconrl.plan(leaky).policy)
    inside = [confidence_ratio(p, n, t) for p in (0.5, 0.1, 0.01) for n in (1, 10, 100, 1000) for t in (1, n, 10 * n)]
    count = [episodes_ratio("marsrover-4x4", ROUNDS), episodes_ratio("garnet", ROUNDS, seed=1)]
    T = 10**12
    return [
        Checked("4.1", "Bayesian regret <= bound", f"leaky islands, T = {T:.0e}", bayesian_regret(T)
                / theorem_bound(1, 2, 2, T), "false"),
        Checked("4.3", "distributions of (p_k, X), (p*, X)", "Example 1, three models, difference",
                posterior_sampling_error(), "holds"),
        Checked("4.4", "rise of the least excess <= delta D / 2", f"{len(rises)} drawn pairs", max(rises), "holds"),
        Checked("4.4, proof", "span of a Slater policy <= D", "leaky islands, leak .001", slater, "false"),
        Checked("4.5, pairs", "rounds until all pairs are visited", f"crossroads, T = {ROUNDS}", pairs / bound,
                "false"),
        Checked("4.5, states", "rounds until all states are visited", f"crossroads, T = {ROUNDS}", states / bound,
                "not refuted"),
        Checked("A.1", "v* = (1 - J*) T, relative error", f"{len(errors)} targets", errors[:, 1].max(), "holds"),
        Checked("A.1, proof", "v* = T, relative error", f"{len(errors)} targets", errors[:, 0].max(), "false"),
        Checked("A.4", "episodes <= sqrt(2SAT ln T)", "4x4, garnet", max(count), "holds"),
        Checked("A.5, A.6", "spans of constrained optima <= D", f"{len(optima)} drawn models", max(optima), "false"),
        Checked("A.5, A.6", "spans of constrained optima <= D", "leaky islands, leak .001", islands, "false"),
        Checked("A.7", "outside of the set <= delta / 15 t^6", f"{len(inside)} binomials", max(inside), "holds"),
        Checked("1, footnote", "hitting times of a policy <= D", "line of 20 states", mixing_over_diameter(20),
                "larger"),
    ]  # fmt: skip


def main() -> None:
    """Print a table."""
    print("| number | statement | models | largest ratio | result |\n|---|---|---|---|---|")
    for row in checks():
        print(f"| {row.number} | {row.statement} | {row.models} | {row.worst:.3g} | {row.result} |", flush=True)


if __name__ == "__main__":
    main()
