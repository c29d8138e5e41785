"""What a colleague would say before an agent sets out: a line for each thing that makes learning slow or hopeless."""

from psconrl.learning.player import Player
from psconrl.learning.sampler import Sampler

MANY = 1000  # pairs, and rounds, from which on it is worth saying
OFTEN = 2  # times that a pair should be visited, on average


def advice(agent: Player, rounds: int, maximise: bool) -> list[str]:
    """Lines on a run of so many rounds; ``maximise``: the objective is a reward."""
    lines = [agent.why_slow()]
    if isinstance(agent, Sampler):
        lines += [_few_rounds(agent, rounds), _no_hope(agent, maximise and rounds >= MANY)]
    return [line for line in lines if line]


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
