"""Splits the text of a ``.drn`` file into its fields; ``drn_reader`` converts them to numbers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from psconrl.base.escaping import quoted
from psconrl.errors import ModelError

KINDS = ("DTMC", "MDP", "CTMC")
UNNAMED = "reward"  # name of a reward model without a name
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
class Head:
    """The header of a file."""

    kind: str = ""
    rewards: list[str] = field(default_factory=list)
    placeholders: dict[str, str] = field(default_factory=dict)
    n_states: int | None = None
    n_choices: int | None = None


@dataclass
class Fields:
    """The fields of a model's lines as text, not yet converted to numbers."""

    timed: bool  # whether every state has an exit rate
    first_choice: list[int] = field(default_factory=list)
    first_branch: list[int] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    rates: list[str] = field(default_factory=list)
    state_rewards: dict[int, str] = field(default_factory=dict)
    choice_rewards: dict[int, str] = field(default_factory=dict)
    labels: dict[str, list[int]] = field(default_factory=dict)
    actions: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)  # the comment below each state, if every state has exactly one

    def add_state(self, line: str, number: int) -> None:
        """Add a line such as ``state 0 !3.5 [1] init``, which has a number in the file."""
        match = STATE.fullmatch(line)
        state = len(self.first_choice)
        if match is None or int(match["id"]) != state:
            raise ModelError(
                f"line {number}: state {state} must come here, as 'state {state} ...'; got {quoted(line[:60])}"
            )
        if match["seen"] is not None:
            raise ModelError(
                f"line {number}: the state has an observation; a model whose states cannot be seen is not read"
            )
        if self.timed and match["rate"] is None:
            raise ModelError(f"line {number}: the rate of leaving, !NUMBER, is missing")
        self.first_choice.append(len(self.first_branch))
        self.rates.append(match["rate"] or "")
        if match["rewards"] is not None:
            self.state_rewards[state] = match["rewards"]
        if match["labels"]:
            for within_quotes, plain in LABEL.findall(match["labels"]):
                self.labels.setdefault(within_quotes or plain, []).append(state)

    def add_action(self, line: str, number: int) -> None:
        """Add a line such as ``action work [1]``, which has a number in the file."""
        match = ACTION.fullmatch(line)
        if match is None or not self.first_choice:
            raise ModelError(f"line {number}: an action cannot be read: {quoted(line[:60])}")
        if match["rewards"] is not None:
            self.choice_rewards[len(self.first_branch)] = match["rewards"]
        self.first_branch.append(len(self.targets))
        self.actions.append(match["name"])


def read_head(lines: list[str]) -> tuple[Head, int]:
    """Return the header, and the line after it."""
    head, k = Head(), 0
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
            raise ModelError(f"line {k}: cannot be read: {quoted(line[:60])}")
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
                raise ModelError(f"line {k}: {word} must be followed by a number; got {quoted(below[:60])}")
            elif word == "@nr_states":
                head.n_states = int(below)
            else:
                head.n_choices = int(below)
    raise ModelError("truncated, or not a .drn file: there is no @model")


def _checked(head: Head) -> Head:
    if head.kind not in KINDS:
        why = {
            "MA": "a Markov automaton, in which some choices take no time",
            "Markov Automaton": "a Markov automaton, in which some choices take no time",
            "POMDP": "a POMDP, whose states cannot be seen",
        }.get(head.kind, f"of type {quoted(head.kind)}")
        raise ModelError(f"it is {why}; {', '.join(KINDS)} can be read")
    if head.n_states is None:
        raise ModelError("there is no @nr_states")
    if len(set(head.rewards)) < len(head.rewards):
        raise ModelError("the names of its reward models must be distinct")
    return head


def take_apart(lines: Sequence[str], begin: int, head: Head) -> Fields:
    """Split the lines into fields. The inner loop runs once per transition, and so does little."""
    out = Fields(timed=head.kind == "CTMC")
    targets, values, first_branch = out.targets, out.values, out.first_branch
    below_state = False
    for number in range(begin, len(lines)):
        line = lines[number].strip()
        if line[:1].isdecimal():
            target, colon, value = line.partition(":")
            if not colon or not first_branch:
                raise ModelError(
                    f"line {number + 1}: a transition must be 'STATE : NUMBER' below an action; got {quoted(line[:60])}"
                )
            targets.append(target)
            values.append(value)
        elif line.startswith("action"):
            out.add_action(line, number + 1)
            below_state = False
        elif line.startswith("state"):
            out.add_state(line, number + 1)
            below_state = True
        elif line.startswith("//"):
            if below_state and len(out.comments) == len(out.first_choice) - 1:
                out.comments.append(line[2:].strip())
        elif line:
            raise ModelError(f"line {number + 1}: cannot be read: {quoted(line[:60])}")
    return out
