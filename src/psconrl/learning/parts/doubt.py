r"""Doubt: when to plan for what the belief holds to be nearly impossible.

A learned belief can become certain too soon. Where all other rows are deterministic, a door that stays shut four times
in a row is taken for a wall, and no later sample opens it: the agent gives up what is behind the door, for ever. So
some episodes doubt the belief. There are four things to doubt.

1. *Walls.* The model communicates, so a state that the transitions seen so far do not reach from the present one can be
   reached all the same. If all pairs on the way have been tried, one of them leads out, however often it did not.
   Choose a state out of reach, and plan as if every row that may lead there had led there once more than it has: a row
   of n visits then leads there with probability 1/(n + 1), and the agent tries the rows that it tried least, if the
   state is worth it. Rows of more than :math:`\sqrt t` visits are left out, unless all are: rather than to try others,
   a plan might wait for an event that is not expected within an episode.
2. *The unknown.* If some pairs on the way are untried, samples lead the agent to them, but a state behind several of
   them seems out of reach if each leads anywhere. Plan as if all untried pairs led to the state.
3. *Costs* of untried pairs, if they are learned and no state is out of reach. Plan as if they were the best possible,
   and as if an untried pair could be repeated, since it led back to its own state.
4. *Shortcuts* between states that are reached anyway. Draw every row with a prior of the mass of one observation,
   whatever the mass that was learned.

The last three are for agents that have come to rest, since half of their rounds were without a first visit of any pair,
and for those whose last sample without doubt was infeasible. In all but the first, learned costs are drawn given the
observations of each pair alone. A way through a wall must exist, the others need not. None may cost much. Let J be the
value and :math:`\lambda` the prices of the last plan without doubt. An episode of L rounds in doubt costs
:math:`\sum_t (c_0 + \lambda (c - \tau)) - L J`, and no policy gains more than
:math:`G = J - \min_{s,a} (c_0 + \lambda (c - \tau))` per round. The agent doubts in every other episode at most, and
only if what doubts of the kind have cost, plus the most that one of them has cost, is at most
:math:`\kappa\, G \sqrt t`. So they cost little more than that. They never stop, but become rare unless they are free.
While no plan without doubt meets the thresholds, they are free.
"""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.saved_fields import integers, need_that, read_fields, reals
from psconrl.learning.argument_checks import as_nonnegative
from psconrl.learning.part import Part
from psconrl.learning.parts.schedules import root_of_rounds
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.posterior.transition_beliefs import Doubted
from psconrl.model.matrix_product import product

WALLS, UNKNOWN, UNTRIED, SHORTCUTS = range(4)  # what is doubted, each with an account
KINDS = 4
NO_DOUBT = -1


class Doubt(Part):
    """The rule for the episodes in which the agent doubts its belief."""

    kind: ClassVar[str] = "doubt"
    example: ClassVar[str] = "Budget()"
    may_be_missing: ClassVar[bool] = True

    @abstractmethod
    def begin(
        self, counts: Counts, state: int, rng: np.random.Generator, *, learns_costs: bool = False
    ) -> Doubted | None:
        """Return what to doubt in the next episode, which begins in ``state``; None for no doubt."""

    @abstractmethod
    def refer(self, value: float, prices: Floats, costs: Floats, thresholds: Floats) -> None:
        """Note the Lagrangian value and the prices of a plan without doubt, for these costs (m+1, S, A)."""

    @abstractmethod
    def refer_to_nothing(self) -> None:
        """Note that without doubt no plan meets the thresholds: doubts cost nothing until there is one."""

    @abstractmethod
    def enter(self, record: Record, *, interim: bool = False) -> None:
        """Enter an episode, in doubt or not; ``interim``: it continued the last policy while the next was planned."""

    @abstractmethod
    def begin_again(self) -> None:
        """Forget all costs: the thresholds have changed."""


