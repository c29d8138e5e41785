r"""Continuous time: uniformisation of a process given by rates, so that all rounds have the same mean duration.

From state s, action a leads to s' at the rate :math:`q(s'|s,a)`, and :math:`q(s,a) = \sum_{s'} q(s'|s,a)` is the total
rate of its jumps. With a rate :math:`\Lambda > \max q(s,a)` of a common clock,

.. math:: P(s'|s,a) = \frac{q(s'|s,a)}{\Lambda} \quad (s' \ne s), \qquad
          P(s|s,a) = 1 - \sum_{s' \ne s} P(s'|s,a)

is the same process, observed whenever the clock ticks (uniformisation; Puterman 1994, section 11.5). A process that
stays for :math:`\tau(s,a)` on average, with any distribution of the holding time, and then moves by :math:`p(s'|s,a)`,
has the averages of one with the rates :math:`p / \tau` (Schweitzer 1971). All rounds last :math:`1 / \Lambda` on
average. So the average over rounds of a cost per unit of time is its average over time: costs and thresholds need no
change.

Uniformisation preserves the averages per unit of time of every stationary policy, the optimal policies, and the prices
of constraints. It does not preserve relative values: those of rounds are :math:`\Lambda` times as large as those of
time.
"""

from typing import Any, NamedTuple

import numpy as np

from psconrl.base.arrays import Bools, Floats, Matrix
from psconrl.errors import ModelError
from psconrl.model import matrices, validation

# Ratio of the clock rate to the fastest rate. It exceeds one, so that every state has a self-loop and no chain is
# periodic, which some methods (successive approximation) need. It hardly exceeds one, as idle rounds only cost time.
FASTER = 17 / 16
GENERATOR_TOL = 1e-9  # allowed relative error of a generator's diagonal against minus the sum of its row


class Uniformised(NamedTuple):
    """A process in rounds of equal mean duration."""

    transition: Matrix  # (S*A, S)
    rates: Matrix  # (S*A, S) of all jumps, including those back to the same state
    mask: Bools  # (S, A)


def uniformised(rates: Any, sojourn: Any, available: Any, uniform_rate: float | None) -> Uniformised:
    """Uniformise a process given by rates, or by next-state distributions and mean holding times."""
    what = "rates" if sojourn is None else "the next-state distribution"
    q, A = validation.read_transition(rates, what)
    S = q.shape[1]
    mask = validation.read_mask(available, S, A)
    matrices.clear(q, ~mask.ravel())
    if sojourn is not None:
        q = matrices.scaled_rows(validation.check_transition_rows(q, mask), 1.0 / _read_sojourn(sojourn, mask).ravel())
    else:
        q = _without_diagonal_of_generator(q, A)
        first = matrices.first_wrong_entry(q, lambda x: ~np.isfinite(x) | (x < 0))
        if first is not None:
            row, column = first
            where = f"rates[{row // A}, {row % A}, {column}]"
            raise ModelError(f"{where} must be a rate, finite and not negative; got {q[row, column]:g}")
    leaving = np.asarray(q.sum(axis=1)).ravel()
    clock = _read_clock(uniform_rate, float(leaving.max()))
    return Uniformised(_rounds(q, leaving, clock, mask), q, mask)


def costs_of_time(costs: Any, impulses: Any, jumps: Uniformised) -> list[Floats]:
    """Return costs per unit of time (S, A), from running costs and the costs of jumps."""
    S, A = jumps.mask.shape
    parts = validation.as_parts(costs)
    lumps: list[Any] = [None] * len(parts) if impulses is None else list(impulses)
    if len(lumps) != len(parts):
        raise ModelError(f"impulses must have an entry, or None, for each of the {len(parts)} costs; got {len(lumps)}")
    result = []
    for i, (part, lump) in enumerate(zip(parts, lumps, strict=True)):
        table = np.zeros((S, A)) if part is None else validation.as_floats(part, f"costs[{i}]")
        if table.shape != (S, A):
            hint = "; what depends on the next state is an impulse" if table.shape in ((S, A, S), (S * A, S)) else ""
            raise ModelError(f"costs[{i}] must have shape {(S, A)}, per unit of time; got {table.shape}{hint}")
        result.append(table if lump is None else table + _per_time(lump, i, jumps))
    return result


def _per_time(lump: Any, i: int, jumps: Uniformised) -> Floats:
    """Return the cost of jumps per unit of time: the sum of rate times impulse."""
    S, A = jumps.mask.shape
    table, by_next = validation.read_by_next(lump, f"impulses[{i}]", S, A)
    if table is not None:
        return np.asarray(jumps.rates.sum(axis=1)).reshape(S, A) * np.where(jumps.mask, table, 0.0)
    return matrices.expectation(jumps.rates, by_next).reshape(S, A)


def _read_sojourn(sojourn: Any, mask: Bools) -> Floats:
    stay = validation.as_floats(sojourn, "sojourn")
    if stay.shape != mask.shape:
        raise ModelError(f"sojourn must have shape (S, A) = {mask.shape}, a mean time for each pair; got {stay.shape}")
    wrong = np.argwhere(mask & ~(np.isfinite(stay) & (stay > 0)))
    if len(wrong):
        s, a = (int(k) for k in wrong[0])
        raise ModelError(f"sojourn[{s}, {a}] must be a time above 0; got {stay[s, a]:g}")
    return np.where(mask, stay, 1.0)


def _read_clock(uniform_rate: float | None, fastest: float) -> float:
    if uniform_rate is None:
        return fastest * FASTER or 1.0  # if nothing ever moves, any clock will do
    if not isinstance(uniform_rate, int | float | np.number) or not fastest <= uniform_rate < np.inf:
        raise ModelError(f"uniform_rate must be at least the largest rate of leaving, {fastest:g}; got {uniform_rate}")
    return float(uniform_rate) or 1.0


def _without_diagonal_of_generator(q: Matrix, A: int) -> Matrix:
    """Return the rates without a diagonal, if it is that of a generator."""
    rows = np.arange(q.shape[0])
    diagonal = np.asarray(q[rows, rows // A]).ravel()
    negative = np.flatnonzero(diagonal < 0)
    if not negative.size:
        return q
    others = np.asarray(q.sum(axis=1)).ravel() - diagonal
    off = negative[~(np.abs(others + diagonal)[negative] <= GENERATOR_TOL * -diagonal[negative])]
    if off.size:
        s, a = divmod(int(off[0]), A)
        raise ModelError(
            f"rates[{s}, {a}, {s}] must be 0, or minus the sum of the other rates, {others[off[0]]:g}; "
            f"got {diagonal[off[0]]:g}"
        )
    return matrices.without_entries(q, negative, negative // A, diagonal[negative])


def _rounds(q: Matrix, leaving: Floats, clock: float, mask: Bools) -> Matrix:
    """Return the distribution of the state at the next tick."""
    A = mask.shape[1]
    rows = np.flatnonzero(mask)
    still = 1.0 - leaving[rows] / clock
    return matrices.with_added(q / clock, rows, rows // A, still)
