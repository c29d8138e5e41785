"""Reader and writer for Storm's explicit text format, ``.drn``.

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
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.caps import need
from psconrl.errors import ModelError
from psconrl.model.exchange.explicit_model import MOST_NAMED, ChoiceNames, ExplicitModel, Reward, distinct
from psconrl.model.exchange.packed import is_tar, read_tar, unpacked
from psconrl.model.validation import EXACT_SUM

PRINTED = 1e-5  # allowed error of the sum of a choice's probabilities, which are printed with few digits
KINDS = ("DTMC", "MDP", "CTMC")
UNNAMED = "reward"  # name of a reward model without a name
NO_LABEL, DEADLOCK = "__NOLABEL__", "deadlock"
PARSED = 20  # bytes of memory per byte of text, at worst
STATE = re.compile(
    r"state (?P<id>\d+)(?: !(?P<rate>\S+))?(?: \{(?P<seen>[^}]*)\})?(?: \[(?P<rewards>[^\]]*)\])?(?P<labels>.*)"
)
ACTION = re.compile(r"action (?P<name>\S+)(?: \[(?P<rewards>[^\]]*)\])?\s*")
LABEL = re.compile(r'"([^"]+)"|(\S+)')
KNOWN = (
    "@type",
    "@value_type",
    "@parameters",
    "@placeholders",
    "@reward_models",
    "@nr_states",
    "@nr_choices",
    "@model",
)


@dataclass
class _Head:
    """The header of a file."""

    kind: str = ""
    rewards: list[str] = field(default_factory=list)
    placeholders: dict[str, str] = field(default_factory=dict)
    n_states: int | None = None
    n_choices: int | None = None


class _Lines(NamedTuple):
    """The fields of a model's lines as text, not yet converted to numbers."""

    first_choice: list[int]
    first_branch: list[int]
    targets: list[str]
    values: list[str]
    rates: list[str]
    state_rewards: dict[int, str]
    choice_rewards: dict[int, str]
    labels: dict[str, list[int]]
    actions: list[str]
    comments: list[str]  # the comment below each state, if every state has exactly one


def read_drn(data: bytes) -> ExplicitModel:
    """Return a model from the contents of a file."""
    data = unpacked(data)
    if is_tar(data):
        files = list(read_tar(data).values())
        if len(files) != 1:
            raise ModelError(f"a packed .drn must hold one file; it holds {len(files)}")
        data = bytes(files[0])
    need(PARSED * len(data), "its text", ModelError)
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise ModelError("not a .drn file: it is not text") from None
    head, begin = _read_head(lines)
    return _build(head, _take_apart(lines, begin, head))


def _read_head(lines: list[str]) -> tuple[_Head, int]:
    """Return the header, and the line after it."""
    head, k = _Head(), 0
    while k < len(lines):
        line = lines[k]
        word, _, rest = line.partition(":")
        k += 1
        if not line.strip() or line.startswith("//"):
            continue
        word, rest = word.strip(), rest.strip()
        if word == "@type":
            head.kind = rest
        elif word == "@value_type":
            if rest not in ("double", "rational"):
                raise ModelError(f"its numbers are {rest}s; only a model with plain numbers can be planned")
        elif word == "@model":
            return _checked(head), k
        elif word not in KNOWN:
            raise ModelError(f"line {k}: cannot be read: {line[:60]!r}")
        elif word == "@placeholders":
            while k < len(lines) and lines[k].startswith("$"):
                name, _, value = lines[k].partition(":")
                head.placeholders[name.strip()] = value.strip()
                k += 1
        else:
            below = lines[k] if k < len(lines) else ""
            k += 1
            if word == "@parameters":
                if below.strip():
                    raise ModelError(f"it has parameters, {below.strip()[:60]}; give them values before it is exported")
            elif word == "@reward_models":
                # Storm ends every name with a blank, so that a model without a name is a single blank.
                parts = below.split(" ")[:-1] if below.endswith(" ") else below.split()
                head.rewards = [name or UNNAMED for name in parts]
            elif not below.strip().isdecimal():
                raise ModelError(f"line {k}: {word} must be followed by a number; got {below[:60]!r}")
            elif word == "@nr_states":
                head.n_states = int(below)
            else:
                head.n_choices = int(below)
    raise ModelError("truncated, or not a .drn file: there is no @model")


