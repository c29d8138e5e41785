"""What a colleague would say before a run, of what makes learning slow or hopeless, and after it, of the last plan."""

import numpy as np

from psconrl.arrays import Floats
from psconrl.learning.parts.ledger import promises
from psconrl.learning.player import Player
from psconrl.learning.sampler import Sampler
from psconrl.model.cmdp import CMDP
from psconrl.model.evaluation import evaluate
from psconrl.planning.planner import plan
from psconrl.planning.settling import rounds_to_settle

MANY = 1000  # pairs, and rounds, from which on it is worth saying
OFTEN = 2  # times that a pair should be visited, on average
CHECKED_STATES = 500  # of a model that is planned or evaluated only to say something of it
MUCH = 0.05  # of the rounds


def advice(agent: Player, rounds: int, maximise: bool) -> list[str]:
    """Lines on a run of so many rounds; ``maximise``: the objective is a reward."""
    lines = [agent.why_slow()]
    if isinstance(agent, Sampler):
        lines += [_few_rounds(agent, rounds), _no_hope(agent, maximise and rounds >= MANY), _infeasible_guess(agent)]
    return [line for line in lines if line]


def hindsight(agent: Player, state: int) -> list[str]:
    """Lines on the plan that an agent played last, for a run that has ended in a state."""
    episode, sampled = agent.last_episode, agent.sampled if isinstance(agent, Sampler) else None
    if sampled is None or episode is None or agent.n_states > CHECKED_STATES:
        return []
    if not promises(episode.kind) or episode.policy.ndim != 2:
        return []
    costs = agent.counts.mean_costs(None) if agent.costs is None else agent.costs
    model = CMDP(sampled, costs, agent.thresholds, initial=state)
    exact = evaluate(model, episode.policy)
    return [
        line for line in (_never_visited(agent, exact.occupancy), _slow(agent, rounds_to_settle(model, exact))) if line
    ]


def _few_rounds(agent: Sampler, rounds: int) -> str:
    """Fewer rounds than it takes to visit every pair twice, and nothing is known of where they lead."""
    pairs = agent.n_states * agent.n_actions
    if min(pairs, rounds) < MANY or rounds >= OFTEN * pairs or agent.belief.told():
        return ""
    return (
        f"{pairs:,} pairs of states and actions, {rounds:,} rounds: most pairs will be seen once at most. Say which "
        "transitions are possible (belief=LearnedMass(support=...), or learn --support), or begin with a model "
        "(PSConRL.trusting, or learn --trust)"
    )


def _no_hope(agent: Sampler, maximise: bool) -> str:
    """Rewards that are learned, and nothing is said of how large they can be."""
    if not maximise or agent.costs is not None or agent.guessed_costs is not None or agent.optimistic_cost is not None:
        return ""
    return (
        "the objective is a reward that is learned, and nothing says how large it can be: a large one far away may "
        "never be looked for. Give optimistic_cost, minus the largest reward of a round"
    )


def _infeasible_guess(agent: Sampler) -> str:
    """No policy of the model that the agent begins with keeps the limits."""
    guess, costs = agent.belief.guess(), agent.guessed_costs if agent.costs is None else agent.costs
    if agent.rounds or guess is None or costs is None or agent.n_states > CHECKED_STATES:
        return ""
    names = agent.limit_names
    model = CMDP(guess, costs, agent.thresholds, cost_names=None if names is None else ["objective", *names.names])
    if not model.transition.communicates:  # what can be kept may depend on where it begins
        return ""
    found = plan(model)
    if found.feasible:
        return ""
    return f"in the model that the agent begins with, {found.infeasibility} It explores until it has learned otherwise"


def _never_visited(agent: Player, occupancy: Floats) -> str:
    unseen = agent.counts.pairs.sum(axis=1) == 0
    share = float(occupancy[unseen].sum())
    if share < MUCH:
        return ""
    return (
        f"the last plan expects to spend {100 * share:.0f}% of the rounds in states that were never visited "
        f"({int(unseen.sum())} of {agent.n_states} were not): what it promises is a guess"
    )


def _slow(agent: Player, settles: float) -> str:
    if not agent.rounds < settles < np.inf:
        return ""
    return (
        f"the averages of the last plan are final after {settles:,.0f} rounds only, and the run had {agent.rounds:,}: "
        "what it promises may be far from what happens"
    )
