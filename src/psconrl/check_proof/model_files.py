"""Models from the files of psconrl, ``.npz`` and ``.json``, by the rules of ``psconrl.load``, without NumPy.

Both readers accept the same files, and find the same transitions and costs in them, bit by bit.
"""

import json
import math
import os
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

from .arrays import Arrays, need_memory, table
from .errors import BadInputError, shown
from .labels import ModelLabels, read_labels
from .plain_model import PlainModel

MODEL_FORMAT, MODEL_VERSION = "psconrl-cmdp", 1
NUMBERS = ("transition", "costs", "thresholds", "initial", "available", "outcome_costs")
PARSED_BYTES = 40  # of memory per byte of JSON, at worst
COPIES = 2.5  # of its arrays that a model takes
LARGEST_COST = 1e100
SUM_OFF, SUM_EXACT = 1e-9, 1e-13  # of a distribution: what is refused, and what is divided by the sum
ZEROS = bytes(8 * 512)
COST_OFF = 1e-9  # of the mean size of the costs by next state: largest deviation of their expectation


class MatrixRows(NamedTuple):
    """A matrix (S*A, S) by rows: ``columns`` and ``values`` of row r are at ``start[r]:start[r + 1]``."""

    start: Any
    columns: Any
    values: Any

    def row(self, r: int) -> Iterator[tuple[int, float]]:
        """Yield columns and values of a row."""
        return ((self.columns[k], self.values[k]) for k in range(self.start[r], self.start[r + 1]))


class Given(NamedTuple):
    """What a file holds, before it is checked as a model."""

    n_states: int
    n_actions: int
    transition: MatrixRows
    costs: list[Any]  # tables of length S * A, or None if given by next state alone
    outcomes: list[MatrixRows | None]  # costs by next state
    available: Any
    thresholds: Any  # a table by position or a mapping by name
    initial: Any


def read_model(path: Path) -> PlainModel:
    """Read a model."""
    if path.suffix not in (".npz", ".json"):
        raise BadInputError("a model file must end in .npz or .json")
    with path.open("rb") as f:
        try:
            return json_model(f) if path.suffix == ".json" else npz_model(Arrays(f))
        except BadInputError:
            raise
        except Exception as error:  # zip, zlib and the parser of headers each raise their own errors
            raise BadInputError(f"truncated, or not a {MODEL_FORMAT} file ({type(error).__name__})") from None


def npz_model(arrays: Arrays) -> PlainModel:
    """Read a model from the arrays of an ``.npz`` file."""
    record = data_of(arrays.text("header"))
    if not isinstance(record, dict) or record.get("format") != MODEL_FORMAT:
        raise BadInputError(f"not a {MODEL_FORMAT} file")
    shape = arrays.header("costs").shape
    if len(shape) != 3 or min(shape) < 1:
        raise BadInputError(f"costs must have shape (m+1, S, A); got {shown(list(shape))}")
    q, S, A = shape
    need_memory(COPIES * arrays.total, "reading the model")
    for name, wanted in {"thresholds": (q - 1,), "initial": (S,), "available": (S, A)}.items():
        if arrays.header(name).shape != wanted:
            raise BadInputError(f"{name} must have shape {wanted}")
    outcomes: list[MatrixRows | None] = [None] * q
    for i in _positions(record.pop("outcome_costs", None), q):
        outcomes[i] = _npz_rows(arrays, f"outcome_costs_{i}", S, A)
    costs = arrays.numbers("costs", "<f8")
    given = Given(
        S, A, _npz_rows(arrays, "transition", S, A), [costs[i * S * A : (i + 1) * S * A] for i in range(q)], outcomes,
        arrays.numbers("available", "|b1"), arrays.numbers("thresholds", "<f8"), arrays.numbers("initial", "<f8"),
    )  # fmt: skip
    return checked_model(given, {name: value for name, value in record.items() if name not in NUMBERS})


def _positions(given: Any, q: int) -> Sequence[int]:
    """Return the numbers of the costs that are given by next state."""
    places = [] if given is None else given
    valid = isinstance(places, list) and all(type(i) is int and 0 <= i < q for i in places)
    if not valid or len(set(places)) < len(places):
        raise BadInputError("outcome_costs must list distinct costs")
    return places


