r"""Triple-QA (Wei, Liu and Ying 2022): model-free, optimistic Q-learning with virtual queues, on two time scales.

The average criterion is approximated by a discounted one, :math:`\gamma = 1 - 1/H`. Costs are scaled to gains in
[0, 1]. Every round updates Q for the objective and C for the constrained cost, at the :math:`\tau`-th visit of a pair
by

.. math:: Q \leftarrow (1-\alpha) Q + \alpha\,(r + \gamma \hat V(s') + b), \qquad
          \alpha = \frac{\chi+1}{\chi+\tau}, \quad b = \kappa \sqrt{\frac{(\chi+1)\,\iota}{\chi+\tau}},

and C likewise; :math:`\hat Q, \hat C` are updated where both decrease. The action is greedy for
:math:`\hat Q + (Z/\eta)\, \hat C`. At the end of a frame, :math:`K^{2/3}` rounds of a horizon K, the virtual queue is
updated by the shortfall, :math:`Z \leftarrow (Z + \rho + \epsilon - \bar C)_+` with :math:`\bar C` the average of
:math:`(1-\gamma)\,\hat C`, and all tables are reset.

The agent keeps no model: O(S A) memory, O(A) time per round. With the paper's constants :math:`\epsilon > 1`, and
bonuses exceed 1, until K is astronomical, so that it learns nothing; all constants are options. Moreover, the hats of a
pair never decrease if only gains of 1 are expected from it, of the constrained cost or of the objective; the option
``together`` addresses this. The paper has one constraint; here every constraint has its own queue and table, which is
the same for one. A constraint that no round can violate has no queue.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats, Ints
from psconrl.base.caps import LARGEST_COST
from psconrl.base.saved_fields import Kind, integer, integers, need_that, read_fields, reals
from psconrl.kernels.agents import triple_qa
from psconrl.kernels.arithmetic import special
from psconrl.learning.argument_checks import as_count, as_flag, as_nonnegative, as_number, as_positive
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.stepping import Stepping


class Constants(NamedTuple):
    """Constants of the algorithm, by their names in the paper."""

    gamma: float  # discount
    chi: float  # of the learning rate
    iota: float  # log term of the bonus
    kappa: float  # bound on spans, scale of the bonus
    eta: float  # weight of the objective against the queues
    together: bool  # whether hats are updated only where the estimates of all gains decrease


TABLES = ("estimates", "hats", "values", "totals", "queues")  # attributes, saved with the agent
WHOLE_FRAME_TOL = 1e-9  # so that a power that is an integer up to rounding errors is not rounded up


class TripleQA(Stepping):
    """Triple-QA, optimistic Q-learning with virtual queues. It must know the horizon.

    Defaults for a horizon K: ``gamma`` = 1 - K^(-1/6), ``eta`` = K^(1/6), ``chi`` = K^(1/3), ``iota`` =
    8 log(sqrt(2) K), ``frame`` = K^(2/3) rounds, ``eps`` = 9 kappa sqrt(S A iota) / K^(1/6). ``kappa``: a bound on the
    spans of the optimal policy, at least 1 in the paper; it scales the bonus. ``together``: whether the hats of a pair
    are updated only together, where the estimates of all gains decrease, as in the paper, or each on its own.
    ``ranges`` (m+1, 2): the lowest and highest value of every cost; by default those of the known costs, or 0 and 1,
    where the objective's grow from frame to frame.
    """

    name: ClassVar[str] = "triple-qa"
    theory_constants: ClassVar[tuple[str, ...]] = ("kappa",)
    ranges_include_noise: ClassVar[bool] = False

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        horizon: int,
        kappa: float = 1.0,
        gamma: float | None = None,
        eta: float | None = None,
        chi: float | None = None,
        iota: float | None = None,
        eps: float | None = None,
        frame: int | None = None,
        together: bool = True,
        ranges: ArrayLike | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.horizon = as_count(horizon, "horizon")
        self.kappa = as_nonnegative(kappa, "kappa")
        self.gamma = None if gamma is None else as_number(gamma, "gamma", "from 0 to below 1", lambda x: 0 <= x < 1)
        self.eta = None if eta is None else as_positive(eta, "eta")
        self.chi = None if chi is None else as_nonnegative(chi, "chi")
        self.iota = None if iota is None else as_nonnegative(iota, "iota")
        self.eps = None if eps is None else as_nonnegative(eps, "eps")
        self.frame = None if frame is None else as_count(frame, "frame")
        self.together = as_flag(together, "together")
        self._scale_costs(ranges)
        K = float(self.horizon)
        root = special.cbrt(K)
        self.constants = Constants(
            gamma=1.0 - 1.0 / math.sqrt(root) if self.gamma is None else self.gamma,
            chi=root if self.chi is None else self.chi,
            iota=8.0 * special.log(math.sqrt(2.0) * K) if self.iota is None else self.iota,
            kappa=self.kappa,
            eta=math.sqrt(root) if self.eta is None else self.eta,
            together=self.together,
        )
        self.frame_length = math.ceil(root * root - WHOLE_FRAME_TOL) if self.frame is None else self.frame
        pairs = self.n_states * self.n_actions
        usual = 9.0 * self.kappa * math.sqrt(pairs * self.constants.iota) / math.sqrt(root)
        self.tightening = usual if self.eps is None else self.eps
        self.queues: Floats = np.zeros(self.n_costs - 1)
        self._played = 0  # rounds played in this frame
        self._begin_frame()

    def why_hopeless(self, maximise: bool | None) -> str:
        """Return a line of advice if no estimate can fall within a frame."""
        last = triple_qa.bonus(float(self.frame_length), self.kappa, self.constants.chi, self.constants.iota)
        if last < 1.0:
            return super().why_hopeless(maximise)
        return (
            f"with these constants Triple-QA learns nothing and plays the first action of every state: its bonus is "
            f"still {last:.3g} at the end of a frame, and estimates fall only where it is below 1. Lower kappa below "
            f"{self.kappa / last:.2g}, and set eps to 0"
        )

    @property
    def wanted(self) -> Floats:
        r"""The average gains :math:`\rho` that the thresholds require, (m,)."""
        return (self._scale.highest[1:] - self.thresholds) / self._scale.units[1:]

    @property
    def learner(self) -> triple_qa.TripleQA:
        """The compiled update of one round, bound to the present arrays.

        A constraint that no round can violate has no gains, so that its hats always fall and never keep others from it.
        """
        tables = (self.estimates, self.hats, self.values, self.frame_visits, self.totals, self.queues, self.policy)
        units = self._scale.units.copy()
        units[1:][self.wanted <= 0.0] = np.inf
        return triple_qa.TripleQA(*tables, self._scale.highest, units, *self.constants)

    def _begin_frame(self) -> None:
        """Reset all tables to H, the largest possible value; the greedy action is then the first one.

        Unless the range of the objective was given or known, it grows with what was met, and holds for the frame.
        """
        S, A, q = self.n_states, self.n_actions, self.n_costs
        known = self._objective_range()
        self._scale = self._scale.with_objective(known.lowest, known.highest)
        H = 1.0 / (1.0 - self.constants.gamma)
        self.estimates: Floats = np.full((q, S, A), H)
        self.hats: Floats = np.full((q, S, A), H)
        self.values: Floats = np.full((q, S), H)
        self.frame_visits: Ints = np.zeros((S, A), dtype=np.int64)
        self.totals: Floats = np.zeros(q - 1)
        self.policy = np.zeros((S, A))
        self.policy[:, 0] = 1.0
        self._played = 0

    def _open_block(self) -> int:
        """Return the rounds left in the frame. If it is over, update the queues and begin the next one."""
        if self._played >= self.frame_length:
            missing = self.wanted + self.tightening - self.totals / self.frame_length
            # A threshold above the highest cost needs no tightening: no learning error can lead to a violation.
            self.queues = np.where(self.wanted > 0.0, np.maximum(self.queues + missing, 0.0), 0.0)
            self._begin_frame()
        return self.frame_length - self._played

    def _learn(self, state: int, action: int, next_state: int, costs: Floats) -> None:
        """Learn from one round, by the compiled update."""
        self.learner.learn(state, action, next_state, np.ascontiguousarray(costs))

    def learned(self, rounds: int) -> None:
        """Count rounds that have been learned."""
        super().learned(rounds)
        self._played += rounds

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        tables = {name: getattr(self, name) for name in TABLES}
        known = [self._scale.lowest[0], self._scale.highest[0]]
        frame = {"frame_visits": self.frame_visits, "played": self._played, "objective_range": known}
        return super().state() | tables | frame

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().restore(state)
        tables: dict[str, Kind] = {name: reals(getattr(self, name).shape) for name in TABLES}
        counts = {"frame_visits": integers(self.frame_visits.shape), "played": integer(0, self.frame_length)}
        known = {"objective_range": reals((2,), -4.0 * LARGEST_COST, 4.0 * LARGEST_COST)}
        saved = read_fields(state, tables | {"queues": reals(self.queues.shape, 0.0)} | counts | known)
        for name in TABLES:
            setattr(self, name, saved[name])
        self.frame_visits, self._played = saved["frame_visits"], saved["played"]
        lowest, highest = saved["objective_range"].tolist()
        need_that(lowest <= highest, "objective_range must be a lowest and a highest value")
        self._scale = self._scale.with_objective(lowest, highest)
        need_that(self._played == self.frame_visits.sum(), "played must be the sum of frame_visits")
        self._need_within_block(self.frame_length - self._played)