def _checked(head: _Head) -> _Head:
    if head.kind not in KINDS:
        why = {
            "MA": "a Markov automaton, in which some choices take no time",
            "Markov Automaton": "a Markov automaton, in which some choices take no time",
            "POMDP": "a POMDP, whose states cannot be seen",
        }.get(head.kind, f"of type {head.kind!r}")
        raise ModelError(f"it is {why}; {', '.join(KINDS)} can be read")
    if head.n_states is None:
        raise ModelError("there is no @nr_states")
    if len(set(head.rewards)) < len(head.rewards):
        raise ModelError("the names of its reward models must be distinct")
    return head


def _take_apart(lines: Sequence[str], begin: int, head: _Head) -> _Lines:
    """Split the lines into fields. The inner loop runs once per transition, and so does little."""
    out = _Lines([], [], [], [], [], {}, {}, {}, [], [])
    targets, values, first_branch = out.targets, out.values, out.first_branch
    timed, below_state = head.kind == "CTMC", False
    for number in range(begin, len(lines)):
        line = lines[number].strip()
        if line[:1].isdecimal():
            target, colon, value = line.partition(":")
            if not colon or not first_branch:
                raise ModelError(
                    f"line {number + 1}: a transition must be 'STATE : NUMBER' below an action; got {line[:60]!r}"
                )
            targets.append(target)
            values.append(value)
        elif line.startswith("action"):
            match = ACTION.fullmatch(line)
            if match is None or not out.first_choice:
                raise ModelError(f"line {number + 1}: an action cannot be read: {line[:60]!r}")
            if match["rewards"] is not None:
                out.choice_rewards[len(first_branch)] = match["rewards"]
            first_branch.append(len(targets))
            out.actions.append(match["name"])
            below_state = False
        elif line.startswith("state"):
            match = STATE.fullmatch(line)
            state = len(out.first_choice)
            if match is None or int(match["id"]) != state:
                raise ModelError(
                    f"line {number + 1}: state {state} must come here, as 'state {state} ...'; got {line[:60]!r}"
                )
            if match["seen"] is not None:
                raise ModelError(
                    f"line {number + 1}: the state has an observation; a model whose states cannot be seen is not read"
                )
            if timed and match["rate"] is None:
                raise ModelError(f"line {number + 1}: the rate of leaving, !NUMBER, is missing")
            out.first_choice.append(len(first_branch))
            out.rates.append(match["rate"] or "")
            if match["rewards"] is not None:
                out.state_rewards[state] = match["rewards"]
            if match["labels"]:
                for quoted, plain in LABEL.findall(match["labels"]):
                    out.labels.setdefault(quoted or plain, []).append(state)
            below_state = True
        elif line.startswith("//"):
            if below_state and len(out.comments) == len(out.first_choice) - 1:
                out.comments.append(line[2:].strip())
        elif line:
            raise ModelError(f"line {number + 1}: cannot be read: {line[:60]!r}")
    return out


def _build(head: _Head, found: _Lines) -> ExplicitModel:
    S, C = len(found.first_choice), len(found.first_branch)
    if head.n_states != S:
        raise ModelError(f"truncated: @nr_states says {head.n_states}, and there are {S}")
    first_choice = np.array([*found.first_choice, C], dtype=np.int64)
    first_branch = np.array([*found.first_branch, len(found.targets)], dtype=np.int64)
    lengths, counts = np.diff(first_branch), np.diff(first_choice)
    if head.kind != "MDP" and counts.max() > 1:
        raise ModelError(f"state {counts.argmax()} of a {head.kind} has {counts.max()} actions; it can have one")
    _check_choices(head, found, counts)
    number = _reader(head.placeholders)
    targets = _whole(found.targets)
    if targets.size and targets.max() >= S:
        raise ModelError(f"a transition leads to state {targets.max()}; the last one is {S - 1}")
    values = _numbers(found.values, number)
    state = np.repeat(np.arange(S), counts)
    choice = np.repeat(np.arange(C), lengths)
    total = np.bincount(choice, values, minlength=C).astype(np.float64)
    rates = None
    if head.kind == "CTMC":
        rates = _numbers(found.rates, number)
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


def _check_choices(head: _Head, found: _Lines, counts: Ints) -> None:
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


def _rewards(head: _Head, found: _Lines, number: Callable[[str], float], S: int, C: int) -> dict[str, Reward]:
    """Return the rewards of states and choices, which are written in the order of the names."""
    names = head.rewards
    tables = []
    for n, given in ((S, found.state_rewards), (C, found.choice_rewards)):
        table = np.zeros((len(names), n))
        if given:
            off = next((n for n in (text.count(",") + 1 for text in given.values()) if n != len(names)), None)
            if off is not None:
                raise ModelError(f"there are {len(names)} reward models, and a line has {off} rewards")
            values = _numbers(",".join(given.values()).split(","), number)
            table[:, list(given)] = values.reshape(-1, len(names)).T
        tables.append(table)
    states, choices = tables
    return {name: Reward(states[i], choices[i]) for i, name in enumerate(names)}


