"""Models to plan, one of every kind on which the planner is meant to be fast."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

import psconrl
from psconrl.model.transition import Transition
from psconrl.planning.problem import Problem


def posterior_samples(name: str, count: int, seed: int, prior: float = 0.1) -> Iterator[Problem]:
    """Problems as a learning loop meets them: Dirichlet samples while a uniform walk collects counts."""
    rng = np.random.default_rng(seed)
    cmdp = psconrl.load(name)
    S, A = cmdp.n_states, cmdp.n_actions
    template, P = Problem.of(cmdp), cmdp.transition.toarray()
    counts = np.zeros((S * A, S))
    total = 1.0
    for _ in range(count):
        sample = rng.standard_gamma(prior + counts)
        yield template.with_transition(Transition.of(sample / sample.sum(axis=1, keepdims=True)))
        # Counts grow by a tenth, spread over the pairs as an exploring learner would.
        visits = rng.poisson(0.1 * total / (S * A), size=S * A) + (rng.random(S * A) < 0.1)
        for pair, n in enumerate(visits):
            if n:
                counts[pair] += rng.multinomial(n, P[pair])
        total += visits.sum()


def dense_random(S: int, A: int = 4, m: int = 1, seed: int = 0) -> psconrl.CMDP:
    """Every entry positive; thresholds halfway between the unconstrained optimum and the feasible minimum."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(S), size=(S, A))
    return _tightened(P, rng.random((m + 1, S, A)))


def sparse_random(S: int, A: int = 4, m: int = 1, successors: int = 10, seed: int = 0) -> psconrl.CMDP:
    """Garnet: random successors with random probabilities."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(S * A), successors)
    columns = rng.integers(0, S, size=rows.size)
    weights = rng.dirichlet(np.ones(successors), size=S * A).ravel()
    return _tightened(csr_array((weights, (rows, columns)), shape=(S * A, S)), rng.random((m + 1, S, A)))


def one_server(side: int = 8, arrivals: tuple[float, float] = (0.2, 0.2)) -> psconrl.CMDP:
    """One server for two queues of side-1 places: which queue to serve, slowly or fast.

    The objective is the number waiting in the first queue. Constraints: at most 2 in the second queue on average, and
    fast service at most 70% of the time. At most one event a round: an arrival, or the end of a service.
    """
    S = side * side
    first, second = np.divmod(np.arange(S), side)
    P, costs = np.zeros((S, 4, S)), np.zeros((3, S, 4))
    for action in range(4):
        speed = 0.5 if action >= 2 else 0.25
        served = (first > 0, first - 1, second) if action % 2 == 0 else (second > 0, first, second - 1)
        events = (
            (first < side - 1, first + 1, second, arrivals[0]),
            (second < side - 1, first, second + 1, arrivals[1]),
            (*served, speed),
        )
        for possible, i, j, probability in events:
            s = np.flatnonzero(possible)
            P[s, action, i[s] * side + j[s]] += probability
        P[np.arange(S), action, np.arange(S)] += 1.0 - P[:, action].sum(axis=1)
        costs[:, :, action] = first, second, np.full(S, action >= 2)
    return psconrl.CMDP(P, costs, [2.0, 0.7], cost_names=("first", "second", "fast"))


def two_queues(side: int) -> psconrl.CMDP:
    """Two queues in tandem of side-1 places each: pay for speed, with a constraint on the average number waiting.

    Actions choose slow or fast service at each station; slow is slower than the arrivals, so that policies on the way
    to the optimum give the empty state a stationary mass of e^-70. Uniformised: at most one event per step.
    """
    S, A = side * side, 4
    arrive, slow, fast = 0.25, 0.2, 0.375
    first, second = np.divmod(np.arange(S), side)
    rows, columns, weights = [], [], []
    power = np.zeros((S, A))

    def event(pairs: np.ndarray, target: np.ndarray, p: np.ndarray) -> None:
        rows.append(pairs), columns.append(target), weights.append(p)

    for a in range(A):
        speed = [fast if a & 1 else slow, fast if a & 2 else slow]
        power[:, a] = [0.0, 1.0, 1.0, 2.0][a]
        pairs = np.arange(S) * A + a
        left = np.ones(S)
        for moved, possible, rate in (
            ((first + 1) * side + second, first < side - 1, arrive),
            ((first - 1) * side + second + 1, (first > 0) & (second < side - 1), speed[0]),
            (first * side + second - 1, second > 0, speed[1]),
        ):
            p = np.where(possible, rate, 0.0)
            event(pairs, np.where(possible, moved, np.arange(S)), p)
            left -= p
        event(pairs, np.arange(S), left)
    P = csr_array((np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))), shape=(S * A, S))
    P.eliminate_zeros()
    waiting = np.repeat((first + second)[:, None], A, axis=1).astype(float)
    return psconrl.CMDP(P, [power, waiting], [6.0], cost_names=("power", "waiting"))


def _tightened(P: object, costs: np.ndarray) -> psconrl.CMDP:
    """Thresholds on every constrained cost, a third of the way from a joint policy to the unconstrained optimum."""
    m = costs.shape[0] - 1
    names = [
        "objective",
        *(f"cost_{i}" for i in range(1, m + 1)),
    ]  # without blanks: Storm's formulas have none in names
    loose = psconrl.CMDP(P, costs, np.full(m, 10.0), cost_names=names)
    free = psconrl.plan(loose).costs[1:]
    joint = psconrl.CMDP(P, [costs[1:].sum(axis=0), *costs[1:]], np.full(m, 10.0))
    best = psconrl.plan(joint).costs[1:]
    return loose.with_thresholds(best + (free - best) / 3)
