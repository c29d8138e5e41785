"""What an episode was planned with: the model, the costs, the thresholds and their prices."""

from dataclasses import dataclass

from psconrl.base.arrays import Floats
from psconrl.errors import AgentError
from psconrl.model.cmdp import CMDP
from psconrl.model.transition import Transition


@dataclass(frozen=True, eq=False)
class EpisodePlan:
    """What an agent planned an episode with, for watchers; what it did not have is None.

    ``model``: the transitions that were planned in, as rows ``s * A + a`` (S*A, S); ``model.toarray()`` and
    ``model.csr()`` are the matrix. ``costs`` (m+1, S, A): the costs that were planned with, known, drawn or estimated.
    ``targets`` (m,): the thresholds that ``policy`` keeps in ``model``; a ledger's differ from those of the agent.
    ``prices`` (m,): the shadow prices of the targets, in units of the objective, or the multipliers of an agent that
    learns them. ``policy`` (S, A): the policy of the plan; an agent that commits itself plays another one.
    ``in_doubt``: whether the model was drawn in doubt of the belief. ``sampled``: the transitions that were drawn from
    a posterior; ``model`` differs from them if the agent plans with a planning horizon, or leaves out what it does not
    expect. ``state``: the state that the episode was planned from; if it is None, it is filled in once the agent
    returns its episode. Do not change the arrays: they are the agent's.

    >>> import psconrl
    >>> model = psconrl.load("counterexample")
    >>> agent = psconrl.PSConRL(2, 2, model.thresholds, model.costs, seed=0)
    >>> action = agent.act(0)
    >>> plan = agent.last_episode.plan
    >>> plan.model.toarray().shape, plan.costs.shape
    ((4, 2), (2, 2, 2))
    >>> plan.state, plan.cmdp()
    (0, CMDP(2 states, 2 actions, 1 constraint, dense))
    """

    model: Transition | None = None
    costs: Floats | None = None
    targets: Floats | None = None
    prices: Floats | None = None  # None if no policy keeps the targets
    policy: Floats | None = None  # None if another rule than this plan chose the policy, for example to explore
    in_doubt: bool = False
    sampled: Transition | None = None
    state: int | None = None

    def cmdp(self, state: int | None = None) -> CMDP:
        """Return the model, the costs and the targets as a ``CMDP``, for ``psconrl.plan``.

        ``state``: where it starts, by default in the state that the episode was planned from.
        """
        if self.model is None or self.costs is None or self.targets is None:
            raise AgentError("the plan of this episode has no model with costs and targets")
        start = state if state is not None else self.state or 0
        return CMDP(self.model.matrix, self.costs, self.targets, initial=start)