def _marked(states: list[int], n: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    mask = np.zeros(n, dtype=bool)
    mask[states] = True
    return mask


def _choice_names(found: _Lines, first_choice: Ints) -> ChoiceNames | None:
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


def _reader(placeholders: dict[str, str]) -> Callable[[str], float]:
    """Return a parser for numbers that are not plain."""
    known: dict[str, float] = {}

    def read(text: str) -> float:
        text = text.strip()
        if text not in known:
            known[text] = _fraction(placeholders.get(text, text))
        return known[text]

    return read


def _fraction(text: str) -> float:
    top, slash, bottom = text.partition("/")
    try:
        if slash:
            return int(top) / int(bottom)
        return float(text)
    except (ValueError, ZeroDivisionError, OverflowError):
        kind = " but an interval" if text.startswith(("[", "(")) and "," in text else ""
        raise ModelError(f"{text[:60]!r} is not a number{kind}") from None


def _numbers(texts: Sequence[str], number: Callable[[str], float]) -> Floats:
    try:
        return np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))
    except ValueError:
        return np.array([number(text) for text in texts])


def _whole(texts: Sequence[str]) -> Ints:
    try:
        return np.fromiter(map(int, texts), dtype=np.int64, count=len(texts))
    except (ValueError, OverflowError):
        wrong = next(text for text in texts if not text.strip().isdecimal() or int(text) >= 2**63)
        raise ModelError(f"{wrong.strip()[:60]!r} is not the number of a state") from None


def write_drn(model: ExplicitModel) -> bytes:
    """Return a model as text, in the form that Storm writes."""
    return "".join(_written(model)).encode()


def _written(model: ExplicitModel) -> Iterator[str]:
    kind = "CTMC" if model.exit_rates is not None else "MDP" if (np.diff(model.first_choice) != 1).any() else "DTMC"
    names = distinct([_word(name) for name in model.rewards], "{}_{}")
    yield f"@type: {kind}\n@value_type: double\n@parameters\n\n"
    yield f"@reward_models\n{''.join(f'{name} ' for name in names)}\n"
    stuck = np.diff(model.first_choice) == 0
    yield f"@nr_states\n{model.n_states}\n@nr_choices\n{model.n_choices + stuck.sum()}\n@model\n"
    states = _brackets([reward.states for reward in model.rewards.values()], model.n_states)
    choices = _brackets([reward.choices for reward in model.rewards.values()], model.n_choices)
    marks = {"init": model.initial, **({DEADLOCK: stuck} if stuck.any() else {}), **model.labels}
    labels = [(_label(name), mask) for name, mask in marks.items()]
    called = model.choice_names
    of_choice = [_word(name) or NO_LABEL for name in called.names] if called is not None else []
    values = model.probabilities
    if model.exit_rates is not None:
        source = np.repeat(np.repeat(model.exit_rates, np.diff(model.first_choice)), np.diff(model.first_branch))
        values = values * source
    branches = [f"\t\t{t} : {p!r}\n" for t, p in zip(model.targets.tolist(), values.tolist(), strict=True)]
    first_choice, first_branch = model.first_choice.tolist(), model.first_branch.tolist()
    for s in range(model.n_states):
        rate = f" !{float(model.exit_rates[s])!r}" if model.exit_rates is not None else ""
        yield f"state {s}{rate}{states[s]}{''.join(f' {name}' for name, mask in labels if mask[s])}\n"
        if model.state_names is not None:
            yield f"//{model.state_names[s]}\n"
        for c in range(first_choice[s], first_choice[s + 1]):
            name = of_choice[called.of_choice[c]] if called is not None else c - first_choice[s]
            yield f"\taction {name}{choices[c]}\n"
            yield from branches[first_branch[c] : first_branch[c + 1]]


def _brackets(columns: list[Floats | None], n: int) -> list[str]:
    """Return the rewards of every state or choice, as " [1.0, 0.0]"; empty if there are no reward models."""
    if not columns:
        return [""] * n
    texts = [["0"] * n if column is None else list(map(repr, column.tolist())) for column in columns]
    return [f" [{', '.join(row)}]" for row in zip(*texts, strict=True)]


def _word(name: str) -> str:
    """Return a name without blanks, which would end it."""
    return "_".join(name.split())


def _label(name: str) -> str:
    return f'"{name}"' if len(name.split()) > 1 else name