def _npz_rows(arrays: Arrays, name: str, S: int, A: int) -> MatrixRows:
    if name in arrays:
        if arrays.header(name).shape != (S * A, S):
            raise BadInputError(f"{name} must have shape {(S * A, S)}")
        return _without_zeros(arrays.chunks(name, ("<f8",)), S, A)
    shape = arrays.numbers(f"{name}_shape", "<i4", "<i8")
    if arrays.header(f"{name}_shape").shape != (2,) or list(shape) != [S * A, S]:
        raise BadInputError(f"{name}_shape must be {[S * A, S]}")
    lengths = [arrays.header(f"{name}_{part}").shape for part in ("data", "indices", "indptr")]
    if len(lengths[0]) != 1 or lengths[0] != lengths[1] or lengths[2] != (S * A + 1,):
        raise BadInputError(f"{name}_data, {name}_indices and {name}_indptr do not fit together")
    start = arrays.numbers(f"{name}_indptr", "<i4", "<i8")
    columns, values = arrays.numbers(f"{name}_indices", "<i4", "<i8"), arrays.numbers(f"{name}_data", "<f8")
    if start[0] != 0 or start[-1] != len(values) or any(map(int.__gt__, start, start[1:])):
        raise BadInputError(f"{name}_indptr must rise from 0 to {len(values)}")
    if columns and not 0 <= min(columns) <= max(columns) < S:
        raise BadInputError(f"{name}_indices must be columns from 0 to {S - 1}")
    for r in range(S * A):
        for k in range(start[r] + 1, start[r + 1]):
            if columns[k - 1] >= columns[k]:
                raise BadInputError(f"{name}_indices must rise in every row")
    return MatrixRows(start, columns, values)


def _without_zeros(chunks: Iterator[Any], S: int, A: int) -> MatrixRows:
    """Return the entries of a matrix (S*A, S), stored row by row."""
    start, columns, values = array("q", [0]), array("q"), array("d")
    base = 0
    for block in blocks_of(chunks):
        for k, x in enumerate(block) if block.tobytes() != ZEROS else ():
            if x != 0.0:
                row, column = divmod(base + k, S)
                while len(start) <= row:
                    start.append(len(columns))
                columns.append(column)
                values.append(x)
        need_memory(2 * 8 * len(columns), "what it unpacks to")
        base += len(block)
    start.extend([len(columns)] * (S * A + 1 - len(start)))
    return MatrixRows(start, columns, values)


