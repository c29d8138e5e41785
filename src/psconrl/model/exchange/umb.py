"""UMB, the binary exchange format of Storm, PRISM and Modest, version 1: a tar of ``index.json`` and plain arrays.

The specification is in the repository pmc-tools/umb on GitHub.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from psconrl._version import __version__
from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.caps import need
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.model.exchange.explicit_model import (
    MOST_NAMED,
    ChoiceNames,
    ExplicitModel,
    Reward,
    check_offsets,
    distinct,
)
from psconrl.model.exchange.packed import is_tar, read_tar, unpacked, write_tar
from psconrl.model.exchange.umb_values import bits, numbers, packed_bits, packed_strings, strings, variables, whole

VERSION = 1
LARGEST_COUNT = 2**48  # largest count: larger models fit no memory, and products of counts still fit 128 bits
# Most bytes of memory per byte of an archive. Lists may be absent, but the bit that marks an initial state is not.
CLAIMED_PER_BYTE = 1000
PARTS = ("states", "choices", "branches")
NAMES = "state-names"  # key among the parameters of the file
DOUBLE, BOOL = {"type": "double", "size": 64}, {"type": "bool", "size": 1}


def read_umb(data: bytes) -> ExplicitModel:
    """Return a model from the contents of a file."""
    data = unpacked(data)
    if not is_tar(data):
        raise ModelError("truncated, or not a UMB file: it is no tar archive")
    return _Reader(read_tar(data)).model()


class _Reader:
    """The files of an archive, and their description in the index."""

    def __init__(self, files: dict[str, memoryview]) -> None:
        self.files = files
        try:
            self.index = json.loads(bytes(files.get("index.json", b"")))
        except (ValueError, RecursionError):
            raise ModelError("not a UMB file: index.json is missing or no JSON") from None
        version = self.index.get("format-version") if isinstance(self.index, dict) else None
        if version != VERSION:
            raise ModelError(f"UMB of version {quoted(version)} is not known here (newest: {VERSION})")
        self.system = self._mapping(self.index, "transition-system")
        self._refuse_what_is_not_planned()
        self.n_states, self.n_choices, self.n_branches = (self._count(f"#{part}") for part in PARTS)
        claimed = 8.0 * (2 * self.n_states + 2 * self.n_choices + 3 * self.n_branches)
        need(claimed, f"a model of {self.n_states:,} states", ModelError)
        if claimed > CLAIMED_PER_BYTE * sum(map(len, files.values())):
            raise ModelError(f"index.json: #states is {self.n_states:,}, for which the archive is too short")
        if not self.n_states:
            raise ModelError("index.json: #states must be at least 1")

    def _refuse_what_is_not_planned(self) -> None:
        time = self.system.get("time")
        if time == "urgent-stochastic":
            raise ModelError("it is a Markov automaton, in which some choices take no time; these are not read")
        if time not in ("discrete", "stochastic"):
            raise ModelError(f"index.json: time {quoted(time)} is not known")
        if self._count("#players") > 1:
            raise ModelError(f"it is a game of {self._count('#players')} players; a model has one at most")
        if self._count("#observations"):
            raise ModelError("its states cannot be seen, only observations; such models are not read")

    def model(self) -> ExplicitModel:
        """Return the model in the archive."""
        first_choice = self._offsets("state-to-choices.bin", self.n_states, self.n_choices)
        first_branch = self._offsets("choice-to-branches.bin", self.n_choices, self.n_branches)
        return ExplicitModel(
            first_choice,
            first_branch,
            self._targets(),
            self._probabilities(first_branch),
            self._initial(),
            self._exit_rates(),
            {name: self._reward(path, record) for name, path, record in self._annotations("rewards")},
            {name: self._label(path, record) for name, path, record in self._annotations("aps")},
            self._choice_names(),
            self._state_names(),
        )

    def _offsets(self, name: str, n: int, total: int) -> Ints:
        if name not in self.files:
            if n != total:
                raise ModelError(f"{name} is missing, and there are {total} entries for {n}")
            return np.arange(n + 1)
        given = whole(self.files[name], "<u8", n + 1, name)
        if given.max() > LARGEST_COUNT:
            raise ModelError(f"{name} must be {n + 1} numbers that rise from 0 to {total}")
        offsets: Ints = given.astype(np.int64)
        check_offsets(offsets, n, total, name)
        return offsets

    def _targets(self) -> Ints:
        name = "branch-to-target.bin"
        if name not in self.files:  # if a list is absent, all its entries are 0
            return np.zeros(self.n_branches, dtype=np.int64)
        targets = whole(self.files[name], "<u8", self.n_branches, name)
        if targets.size and targets.max() >= self.n_states:
            raise ModelError(f"{name}: a branch leads to state {targets.max()}; the last one is {self.n_states - 1}")
        return np.asarray(targets, dtype=np.int64)

    def _probabilities(self, first_branch: Ints) -> Floats:
        name, kind = "branch-to-probability.bin", self.system.get("branch-probability-type")
        if name in self.files and kind is not None:
            return numbers(self.files[name], kind, self.n_branches, name)
        if (np.diff(first_branch) > 1).any():
            raise ModelError(f"{name} is missing, and there are choices with several branches")
        return np.ones(self.n_branches)

    def _initial(self) -> Bools:
        name, n = "state-is-initial.bin", self._count("#initial-states")
        marked = (
            bits(self.files[name], self.n_states, name) if name in self.files else np.zeros(self.n_states, dtype=bool)
        )
        if marked.sum() != n:
            raise ModelError(f"{name} must mark the {n} initial states; it marks {marked.sum()}")
        return marked

    def _exit_rates(self) -> Floats | None:
        if self.system["time"] == "discrete":
            return None
        name = "state-to-exit-rate.bin"
        rates = numbers(self._file(name), self.system.get("exit-rate-type"), self.n_states, name)
        if not (np.isfinite(rates) & (rates >= 0)).all():
            raise ModelError(f"{name} must hold rates, finite and not negative")
        return rates

    def _annotations(self, group: str) -> list[tuple[str, str, Mapping[str, Any]]]:
        """Return name, folder and description of all rewards or labels."""
        if not isinstance(self.index.get("annotations", {}), dict):
            raise ModelError("index.json: annotations must be an object")
        found: list[tuple[str, str, Mapping[str, Any]]] = []
        for key, record in self._mapping(self.index.get("annotations", {}), group, {}).items():
            if not isinstance(record, dict) or not isinstance(record.get("applies-to"), list):
                raise ModelError(f"index.json: {group} {quoted(key)} must say what it applies to")
            if "probability-type" in record:
                raise ModelError(f"{group} {quoted(key)} is random itself, which is not supported")
            found.append((str(record.get("alias", key)), f"annotations/{group}/{key}", record))
        if len({name for name, *_ in found}) < len(found):
            raise ModelError(f"index.json: the names of all {group} must be distinct")
        return found

    def _reward(self, folder: str, record: Mapping[str, Any]) -> Reward:
        sizes = dict(zip(PARTS, (self.n_states, self.n_choices, self.n_branches), strict=True))
        given = {}
        for part in record["applies-to"]:
            if part not in sizes:
                raise ModelError(f"{folder} applies to {quoted(part)}; rewards of {', '.join(PARTS)} are read")
            name = f"{folder}/{part}/values.bin"
            given[part] = numbers(self._file(name), record.get("type"), sizes[part], name)
        return Reward(**given)

    def _label(self, folder: str, record: Mapping[str, Any]) -> Bools:
        if record["applies-to"] != ["states"]:
            raise ModelError(f"{folder} must apply to states")
        name = f"{folder}/states/values.bin"
        return bits(self._file(name), self.n_states, name)

    def _choice_names(self) -> ChoiceNames | None:
        n, folder = self._count("#choice-actions"), "actions/choices"
        if not n or f"{folder}/string-mapping.bin" not in self.files:
            return None
        names = strings(self._file(f"{folder}/string-mapping.bin"), self._file(f"{folder}/strings.bin"), n, folder)
        if f"{folder}/values.bin" not in self.files:
            return ChoiceNames(tuple(names), np.zeros(self.n_choices, dtype=np.int64))
        codes = whole(self.files[f"{folder}/values.bin"], "<u4", self.n_choices, f"{folder}/values.bin").astype(
            np.int64
        )
        if codes.size and codes.max() >= n:
            raise ModelError(f"{folder}/values.bin: action {codes.max()} is named; the last one is {n - 1}")
        return ChoiceNames(tuple(names), codes)

    def _state_names(self) -> tuple[str, ...] | None:
        """Return the names written by this library, or the variables of the states, if these distinguish them."""
        written = self.index.get("file-data", {}).get("parameters", {})
        if isinstance(written, dict) and NAMES in written:
            return self._distinct([str(name) for name in written[NAMES]])
        folder, said = "valuations/states", self._mapping(self.index.get("valuations", {}), "states", {})
        if self.n_states > MOST_NAMED or f"{folder}/valuations.bin" not in self.files:
            return None
        if f"{folder}/valuation-to-class.bin" in self.files:
            return None
        texts: list[str] = []
        if f"{folder}/string-mapping.bin" in self.files:
            mapping = self.files[f"{folder}/string-mapping.bin"]
            texts = strings(mapping, self._file(f"{folder}/strings.bin"), len(mapping) // 8 - 1, folder)
        return self._distinct(
            variables(self.files[f"{folder}/valuations.bin"], said.get("classes"), texts, self.n_states)
        )

    def _distinct(self, names: list[str] | None) -> tuple[str, ...] | None:
        if names is None or not len(names) == len(set(names)) == self.n_states:
            return None
        return None if any(len(name.splitlines()) > 1 for name in names) else tuple(names)

    def _file(self, name: str) -> memoryview:
        if name not in self.files:
            raise ModelError(f"{name} is missing")
        return self.files[name]

    def _count(self, key: str) -> int:
        value = self.system.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_COUNT:
            raise ModelError(f"index.json: {key} must be a whole number from 0 on; got {quoted(value)}")
        return value

    def _mapping(self, record: Any, key: str, default: Any = None) -> dict[str, Any]:
        value = record.get(key, default) if isinstance(record, dict) else None
        if not isinstance(value, dict):
            raise ModelError(f"index.json: {key} must be an object")
        return value


def write_umb(model: ExplicitModel) -> bytes:
    """Return a model as an archive."""
    is_chain = bool((np.diff(model.first_choice) == 1).all()) and model.choice_names is None
    S, C, B = model.n_states, model.n_choices, model.targets.size
    system: dict[str, Any] = {
        "time": "discrete" if model.exit_rates is None else "stochastic",
        "#players": 0 if is_chain else 1,
        "#states": S,
        "#initial-states": int(model.initial.sum()),
        "#choices": C,
        "#choice-actions": 0,
        "#branches": B,
        "#branch-actions": 0,
        "#observations": 0,
        "branch-probability-type": DOUBLE,
    }
    files = {
        "choice-to-branches.bin": model.first_branch.astype("<u8").tobytes(),
        "branch-to-target.bin": model.targets.astype("<u8").tobytes(),
        "branch-to-probability.bin": model.probabilities.astype("<f8").tobytes(),
        "state-is-initial.bin": packed_bits(model.initial),
    }
    if not is_chain:
        files["state-to-choices.bin"] = model.first_choice.astype("<u8").tobytes()
    if model.exit_rates is not None:
        system["exit-rate-type"] = DOUBLE
        files["state-to-exit-rate.bin"] = model.exit_rates.astype("<f8").tobytes()
    if model.choice_names is not None:
        folder, names = "actions/choices", list(model.choice_names.names)
        system["#choice-actions"] = len(names)
        files[f"{folder}/values.bin"] = model.choice_names.of_choice.astype("<u4").tobytes()
        files[f"{folder}/string-mapping.bin"], files[f"{folder}/strings.bin"] = packed_strings(names)
    index: dict[str, Any] = {
        "format-version": VERSION,
        "format-revision": 0,
        "file-data": {"tool": "psconrl", "tool-version": __version__},
        "transition-system": system,
        "annotations": {"rewards": _written_rewards(model, files), "aps": _written_labels(model, files)},
    }
    if model.state_names is not None:
        # Names belong in a valuation of type "string", but Storm 2.0 rejects that.
        index["file-data"]["parameters"] = {NAMES: list(model.state_names)}
    return write_tar({"index.json": json.dumps(index, indent=1).encode(), **files})


def _written_rewards(model: ExplicitModel, files: dict[str, bytes]) -> dict[str, Any]:
    index = {}
    for key, (name, reward) in zip(_identifiers(list(model.rewards)), model.rewards.items(), strict=True):
        given = {part: values for part in PARTS if (values := getattr(reward, part)) is not None}
        index[key] = {"alias": name, "applies-to": list(given), "type": DOUBLE}
        for part, values in given.items():
            files[f"annotations/rewards/{key}/{part}/values.bin"] = values.astype("<f8").tobytes()
    return index


def _written_labels(model: ExplicitModel, files: dict[str, bytes]) -> dict[str, Any]:
    index = {}
    for key, (name, mask) in zip(_identifiers(list(model.labels)), model.labels.items(), strict=True):
        index[key] = {"alias": name, "applies-to": ["states"], "type": BOOL}
        files[f"annotations/aps/{key}/states/values.bin"] = packed_bits(mask)
    return index


def _identifiers(names: list[str]) -> list[str]:
    """Return distinct names in the characters that a folder may have."""
    return distinct([re.sub(r"[^0-9a-z_-]+", "_", name.lower()) or "_" for name in names], "{}_{}")
