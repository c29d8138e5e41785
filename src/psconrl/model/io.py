"""Model files: ``.npz`` (compact, exact) and ``.json`` (readable, writable by hand). Never uses pickle.

Both contain the same fields under the same names. In JSON the transitions are either nested lists of shape (S, A, S)
or, for sparse models, ``{"shape": [S*A, S], "entries": [[row, column, probability], ...]}``. The formats of other
programs, ``.umb`` and ``.drn``, are in ``model.exchange``.
"""

import json
import os
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse

from psconrl.base.caps import need
from psconrl.base.escaping import quoted
from psconrl.base.files import as_path, reading, write_atomically
from psconrl.errors import ModelError, PsconrlError, unknown_name
from psconrl.model.archive import Archive
from psconrl.model.cmdp import CMDP
from psconrl.model.exchange import files as exchange_files
from psconrl.model.layout import GridLayout
from psconrl.model.validation import as_floats

FORMAT = "psconrl-cmdp"
VERSION = 1
_FIELDS = (
    "transition", "costs", "thresholds", "initial", "available", "outcome_costs",
    "state_names", "action_names", "cost_names", "maximise", "layout", "units", "at_least",
)  # fmt: skip
_REQUIRED = ("transition", "costs")
NATIVE = (".npz", ".json")
WRITTEN = (*NATIVE, *exchange_files.ENDINGS)
JSON_PARSED_BYTES = 40  # bytes of memory per byte of JSON, at worst: "[]," is a list
COPIES = 2.5  # of its arrays that a model takes


def save(cmdp: CMDP, path: str | os.PathLike[str], policy: Any = None) -> None:
    """Write a model to a file, whose name ends in ``.npz`` or ``.json``, or for Storm and PRISM ``.umb`` or ``.drn``.

    ``cmdp``: the model. ``path``: the file, which is replaced atomically. With a ``policy``, such as ``plan.policy``,
    the Markov chain of that policy is written instead, to ``.umb`` or ``.drn``, so that another program can check its
    averages.
    """
    if not isinstance(cmdp, CMDP):
        raise ModelError(f"save needs a CMDP and then a path; got {type(cmdp).__name__} first")
    target = as_path(path, ModelError)
    if policy is not None or target.suffix in exchange_files.ENDINGS:
        text = exchange_files.encoded(cmdp, target, policy)
        write_atomically(target, lambda f: f.write(text), ModelError)
    elif target.suffix == ".json":
        write_atomically(target, lambda f: f.write(json.dumps(_to_json(cmdp), indent=1).encode()), ModelError)
    elif target.suffix == ".npz":
        write_atomically(target, lambda f: write_npz(cmdp, f), ModelError)
    else:
        raise ModelError(f"{target}: a model file must end in {', '.join(WRITTEN)}")


def read_native(path: str | os.PathLike[str]) -> CMDP:
    """Read a model from ``.npz`` or ``.json``."""
    source = Path(path)
    if source.suffix not in NATIVE:
        raise ModelError(f"{source}: a model file must end in {', '.join(WRITTEN)}")
    with reading(source):
        if source.suffix == ".json":
            return _read_json(source)
        with source.open("rb") as f:
            return read_npz(f)


def _to_json(cmdp: CMDP) -> dict[str, Any]:
    S, A = cmdp.n_states, cmdp.n_actions
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "transition": _matrix_to_json(cmdp.transition.matrix, (S, A, S)),
        "costs": cmdp.costs.tolist(),
        "thresholds": cmdp.thresholds.tolist(),
        "initial": cmdp.initial.tolist(),
        "cost_names": list(cmdp.cost_names),
        "maximise": cmdp.maximise,
    }
    if not cmdp.available.all():
        record["available"] = cmdp.available.astype(int).tolist()
    if any(c is not None for c in cmdp.outcome_costs):
        record["outcome_costs"] = [None if c is None else _matrix_to_json(c, (S, A, S)) for c in cmdp.outcome_costs]
    if cmdp.state_names:
        record["state_names"] = list(cmdp.state_names)
    if cmdp.action_names:
        record["action_names"] = list(cmdp.action_names)
    if cmdp.layout:
        record["layout"] = _layout_to_json(cmdp.layout)
    if cmdp.units.record():
        record["units"] = cmdp.units.record()
    if cmdp.at_least:
        record["at_least"] = sorted(cmdp.at_least)
    return record


