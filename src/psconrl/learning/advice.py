"""Advice to the user: before a run, on what makes learning slow or hopeless; after it, on the last plan."""

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.sizes import ADVISED_STATES, FEWEST_FOR_ADVICE
from psconrl.learning.agents.psconrl import PSConRL
from psconrl.learning.parts.doubt import UNKNOWN, WALLS, Budget
from psconrl.learning.parts.ledger import promises
from psconrl.learning.runtime.constraint_names import ConstraintNames
from psconrl.learning.runtime.player import Player
from psconrl.learning.sampler import Sampler
from psconrl.markov.evaluation import evaluate
from psconrl.model.cmdp import CMDP
from psconrl.planning.planner import plan_model

OFTEN = 2  # visits that a pair should have on average
WARNED_SHARE = 0.05  # share of the rounds
WARNED_DISTANCE = 0.1  # share of the range of a cost
WARNED_COST = 0.01  # share of the range of the objective in all rounds


def advice(agent: Player, rounds: int, maximise: bool) -> list[str]:
    """Return advice on a run of ``rounds`` rounds, as lines; ``maximise``: the objective is a reward."""
    hopeless = agent.why_hopeless(maximise)
    unclear = not hopeless and rounds >= FEWEST_FOR_ADVICE
    lines = [agent.why_slow(), hopeless, agent.why_short_sighted(maximise) if unclear else ""]
    if isinstance(agent, Sampler):
        lines += [_few_rounds(agent, rounds), _infeasible_guess(agent)]
    return [line for line in lines if line]


def hindsight(agent: Player, state: int, maximise: bool = False, limits: ConstraintNames | None = None) -> list[str]:
    """Return remarks on the plan that the agent played last, as lines; ``state`` is where the run ended.

    ``limits``: names of the constraints, if the agent does not know them.
    """
    if not isinstance(agent, Sampler) or not agent.rounds or agent.n_states > ADVISED_STATES:
        return []
    found = [_searched(agent, state)] if isinstance(agent, PSConRL) else []
    return [line for line in (*found, *_remarks(agent, state, maximise, limits)) if line]


def _searched(agent: PSConRL, state: int) -> str:
    """Say what it cost to look for ways to states out of reach, if it is much."""
    far = ~agent.counts.reached_from(state)
    if not isinstance(agent.doubt, Budget) or not far.any():
        return ""
    spent = float(agent.doubt.spent[[WALLS, UNKNOWN]].sum())
    most = agent.rounds * float(np.ptp(agent.counts.mean_costs(None)[0] if agent.costs is None else agent.costs[0]))
    if spent < WARNED_COST * most:
        return ""
    return (
        f"{int(far.sum())} of {agent.n_states} states were out of reach, and looking for ways to them cost {spent:.3g} "
        "of the objective, violations at their prices included. If there are none, leave these states out, or say "
        "which transitions are possible (belief=LearnedMass(support=...), or learn --support)"
    )


def _remarks(agent: Sampler, state: int, maximise: bool, limits: ConstraintNames | None) -> list[str]:
    """Return remarks on what the last plan promises."""
    episode = agent.last_episode
    if agent.sampled_in_doubt:  # what it promises need not be believed
        return []
    if agent.sampled is None or episode is None or not promises(episode.kind) or episode.policy.ndim != 2:
        return []
    determined = agent.belief.costs() if agent.costs is None else agent.costs
    costs = agent.counts.mean_costs(None) if determined is None else determined
    model = CMDP(agent.sampled, costs, agent.thresholds, initial=state)
    ever = evaluate(model, episode.policy)
    soon = evaluate(model.restarting(state, 1.0 / agent.rounds), episode.policy)
    return [_never_visited(agent, ever.occupancy), _slow(agent, maximise, limits, model, ever.costs, soon.costs)]


def _few_rounds(agent: Sampler, rounds: int) -> str:
    """Warn of too few rounds to visit every pair twice, if nothing is known about the transitions."""
    pairs = agent.n_states * agent.n_actions
    if agent.belief.determines_costs:  # pairs inform about each other
        return ""
    if min(pairs, rounds) < FEWEST_FOR_ADVICE or rounds >= OFTEN * pairs or agent.belief.prior_weight():
        return ""
    return (
        f"{pairs:,} pairs of states and actions, {rounds:,} rounds: most pairs will be seen once at most. Say which "
        "transitions are possible (belief=LearnedMass(support=...), or learn --support), or begin with a model "
        "(PSConRL.trusting, or learn --trust)"
    )


def _infeasible_guess(agent: Sampler) -> str:
    """Warn if no policy of the model that the agent begins with satisfies the constraints."""
    guess, costs = agent.belief.guess(), agent.guessed_costs if agent.costs is None else agent.costs
    if agent.rounds or guess is None or costs is None or agent.n_states > ADVISED_STATES:
        return ""
    names = agent.constraint_names
    model = CMDP(guess, costs, agent.thresholds, cost_names=None if names is None else ["objective", *names.names])
    if not model.transition.communicates:  # feasibility may depend on the initial state
        return ""
    found = plan_model(model)
    if found.feasible:
        return ""
    return f"in the model that the agent begins with, {found.infeasibility} It explores until it has learned otherwise"


def _never_visited(agent: Player, occupancy: Floats) -> str:
    unseen = agent.counts.pairs.sum(axis=1) == 0
    share = float(occupancy[unseen].sum())
    if share < WARNED_SHARE:
        return ""
    return (
        f"the last plan expects to spend {100 * share:.0f}% of the rounds in states that were never visited "
        f"({int(unseen.sum())} of {agent.n_states} were not): what it promises is a guess"
    )


def _slow(agent: Player, maximise: bool, given: ConstraintNames | None, model: CMDP, ever: Floats, soon: Floats) -> str:
    """Warn if the plan's long-run averages differ from its averages over as many rounds as the run lasted."""
    ranges = np.array([np.ptp(cost) for cost in model.costs])
    apart = np.abs(soon - ever) / np.where(ranges > 0.0, ranges, 1.0)
    i = int(apart.argmax())
    if apart[i] < WARNED_DISTANCE:
        return ""
    numbered = ConstraintNames.of(f"limited cost {k}" for k in range(1, agent.n_costs))
    limits = agent.constraint_names or given or numbered
    name = ("the objective", *limits.names)[i]
    sign = -1.0 if (maximise if i == 0 else name in limits.at_least) else 1.0
    return (
        f"for {name}, the last plan promises {sign * ever[i] + 0.0:.3g} in the long run, but "
        f"{sign * soon[i] + 0.0:.3g} over as many rounds from here as the run had, {agent.rounds:,}: it is slow"
    )
