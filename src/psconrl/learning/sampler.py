"""The base class of posterior samplers: a belief to sample from, a schedule, and a planner with a warm start."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, diags_array

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import integers, listed, maybe, read_fields, reals
from psconrl.errors import AgentError, CostsWarning, SolverError, StructureWarning
from psconrl.learning.argument_checks import as_optimistic_cost, as_weight, checked_distributions, need_all_actions
from psconrl.learning.episode_planner import EpisodePlanner
from psconrl.learning.part import Part
from psconrl.learning.parts.fallbacks import NO_LIMITS
from psconrl.learning.parts.schedules import Ouyang, Schedule
from psconrl.learning.past_rounds import PastRounds, records_of
from psconrl.learning.posterior.candidates import Candidates
from psconrl.learning.posterior.cost_beliefs import CostBelief, EmpiricalMeans, Hints
from psconrl.learning.posterior.counts import Record
from psconrl.learning.posterior.learned_mass import WORTHS, LearnedMass
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.learning.posterior.tied import Tied
from psconrl.learning.posterior.transition_beliefs import Belief, Dirichlet, Doubted
from psconrl.learning.runtime.constraint_names import ConstraintNames, Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.episode_plan import EpisodePlan
from psconrl.learning.system_agent import SystemAgent
from psconrl.model.cmdp import CMDP
from psconrl.model.transition import Transition
from psconrl.systems.reports import Report
from psconrl.systems.system import System

# Bytes for every transition of a sample: parameters, work space for sampling, and the planned model.
ENTRY_BYTES = 40
# Rough planning time of a sample in seconds, per cubed number of states if dense, per entry if sparse; and the time
# from which on to warn.
PER_STATE_CUBED, PER_ENTRY = 1e-9, 1e-6
SLOW_SECONDS = 1.0
MOST_ENTRIES = 2**31 - 1
# Weight in observations of a pair from which on its transitions count as known rather than learned.
KNOWN_WEIGHT = 10.0
LEAST_WORTH = 1e-50
# Rounds after which it is worth a warning that the objective was 0 in all of them.
WITHOUT_COST = 100


class Sampler(SystemAgent):
    """A posterior sampler: it draws a model from its belief for every episode, and plans in it."""

    parts: ClassVar[Mapping[str, Part | None]] = {  # as published
        "belief": Dirichlet(),
        "schedule": Ouyang(),
        "cost_belief": EmpiricalMeans(),
    }
    parts_for_systems: ClassVar[Mapping[str, Part]] = {}  # that replace default ones if the structure is known
    belief: Belief
    schedule: Schedule
    cost_belief: CostBelief

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        belief: Belief | None = None,
        schedule: Schedule | None = None,
        cost_belief: CostBelief | None = None,
        optimistic_cost: float | None = None,
        guessed_costs: ArrayLike | None = None,
        cost_weight: ArrayLike | None = 1.0,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.belief = self._part("belief", belief)
        if "schedule" in self.parts:  # else the agent plans at fixed rounds
            self.schedule = self._part("schedule", schedule)
        self.cost_belief = self._part("cost_belief", cost_belief)
        entries = self.belief.entries(self.n_states, self.n_actions)
        self._need(ENTRY_BYTES * entries)
        if entries >= MOST_ENTRIES:
            raise AgentError(
                f"a sample of {entries:,.0f} transitions is more than can be numbered; say which are possible"
            )
        self.optimistic_cost = as_optimistic_cost(optimistic_cost)
        self.guessed_costs = None if guessed_costs is None else self._as_costs(guessed_costs, "guessed_costs")
        self.cost_weight = None
        if cost_weight is not None:
            self.cost_weight = as_weight(cost_weight, "cost_weight", self.n_states, self.n_actions)
        self._warn_if_only_costs_are_unknown()
        self.planner = EpisodePlanner(self.n_states, self.n_actions)
        self.sampled: Transition | None = None  # the sampled model of the present episode, for inspection
        self.sampled_in_doubt = False  # whether it was drawn in doubt of the belief

    def why_hopeless(self, maximise: bool | None) -> str:
        """Return a line of advice if actions that were never tried look no better than those that were."""
        if maximise is False or not self._lacks_bounds or not self.cost_belief.untried_is_free:
            return ""
        tried = self.counts.pairs > 0
        remedy = "Give optimistic_cost, minus the largest reward of a round"
        if maximise:
            return (
                "the objective is a reward that is learned, and nothing says how large it can be: "
                f"{quoted(self.recipe)} takes actions that were never tried to pay 0, and may never try them, even in "
                f"states that it often visits. {remedy}"
            )
        untried = (tried.any(axis=1) & ~tried.all(axis=1)).any()
        if self.rounds < WITHOUT_COST or not untried or self.counts.cost_sums[0].any():
            return ""
        return (
            f"the objective was 0 in all {self.rounds:,} rounds so far, which is what {quoted(self.recipe)} expects of "
            "actions that were never tried: if the objective can be negative, as a reward is, they may never be tried. "
            f"{remedy}"
        )

    def _warn_if_only_costs_are_unknown(self) -> None:
        """Warn if the transitions are as good as known but nothing is known about the costs of any pair."""
        weight = self.belief.prior_weight()
        nothing = self.costs is None and self.guessed_costs is None and self.optimistic_cost is None
        if nothing and weight >= KNOWN_WEIGHT:
            warnings.warn(
                f"the belief is worth {weight:g} observations of a pair, but nothing is said of the costs, so the "
                "agent has to learn them pair by pair. Give costs or guessed_costs, which may be rough; "
                "trusting(model, weight) takes both from a model",
                CostsWarning,
                stacklevel=3 if type(self).__init__ is Sampler.__init__ else 4,  # of who made the agent
            )

    @classmethod
    def trusting(cls, model: CMDP, weight: ArrayLike | None = None, **options: Any) -> Self:
        """Build an agent that begins with a model of the system, worth ``weight`` observations of every pair.

        ``weight``: a number, or one for every pair, (S, A); None to learn the weight of the model, too. Where the
        model is wrong, experience outweighs it; a transition it holds to be impossible is believed once observed. If
        no costs are given as known, the model's costs are guesses of the same weight, or of a learned one. The model's
        thresholds apply unless others are given.

        >>> import psconrl
        >>> from psconrl.agents import PSConRL
        >>> PSConRL.trusting(psconrl.load("queue"), weight=20, seed=1).belief
        Dirichlet(prior=sparse(60, 10))
        """
        known = trusted(model, weight) | {"thresholds": model.thresholds}
        if isinstance(options.get("thresholds"), Mapping):
            options["thresholds"] = model.with_thresholds(options["thresholds"]).thresholds
        if options.get("costs") is not None:  # known costs need no guesses
            del known["guessed_costs"], known["cost_weight"]
        make: Any = cls
        agent: Self = make(model.n_states, model.n_actions, **(known | options))
        agent._named_thresholds.names = ConstraintNames.of(model.cost_names[1:], model.at_least)
        return agent

    @classmethod
    def of(cls, system: System, *, progress: Report | None = None, **options: Any) -> Self:
        """Build an agent that knows a system, except for the unknown parameters of its noise.

        The costs are known functions of the noise, so that nothing else has to be learned. Every state informs about
        all others, so that no state has to be visited for its own sake. ``PSConRL`` therefore plays the policy of least
        excess where a sample is infeasible, instead of exploring, and ends no episode because of a visit, unless
        another ``fallback`` or ``schedule`` is given.

        In live use the agent takes and returns tables of values in place of numbers: ``agent.act({"shelf": 4})``
        returns an available action such as ``{"order": 2}``. ``agent.observe(action, next_state)`` calculates the
        costs, if none are given; ``noise={"demand": 3}`` says what was seen of the noise.

        ``progress``: called with a line of text from time to time if it takes long, for example ``print``.

        >>> from psconrl.systems.noise import Bernoulli
        >>> from psconrl.systems.priors import Beta
        >>> from psconrl.agents import PSConRL
        >>> lamp = System(state={"on": 2}, action={"wait": 1}, noise={"switch": Bernoulli(Beta())},
        ...     step={"on": "switch"}, costs={"heat": "on"}, minimise="heat")
        >>> PSConRL.of(lamp, seed=1).belief
        Structured(switch ~ Beta(1, 1))
        """
        if not isinstance(system, System):
            raise AgentError(f"of needs a System; for a model write trusting(model, weight); got {quoted(system)}")
        return cls._made_for(system, {**cls.parts_for_systems} | options, progress)

    def doubts(self) -> tuple[str, ...] | None:
        """Return what is wrong with the system or the models that the agent was given; None if it was given none."""
        return None if self.belief.doubts is None else tuple(self.belief.doubts.values())

    def why_slow(self) -> str:
        """Return a line on slow planning, estimated from the size of a sample; empty if planning is fast."""
        entries = self.belief.entries(self.n_states, self.n_actions)
        dense = entries >= self.n_states**2 * self.n_actions
        seconds = PER_STATE_CUBED * self.n_states**3 if dense else PER_ENTRY * entries
        if seconds < SLOW_SECONDS:
            return ""
        line = f"an episode may take {seconds:.0f} s of planning: {entries:,.0f} transitions count as possible"
        if _of_states(vars(self.belief), "prior", "support"):  # the possible transitions have been given
            return f"{line}. agent.plan_in_background() lets it act meanwhile"
        return f"{line}. Say which are (belief=LearnedMass(support=...), or learn --support)"

    def knows_states(self) -> str:
        """Return the name of an option with a value per state: costs, guessed costs, prior or support; else empty."""
        own = _of_states(vars(self), "costs", "guessed_costs")
        if isinstance(self.belief, Candidates | Structured | Tied):
            return own or f"a belief, {type(self.belief).__name__},"
        return own or _of_states(vars(self.belief), "prior", "support")

    def _draw(self, doubted: Doubted | None = None) -> Transition:
        """Draw a model from the belief, perhaps in doubt; check it if the belief is a user's own."""
        known = self.doubts() or ()
        self.sampled_in_doubt = doubted is not None
        if doubted is None:
            drawn = self.belief.sample(self.counts, self.rng)
        else:
            drawn = self.belief.sample_in_doubt(self.counts, doubted, self.rng)
        for doubt in self.doubts() or ():
            if doubt not in known:
                warnings.warn(f"what the agent was given is wrong: {doubt}", StructureWarning, stacklevel=2)
        self.sampled = drawn if self._trusted else checked_distributions(drawn, self.n_states, self.n_actions)
        return self.sampled

    def _episode_costs(self, *, in_doubt: bool = False) -> Floats:
        """Return the costs to plan an episode with: the known ones, or those drawn from the cost belief."""
        if self.costs is not None:
            return self.costs
        determined = self.belief.costs()
        if determined is not None:
            return determined if self._trusted else self._as_costs(determined, "costs of a belief")
        hints = Hints(self.optimistic_cost, self.guessed_costs, self.cost_weight)
        draw = self.cost_belief.costs_in_doubt if in_doubt else self.cost_belief.costs
        drawn = draw(self.counts, hints, self.rng)
        return drawn if self._trusted else self._as_costs(drawn, "costs of a cost_belief")

    @property
    def _learns_costs(self) -> bool:
        """True if costs are learned pair by pair."""
        return self.costs is None and not self.belief.determines_costs

    def _hopeful_costs(self) -> Floats:
        """Return the means of the costs so far; an untried pair has the best possible ones."""
        weight = 1.0 if self.cost_weight is None else self.cost_weight
        means = self.counts.hopeful_costs(self.optimistic_cost, self.guessed_costs, weight)
        if self.guessed_costs is None:
            means[1:, self.counts.pairs == 0] = means[1:].min(axis=(1, 2), initial=0.0)[:, None]
        return means

    def _minimising(
        self, P: Transition, cost: Floats, state: int, kind: str, basis: EpisodePlan, constant: float = 0.0
    ) -> Episode:
        """Return an episode of the policy of least cost (1, S, A) in a model, whatever the constraints.

        ``basis``: the rest of its plan. ``constant``: is subtracted from the cost.
        """
        max_steps, caps = self.schedule.caps(self.counts)
        try:
            choice = self.planner.optimal(P, cost, NO_LIMITS, state)
        except SolverError:  # the sample cannot be solved in floating point
            choice = None
        if choice is None:
            uniform = Episode.uniform(self.n_states, self.n_actions, max_steps, caps, "unsettled")
            return replace(uniform, plan=basis)
        basis = replace(basis, model=choice.model, policy=choice.policy)
        return Episode(choice.policy, max_steps, caps, kind, choice.value - constant, basis)

    def end(self, record: Record) -> None:
        """Learn from an episode."""
        if self.costs is None:
            self.cost_belief.learn(record, self.counts)
        super().end(record)
        if "schedule" in self.parts:
            self.schedule.ended(record.steps)

    def learn_from(self, log: PastRounds) -> Self:
        """Learn from the rounds of a log, whatever policy wrote them, before the first own round; return the agent.

        ``log``: a ``psconrl.data.log.Log`` of the same states and actions. Its rounds count as rounds of the agent, so
        that schedules and planning horizons begin where the log ends. What was spent beyond thresholds was spent by
        others: the agent's own accounts begin at zero.

        >>> from psconrl.agents import PSConRL
        >>> from psconrl.data.log import Log
        >>> log = Log({"at": [0, 1, 1, 0], "do": [0, 1, 1, 0], "spent": [1, 0, 0, 1]}, state="at", action="do",
        ...     costs="spent")
        >>> PSConRL(n_states=2, n_actions=2, thresholds=[], seed=1).learn_from(log).rounds
        3
        """
        if self.rounds or self._play is not None:
            raise AgentError(f"learn_from comes before the first round; the agent has played {self.rounds:,}")
        for record in records_of(log, self.counts, self._learns_costs):
            if self._learns_costs:
                self.cost_belief.learn(record, self.counts)
            self.counts.add(record)
            self.rounds += record.steps
        self.episodes = 1  # the log
        return self

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        last = {"last_policies": list(self.planner.last), "last_weights": self.planner.weights}
        return super().state() | last

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().restore(state)
        policies = listed(integers((self.n_states,), 0, self.n_actions - 1))
        weights = maybe(reals((None,), 0.0))  # None before the first plan
        saved = read_fields(state, {"last_policies": policies, "last_weights": weights})
        self.planner.last, self.planner.weights = tuple(saved["last_policies"]), saved["last_weights"]


