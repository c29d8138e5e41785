"""Operations on matrices: in both forms, dense arrays and CSR, and on rows of sparse ones."""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Bools, Floats, Ints, Matrix
from psconrl.kernels.linear import csr


def clear(matrix: Matrix, rows: Bools) -> None:
    """Clear the marked rows of a matrix, in place."""
    if isinstance(matrix, np.ndarray):
        matrix[rows] = 0.0
    elif rows.any():
        matrix.data[np.repeat(rows, np.diff(matrix.indptr))] = 0.0
        matrix.eliminate_zeros()


def first_wrong_entry(matrix: Matrix, wrong: Callable[[Floats], Bools]) -> tuple[int, int] | None:
    """Return row and column of the first wrong entry, or None."""
    if isinstance(matrix, np.ndarray):
        found = np.argwhere(wrong(matrix))
    else:
        coo = matrix.tocoo()
        found = np.column_stack(coo.coords)[wrong(coo.data)]
    return (int(found[0, 0]), int(found[0, 1])) if len(found) else None


def expectation(P: Matrix, outcome: Matrix) -> Floats:
    """Return the expected cost of every row of P, from costs by next state.

    Products are added in the order of the columns, so that every machine, and any other reader, finds the same doubles.
    """
    rows, columns, weights = entries_of(P)
    if isinstance(outcome, np.ndarray):
        values = outcome[rows, columns]
    else:
        values = np.asarray(outcome.tocsr()[rows, columns]).ravel()
    return np.bincount(rows, weights * values, minlength=P.shape[0]).astype(np.float64)


def entries_of(matrix: Matrix) -> tuple[Ints, Ints, Floats]:
    """Return rows, columns and values of the entries, row by row, without the zeros of an array."""
    if isinstance(matrix, np.ndarray):
        rows, columns = np.nonzero(matrix)
        return rows, columns, matrix[rows, columns]
    coo = matrix.tocoo()
    return coo.coords[0], coo.coords[1], coo.data


def scaled_rows(matrix: Matrix, factor: Floats) -> Matrix:
    """Return a matrix with each row multiplied by its factor."""
    if isinstance(matrix, np.ndarray):
        return matrix * factor[:, None]
    return csr_array(
        (matrix.data * np.repeat(factor, np.diff(matrix.indptr)), matrix.indices, matrix.indptr), matrix.shape
    )


def without_entries(matrix: Matrix, rows: Ints, columns: Ints, values: Floats) -> Matrix:
    """Return a matrix without some entries, whose values are given; a dense one is changed in place."""
    if isinstance(matrix, np.ndarray):
        matrix[rows, columns] = 0.0
        return matrix
    return csr_array(matrix - csr_array((values, (rows, columns)), shape=matrix.shape))


def without_unlikely(matrix: Matrix, least: float, rows: Bools | None, columns: Bools | None) -> Matrix:
    """Return distributions without probabilities below ``least``, rescaled; in some rows and columns, or in all.

    >>> without_unlikely(np.array([[0.75, 0.2, 0.05]]), 0.1, None, np.array([True, False, True])).round(4).tolist()
    [[0.7895, 0.2105, 0.0]]
    """
    if isinstance(matrix, np.ndarray):
        unlikely = matrix < least
        unlikely &= True if rows is None else rows[:, None]
        unlikely &= True if columns is None else columns
        likely = np.where(unlikely, 0.0, matrix)
        return likely / likely.sum(axis=1, keepdims=True)
    likely = matrix.copy()
    unlikely = likely.data < least
    unlikely &= True if rows is None else np.repeat(rows, np.diff(likely.indptr))
    unlikely &= True if columns is None else columns[likely.indices]
    likely.data[unlikely] = 0.0
    likely.eliminate_zeros()
    likely.data /= np.repeat(np.asarray(likely.sum(axis=1)).ravel(), np.diff(likely.indptr))
    return likely


def with_added(matrix: Matrix, rows: Ints, columns: Ints, values: Floats) -> Matrix:
    """Return a matrix with values added to some entries; a dense one is changed in place."""
    if isinstance(matrix, np.ndarray):
        matrix[rows, columns] += values
        return matrix
    return csr_array(matrix) + csr_array((values, (rows, columns)), shape=matrix.shape)


def stored(matrix: Matrix) -> Floats:
    """Return the stored entries: all of an array."""
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.data)


def divided_rows(matrix: Matrix, by: Floats) -> Matrix:
    """Return a matrix with each row divided by a number; a sparse one is changed in place."""
    if isinstance(matrix, np.ndarray):
        return np.ascontiguousarray(matrix / by[:, None])
    matrix.sum_duplicates()
    matrix.data /= np.repeat(by, np.diff(matrix.indptr))
    return matrix


def chosen_rows(matrix: csr_array, rows: Ints) -> csr_array:
    """Return the given rows of a matrix; SciPy's own indexing takes ten times as long for small matrices."""
    indptr, indices, data = csr.gathered(matrix.indptr, matrix.indices, matrix.data, rows, 0, 0.0)
    return csr_array((data, indices, indptr), shape=(rows.size, matrix.shape[1]))


def mixed_sparse_rows(matrix: csr_array, policy: Floats) -> csr_array:
    """Return the chain (S, S) of a randomised policy (S, A), from transitions (S*A, S)."""
    indptr, indices, data = csr.mixed(matrix.indptr, matrix.indices, matrix.data, np.ascontiguousarray(policy))
    return csr_array((data, indices, indptr), shape=(matrix.shape[1], matrix.shape[1]))


def restarting(matrix: csr_array, state: int, probability: float) -> csr_array:
    """Return a matrix whose every row moves to ``state`` with a probability, and otherwise as before."""
    rows = np.arange(matrix.shape[0])
    indptr, indices, data = csr.gathered(matrix.indptr, matrix.indices, matrix.data, rows, state, probability)
    return csr_array((data, indices, indptr), shape=matrix.shape)


def same_entries(P: Matrix, Q: Matrix) -> bool:
    """Return whether two matrices have the same entries, stored in the same way.

    >>> same_entries(np.eye(2), np.eye(2)), same_entries(csr_array(np.eye(2)), np.eye(2))
    (True, False)
    """
    if P is Q:
        return True
    if isinstance(P, np.ndarray) or isinstance(Q, np.ndarray):
        return isinstance(P, np.ndarray) and isinstance(Q, np.ndarray) and np.array_equal(P, Q)
    return all(map(np.array_equal, (P.indptr, P.indices, P.data), (Q.indptr, Q.indices, Q.data)))