class Reference(NamedTuple):
    """A plan without doubt, with which an episode is compared."""

    value: float  # of its Lagrangian; nan if no plan meets the thresholds
    prices: Floats  # (m,)
    thresholds: Floats  # (m,)

    def loss(self, record: Record) -> float:
        r"""Return :math:`\sum_t (c_0 + \lambda (c - \tau)) - L J` for an episode of L rounds; 0 if there is no plan."""
        if np.isnan(self.value):
            return 0.0
        spent = record.cost_sums.sum(axis=1)
        excess = product(self.prices, spent[1:] - record.steps * self.thresholds)
        return float(spent[0] + excess - record.steps * self.value)

    def as_array(self) -> Floats:
        """Return all numbers, (1 + 2 m,)."""
        return np.concatenate([[self.value], self.prices, self.thresholds])

    @classmethod
    def of_array(cls, numbers: Floats) -> "Reference":
        """Return the reference that ``as_array`` returned."""
        m = numbers.size // 2
        return cls(float(numbers[0]), numbers[1 : 1 + m], numbers[1 + m :])


class Budget(Doubt):
    r"""Doubt while it costs less than :math:`\kappa\, G \sqrt t`.

    ``walls``, ``unknown``, ``untried``, ``shortcuts``: :math:`\kappa` for each of them, ``untried`` for the costs of
    untried pairs. If shortcuts and another kind are affordable, one of the two is drawn. The state that is doubted to
    be out of reach is that with the best action at the last prices, or any, with probability 1/2 each.
    """

    name: ClassVar[str] = "budget"

    def __init__(
        self, walls: float = 5.0, unknown: float = 1.0, untried: float = 0.05, shortcuts: float = 0.01
    ) -> None:
        self.walls = as_nonnegative(walls, "walls")
        self.unknown = as_nonnegative(unknown, "unknown")
        self.untried = as_nonnegative(untried, "untried")
        self.shortcuts = as_nonnegative(shortcuts, "shortcuts")
        self._prepare(0, 0, 0)

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        nothing = Reference(np.nan, np.zeros(n_constraints), np.zeros(n_constraints))
        self.spent: Floats = np.zeros(KINDS)
        self.largest: Floats = np.zeros(KINDS)  # cost of an episode in doubt
        self._planned, self._played = NO_DOUBT, NO_DOUBT  # what the next and the last episode doubt
        self._reference, self._played_reference = nothing, nothing
        self._rested = False  # whether the last episode was without doubt
        self._tried, self._last_new = 0, 0  # number of pairs tried, and the round after which it had risen last
        self._best: Floats = np.zeros(n_states)  # the least Lagrangian cost in every state

    def begin(
        self, counts: Counts, state: int, rng: np.random.Generator, *, learns_costs: bool = False
    ) -> Doubted | None:
        """Doubt what is affordable, unless the last episode was in doubt."""
        self._planned = NO_DOUBT
        rounds, tried = int(counts.visits.sum()), int(np.count_nonzero(counts.visits))
        if tried > self._tried:
            self._tried, self._last_new = tried, rounds
        affordable = self.spent + self.largest <= self.allowed(rounds)
        affordable[UNKNOWN:] &= rounds >= 2 * self._last_new or np.isnan(self._reference.value)
        if not self._rested or not affordable.any():
            return None
        met = counts.reached_from(state)
        far, least = np.flatnonzero(~met), int(counts.pairs[met].min())
        kinds = [SHORTCUTS]
        if far.size:
            kinds.append(WALLS if least else UNKNOWN)
        elif learns_costs and not least:
            kinds.append(UNTRIED)
        kinds = [kind for kind in kinds if affordable[kind]]
        if not kinds:
            return None
        self._planned = kinds[int(rng.integers(len(kinds)))]
        if self._planned in (UNTRIED, SHORTCUTS):
            return Doubted(None, untried_stay=self._planned == UNTRIED)
        return Doubted(self._target(far, rng), max(least, root_of_rounds(counts)) if least else 0)

    def _target(self, far: Ints, rng: np.random.Generator) -> int:
        """Choose a state out of reach."""
        if rng.random() < 0.5:
            far = far[self._best[far] == self._best[far].min()]
        return int(rng.choice(far))

    @property
    def gain(self) -> float:
        """What any policy could gain per round beyond the last plan without doubt; infinite if there is no plan."""
        return np.inf if np.isnan(self._reference.value) else max(0.0, self._reference.value - float(self._best.min()))

    def allowed(self, rounds: int) -> Floats:
        r"""Return :math:`\kappa\, G \sqrt t` for every account, (4,); infinite if no plan meets the thresholds.

        Negative where doubts are pointless or excluded.
        """
        shares, gain = np.array([self.walls, self.unknown, self.untried, self.shortcuts]), self.gain
        wanted = (shares > 0.0) & (gain > 0.0) & (rounds > 0)
        return np.where(wanted, np.where(wanted, shares, 1.0) * gain * np.sqrt(max(rounds, 1)), -1.0)

    def refer(self, value: float, prices: Floats, costs: Floats, thresholds: Floats) -> None:
        """Note the plan, and the best action of every state at its prices."""
        if not np.isfinite(value) or not np.isfinite(prices).all():
            return
        m, pairs = thresholds.size, costs[0].size
        lagrangian = costs[0].ravel() + product(prices, costs[1:].reshape(m, pairs) - thresholds[:, None])
        self._reference = Reference(value, np.array(prices), np.array(thresholds))
        self._best = lagrangian.reshape(costs[0].shape).min(axis=1)

    def refer_to_nothing(self) -> None:
        """Forget the last plan."""
        self._reference = self._reference._replace(value=np.nan)

    def enter(self, record: Record, *, interim: bool = False) -> None:
        """Charge an episode in doubt with what it cost beyond the last plan; a gain pays off earlier costs."""
        if not interim:
            self._played, self._played_reference = self._planned, self._reference
            self._rested = self._played == NO_DOUBT
        if self._played != NO_DOUBT:
            k, loss = self._played, self._played_reference.loss(record)
            self.spent[k] = max(0.0, self.spent[k] + loss)
            self.largest[k] = max(self.largest[k], loss)

    def begin_again(self) -> None:
        """Reset the accounts; nothing is doubted before there is a plan for the new thresholds."""
        self.spent, self.largest = np.zeros(KINDS), np.zeros(KINDS)
        self._planned = self._played = NO_DOUBT
        self._reference = self._reference._replace(value=0.0)
        self._best = np.zeros_like(self._best)

    def state(self) -> dict[str, Any]:
        """Return the accounts, the last plans, and what is doubted."""
        return {
            "spent": self.spent,
            "largest": self.largest,
            "best": self._best,
            "numbers": np.array([self._planned, self._played, self._rested, self._tried, self._last_new]),
            "reference": self._reference.as_array(),
            "played": self._played_reference.as_array(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        reference = reals(self._reference.as_array().shape, unknown=True)
        saved = read_fields(
            state,
            {
                "spent": reals((KINDS,), 0.0),
                "largest": reals((KINDS,), 0.0),
                "best": reals(self._best.shape),
                "numbers": integers((5,), NO_DOUBT),
                "reference": reference,
                "played": reference,
            },
        )
        self.spent, self.largest, self._best, numbers, *references = saved.values()
        self._planned, self._played, rested, self._tried, self._last_new = numbers.tolist()
        need_that(max(self._planned, self._played) < KINDS, "numbers must begin with two kinds of doubt")
        need_that(rested in (0, 1) and min(self._tried, self._last_new) >= 0, "numbers must end with three counts")
        for each in references:
            need_that(np.isfinite(each[1:]).all(), "reference and played must have known prices and thresholds")
        self._rested = bool(rested)
        self._reference, self._played_reference = (Reference.of_array(each) for each in references)