def blocks_of(chunks: Iterator[Any]) -> Iterator[Any]:
    """Yield arrays in parts of the length of ``ZEROS``; a part of zeros is passed over at once."""
    return (chunk[k : k + len(ZEROS) // 8] for chunk in chunks for k in range(0, len(chunk), len(ZEROS) // 8))


def data_of(text: str) -> Any:
    """Return the data of a text in JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "a number of thousands of digits" if "digits" in str(error) else error
        raise BadInputError(f"not valid JSON ({reason})") from None


def json_model(f: IO[bytes]) -> PlainModel:
    """Read a model from an open ``.json`` file, which may be written by hand."""
    need_memory(PARSED_BYTES * f.seek(0, os.SEEK_END), "its text")
    f.seek(0)
    record = data_of(f.read().decode())
    if not isinstance(record, dict):
        raise BadInputError("a model must be a JSON object")
    if record.get("format", MODEL_FORMAT) != MODEL_FORMAT:
        raise BadInputError(f"not a {MODEL_FORMAT} file")
    for name in ("transition", "costs"):
        if record.get(name) is None:
            raise BadInputError(f"field {name!r} is missing")
    mask = record.get("available")
    masked = None if mask is None else table(mask, "available")
    S, A, transition = _json_rows(record["transition"], "transition", 0 if masked is None else len(masked.values))
    if masked is None:
        available = array("d", [1.0]) * (S * A)
    elif masked.shape != (S, A):
        raise BadInputError(f"available must have shape {(S, A)}")
    else:
        available = masked.values
    parts, by_next = record["costs"], record.get("outcome_costs")
    if not isinstance(parts, list) or not parts:
        raise BadInputError("costs must be a list of tables, the objective first")
    if by_next is None:
        by_next = [None] * len(parts)
    if not isinstance(by_next, list) or len(by_next) != len(parts):
        raise BadInputError(f"outcome_costs must be a list of {len(parts)} matrices or null")
    costs: list[Any] = []
    outcomes: list[MatrixRows | None] = []
    for i, (part, matrix) in enumerate(zip(parts, by_next, strict=True)):
        cost = None if part is None and matrix is not None else table(part, f"costs[{i}]")
        nested = cost is not None and cost.shape == (S, A, S) and matrix is None
        if cost is not None and cost.shape != (S, A) and not nested:
            raise BadInputError(f"costs[{i}] must have shape {(S, A)}, or {(S, A, S)} without outcome_costs[{i}]")
        costs.append(None if cost is None or nested else cost.values)
        by_next_state = part if nested else matrix
        found = None if by_next_state is None else _json_rows(by_next_state, f"outcome_costs[{i}]", S * A)
        if found is not None and found[:2] != (S, A):
            raise BadInputError(f"outcome_costs[{i}] must have shape {(S, A, S)}")
        outcomes.append(None if found is None else found[2])
    given = Given(S, A, transition, costs, outcomes, available, record.get("thresholds"), record.get("initial"))
    return checked_model(given, {name: value for name, value in record.items() if name not in NUMBERS})


def _json_rows(given: Any, what: str, n_rows: int) -> tuple[int, int, MatrixRows]:
    """Return the numbers of states and actions, and a matrix, given as nested lists or by its entries."""
    if isinstance(given, dict):
        return _json_entries(given, what, n_rows)
    found = table(given, what)
    shape = found.shape
    if len(shape) == 3 and shape[0] == shape[2]:
        shape = shape[0] * shape[1], shape[2]
    if len(shape) != 2 or not found.values or shape[0] % shape[1]:
        raise BadInputError(f"{what} must have shape (S, A, S) or (S*A, S)")
    S, A = shape[1], shape[0] // shape[1]
    return S, A, _without_zeros(iter([found.values]), S, A)


def _json_entries(given: dict[str, Any], what: str, n_rows: int) -> tuple[int, int, MatrixRows]:
    if given.keys() != {"shape", "entries"}:
        raise BadInputError(f"{what} must have 'shape' and 'entries'")
    shape, entries = given["shape"], given["entries"]
    if not isinstance(shape, list) or len(shape) != 2 or not all(type(n) is int for n in shape):
        raise BadInputError(f"{what}: shape must be [S*A, S]")
    if not isinstance(entries, list) or table(entries, what).shape != (len(entries), 3):
        raise BadInputError(f"{what}: entries must be [row, column, value]")
    (rows, S) = shape
    if not 1 <= S <= rows <= max(len(entries), n_rows) or rows % S:
        raise BadInputError(f"{what}: shape claims {shown(shape)} for {len(entries)} entries")
    if not all(0 <= x < n and x == int(x) for i, j, _ in entries for x, n in ((i, rows), (j, S))):
        raise BadInputError(f"{what}: entries must have whole numbers for row and column, within the shape")
    entries = sorted((int(i), int(j), float(x)) for i, j, x in entries)
    places = [(i, j) for i, j, _ in entries]
    if len(set(places)) < len(places):
        raise BadInputError(f"{what} has two entries for one place")
    start = array("q", bytes(8 * (rows + 1)))
    for i, _ in places:
        start[i + 1] += 1
    for r in range(rows):
        start[r + 1] += start[r]
    return S, rows // S, MatrixRows(start, array("q", (j for _, j in places)), array("d", (x for *_, x in entries)))


def checked_model(given: Given, record: dict[str, Any]) -> PlainModel:
    """Return a model after checking its numbers and its names."""
    S, A = given.n_states, given.n_actions
    labels = read_labels(record, S, A, len(given.costs) - 1)
    available = bytes(_mask(given.available, S, A))
    transition = _distributions(given.transition, available, A)
    costs = []
    for i, (flat, by_next) in enumerate(zip(given.costs, given.outcomes, strict=True)):
        found = flat if by_next is None else _expected(i, flat, by_next, transition, available)
        for row, c in enumerate(found):
            if available[row] and not abs(c) <= LARGEST_COST:
                raise BadInputError(f"cost {i} of state {row // A}, action {row % A} must be finite, at most 1e+100")
        costs.append(array("d", (c if exists else 0.0 for c, exists in zip(found, available, strict=True))))
    return PlainModel(
        S, A, *transition, costs, _thresholds(given.thresholds, labels), _initial(given.initial, S, labels), available,
        labels.costs, labels.states, labels.actions, labels.negated, labels.units,
    )  # fmt: skip


def _mask(values: Any, S: int, A: int) -> Iterator[int]:
    for s in range(S):
        row = values[s * A : (s + 1) * A]
        if not all(x in (0, 1) for x in row) or not any(row):
            raise BadInputError(f"available of state {s} must hold 0 and 1, and at least one 1")
        yield from map(int, row)


def _distributions(given: MatrixRows, available: bytes, A: int) -> MatrixRows:
    """Return the rows of the available pairs, without zeros, divided by their sums if these are not one."""
    start, columns, values = array("q", [0]), array("q"), array("d")
    for r, exists in enumerate(available):
        if exists:
            row = list(given.row(r))
            entries = [p for _, p in row]
            total = math.fsum(entries) if all(0.0 <= p <= 2.0 for p in entries) else math.nan
            if not abs(total - 1.0) <= SUM_OFF:
                raise BadInputError(f"transition[{r // A}, {r % A}] must be a distribution")
            divisor = total if abs(total - 1.0) > SUM_EXACT else 1.0
            columns.extend(j for j, p in row if p)
            values.extend(p / divisor for p in entries if p)
        start.append(len(columns))
    return MatrixRows(start, columns, values)


def _expected(i: int, flat: Any, by_next: MatrixRows, transition: MatrixRows, available: bytes) -> Any:
    """Return expected costs: those given, if they agree with the costs by next state, or the sums, column by column."""
    result = array("d", bytes(8 * len(available)))
    for r, exists in enumerate(available):
        outcomes = dict(by_next.row(r)) if exists else {}
        if not all(abs(c) <= LARGEST_COST for c in outcomes.values()):
            raise BadInputError(f"outcome_costs[{i}] must be finite, at most 1e+100")
        size = 0.0
        for j, p in transition.row(r):
            result[r] += p * outcomes.get(j, 0.0)
            size += p * abs(outcomes.get(j, 0.0))
        if flat is not None and exists and not abs(flat[r] - result[r]) <= COST_OFF * size:
            raise BadInputError(f"costs[{i}] is not the expectation of outcome_costs[{i}] in row {r}")
    return result if flat is None else flat


def _thresholds(given: Any, labels: ModelLabels) -> list[float]:
    """Return thresholds by position, from a list, one number or a mapping by name."""
    names = labels.costs[1:]
    if isinstance(given, dict):
        if given.keys() != set(names):
            raise BadInputError(f"thresholds must name {', '.join(names)}")
        by_name = table([given[name] for name in names], "thresholds")
        values = [-x if name in labels.floors else x for name, x in zip(names, by_name.values, strict=False)]
        shape = by_name.shape
    elif isinstance(given, array):
        values, shape = list(given), (len(given),)
    else:
        found = table([] if given is None else given, "thresholds")
        values, shape = list(found.values), found.shape or (1,)
    if shape != (len(names),) or not all(abs(x) <= LARGEST_COST for x in values):
        raise BadInputError(f"thresholds must be {len(names)} numbers, finite and at most 1e+100")
    return values


def _initial(given: Any, S: int, labels: ModelLabels) -> list[float]:
    """Return the initial distribution, from a state, by name or number, or a distribution."""
    if isinstance(given, str):
        if given not in (labels.states or ()):
            raise BadInputError(f"initial: no state has the name {shown(given)}")
        given = list(labels.states or ()).index(given)
    found = given if isinstance(given, array) else table(0 if given is None else given, "initial")
    values, shape = (list(found), (len(found),)) if isinstance(found, array) else (list(found.values), found.shape)
    if shape == ():
        if not (values[0].is_integer() and 0 <= values[0] < S):
            raise BadInputError(f"initial must be a state from 0 to {S - 1}")
        return [float(s == values[0]) for s in range(S)]
    total = math.fsum(values) if shape == (S,) and all(0.0 <= x <= 2.0 for x in values) else math.nan
    if not abs(total - 1.0) <= SUM_OFF:
        raise BadInputError(f"initial must be a state or a distribution over {S} states")
    return values if abs(total - 1.0) <= SUM_EXACT else [x / total for x in values]


def with_thresholds(model: PlainModel, given: Sequence[str]) -> PlainModel:
    """Return a model with other thresholds, each given as NAME=VALUE."""
    thresholds = list(model.thresholds)
    for text in given:
        name, _, value = text.rpartition("=")
        if name not in model.cost_names[1:]:
            known = ", ".join(model.cost_names[1:]) or "none"
            raise BadInputError(f"--threshold {shown(text)}: the constrained costs are {known}")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not abs(number) <= LARGEST_COST:
            raise BadInputError(f"--threshold {shown(text)}: {shown(value)} is no number")
        thresholds[list(model.cost_names).index(name) - 1] = -number if name in model.negated else number
    return replace(model, thresholds=thresholds)
