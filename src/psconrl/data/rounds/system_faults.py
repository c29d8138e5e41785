"""Rounds of a log that contradict the rules of a system."""

import numpy as np

from psconrl.base.arrays import Bools
from psconrl.data.rounds.building import Columns, LogRounds
from psconrl.data.rounds.censoring import censored_noise
from psconrl.data.rounds.faults import Faults
from psconrl.data.rounds.request import Request
from psconrl.data.rounds.support import NOT_TAKEN, jump_kind
from psconrl.data.rounds.system_rounds import (
    IMPOSSIBLE,
    NOT_AVAILABLE,
    OTHER_ACTION,
    OTHER_COST,
    OTHER_NOISE,
    RIGHT,
    SystemRounds,
)
from psconrl.data.tables.records import Records
from psconrl.data.tables.rows import Indices
from psconrl.systems.system import System


def right_rounds(
    system: System, rounds: LogRounds, records: Records, columns: Columns, request: Request, faults: Faults
) -> tuple[LogRounds, Records, SystemRounds]:
    """Return the rounds that the rules of a system allow; note the others.

    Where only sales are recorded as demand, demand counts as not seen in the rounds in which the stock ran out.
    """
    found = _of(system, rounds, records, columns)
    lines = columns.rows.lines[rounds.rows]
    _note_wrong(found, rounds, lines, bool(request.next_state), faults)
    right = (found.wrong == RIGHT)[found.kinds.of_round]
    changed = not right.all()
    if changed:
        rounds, records = rounds.some(right), records.some(np.flatnonzero(right))
    kept = np.flatnonzero(right)
    for one in censored_noise(found):
        reached = one.kinds[found.kinds.of_round]
        faults.add(
            "censored",
            lines,
            reached,
            f"{one.name} equals what there was in all of the rounds in which it was not less, and never exceeds it "
            f"(probability {one.probability:.1g}): sales recorded as {one.name}? Leave these cells empty",
        )
        records = records.without(one.name, np.flatnonzero(reached[kept]))
        changed = True
    return rounds, records, _of(system, rounds, records, columns) if changed else found


def _of(system: System, rounds: LogRounds, records: Records, columns: Columns) -> SystemRounds:
    costs = {name: column.values[rounds.rows] for name, column in columns.costs.items()}
    return SystemRounds(system, rounds.states, rounds.actions, rounds.next_states, records, costs)


def _note_wrong(found: SystemRounds, rounds: LogRounds, lines: Indices, own_next: bool, faults: Faults) -> None:
    wrong, of_round = found.wrong, found.kinds.of_round
    texts = {
        NOT_AVAILABLE: ("action", "an action that is not available, {}"),
        OTHER_ACTION: (
            "action",
            f"impossible by the system's rules, {{}}, but possible by another action: {NOT_TAKEN}",
        ),
        OTHER_NOISE: ("impossible", "impossible by the system's rules with the noise recorded, {}"),
        OTHER_COST: ("cost", "costs that contradict their formulas, {}"),
    }
    for mark, (kind, text) in texts.items():
        marked = wrong == mark
        if marked.any():
            faults.add(kind, lines, marked[of_round], text.format(_shown(found, marked)))
    marked = wrong == IMPOSSIBLE
    if marked.any():
        every = marked[of_round]
        kind, remedy = jump_kind(int(every.sum()), rounds.rows.size, own_next)
        text = f"impossible by the system's rules whatever the action is, {_shown(found, marked)}, {remedy}"
        faults.add(kind, lines, every, text)


def _shown(found: SystemRounds, marked: Bools) -> str:
    """Describe the first round of the kinds that are marked."""
    words, kinds = found.words, found.kinds
    k = int(kinds.of_round[np.flatnonzero(marked[kinds.of_round])[0]])
    state, action = divmod(int(kinds.pairs[k]), found.structure.n_actions)
    here, there = (words.state_labels.label(int(s)) for s in (state, kinds.next_states[k]))
    text = f"from {here} by {words.action_labels.label(action)} to {there}"
    seen = [
        f"{name}={found.outcome_values[name][0][place]}"
        for name, places in kinds.noise.items()
        if (place := int(places[k])) >= 0
    ]
    paid = [f"{name}={values[k]:g}" for name, values in kinds.costs.items() if not np.isnan(values[k])]
    return text + (f" with {', '.join(seen + paid)}" if seen or paid else "")
