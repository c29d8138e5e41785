r"""The constrained Markov decision process, validated on construction.

.. math:: \min_\pi J^\pi(c_0) \quad\text{subject to}\quad J^\pi(c_i) \le \tau_i,\ i = 1, \dots, m,
          \qquad J^\pi(c) = \limsup_T \tfrac1T\, E^\pi \sum_{t=1}^T c(s_t, a_t)

(Altman 1999; Provodin et al. 2024, section 2). Transitions are one matrix of shape (S*A, S), dense or CSR, whose row
``s * A + a`` is the distribution of the next state; see ``model.transition``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Bools, Floats, Matrix
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.model import validation
from psconrl.model.gymnasium_table import cost_names, read_table
from psconrl.model.layout import GridLayout
from psconrl.model.names import Names
from psconrl.model.rates import costs_of_time, uniformised
from psconrl.model.thresholds import in_order
from psconrl.model.transition import Transition
from psconrl.model.units import Units, read_units


@dataclass(frozen=True, eq=False, init=False)
class CMDP:
    """A constrained Markov decision process under the long-run average criterion.

    ``transition``: (S, A, S) array, or (S*A, S) dense or sparse. ``costs``: (m+1, S, A), or (m+1, S, A, S) if they
    depend on the next state; cost 0 is the objective (minimised), costs 1..m are kept at or below ``thresholds``.
    ``thresholds``: (m,) in the order of the costs, or by name. ``initial``: a state (index or name) or a distribution.
    ``available``: (S, A) mask of the actions that exist. ``state_names``, ``action_names``, ``cost_names``: shown in
    messages, tables and figures. ``maximise``: whether cost 0 is a negated reward, which plans show as a reward.
    ``units``: the duration of a round and the units of costs, see ``psconrl.Units``; they are shown next to all
    numbers. ``at_least``: names of costs that are negated quantities to be kept at or above a threshold; plans show the
    quantity. ``layout``: where the states are on a map, for figures.

    >>> m = CMDP([[[1, 0], [0.1, 0.9]], [[1, 0], [1, 0]]], costs=[[[0, 0], [1, 1]], [[1, 1], [0, 0]]], thresholds=[0.6])
    >>> m
    CMDP(2 states, 2 actions, 1 constraint, dense)
    """

    transition: Transition
    costs: Floats
    thresholds: Floats
    initial: Floats
    available: Bools
    outcome_costs: tuple[Matrix | None, ...]
    state_names: tuple[str, ...] | None
    action_names: tuple[str, ...] | None
    cost_names: tuple[str, ...]
    maximise: bool
    layout: GridLayout | None
    units: Units
    at_least: frozenset[str]

    def __init__(
        self,
        transition: Any,
        costs: Any,
        thresholds: ArrayLike | Mapping[str, float] = (),
        *,
        initial: int | str | ArrayLike = 0,
        available: ArrayLike | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        cost_names: Sequence[str] | None = None,
        maximise: bool = False,
        layout: GridLayout | None = None,
        units: Units | Mapping[str, Any] | None = None,
        at_least: Iterable[str] = (),
    ) -> None:
        P, n_actions = validation.read_transition(transition)
        S, A = P.shape[1], n_actions
        mask = validation.read_mask(available, S, A)
        P = validation.check_transition_rows(P, mask)
        expected, outcomes = validation.read_costs(costs, P, mask)
        m = expected.shape[0] - 1
        names = validation.read_names(cost_names, m + 1, "cost_names") or validation.default_cost_names(m, maximise)
        states = validation.read_names(state_names, S, "state_names")
        if not isinstance(maximise, bool | np.bool_):
            raise ModelError(f"maximise must be True or False; got {quoted(maximise)}")
        floors = validation.read_at_least(at_least, names)
        put = object.__setattr__
        put(self, "transition", Transition.of(validation.frozen(P)))
        put(self, "costs", validation.frozen(expected))
        put(self, "thresholds", validation.frozen(validation.read_thresholds(thresholds, names, floors)))
        put(self, "initial", validation.frozen(validation.read_initial(initial, S, states)))
        put(self, "available", validation.frozen(mask))
        put(self, "outcome_costs", tuple(None if c is None else validation.frozen(c) for c in outcomes))
        put(self, "state_names", states)
        put(self, "action_names", validation.read_names(action_names, A, "action_names"))
        put(self, "cost_names", names)
        put(self, "maximise", bool(maximise))
        put(self, "layout", layout)
        put(self, "units", read_units(units, names))
        put(self, "at_least", floors)
        if layout is not None and len(layout.cells) != S:
            raise ModelError(f"layout must place all {S} states; got {len(layout.cells)} cells")

    @classmethod
    def from_rewards(
        cls,
        transition: Any,
        rewards: ArrayLike,
        costs: Any = (),
        thresholds: ArrayLike | Mapping[str, float] = (),
        **options: Any,
    ) -> Self:
        """Build a model that maximises an average reward under constraints on costs; plans report rewards.

        ``rewards``: (S, A) or (S, A, S). ``costs``: (m, S, A) or (m, S, A, S), as many as ``thresholds``.
        ``transition`` and the other keyword ``options``: as in ``CMDP``.

        >>> CMDP.from_rewards([[[1.0]]], rewards=[[5.0]]).maximise
        True
        """
        reward = validation.as_floats(rewards, "rewards")
        if reward.ndim not in (2, 3):
            raise ModelError(f"rewards must have shape (S, A) or (S, A, S); got {reward.shape}")
        if not isinstance(costs, Iterable):
            raise ModelError(f"costs must have shape (m, S, A) or (m, S, A, S); got {type(costs).__name__}")
        return cls(transition, validation.RewardFirst([-reward, *costs]), thresholds, maximise=True, **options)

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        costs: Any,
        thresholds: ArrayLike | Mapping[str, float] = (),
        *,
        prior: float = 0.0,
        **options: Any,
    ) -> Self:
        """Build the model of observed frequencies, ``(N(s,a,s') + prior) / (N(s,a) + S prior)``.

        ``counts``: (S, A, S) observed transitions N. ``prior``: added to each of them; every pair needs an observation
        or a positive prior. ``costs``, ``thresholds`` and the other keyword ``options``: as in ``CMDP``.

        >>> CMDP.from_counts([[[3, 1]], [[2, 0]]], costs=[[[0], [1]]]).transition.toarray().tolist()
        [[0.75, 0.25], [1.0, 0.0]]
        """
        N, extra = validation.as_floats(counts, "counts"), validation.as_floats(prior, "prior")
        if N.ndim != 3 or N.shape[0] != N.shape[2]:
            raise ModelError(f"counts must have shape (S, A, S); got {N.shape}")
        if not all(np.isfinite(x).all() and (x >= 0).all() for x in (N, extra)):
            raise ModelError("counts and prior must be finite and non-negative")
        N = N + extra
        total = N.sum(axis=2, keepdims=True)
        mask = options.get("available")
        exists = np.ones(N.shape[:2], bool) if mask is None else validation.read_mask(mask, *N.shape[:2])
        empty = np.argwhere((total[:, :, 0] <= 0) & exists)
        if len(empty):
            s, a = empty[0]
            raise ModelError(
                f"counts[{s}, {a}] are all zero ({len(empty)} pairs were never tried). "
                "Give prior > 0, or leave such pairs out with available=..."
            )
        return cls(N / np.maximum(total, 1e-300), costs, thresholds, **options)

    @classmethod
    def from_rates(
        cls,
        rates: Any,
        costs: Any,
        thresholds: ArrayLike | Mapping[str, float] = (),
        *,
        impulses: Any = None,
        sojourn: ArrayLike | None = None,
        uniform_rate: float | None = None,
        available: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Build a model from a process in continuous time (queues, machines, any CTMDP); averages are per unit of time.

        ``rates``: (S, A, S), or (S*A, S) dense or sparse, at which an action leads from a state to another; the
        diagonal may be that of a generator. ``costs``: (m+1, S, A), per unit of time. ``impulses``: the cost of a jump,
        for every cost (S, A), (S, A, S) or None. With ``sojourn``, mean holding times (S, A) of any distribution, the
        process is semi-Markov, and ``rates`` are the probabilities of the next state instead. ``uniform_rate``: rate of
        the clock whose ticks are the rounds; by default slightly above the fastest. See ``psconrl.model.rates``.

        Example: a queue for one customer, open or closed, with arrivals at rate 2 and service at rate 3. The objective
        is the share of time it is full:

        >>> q = [[[0, 2], [0, 0]], [[3, 0], [3, 0]]]
        >>> m = CMDP.from_rates(q, costs=[[[0, 0], [1, 1]]], impulses=[None], available=[[1, 0], [1, 0]])
        >>> import psconrl
        >>> round(psconrl.plan(m).value, 12)
        0.4
        """
        jumps = uniformised(rates, sojourn, available, uniform_rate)
        tables = costs_of_time(costs, impulses, jumps)
        return cls(jumps.transition, tables, thresholds, available=jumps.mask, **options)

    @classmethod
    def from_gymnasium(
        cls,
        env: Any,
        cost: Callable[[int, int, int], Any] | None = None,
        thresholds: ArrayLike | Mapping[str, float] = (),
        *,
        initial: int | ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Build the continuing task of a Gymnasium environment with a table ``P``: FrozenLake, CliffWalking, Taxi.

        States and actions keep their numbers. The average reward is maximised; ``cost(state, action, next_state)``, one
        number or several, is constrained by ``thresholds``. If the thresholds are given by name, the costs take these
        names, in their order. The end of an episode leads to a new start, see ``psconrl.model.gymnasium_table``.

        >>> import gymnasium
        >>> CMDP.from_gymnasium(gymnasium.make("FrozenLake-v1"), cost=lambda s, a, t: t == 5, thresholds=[0.1])
        CMDP(16 states, 4 actions, 1 constraint, dense)
        """
        table = read_table(env, cost, initial)
        costs = [-table.reward, *table.costs]
        if isinstance(thresholds, Mapping) and options.get("cost_names") is None:
            options["cost_names"] = cost_names(thresholds, len(table.costs))
        return cls(table.transition, costs, thresholds, initial=table.initial, maximise=True, **options)

    @property
    def n_states(self) -> int:
        """Number of states S."""
        return self.transition.n_states

    @property
    def n_actions(self) -> int:
        """Number of actions A."""
        return self.transition.n_actions

    @property
    def n_constraints(self) -> int:
        """Number of constraints m."""
        return int(self.thresholds.size)

    @property
    def is_sparse(self) -> bool:
        """True if the transition matrix is stored in CSR form."""
        return self.transition.is_sparse

    @property
    def names(self) -> Names:
        """Names of states, actions and costs, and the units of costs."""
        return Names(self.state_names, self.action_names, self.cost_names, self.maximise, self.units, self.at_least)

    def state_name(self, state: int) -> str:
        """Return the user's name of a state, or its number."""
        return self.state_names[state] if self.state_names else str(state)

    def action_name(self, action: int) -> str:
        """Return the user's name of an action, or its number."""
        return self.action_names[action] if self.action_names else str(action)

    def with_thresholds(self, thresholds: ArrayLike | Mapping[str, float]) -> "CMDP":
        """Return the model with other thresholds; a mapping changes only the named costs, with the sign shown to users.

        >>> import psconrl
        >>> psconrl.load("box").with_thresholds({"corner": 0.5}).thresholds.tolist()
        [0.5]
        """
        if isinstance(thresholds, Mapping):
            thresholds = in_order(thresholds, self.cost_names[1:], self.at_least, self.thresholds)
        limits = validation.read_thresholds(thresholds, self.cost_names, self.at_least)
        return self._replaced(thresholds=validation.frozen(limits))

    def with_costs(self, costs: Any) -> "CMDP":
        """Return the model with other costs, as many as before; names, units and thresholds stay.

        >>> import psconrl
        >>> box = psconrl.load("box")
        >>> bool((box.with_costs(2.0 * box.costs).costs == 2.0 * box.costs).all())
        True
        """
        expected, outcomes = validation.read_costs(costs, self.transition.matrix, self.available)
        if len(expected) != len(self.costs):
            raise ModelError(f"costs must be {len(self.costs)} tables, as before; got {len(expected)}")
        return self._replaced(costs=validation.frozen(expected), outcome_costs=tuple(outcomes))

    def with_expected_costs(self, tables: Mapping[int, ArrayLike]) -> "CMDP":
        """Return the model with stated expectations (S, A) of costs by next state, which must agree up to rounding."""
        expected = validation.stated_expectations(tables, self)
        return self._replaced(costs=validation.frozen(expected))

    def with_initial(self, initial: int | str | ArrayLike) -> "CMDP":
        """Return the model with another initial state or distribution."""
        return self._replaced(
            initial=validation.frozen(validation.read_initial(initial, self.n_states, self.state_names))
        )

    def restarting(self, state: int | str, probability: float) -> "CMDP":
        """Return the model that starts in a state, and at every step returns there with the given probability.

        Its long-run averages are averages over 1 / ``probability`` rounds, in expectation, from that state.

        >>> import psconrl
        >>> psconrl.load("box").restarting(3, 0.01).initial.nonzero()[0].tolist()
        [3]
        """
        share = float(validation.as_floats(probability, "probability"))
        if not 0.0 <= share <= 1.0:
            raise ModelError(f"probability must lie in [0, 1]; got {quoted(probability)}")
        initial = validation.read_initial(state, self.n_states, self.state_names)
        if initial.max() < 1.0:
            raise ModelError(f"restarting needs one state, by name or number; got {quoted(state)}")
        return self._replaced(
            transition=self.transition.restarting(int(initial.argmax()), share),
            initial=validation.frozen(initial),
            outcome_costs=(None,) * len(self.costs),
        )

    def restricted(self, states: ArrayLike) -> "CMDP":
        """Return the model on a closed set of states, which must contain the support of the initial distribution."""
        states = np.asarray(states, dtype=np.int64)
        if ((states < 0) | (states >= self.n_states)).any():
            raise ModelError(f"states must be indices from 0 to {self.n_states - 1}; got {quoted(states.tolist())}")
        pairs = self.transition.pairs_of(states)
        outside = np.ones(self.n_states)
        outside[states] = 0.0
        open_pairs = np.flatnonzero((self.transition @ outside)[pairs])
        if open_pairs.size:
            s, a = divmod(int(pairs[open_pairs[0]]), self.n_actions)
            raise ModelError(
                f"states must be a set that no transition leaves; action {quoted(self.action_name(a))} leaves it "
                "from state "
                f"{quoted(self.state_name(s))} ({open_pairs.size} pairs leave). Add the states that they lead to."
            )
        return CMDP(
            self.transition.restrict(states),
            [
                self.costs[i][states] if outcome is None else outcome[pairs][:, states]
                for i, outcome in enumerate(self.outcome_costs)
            ],
            self.thresholds,
            initial=self.initial[states],
            available=self.available[states],
            state_names=[self.state_names[s] for s in states] if self.state_names else None,
            action_names=self.action_names,
            cost_names=self.cost_names,
            maximise=self.maximise,
            layout=self.layout.restricted(states) if self.layout else None,
            units=self.units,
            at_least=self.at_least,
        )

    def stored(self, transition: Transition) -> "CMDP":
        """Return the model with its transitions stored in another format."""
        return self if transition is self.transition else self._replaced(transition=transition)

    def _replaced(self, **changes: Any) -> "CMDP":
        other = object.__new__(CMDP)
        for name in self.__dataclass_fields__:
            object.__setattr__(other, name, changes.get(name, getattr(self, name)))
        return other

    def __repr__(self) -> str:
        m = self.n_constraints
        kind = "sparse" if self.is_sparse else "dense"
        return f"CMDP({self.n_states} states, {self.n_actions} actions, {m} constraint{'' if m == 1 else 's'}, {kind})"


def need_model(cmdp: object, asked: str) -> None:
    """Raise an error that names the type of the object passed in place of a model."""
    if not isinstance(cmdp, CMDP):
        raise ModelError(f"{asked} needs a CMDP; psconrl.load reads one from a file. Got {type(cmdp).__name__}")
