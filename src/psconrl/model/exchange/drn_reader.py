"""Reader for Storm's explicit text format, ``.drn``.

::

    @type: MDP
    @reward_models
    energy
    @nr_states
    2
    @nr_choices
    3
    @model
    state 0 [0] init
        action work [1]
            0 : 0.5
            1 : 0.5
        action rest [0]
            0 : 1
    state 1 [0] broken
        action repair [5]
            0 : 1

In a CTMC the numbers are rates, and ``state 0 !3.5`` gives the exit rate. Numbers may be fractions, ``1/3``.
``drn_writer`` writes the format.
"""

from collections.abc import Callable

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.caps import need
from psconrl.errors import ModelError
from psconrl.model.exchange.drn_fields import Fields, Head, read_head, take_apart
from psconrl.model.exchange.drn_numbers import floats_of, indices_of, number_reader
from psconrl.model.exchange.explicit_model import MOST_NAMED, ChoiceNames, ExplicitModel, Reward
from psconrl.model.exchange.packed import is_tar, read_tar, unpacked
from psconrl.model.validation import EXACT_SUM

PRINTED = 1e-5  # allowed error of the sum of a choice's probabilities, which are printed with few digits
NO_LABEL, DEADLOCK = "__NOLABEL__", "deadlock"
DRN_PARSED_BYTES = 20  # bytes of memory per byte of text, at worst


def read_drn(data: bytes) -> ExplicitModel:
    """Return a model from the contents of a file."""
    data = unpacked(data)
    if is_tar(data):
        files = list(read_tar(data).values())
        if len(files) != 1:
            raise ModelError(f"a packed .drn must hold one file; it holds {len(files)}")
        data = bytes(files[0])
    need(DRN_PARSED_BYTES * len(data), "its text", ModelError)
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise ModelError("not a .drn file: it is not text") from None
    head, begin = read_head(lines)
    return _build(head, take_apart(lines, begin, head))


def _build(head: Head, found: Fields) -> ExplicitModel:
    S, C = len(found.first_choice), len(found.first_branch)
    if head.n_states != S:
        raise ModelError(f"truncated: @nr_states says {head.n_states}, and there are {S}")
    first_choice = np.array([*found.first_choice, C], dtype=np.int64)
    first_branch = np.array([*found.first_branch, len(found.targets)], dtype=np.int64)
    lengths, counts = np.diff(first_branch), np.diff(first_choice)
    if head.kind != "MDP" and counts.max() > 1:
        raise ModelError(f"state {counts.argmax()} of a {head.kind} has {counts.max()} actions; it can have one")
    _check_choices(head, found, counts)
    number = number_reader(head.placeholders)
    targets = indices_of(found.targets)
    if targets.size and targets.max() >= S:
        raise ModelError(f"a transition leads to state {targets.max()}; the last one is {S - 1}")
    values = floats_of(found.values, number)
    state = np.repeat(np.arange(S), counts)
    choice = np.repeat(np.arange(C), lengths)
    total = np.bincount(choice, values, minlength=C).astype(np.float64)
    rates = None
    if head.kind == "CTMC":
        rates = floats_of(found.rates, number)
        _check_sums(total, rates[state], state, "rates")
        as_given = total <= 0
        rates[state] = total
    else:
        _check_sums(total, np.ones(C), state, "probabilities")
        as_given = np.abs(total - 1.0) <= EXACT_SUM  # so that written values are read back bit for bit
    values = values / np.where(as_given, 1.0, total)[choice]
    labels = {name: _marked(states, S) for name, states in found.labels.items()}
    return ExplicitModel(
        first_choice,
        first_branch,
        targets,
        values,
        initial=labels.pop("init", np.zeros(S, dtype=bool)),
        exit_rates=rates,
        rewards=_rewards(head, found, number, S, C),
        labels=labels,
        choice_names=_choice_names(found, first_choice),
        state_names=_state_names(found.comments, S),
    )


def _check_choices(head: Head, found: Fields, counts: Ints) -> None:
    """Refuse a truncated file. A state without a choice may be intended; Storm counts one choice for it."""
    C, stuck = int(counts.sum()), np.flatnonzero(counts == 0)
    if stuck.size and head.n_choices is None:
        raise ModelError(f"truncated: state {stuck[0]} has no action, and there is no @nr_choices")
    meant = not stuck.size or stuck[-1] < counts.size - 1 or stuck[-1] in found.labels.get(DEADLOCK, ())
    if head.n_choices not in (None, C) and not (meant and head.n_choices == C + stuck.size):
        raise ModelError(f"truncated: @nr_choices says {head.n_choices}, and there are {C}")


def _check_sums(total: Floats, wanted: Floats, state: Ints, what: str) -> None:
    wrong = np.flatnonzero(~(np.abs(total - wanted) <= PRINTED * np.abs(wanted)))
    if wrong.size:
        c = wrong[0]
        raise ModelError(f"the {what} of an action of state {state[c]} sum to {total[c]:.6g}, not to {wanted[c]:.6g}")


def _rewards(head: Head, found: Fields, number: Callable[[str], float], S: int, C: int) -> dict[str, Reward]:
    """Return the rewards of states and choices, which are written in the order of the names."""
    names = head.rewards
    tables = []
    for n, given in ((S, found.state_rewards), (C, found.choice_rewards)):
        table = np.zeros((len(names), n))
        if given:
            off = next((n for n in (text.count(",") + 1 for text in given.values()) if n != len(names)), None)
            if off is not None:
                raise ModelError(f"there are {len(names)} reward models, and a line has {off} rewards")
            values = floats_of(",".join(given.values()).split(","), number)
            table[:, list(given)] = values.reshape(-1, len(names)).T
        tables.append(table)
    states, choices = tables
    return {name: Reward(states[i], choices[i]) for i, name in enumerate(names)}


def _marked(states: list[int], n: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    mask = np.zeros(n, dtype=bool)
    mask[states] = True
    return mask


def _choice_names(found: Fields, first_choice: Ints) -> ChoiceNames | None:
    """Return the names of the actions, unless they only number the choices of a state."""
    codes: dict[str, int] = {}
    of_choice = np.array([codes.setdefault(name, len(codes)) for name in found.actions], dtype=np.int64)
    if all(name.isdecimal() for name in codes):
        return None
    return ChoiceNames(tuple("" if name == NO_LABEL else name for name in codes), of_choice)


def _state_names(comments: list[str], S: int) -> tuple[str, ...] | None:
    """Return the comments below the states, if they distinguish the states: ``//[x=0 & y=2]``."""
    if len(comments) != S or S > MOST_NAMED:
        return None
    names = tuple(
        " ".join(text.removeprefix("[").removesuffix("]").replace("&", ",").split()).replace(" ,", ",")
        for text in comments
    )
    return names if len(set(names)) == S and all(names) else None
