"""Prior weights of transitions, as the user gives them: one for each transition, 0 if it is impossible."""

from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse

from psconrl.base.arrays import Floats, Ints, Matrix
from psconrl.base.escaping import quoted
from psconrl.errors import AgentError
from psconrl.learning.argument_checks import as_numbers
from psconrl.learning.posterior.counts import need_table
from psconrl.learning.posterior.sampled_rows import numbered_entries
from psconrl.model.transition import Transition
from psconrl.model.validation import frozen, need_valid_sparse

# Bounds of a parameter, so that its inverse and the sum of all stay within the range of doubles.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100

Weights: TypeAlias = Matrix  # a number, an array or a sparse matrix


def as_weights(given: Any, what: str) -> Weights:
    """Return checked weights: a number, an array (S, A, S) or a sparse matrix (S*A, S) of valid parameters."""
    if isinstance(given, Transition):
        given = given.csr()
    if issparse(given):
        if np.iscomplexobj(given):
            raise AgentError(f"{what} must be real")
        need_valid_sparse(given, what, AgentError)
        kept = csr_array(given, dtype=np.float64, copy=True)
        kept.sum_duplicates()
        kept.eliminate_zeros()
        _check_values(np.asarray(kept.data), what)
        return kept
    try:
        array = as_numbers(given, what).copy()
    except AgentError:
        array = np.empty(0)
    if array.size == 0 or isinstance(given, bool):
        raise AgentError(f"{what} must be a number or an array of numbers; got {quoted(given)}")
    if array.ndim not in (0, 3):
        raise AgentError(f"{what} must be a number or have shape (S, A, S), or be sparse, (S*A, S); got {array.shape}")
    _check_values(array, what)
    return frozen(array) if array.ndim else float(array)


def _check_values(values: Floats, what: str) -> None:
    if not np.isfinite(values).all() or (values < 0).any():
        raise AgentError(f"{what} must be finite and not negative; 0 means impossible")
    if ((values > 0) & ((values < SMALLEST_WEIGHT) | (values > LARGEST_WEIGHT))).any():
        raise AgentError(
            f"{what} must lie between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}, or be 0 for what is impossible"
        )


def all_weights(given: Weights, n_states: int, n_actions: int, what: str, anything: bool) -> Floats:
    """Return the weights of all transitions, (S*A, S); without ``anything``, no row may be all 0."""
    need_table(n_states, n_actions)
    _check_sizes(given, n_states, n_actions, what)
    table = np.asarray(given.toarray() if issparse(given) else given)
    shape = (n_states * n_actions, n_states)
    full = table.reshape(shape) if table.ndim else np.broadcast_to(table, shape)
    if not anything:
        _check_rows(full.sum(axis=1), n_actions, what)
    return full


def stored_weights(given: Weights, n_states: int, n_actions: int, what: str, anything: bool) -> tuple[Ints, Floats]:
    """Return the numbers and weights of the transitions that are stored; none if one number is given for all."""
    _check_sizes(given, n_states, n_actions, what)
    if isinstance(given, float):
        if not anything:
            _check_rows(np.full(n_states * n_actions, given), n_actions, what)
        return np.empty(0, dtype=np.int64), np.empty(0)
    matrix = given if issparse(given) else csr_array(given.reshape(-1, n_states))
    if not anything:
        _check_rows(np.asarray(matrix.sum(axis=1)).ravel(), n_actions, what)
    return numbered_entries(matrix)


def as_guess(given: Weights | None) -> csr_array | None:
    """Return the probabilities (S*A, S) given by weights; None if these only tell which transitions are possible."""
    if given is None or isinstance(given, float):
        return None
    matrix = csr_array(given if issparse(given) else given.reshape(-1, given.shape[-1]))
    several = np.diff(matrix.indptr).max(initial=0) > 1
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    if not matrix.data.size or (several and np.ptp(matrix.data) == 0.0) or not (sums > 0.0).all():
        return None
    return csr_array(diags_array(1.0 / sums) @ matrix)


def _check_sizes(given: Weights, n_states: int, n_actions: int, what: str) -> None:
    shape, pairs = np.shape(given), n_states * n_actions
    if issparse(given):
        if shape != (pairs, n_states):
            raise AgentError(f"{what} must have shape (S*A, S) = {(pairs, n_states)} if it is sparse; got {shape}")
    elif shape not in ((), (n_states, n_actions, n_states)):
        wanted = (n_states, n_actions, n_states)
        raise AgentError(f"{what} must have shape (S, A, S) = {wanted}, or be sparse, (S*A, S); got {shape}")


def _check_rows(sums: Floats, n_actions: int, what: str) -> None:
    if not (sums > 0).all():
        s, a = divmod(int((~(sums > 0)).argmax()), n_actions)
        raise AgentError(f"{what}[{s}, {a}] must allow at least one next state; all entries are 0")
