r"""Gains, biases and the stationary distribution of a large sparse chain by aggregation multigrid.

Strongly coupled states are aggregated in groups of about four, recursively, down to a few hundred groups. Members of a
group are weighted by a distribution x, so that a group moves as in the aggregated chain (Simon and Ando 1961). One
cycle sweeps forwards and backwards, solves for the residual on the next level, and sweeps again.

Stationary distribution: the next level rescales the groups, and the chain is aggregated again with the new x (Horton
and Leutenegger 1994), until x is close enough for the Krylov method below. Both equations, :math:`h + g = c + P h` and
:math:`x = x P`, are solved by GCR, a Krylov method that minimises the residual. Its preconditioner is one cycle, with
two GCR steps on every level but the last (the K-cycle of Notay and Vassilevski 2008).

Weights: for the bias, members are weighted by the square roots of their masses in a rough distribution. Weighted by the
masses themselves, rarely visited states would have no influence; weighted equally, they would have too much. The norm
of the residual is weighted by a power of the mass for the same reason. Otherwise errors that a correction adds in a
million states that are never visited would outweigh what it repairs in the few that are, and GCR would hardly progress.

The number of cycles hardly grows with the number of states, whereas plain matrix-vector products need as many as it
takes to cross the chain.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from psconrl.base.arrays import Floats, Ints, Places
from psconrl.base.sizes import COARSEST_STATES
from psconrl.kernels.linear import aggregation, lu, multigrid_steps
from psconrl.kernels.linear.csr import by_columns
from psconrl.kernels.linear.elimination import unichain

_STRONG = 0.25  # couplings below this share of a state's strongest one make a pair only
_PAIRED = 0.7  # if pairs and singles would otherwise exceed this share of the states
_STALLED = 0.8  # coarsening stops if the next level keeps more than this share of the states or transitions
_INNER = 2  # GCR steps on every level but the first and the last,
_ENOUGH = 0.2  # or one, if it reduces the residual to this share
_RESTART = 20  # directions that GCR keeps
_LEAST = 1e-290  # least mass of a state: groups need a positive mass
_DISTRIBUTION_CYCLES = 4  # aggregation cycles before each GCR solve for a distribution
_DISTRIBUTION_GOAL = 1e-3  # residual per state, relative to the tolerance
_ROUNDS = 4  # of aggregation cycles and GCR
_WEIGHT, _LEAST_WEIGHT = 0.3, 1e-20  # exponent of the mass that weights a residual, and the least mass
_PATIENCE = 20  # GCR stops unless this many cycles reduce
_SLOWER = 0.5  # the residual to less than this share


CSRArrays: TypeAlias = tuple[Places, Places, Floats]  # in CSR form


class Level(NamedTuple):
    """A chain on one level: transitions in CSR form, probabilities of leaving each state, and their inverses (or 0)."""

    indptr: Places
    indices: Places
    data: Floats
    leaving: Floats
    inverse: Floats

    @classmethod
    def of_chain(cls, indptr: Places, indices: Places, data: Floats) -> "Level":
        """Return the finest level, from a chain with its diagonal."""
        return cls.of(*aggregation.moves_of(indptr, indices, data))

    @classmethod
    def of(cls, indptr: Places, indices: Places, data: Floats, leaving: Floats) -> "Level":
        """Return a level, computing the inverse."""
        inverse = np.divide(1.0, leaving, out=np.zeros_like(leaving), where=leaving > 0.0)
        return cls(indptr, indices, data, leaving, inverse)

    @property
    def size(self) -> int:
        """Number of states."""
        return int(self.leaving.size)

    @property
    def moves(self) -> CSRArrays:
        """Transitions by origin, in CSR form."""
        return self.indptr, self.indices, self.data

    def smaller_than(self, other: "Level") -> bool:
        """True if this level is enough smaller than ``other``; states with random successors make dense groups."""
        return self.size <= _STALLED * other.size and self.data.size <= _STALLED * other.data.size

    def columns(self) -> CSRArrays:
        """Return the transitions by destination."""
        columns: CSRArrays = by_columns(*self.moves, self.size)
        return columns

    def grouped(self, mass: Floats) -> "tuple[Ints, Level, Floats]":
        """Return the group of every state (pairs of pairs), the chain of groups, and the masses of the groups."""
        flow = aggregation.scaled(self.indptr, self.data, mass)
        moves: CSRArrays = (self.indptr, self.indices, flow)
        group = np.arange(self.size)
        for _ in range(2):
            columns: CSRArrays = by_columns(*moves, moves[0].size - 1)
            pair = aggregation.pairs_of(*moves, *columns, _STRONG)
            if pair.max() > _PAIRED * pair.size:  # where mass falls steeply, the strongest neighbour is already paired
                pair = aggregation.pairs_of(*moves, *columns, 0.0)
            moves = aggregation.gathered(*moves, pair, int(pair.max()) + 1)
            group = pair[group]
        of_groups = aggregation.sums_of(group, mass, moves[0].size - 1)
        leaving = aggregation.per_mass(moves[0], moves[2], of_groups)
        return group, Level.of(*moves, leaving), of_groups

    def dense(self) -> Floats:
        """Return D - W as a dense matrix."""
        matrix = np.diag(self.leaving)
        matrix[np.repeat(np.arange(self.size), np.diff(self.indptr)), self.indices] -= self.data
        return matrix

    def bordered_inverse(self) -> Floats | None:
        """Return the inverse of D - W bordered by ones, for the gain; None if the level is too large or singular."""
        if self.size > COARSEST_STATES:
            return None
        bordered = np.ones((self.size + 1, self.size + 1))
        bordered[:-1, :-1] = self.dense()
        bordered[-1, -1] = 0.0
        inverse: Floats | None = lu.solved(bordered, np.eye(self.size + 1))
        return inverse


def first_distribution(level: Level) -> Floats:
    """Return a rough stationary distribution, by one cycle from the uniform one."""
    return _improved(level, np.full(level.size, 1.0 / level.size), 1)


def multigrid_distribution(level: Level, guess: Floats, tolerance: float, cycles: int) -> Floats:
    """Return a distribution whose imbalance after one step is at most the tolerance, if one is found."""
    columns, x = level.columns(), guess
    right = np.zeros(level.size)
    for _ in range(_ROUNDS):
        x = _improved(level, x, _DISTRIBUTION_CYCLES)
        hierarchy = Hierarchy(level, x)
        if hierarchy.usable:
            better = x.copy()
            hierarchy.for_distributions().solve(right, better, _DISTRIBUTION_GOAL * tolerance, cycles)
            better = np.maximum(better, 0.0)
            better /= better.sum()
            if _imbalance(level, columns, better) < _imbalance(level, columns, x):
                x = better
        if _imbalance(level, columns, x) <= tolerance:
            break
    return x


def _imbalance(level: Level, columns: CSRArrays, x: Floats) -> float:
    return float(multigrid_steps.imbalance(*columns, level.leaving, x))


def _improved(level: Level, x: Floats, cycles: int) -> Floats:
    """Return a distribution closer to the stationary one, by cycles of aggregation and disaggregation."""
    if level.size <= COARSEST_STATES:
        # GTH elimination: LAPACK threads take a hundred times as long on a busy machine.
        reference, _, _, distribution, _ = unichain(-level.dense(), np.empty((0, level.size)), int(x.argmax()))
        return np.maximum(distribution, _LEAST) if reference >= 0 else x
    columns = level.columns()
    for _ in range(cycles):
        x = _swept(columns, level.inverse, x)
        group, coarse, mass = level.grouped(x)
        if not coarse.smaller_than(level):
            return x
        better = _improved(coarse, mass.copy(), 2)
        x = _swept(columns, level.inverse, x * (better / better.sum() / mass)[group])
    return x


def _swept(columns: CSRArrays, inverse: Floats, x: Floats) -> Floats:
    for down in (False, True):
        multigrid_steps.sweep_distribution(*columns, inverse, x, down)
    x = np.maximum(x, _LEAST)
    return np.asarray(x / x.sum())


class Hierarchy:
    """All levels of a chain, for its stationary distribution and for the biases of any number of costs."""

    def __init__(self, level: Level, mass: Floats) -> None:
        self.levels = [level]
        self.groups: list[Ints] = []  # for every level but the last: the group of each state
        self.shares: list[Floats] = []  # and its share of the group
        self.masses = [mass]  # for every level
        while level.size > COARSEST_STATES:
            group, level, of_groups = level.grouped(mass)
            if not level.smaller_than(self.levels[-1]):
                break
            self.groups.append(group)
            self.shares.append(mass / of_groups[group])
            self.levels.append(level)
            self.masses.append(of_groups)
            mass = of_groups
        self.inverse = self.levels[-1].bordered_inverse()

    @property
    def usable(self) -> bool:
        """True if the coarsest level is small and can be solved."""
        return self.inverse is not None

    def for_biases(self) -> "Cycles":
        """Return cycles that solve D h - W h + gain = c."""
        ones = [np.ones_like(share) for share in self.shares]
        moves = [level.moves for level in self.levels]
        weights = [np.maximum(mass / mass.max(), _LEAST_WEIGHT) ** _WEIGHT for mass in self.masses]
        return Cycles(self, moves, self.shares, ones, weights, self.inverse, 1.0)

    def for_distributions(self) -> "Cycles":
        """Return cycles that solve x D - x W = r, where r sums to zero."""
        ones = [np.ones_like(share) for share in self.shares]
        columns = [level.columns() for level in self.levels]
        alike = [np.ones_like(mass) for mass in self.masses]
        return Cycles(self, columns, ones, self.shares, alike, None if self.inverse is None else self.inverse.T, 0.0)


class Cycles:
    """GCR preconditioned by multigrid cycles. Several threads may use it at the same time."""

    def __init__(
        self,
        levels: Hierarchy,
        moves: list[CSRArrays],
        lowering: list[Floats],
        raising: list[Floats],
        weights: list[Floats],
        inverse: Floats | None,
        gain: float,
    ) -> None:
        self._levels, self._groups = levels.levels, levels.groups
        self._moves, self._lowering, self._raising, self._weights = moves, lowering, raising, weights
        self._inverse, self._gain = inverse, gain

    def solve(self, right: Floats, x: Floats, goal: float, most: int) -> tuple[float, float]:
        """Improve a guess x in place until no residual exceeds ``goal``; return the gain and the largest residual."""
        r = np.empty_like(right)
        multigrid_steps.drift(*self._moves[0], self._levels[0].leaving, x, 0.0, r)
        np.subtract(right, r, out=r)
        return self._minimise(0, r, x, most, goal)

    def _minimise(self, depth: int, r: Floats, x: Floats, most: int, goal: float | None) -> tuple[float, float]:
        """Run GCR on one level: add the solution for r to x, turn r into the residual; return the gain and its size."""
        leaving, weights, n = self._levels[depth].leaving, self._weights[depth], r.size
        kept = _RESTART if goal is not None else most
        basis, found, gains = np.empty((kept + 1, n)), np.empty((kept + 1, n)), np.empty(kept + 1)
        basis[0] = gains[0] = weights.sum() ** -0.5
        found[0] = 0.0
        along, length = multigrid_steps.step_along(weights, basis[0], found[0], r, x)
        gain, k, begin, check = along * gains[0], 1, length, np.inf
        for i in range(most):
            if goal is not None:
                worst = multigrid_steps.largest(r)
                if worst <= goal or worst == np.inf:
                    return gain, worst
                if i % _PATIENCE == _PATIENCE - 1:
                    if not length <= _SLOWER * check:
                        return gain, worst
                    check = length
            elif length <= _ENOUGH * begin:
                break
            if k > kept:
                k = 1
            basis_k, found_k = basis[k], found[k]
            of_cycle = self._cycle(depth, r, found_k)
            multigrid_steps.drift(*self._moves[depth], leaving, found_k, of_cycle, basis_k)
            gains[k] = multigrid_steps.against(weights, basis, found, gains, k, basis_k, found_k, of_cycle)
            if not np.isfinite(gains[k]):
                break
            along, length = multigrid_steps.step_along(weights, basis_k, found_k, r, x)
            gain += along * gains[k]
            k += 1
        return gain, multigrid_steps.largest(r) if goal is not None else length

    def _cycle(self, depth: int, r: Floats, z: Floats) -> float:
        """Run one cycle for the right-hand side r, write the result to z, and return its gain."""
        if depth == len(self._levels) - 1:
            solution = self._inverse @ np.append(r, 0.0)
            z[:] = solution[:-1]
            return self._gain * float(solution[-1])
        level, moves, group = self._levels[depth], self._moves[depth], self._groups[depth]
        multigrid_steps.first_sweep(*moves, level.inverse, r, z)
        multigrid_steps.sweep(*moves, level.inverse, r, 0.0, z, True)
        below = self._levels[depth + 1].size
        rest, correction = np.empty(below), np.zeros(below)
        multigrid_steps.lowered(*moves, level.leaving, r, z, self._lowering[depth], group, rest)
        if depth + 1 == len(self._levels) - 1:
            gain = self._cycle(depth + 1, rest, correction)
        else:
            gain = self._gain * self._minimise(depth + 1, rest, correction, _INNER, None)[0]
        multigrid_steps.raised(group, self._raising[depth], correction, z)
        multigrid_steps.sweep(*moves, level.inverse, r, gain, z, False)
        multigrid_steps.sweep(*moves, level.inverse, r, gain, z, True)
        return gain
