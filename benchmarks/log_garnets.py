"""SPIBB's own experiment, made continuing: random garnets, from the logs of policies that are better and better.

    python benchmarks/log_garnets.py --runs 10

As in Laroche et al. (2019, section 3.3): 50 states, 4 actions, 4 successors, state 0 at the start, a reward of 1 in the
state that is hardest to reach, and a policy that earns a given share of what the optimum earns over a uniform one: a
softmax of the optimal values, of which single states are then made worse. Here a trip does not end: from the goal it
goes back to the start, and the reward counts per round. The policy that wrote the log is known to SPIBB, and not to the
others. A score is 1 for the optimum, 0 for the policy that wrote the log. The worst decile is the mean of the lowest
tenth, as in their paper. SPIBB's rule has one parameter, N; it is shown for three values, and the best of them is
chosen in hindsight.

*Certified* is the recommendation at confidence 0.95: where it is not given, the policy that wrote the log is kept, with
a score of 0. *Proposal* is what would be proposed with all rounds and no verification: of the policies planned with
margins for uncertainty, the one whose gain has the highest first decile under the least favourable of three beliefs.
SPIBB's rule with a small N has no certificate either, so that these two are to be compared.
"""

import argparse
import time
from collections import defaultdict

import numpy as np

import psconrl
from log_rivals import plan_on_means, spibb
from log_systems import written_log
from psconrl.base.arrays import Floats
from psconrl.data.advice.improvement import Verdict, improve
from psconrl.data.advice.proposals import Planner, proposals
from psconrl.data.log import Log
from psconrl.data.posterior.mean_model import mean_model
from psconrl.data.posterior.row_posterior import RowPosterior, neighbours
from psconrl.learning.posterior.transition_beliefs import Dirichlet
from psconrl.markov.evaluation import evaluate_policy
from psconrl.model.cmdp import CMDP

STATES, ACTIONS, SUCCESSORS = 50, 4, 4
RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the optimum's gain over the uniform policy that the logged policy has
LEAST_VISITS = (5, 10, 20)  # SPIBB's N
DRAWS = 200
HARDEST = 1.0 / 50.0  # reward per round, at least, as the authors take goals that are reached within 50 rounds


def garnet(rng: np.random.Generator) -> CMDP:
    """Return a continuing garnet whose goal is the hardest to reach."""
    P = np.zeros((STATES, ACTIONS, STATES))
    for row in P.reshape(-1, STATES):
        cuts = np.concatenate([[0.0], np.sort(rng.random(SUCCESSORS - 1)), [1.0]])
        row[rng.choice(STATES, SUCCESSORS, replace=False)] = np.diff(cuts)
    found = None
    for goal in rng.permutation(np.arange(1, STATES))[:12]:
        own, costs = P.copy(), np.zeros((1, STATES, ACTIONS))
        own[goal], costs[0, goal] = np.eye(STATES)[0], -1.0
        model = CMDP(own, costs, [])
        best = -float(psconrl.plan(model).costs[0])
        if best >= HARDEST and (found is None or best < found[0]):
            found = best, model
    return garnet(rng) if found is None else found[1]


def logged_policy(model: CMDP, ratio: float, rng: np.random.Generator) -> Floats:
    """Return a policy that earns a share of what the optimum earns over the uniform one."""
    best = psconrl.plan(model)
    h = evaluate_policy(model, best.policy).biases[0]
    values = -(model.costs[0] + model.transition.toarray().reshape(STATES, ACTIONS, STATES) @ h)
    uniform = np.full((STATES, ACTIONS), 1.0 / ACTIONS)
    least, most = (-evaluate_policy(model, policy).costs[0] for policy in (uniform, best.policy))

    def earns(policy: Floats) -> float:
        return float((-evaluate_policy(model, policy).costs[0] - least) / (most - least))

    policy, scale = uniform, 1e-3
    while earns(policy) < (1.0 + ratio) / 2.0 and scale < 1e4:
        scale *= 1.2
        shares = np.exp(scale * (values - values.max(axis=1, keepdims=True)))
        policy = shares / shares.sum(axis=1, keepdims=True)
    while earns(policy) > ratio:
        s = rng.integers(STATES)
        policy[s, values[s].argmax()] *= 0.9
        policy[s] /= policy[s].sum()
    return policy


def proposal(log: Log, costs: Floats, seed: int) -> Floats:
    """Return the policy whose gain has the highest first decile under the least favourable belief; today's if none."""
    rng = np.random.default_rng(seed)
    beliefs = [RowPosterior(log, belief, costs) for belief in (neighbours(log), None, Dirichlet())]
    drawn = tuple(posterior.draw(DRAWS, rng) for posterior in beliefs)
    today = [models.today()[:, 0] for models in drawn]
    best = 0.0, beliefs[0].behaviour.mean()
    for found in proposals(Planner(mean_model(beliefs[0], drawn[0])), drawn, np.zeros(0), 0.05):
        gain = min(np.quantile(now - own[:, 0], 0.1) for own, now in zip(found.averages, today, strict=True))
        best = max(best, (float(gain), found.policy), key=lambda one: one[0])
    return best[1]


def main() -> None:
    """Print the mean and the worst decile of the scores, by the length of the log."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=2, help="garnets for every ratio")
    parser.add_argument("--first", type=int, default=0, help="number of the first garnet")
    parser.add_argument("--rounds", type=int, nargs="+", default=[300, 1000, 3000, 10000, 30000])
    options = parser.parse_args()
    began, scores = time.process_time(), defaultdict(list)
    for run in range(options.first, options.first + options.runs):
        for ratio in RATIOS:
            rng = np.random.default_rng([run, int(10 * ratio)])
            model = garnet(rng)
            behaviour = logged_policy(model, ratio, rng)
            today = evaluate_policy(model, behaviour).costs[0]
            room = today - psconrl.plan(model).costs[0]
            for rounds in options.rounds:
                log = written_log(model, behaviour, rounds, run)
                policies = {"means": plan_on_means(log, model.thresholds, model.costs)}
                for least in LEAST_VISITS:
                    policies[f"spibb {least}"] = spibb(log, model.thresholds, behaviour, least, model.costs)
                policies["proposal"] = proposal(log, model.costs, run)
                found = improve(log, costs=model.costs, draws=500, seed=run)
                policies["certified"] = found.policy if found.verdict is Verdict.IMPROVE else behaviour
                for who, policy in policies.items():
                    cost = evaluate_policy(model, policy / policy.sum(axis=1, keepdims=True)).costs[0]
                    scores[rounds, who].append(float((today - cost) / room))
        print(f"garnets of run {run} done, {time.process_time() - began:.0f} s", flush=True)
        names = list(dict.fromkeys(who for _, who in scores))
        print("| rounds | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 1))
        for rounds in options.rounds:
            cells = []
            for who in names:
                own = np.sort(scores[rounds, who])
                half = 1.96 * own.std(ddof=1) / np.sqrt(own.size)
                worst = own[: max(own.size // 10, 1)].mean()
                cells.append(f"{own.mean():.3f} ({half:.3f}), {worst:.3f}")
            print(f"| {rounds:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
