"""Validation of a user's model: shapes, distributions and names, with errors that say how to fix them."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from psconrl.base.arrays import Bools, Floats, Matrix, in_32_bits, read_only
from psconrl.base.caps import LARGEST_COST
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError, PsconrlError, unknown_name
from psconrl.model.matrices import clear, expectation, first_wrong_entry
from psconrl.model.thresholds import in_order
from psconrl.model.transition import Transition

ROW_SUM_TOL = 1e-9  # allowed error of a row's sum; rows are then normalised exactly
CLEARLY_ONE, CLEARLY_OFF = 2e-14, 1.0  # between them a sum of doubles is computed without rounding
EXACT_SUM = 1e-13  # rounding of an exact distribution: left unchanged, so that save and load return the same bits
NOT_REAL = "cSUmM"  # NumPy kinds that would silently convert to floats: complex, text, times


def frozen(x: Any) -> Any:
    """Return arrays made read-only."""
    if isinstance(x, np.ndarray):
        return read_only(x)
    for part in (x.data, x.indices, x.indptr):
        part.flags.writeable = False
    return x


def read_transition(transition: Any, what: str = "transition") -> tuple[Matrix, int]:
    """Return transitions as one matrix (S*A, S), and the number of actions."""
    if isinstance(transition, Transition):
        transition = transition.matrix
    if issparse(transition):
        if transition.ndim != 2:
            raise ModelError(f"{what} must have shape (S, A, S) or (S*A, S); got {transition.shape}")
        P: Matrix = as_csr(transition, what)
        P.eliminate_zeros()
    else:
        P = as_floats(transition, what).copy()
        if P.ndim == 3:
            if P.shape[0] != P.shape[2] or not P.size:
                first = (
                    "; if actions come first, give transition.transpose(1, 0, 2)" if P.shape[1] == P.shape[2] else ""
                )
                raise ModelError(f"{what} must have shape (S, A, S) or (S*A, S); got {P.shape}{first}")
            P = P.reshape(-1, P.shape[2])
    if P.ndim != 2 or P.shape[1] == 0 or P.shape[0] == 0 or P.shape[0] % P.shape[1]:
        raise ModelError(f"{what} must have shape (S, A, S) or (S*A, S); got {P.shape}")
    return P, P.shape[0] // P.shape[1]


def as_floats(x: Any, what: str, error: type[PsconrlError] = ModelError) -> Floats:
    """Return an array of floats, or raise an error that names what is wrong."""
    try:
        array = np.asarray(x)
        kind = array.dtype.kind
        if kind in NOT_REAL or (kind == "O" and any(isinstance(value, str | bytes) for value in array.flat)):
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{what} must be an array of numbers with equal rows; got {type(x).__name__}") from None


def copied_matrix(given: Any, what: str, error: type[PsconrlError]) -> Matrix:
    """Return a user's matrix: a sparse one copied, in CSR form, and anything else as an array of floats."""
    if not issparse(given):
        return as_floats(given, what, error)
    need_valid_sparse(given, what, error)
    return csr_array(given, dtype=np.float64, copy=True)


def need_valid_sparse(x: Any, what: str, error: type[PsconrlError] = ModelError) -> None:
    """Refuse a sparse matrix with invalid index arrays: compiled loops, including SciPy's, trust them."""
    if hasattr(x, "check_format"):
        try:
            x.check_format(full_check=True)
        except ValueError as trouble:
            raise error(f"{what} is no valid sparse matrix: {trouble}") from None


