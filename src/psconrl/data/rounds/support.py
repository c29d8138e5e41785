"""Transitions of a log that a model calls impossible."""

import numpy as np

from psconrl.base.arrays import Bools
from psconrl.data.rounds.building import LogRounds, NumberedRows
from psconrl.data.rounds.faults import Faults
from psconrl.data.tables.rows import Indices
from psconrl.model.cmdp import CMDP

NOT_TAKEN = "is the action recorded that was taken?"
MOST_GLUED = 0.01  # share of impossible jumps up to which they are taken for ends of runs


def jump_kind(number: int, rounds: int, own_next: bool) -> tuple[str, str]:
    """Return the kind of a fault, and what to do, where no action leads to the next state.

    ``own_next``: whether every row has the next state in it, so that runs one after the other do no harm.
    """
    if own_next or number > MOST_GLUED * rounds + 1:
        return "impossible", "correct the rows, or the description"
    return "glued", "as where another run begins; name the column that tells runs apart, run=..., or correct the row"


def note_impossible(
    model: CMDP, rounds: LogRounds, lines: Indices, own_next: bool, numbered: NumberedRows, faults: Faults
) -> Bools:
    """Note transitions that are impossible in a model; return which rounds are possible."""
    S, A = model.n_states, model.n_actions
    pairs = rounds.states.astype(np.int64) * A + rounds.actions
    numbers, back = np.unique(pairs * S + rounds.next_states, return_inverse=True)
    matrix = model.transition.csr()
    of_kind, following = np.divmod(numbers, S)
    states = of_kind // A
    possible = np.asarray(matrix[of_kind, following]).ravel() > 0.0
    available = model.available.ravel()
    other = np.zeros(numbers.size, dtype=bool)
    for action in range(A):
        own = states * A + action
        other |= (np.asarray(matrix[own, following]).ravel() > 0.0) & available[own]
    allowed = available[of_kind]
    own_lines = lines[rounds.rows]
    label, acted = numbered.state_labels, numbered.action_labels

    def shown(marked: Bools) -> str:
        kind = int(back.ravel()[np.flatnonzero(marked[back.ravel()])[0]])
        return f"from {label[states[kind]]} by {acted[of_kind[kind] % A]} to {label[following[kind]]}"

    marked = ~allowed
    if marked.any():
        faults.add("action", own_lines, marked[back.ravel()], f"an action that is not available, {shown(marked)}")
    marked = allowed & ~possible & other
    if marked.any():
        text = f"impossible by the model, {shown(marked)}, but possible by another action: {NOT_TAKEN}"
        faults.add("action", own_lines, marked[back.ravel()], text)
    marked = allowed & ~possible & ~other
    if marked.any():
        every = marked[back.ravel()]
        kind, remedy = jump_kind(int(every.sum()), rounds.rows.size, own_next)
        faults.add(kind, own_lines, every, f"impossible by the model whatever the action is, {shown(marked)}, {remedy}")
    return np.asarray((allowed & possible)[back.ravel()])