def _matrix_to_json(matrix: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(matrix, np.ndarray):
        return matrix.reshape(shape).tolist()
    coo = matrix.tocoo()
    rows, columns = coo.coords
    entries = [[int(i), int(j), float(p)] for i, j, p in zip(rows, columns, coo.data, strict=True)]
    return {"shape": list(matrix.shape), "entries": entries}


def _matrix_from_json(value: Any, what: str, rows_given: int) -> Any:
    """Return a matrix, sparse if given by entries. The shape may not claim more rows than the file has data for."""
    if issparse(value) or isinstance(value, np.ndarray):  # from .npz
        return value
    if not isinstance(value, dict):
        return as_floats(value, what)
    if value.keys() != {"shape", "entries"}:
        raise ModelError(f"{what} must be nested lists, or have the fields 'shape' and 'entries'")
    shape, entries = value["shape"], as_floats(value["entries"], f"entries of {what}")
    if entries.ndim != 2 or entries.shape[1] != 3:
        raise ModelError(f"entries of {what} must be [row, column, value]")
    if not isinstance(shape, list) or len(shape) != 2 or not all(type(n) is int for n in shape):
        raise ModelError(f"shape of {what} must be [S*A, S], two whole numbers")
    rows, columns = shape
    if not 0 < columns <= rows <= max(len(entries), rows_given):
        raise ModelError(
            f"shape claims {rows} rows and {columns} columns for {len(entries)} entries; it must be [S*A, S], and "
            "every row needs an entry, unless 'available' says that there is no such action"
        )
    places = entries[:, :2]
    if not ((places >= 0) & (places < shape) & (places == np.floor(places))).all():
        raise ModelError(f"entries of {what} must be [row, column, value], whole numbers within the shape {shape}")
    i, j = places.T.astype(np.int64)
    if len(np.unique(i * columns + j)) < len(entries):
        raise ModelError(f"entries of {what} must be distinct; two of them are for the same row and column")
    return csr_array(coo_array((entries[:, 2], (i, j)), shape=(rows, columns)))


def _layout_to_json(layout: GridLayout) -> dict[str, Any]:
    return {
        "rows": list(layout.rows),
        "cells": [list(cell) for cell in layout.cells],
        "layers": layout.layers,
    }


def _layout_from_json(value: Any) -> GridLayout | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not {"rows", "cells"} <= value.keys() <= {"rows", "cells", "layers"}:
        raise ModelError("layout must have the fields 'rows', 'cells' and perhaps 'layers'")
    rows, cells, layers = value["rows"], value["cells"], value.get("layers")
    need_texts(rows, "layout rows")
    if not isinstance(cells, list) or not all(_is_cell(cell) for cell in cells):
        raise ModelError("layout cells must be [row, column], whole numbers")
    if layers is not None:
        need_texts(layers, "layout layers")
    return GridLayout(tuple(rows), tuple((r, c) for r, c in cells), None if layers is None else tuple(layers))


def _is_cell(cell: Any) -> bool:
    return isinstance(cell, list) and len(cell) == 2 and all(type(x) is int for x in cell)


def need_texts(given: Any, what: str) -> None:
    """Raise an error unless a field of a file is a list of texts."""
    if not isinstance(given, list) or not all(isinstance(x, str) for x in given):
        raise ModelError(f"{what} must be a list of texts; got {type(given).__name__}")


def _read_json(path: Path) -> CMDP:
    need(JSON_PARSED_BYTES * path.stat().st_size, "its text", ModelError)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        reason = "a number of thousands of digits" if "digits" in str(error) else error
        raise ModelError(f"not valid JSON ({reason})") from None
    if not isinstance(record, dict):
        raise ModelError("a model must be a JSON object")
    return _build(record)


def _build(record: dict[str, Any]) -> CMDP:
    """Build a model from named fields. Hand-written files may omit ``format``; if given, it must match."""
    record = dict(record)
    if record.pop("format", FORMAT) != FORMAT:
        raise ModelError(f"not a {FORMAT} file")
    version = record.pop("version", VERSION)
    if version != VERSION:
        raise ModelError(f"format version {quoted(version)} is not known here (newest: {VERSION}); update psconrl")
    for name in record:
        if name not in _FIELDS:
            raise ModelError(unknown_name("field", name, _FIELDS))
    for name in _REQUIRED:
        if record.get(name) is None:
            raise ModelError(f"field {quoted(name)} is missing")
    for name in ("state_names", "action_names", "cost_names", "at_least"):
        if record.get(name) is not None:
            need_texts(record[name], name)
    try:
        given = {name: value for name, value in record.items() if value is not None}
        given["layout"] = _layout_from_json(given.get("layout"))
        pairs = np.size(given.get("available", ()))
        transition = _matrix_from_json(given.pop("transition"), "transition", pairs)
        outcomes = given.pop("outcome_costs", None)
        return _with_costs(transition, given.pop("costs"), outcomes, given)
    except ModelError:
        raise
    except (AttributeError, KeyError, IndexError, MemoryError, OverflowError, TypeError, ValueError) as error:
        raise ModelError(f"a field has the wrong form ({type(error).__name__}: {error})") from None


def _with_costs(transition: Any, costs: Any, by_next: Any, given: dict[str, Any]) -> CMDP:
    """Build a model from tables (S, A) of costs, and those by next state where there are any.

    A table of the latter's expectation is taken as it is, so that a model reads back as the same bits; it must agree. A
    file that was written by hand may have None in its place.
    """
    tables = list(costs) if isinstance(costs, list | np.ndarray) else []
    outcomes = [None] * len(tables) if by_next is None else by_next
    if not tables or not isinstance(outcomes, list) or len(outcomes) != len(tables):
        raise ModelError("costs must be a list of tables, the objective first, and outcome_costs as many or null")
    rows = int(np.prod(np.shape(transition)[:-1]))
    parts: list[Any] = []
    for i, (table, outcome) in enumerate(zip(tables, outcomes, strict=True)):
        levels = 2 if table is None and outcome is not None else np.ndim(as_floats(table, f"costs[{i}]"))
        if levels not in (2, 3) or (levels == 3 and outcome is not None):
            raise ModelError(f"costs[{i}] must have shape (S, A), or (S, A, S) without outcome_costs[{i}]")
        parts.append(table if outcome is None else _matrix_from_json(outcome, f"outcome_costs[{i}]", rows))
    model = CMDP(transition, parts, **given)
    plain = model.n_states, model.n_actions
    for i, table in enumerate(tables):
        if np.shape(table) not in ((), plain, (*plain, model.n_states)):
            raise ModelError(f"costs[{i}] must have shape {plain} or {(*plain, model.n_states)}; got {np.shape(table)}")
    stated = {i: tables[i] for i, outcome in enumerate(outcomes) if outcome is not None and tables[i] is not None}
    return model if not stated else model.with_expected_costs(stated)


def _to_arrays(cmdp: CMDP) -> dict[str, Any]:
    header = {
        "format": FORMAT,
        "version": VERSION,
        "maximise": cmdp.maximise,
        "cost_names": cmdp.cost_names,
        "state_names": cmdp.state_names,
        "action_names": cmdp.action_names,
        "layout": _layout_to_json(cmdp.layout) if cmdp.layout else None,
        "outcome_costs": [i for i, outcome in enumerate(cmdp.outcome_costs) if outcome is not None],
        "units": cmdp.units.record(),
        "at_least": sorted(cmdp.at_least),
    }
    arrays: dict[str, Any] = {
        "header": np.array(json.dumps(header)),
        "costs": cmdp.costs,
        "thresholds": cmdp.thresholds,
        "initial": cmdp.initial,
        "available": cmdp.available,
    }
    _put_matrix(arrays, "transition", cmdp.transition.matrix)
    for i, outcome in enumerate(cmdp.outcome_costs):
        if outcome is not None:
            _put_matrix(arrays, f"outcome_costs_{i}", outcome)
    return arrays


def _put_matrix(arrays: dict[str, Any], name: str, matrix: Any) -> None:
    if isinstance(matrix, np.ndarray):
        arrays[name] = matrix
    else:
        arrays[f"{name}_shape"] = np.array(matrix.shape)
        for part in ("data", "indices", "indptr"):
            arrays[f"{name}_{part}"] = getattr(matrix, part)


def _get_matrix(arrays: Archive, name: str) -> Any:
    if name in arrays:
        arrays.need_kind(name, "<f8")
        return arrays[name]
    for part in ("shape", "indices", "indptr"):
        arrays.need_kind(f"{name}_{part}", "<i4", "<i8")
    arrays.need_kind(f"{name}_data", "<f8")
    if arrays.shape(f"{name}_shape") != (2,):
        raise ModelError(f"{name}_shape must be two numbers")
    rows, columns = (int(n) for n in arrays[f"{name}_shape"])
    if not 0 < columns <= rows or arrays.shape(f"{name}_indptr") != (rows + 1,):
        raise ModelError(f"{name}_shape claims {rows} rows and {columns} columns, which {name}_indptr does not have")
    data, indices, indptr = (arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    # SciPy's compiled loops follow these indices unchecked, even in its own validity checks.
    if indices.shape != (data.size,) or data.ndim != 1 or not ((indices >= 0) & (indices < columns)).all():
        raise ModelError(f"{name}_indices must be columns from 0 to {columns - 1}, one for each number")
    if indptr[0] != 0 or indptr[-1] != data.size or (np.diff(indptr) < 0).any():
        raise ModelError(f"{name}_indptr must rise from 0 to {data.size}")
    falls = np.flatnonzero(np.diff(indices.astype(np.int64)) <= 0) + 1
    if not np.isin(falls, indptr).all():
        raise ModelError(f"{name}_indices must rise in every row")
    return csr_array((data, indices, indptr), shape=(rows, columns))


def _check_shapes(arrays: Archive) -> None:
    """Refuse a model whose arrays do not fit together, before they are unpacked."""
    costs = arrays.shape("costs")
    if len(costs) != 3 or min(costs) < 1:
        raise ModelError(f"costs must have shape (m+1, S, A); got {costs}")
    q, S, A = costs
    wanted = {"thresholds": (q - 1,), "initial": (S,), "available": (S, A)}
    if "transition" in arrays:
        wanted["transition"] = (S * A, S)
    else:
        wanted |= {"transition_shape": (2,), "transition_indptr": (S * A + 1,)}
    for name, shape in wanted.items():
        if arrays.shape(name) != shape:
            raise ModelError(f"{name} must have shape {shape}, as the costs have {costs}; got {arrays.shape(name)}")


def write_npz(cmdp: CMDP, f: IO[bytes]) -> None:
    """Write a model in ``.npz`` format to an open file."""
    np.savez_compressed(f, **_to_arrays(cmdp))


def read_npz(f: IO[bytes]) -> CMDP:
    """Read a model in ``.npz`` format from an open file."""
    try:
        arrays = Archive(f, ModelError)
        if "header" not in arrays:
            raise ModelError(f"not a {FORMAT} file")
        record = arrays.json("header")
        if record.get("format") != FORMAT:
            raise arrays.other_format(FORMAT, record.get("format"))
        _check_shapes(arrays)
        need(COPIES * arrays.total, "reading the model", ModelError)
        for name in ("costs", "thresholds", "initial"):
            arrays.need_kind(name, "<f8")
        arrays.need_kind("available", "|b1")
        if not (arrays["available"].view(np.uint8) <= 1).all():
            raise ModelError("available must hold only 0 and 1")
        for name in ("costs", "thresholds", "initial", "available"):
            record[name] = arrays[name]
        record["transition"] = _get_matrix(arrays, "transition")
        q = len(record["costs"])
        places = [] if record.get("outcome_costs") is None else record["outcome_costs"]
        valid = isinstance(places, list) and all(type(i) is int and 0 <= i < q for i in places)
        if not valid or len(set(places)) < len(places):
            raise ModelError(f"outcome_costs must list distinct costs from 0 to {q - 1}")
        outcomes = {i: _get_matrix(arrays, f"outcome_costs_{i}") for i in places}
        record["outcome_costs"] = [outcomes.get(i) for i in range(q)]
        return _build(record)
    except (PsconrlError, OSError):
        raise
    except Exception as error:  # zip, zlib, the header's tokenizer and JSON each raise their own errors
        raise ModelError(f"truncated, or not a {FORMAT} file ({type(error).__name__})") from None