def as_csr(x: Any, what: str) -> csr_array:
    """Return a copy of a sparse matrix as CSR of floats, in canonical form."""
    need_valid_sparse(x, what)
    if x.dtype.kind in NOT_REAL:
        raise ModelError(f"{what} must hold real numbers; got {x.dtype}")
    matrix = csr_array(x, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if max(*matrix.shape, matrix.nnz) >= 2**31:
        raise ModelError(f"{what} may have at most 2,147,483,647 rows, columns and entries; got {matrix.nnz:,} entries")
    return in_32_bits(matrix)


def read_mask(available: ArrayLike | None, S: int, A: int) -> Bools:
    """Return the mask of available actions, at least one per state."""
    if available is None:
        return np.ones((S, A), dtype=bool)
    values = as_floats(available, "available")
    if values.shape != (S, A):
        raise ModelError(f"available must be a mask of shape (S, A) = {(S, A)}; got shape {values.shape}")
    mask: Bools = np.ascontiguousarray(values == 1)
    if not (mask | (values == 0)).all():
        raise ModelError(f"available must hold only 0 and 1; got {values[~mask & (values != 0)][0]:g}")
    stuck = np.flatnonzero(~mask.any(axis=1))
    if stuck.size:
        raise ModelError(f"state {stuck[0]} has no available action ({stuck.size} of {S} states)")
    return mask


def check_transition_rows(P: Matrix, mask: Bools) -> Matrix:
    """Return transitions whose available rows are distributions (normalised if slightly off), and others empty."""
    S, A = mask.shape
    clear(P, ~mask.ravel())
    first = first_wrong_entry(P, lambda p: ~np.isfinite(p) | (p < 0))
    if first is not None:
        row, column = first
        raise ModelError(f"transition[{row // A}, {row % A}, {column}] must be a probability; got {P[row, column]:g}")
    total = _row_sums(P, mask.ravel())
    off = np.where(mask.ravel(), np.abs(total - 1.0), 0.0)
    failing = np.flatnonzero(~(off <= ROW_SUM_TOL))
    if failing.size:
        s, a = divmod(int(failing[0]), A)
        hint = "For counts use CMDP.from_counts." if total[failing[0]] > 1.5 else "Normalise the rows."
        raise ModelError(
            f"transition[{s}, {a}] must sum to 1 (±{ROW_SUM_TOL:g}); got {total[failing[0]]:.6g} "
            f"({failing.size} of {mask.sum()} rows fail). {hint}"
        )
    inexact = np.flatnonzero(off > EXACT_SUM)
    if inexact.size:
        if isinstance(P, np.ndarray):
            P[inexact] /= total[inexact, None]
        else:
            divisor = np.ones(S * A)
            divisor[inexact] = total[inexact]
            P.data /= np.repeat(divisor, np.diff(P.indptr))
    return P


def _row_sums(P: Matrix, exists: Bools) -> Floats:
    """Return the sums of the rows; of those that are not clearly one without rounding, as another reader has them."""
    total = np.asarray(P.sum(axis=1)).ravel()
    for row in np.flatnonzero(exists & (np.abs(total - 1.0) > CLEARLY_ONE) & (np.abs(total - 1.0) < CLEARLY_OFF)):
        entries = P[row] if isinstance(P, np.ndarray) else P.data[P.indptr[row] : P.indptr[row + 1]]
        total[row] = math.fsum(entries.tolist())
    return total


class RewardFirst(list[Any]):
    """Tables of costs, the first of which is minus the rewards that the user gave: errors then speak of rewards."""

    @staticmethod
    def what(i: int, *place: int) -> str:
        """Return what a table, or an entry of it, is called in the user's arguments."""
        if i:
            return _cost(i - 1, *place)
        return f"rewards[{', '.join(map(str, place))}]" if place else "rewards"


def _cost(i: int, *place: int) -> str:
    return f"costs[{', '.join(map(str, (i, *place)))}]"


def read_costs(costs: Any, P: Matrix, mask: Bools) -> tuple[Floats, list[Matrix | None]]:
    """Return expected costs (m+1, S, A), and the costs by next state where given."""
    S, A = mask.shape
    parts = as_parts(costs)
    rewarded = isinstance(costs, RewardFirst)
    what = RewardFirst.what if rewarded else _cost

    def refuse(x: float, i: int, *place: int) -> NoReturn:
        given = -x if rewarded and i == 0 else x
        raise ModelError(f"{what(i, *place)} must be {wanted(x)}; got {given}")

    expected = np.empty((len(parts), S, A))
    outcomes: list[Matrix | None] = []
    for i, part in enumerate(parts):
        outcome: Matrix | None = None
        if issparse(part):
            outcome = as_csr(part, what(i))
        else:
            array = as_floats(part, what(i))
            if array.shape == (S, A, S) or (array.shape == (S * A, S) and array.shape != (S, A)):
                outcome = array.reshape(S * A, S).copy()
            elif array.shape == (S, A):
                expected[i] = np.where(mask, array, 0.0)
            elif len(parts) == S and array.shape == (A,):
                raise ModelError("costs must be a list of tables, the objective first; got one table: write [table]")
            else:
                hint = "; give the table itself, not [table]" if rewarded and array.shape == (1, S, A) else ""
                raise ModelError(f"{what(i)} must have shape {(S, A)} or {(S, A, S)}; got {array.shape}{hint}")
        if outcome is not None:
            if outcome.shape != (S * A, S):
                raise ModelError(f"{what(i)} must have shape {(S * A, S)} if sparse; got {outcome.shape}")
            clear(outcome, ~mask.ravel())
            first = first_wrong_entry(outcome, lambda c: ~in_range(c))
            if first is not None:
                row, column = first
                refuse(outcome[row, column], i, row // A, row % A, column)
            expected[i] = expectation(P, outcome).reshape(S, A)
        outcomes.append(outcome)
    wrong = ~in_range(expected)
    if wrong.any():
        i, s, a = (int(k) for k in np.argwhere(wrong)[0])
        refuse(expected[i, s, a], i, s, a)
    return expected, outcomes


def stated_expectations(tables: Mapping[int, ArrayLike], model: Any) -> Floats:
    """Return the costs (m+1, S, A) of a model with some expectations as stated; they must agree with those computed."""
    expected: Floats = model.costs.copy()
    for i, table in tables.items():
        stated = as_floats(table, f"costs[{i}]")
        if stated.shape != expected[i].shape:
            raise ModelError(f"costs[{i}] must have shape {expected[i].shape}; got {stated.shape}")
        stated = np.where(model.available, stated, 0.0)
        size = expectation(model.transition.matrix, abs(model.outcome_costs[i])).reshape(stated.shape)
        wrong = ~(np.abs(stated - expected[i]) <= ROW_SUM_TOL * size)
        if wrong.any():
            s, a = (int(k) for k in np.argwhere(wrong)[0])
            raise ModelError(
                f"costs[{i}, {s}, {a}] must be the expectation of its costs by next state, {expected[i, s, a]:.10g}; "
                f"got {stated[s, a]:.10g}"
            )
        expected[i] = stated
    return expected


def as_parts(costs: Any) -> list[Any]:
    """Return the costs as a list, the objective first."""
    try:
        parts = list(costs)
    except TypeError:
        parts = []
    if not parts:
        raise ModelError("costs must have shape (m+1, S, A) or (m+1, S, A, S), the objective first; got none")
    return parts


def in_range(x: Floats) -> Bools:
    """Return a mask of the values that can be costs: finite, and small enough that their sums are."""
    return np.asarray(np.abs(x) <= LARGEST_COST)


def wanted(x: float) -> str:
    """Describe what a cost out of range should be."""
    return f"at most {LARGEST_COST:g} in size (take a larger unit)" if np.isfinite(x) else "finite"


def read_by_next(given: Any, what: str, n_states: int, n_actions: int) -> tuple[Floats | None, Matrix | None]:
    """Return what is given for every pair, (S, A), or else by next state, as a matrix (S*A, S)."""
    S, A = n_states, n_actions
    matrix: Matrix = as_csr(given, what) if issparse(given) else as_floats(given, what)
    if matrix.shape == (S, A) and not issparse(given):
        return matrix, None
    if matrix.shape == (S, A, S):
        matrix = matrix.reshape(S * A, S)
    if matrix.shape != (S * A, S):
        raise ModelError(f"{what} must have shape {(S, A)} or {(S, A, S)}; got {np.shape(given)}")
    return None, matrix


def default_cost_names(m: int, maximise: bool) -> tuple[str, ...]:
    """Return names for unnamed costs."""
    return ("reward" if maximise else "objective", *(f"cost {i}" for i in range(1, m + 1)))


def read_names(names: Sequence[str] | None, n: int, what: str) -> tuple[str, ...] | None:
    """Return names as distinct strings, or None."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ModelError(f"{what} must be a list of {n} names; got {type(names).__name__}")
    result = tuple(str(name) for name in names)
    if len(result) != n:
        raise ModelError(f"{what} must have length {n}; got {len(result)}")
    broken = [name for name in result if len(name.splitlines()) > 1]
    if broken:
        raise ModelError(f"{what} must be single lines; got {quoted(broken[0])}")
    try:
        "".join(result).encode()
    except UnicodeEncodeError as error:
        raise ModelError(f"{what}: {quoted(error.object[error.start])} is no character that a file can hold") from None
    if len(set(result)) != n:
        repeated = next(name for name, times in Counter(result).items() if times > 1)
        raise ModelError(f"{what} must be distinct; {quoted(repeated)} repeats")
    return result


def read_at_least(at_least: Any, cost_names: tuple[str, ...]) -> frozenset[str]:
    """Return the names of the costs that are negated quantities, kept at or above a threshold."""
    if isinstance(at_least, str) or not isinstance(at_least, Iterable):
        raise ModelError(f"at_least must be a list of names of costs; got {quoted(at_least)}")
    given = [str(name) for name in at_least]
    for name in given:
        if name not in cost_names[1:]:
            raise ModelError("at_least: " + unknown_name("constrained cost", name, cost_names[1:]))
    return frozenset(given)


def read_thresholds(thresholds: Any, cost_names: tuple[str, ...], at_least: frozenset[str]) -> Floats:
    """Return thresholds (m,), from an array or a mapping by name, which gives negated quantities their own sign."""
    m = len(cost_names) - 1
    if isinstance(thresholds, Mapping):
        thresholds = in_order(thresholds, cost_names[1:], at_least)
    tau = np.atleast_1d(as_floats(thresholds, "thresholds")).copy()
    if tau.shape != (m,):
        raise ModelError(
            f"thresholds must have one entry per constrained cost, {m} here (costs has {m + 1} layers, "
            f"the objective first); got {tau.size if tau.ndim == 1 else tau.shape}"
        )
    if not in_range(tau).all():
        first = tau[~in_range(tau)][0]
        raise ModelError(f"thresholds must be {wanted(first)}; got {first}")
    return tau


def read_initial(initial: Any, S: int, names: tuple[str, ...] | None) -> Floats:
    """Return the initial distribution, from a state (index or name) or a distribution."""
    if isinstance(initial, str):
        if names is None:
            raise ModelError(f"initial must be an index, as the states have no names; got {quoted(initial)}")
        if initial not in names:
            raise ModelError(unknown_name("initial state", initial, names))
        initial = names.index(initial)
    beta = as_floats(initial, "initial")
    if beta.ndim == 0:
        if not (float(beta).is_integer() and 0 <= beta < S):
            raise ModelError(f"initial state must be an index from 0 to {S - 1}; got {initial}")
        distribution = np.zeros(S)
        distribution[int(beta)] = 1.0
        return distribution
    if beta.shape != (S,):
        raise ModelError(f"initial must be a state or a distribution over {S} states; got shape {beta.shape}")
    wrong = ~np.isfinite(beta) | (beta < 0)
    if wrong.any():
        raise ModelError(f"initial[{wrong.argmax()}] must be a probability; got {beta[wrong.argmax()]:g}")
    total = math.fsum(np.minimum(beta, 1e100))  # whose sum does not overflow
    if abs(total - 1.0) > ROW_SUM_TOL:
        raise ModelError(f"initial must be a distribution; its entries sum to {total:g}")
    return beta / total if abs(total - 1.0) > EXACT_SUM else beta.copy()