def _of_states(options: dict[str, Any], *names: str) -> str:
    """Return the first of some names whose value is an array, or an empty string."""
    return next((name for name in names if getattr(options.get(name), "shape", ())), "")


def trusted(model: CMDP, weight: ArrayLike | None = None) -> dict[str, Any]:
    """Return the options of an agent that begins with a model; see ``Sampler.trusting``."""
    if not isinstance(model, CMDP):
        raise AgentError(f"trusting needs a model, a CMDP; got {type(model).__name__}")
    need_all_actions(model.available)
    P = model.transition.csr()
    if weight is None:
        return {"belief": LearnedMass(WORTHS, support=P), "guessed_costs": model.costs, "cost_weight": None}
    worth = as_weight(weight, "weight", model.n_states, model.n_actions)
    each = np.broadcast_to(worth, (model.n_states, model.n_actions)).ravel()
    if not (each > 0).all():
        raise AgentError("weight must be above 0 for every pair; give a small weight to a pair you do not trust")
    if not ((each >= LEAST_WORTH) & (each <= 1.0 / LEAST_WORTH)).all():
        raise AgentError(f"weight must lie between {LEAST_WORTH:g} and {1.0 / LEAST_WORTH:g}")
    return {"belief": Dirichlet(csr_array(diags_array(each) @ P)), "guessed_costs": model.costs, "cost_weight": worth}
