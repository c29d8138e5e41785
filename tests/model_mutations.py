"""Model files that were changed by structure, for two readers that must agree on each: ``.json`` and ``.npz``."""

import copy
import json
from functools import cache

import numpy as np
from scipy.sparse import csr_array

from psconrl import CMDP
from psconrl.model.io import _to_arrays, _to_json
from psconrl.model.layout import GridLayout

NUMBERS = (
    0, 1, -1, 2, 3, 0.5, -0.0, 1e-300, 5e-324, 1.0 + 1e-12, 1.0 - 1e-10, 1 + 1e-8, 1e-9, 1e100, 1e101, 1e308, -1e308,
    10**30, 2**63, 2**53 + 1, float("nan"), float("inf"), -float("inf"), 0.25, 0.1, 1e-17,
)  # fmt: skip
OTHERS = (
    None, True, False, "", "x", "0", "1", "a\nb", "\ud800", "\u2028", [], {}, [[]], [None], ["x"], [0], [1], [0.5, 0.5],
    [[1]], [[[1.0]]], [[0, 0, 1.0]], {"a": 1}, {"shape": [1, 1], "entries": [[0, 0, 1.0]]}, [[1, 0], [0, 1]], [True],
)  # fmt: skip
KINDS = ("<f4", ">f8", "<f8", "<i2", "<i4", "<i8", "<u8", "|b1", "|i1", "<c16", "<U4", "|S4", "object")
KEYS = (
    "transition", "costs", "thresholds", "initial", "available", "outcome_costs", "state_names", "action_names",
    "cost_names", "maximise", "layout", "units", "at_least", "format", "version", "extra", "shape", "entries",
)  # fmt: skip


@cache
def samples():
    """Models with every kind of field."""
    P = np.array([[[0.5, 0.5], [0.25, 0.75]], [[1.0, 0.0], [0.0, 1.0]]])
    table = np.array([[0.0, 1.0], [2.0, 0.5]])
    by_next = np.array([[[0.0, 1.0], [2.0, 3.0]], [[1.0, 5.0], [0.1, -0.3]]])
    mask = np.array([[True, True], [True, False]])
    sparse = csr_array(P.reshape(4, 2))
    named = {
        "state_names": ["calm", "busy"], "action_names": ["wait", "go"], "cost_names": ["pay", "served", "risk"],
        "maximise": True, "at_least": ["served"], "layout": GridLayout(("S.",), ((0, 0), (0, 1)), ("a", "b")),
        "units": {"round": "hour", "counted": {"pay": "euro"}, "levels": {"risk": "per cent"}},
    }  # fmt: skip
    return [
        CMDP(P, [table]),
        CMDP(P, [table, by_next], [1.5], initial=[0.5, 0.5]),
        CMDP(sparse, [by_next, table], [1.0], available=mask),
        CMDP(P, [table, table, by_next], [1.0, 2.0], available=mask, **named),
        CMDP(sparse, [table, csr_array(by_next.reshape(4, 2)), table], [1.0, 0.5], initial=1),
        CMDP(csr_array(np.eye(3)[[1, 2, 0]]), [np.array([[1.0], [2.0], [3.0]])]),
    ]


def places(record, path=()):
    """Yield the paths of all nodes below the root."""
    items = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def changed(record, rng):
    """Return plain data with one node replaced, removed, doubled, added, exchanged or rescaled."""
    record = copy.deepcopy(record)
    everywhere = list(places(record))
    if not everywhere:
        return record
    depth = rng.choice(sorted({len(path) for path in everywhere}))
    *folders, last = rng.choice([path for path in everywhere if len(path) == depth])
    parent = record
    for key in folders:
        parent = parent[key]
    way = rng.randrange(8)
    if way == 0:
        del parent[last]
    elif way == 1 and isinstance(parent, list):
        parent.insert(last, copy.deepcopy(parent[last]))
    elif way == 2 and isinstance(parent, list):
        other = rng.randrange(len(parent))
        parent[last], parent[other] = parent[other], parent[last]
    elif way == 3 and isinstance(parent, dict):
        parent[rng.choice(KEYS)] = copy.deepcopy(parent[last])
    elif way == 4:
        parent[last] = rng.choice(OTHERS)
    elif way == 5 and type(parent[last]) in (int, float):
        parent[last] = parent[last] * rng.choice((-1, 2, 1.0, 1 + 1e-15, 1 + 1e-11, 1 + 1e-7))
    elif way == 6:
        parent[last] = [parent[last]]
    else:
        parent[last] = rng.choice(NUMBERS)
    return record


def mutated_json(rng):
    """Return the bytes of a JSON file with one or two changes."""
    record = _to_json(rng.choice(samples()))
    for name in rng.sample(sorted(record), rng.randrange(3)):
        if name not in ("transition", "costs") and rng.random() < 0.5:
            del record[name]
    if rng.random() < 0.3 and record.get("outcome_costs"):  # tables by next state, in the place of the costs
        for i, outcome in enumerate(record.pop("outcome_costs")):
            if isinstance(outcome, list):
                record["costs"][i] = outcome
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3))):
        record = changed(record, rng)
    return json.dumps(record).encode()


def changed_array(array, rng):
    """Return an array with a value, its type, its shape or its order changed."""
    way = rng.randrange(6)
    if way == 0:
        kind = rng.choice(KINDS)
        if kind != "object":
            with np.errstate(all="ignore"):
                return array.astype(kind)
    elif way == 1 and array.size:
        array = array.copy()
        flat = array.reshape(-1)
        number = rng.choice(NUMBERS)
        with np.errstate(all="ignore"):
            flat[rng.randrange(flat.size)] = (
                np.array(float(number)).astype(array.dtype) if array.dtype.kind in "fib" else "x"
            )
        return array
    elif way == 2:
        return rng.choice(
            (array[None], array.reshape(-1), array[..., None], array.T, array[:-1] if array.ndim else array)
        )
    elif way == 3:
        return np.asfortranarray(array)
    elif way == 4 and array.ndim:
        return np.concatenate([array, array[-1:]])
    elif way == 5 and array.dtype == bool:
        return np.full(array.shape, rng.choice((0, 1, 2, 255)), np.uint8).view(bool)
    elif array.ndim and len(array) > 1:
        order = list(range(len(array)))
        rng.shuffle(order)
        return array[order]
    return array


def mutated_npz(rng, f):
    """Write an ``.npz`` file with some changes to an open file."""
    arrays = dict(_to_arrays(rng.choice(samples())))
    for _ in range(rng.choice((0, 1, 1, 2))):
        name = rng.choice(sorted(arrays))
        way = rng.randrange(10)
        if way == 0:
            del arrays[name]
        elif way == 1:
            arrays[rng.choice(sorted(arrays))] = arrays[name]
        elif way == 2:
            arrays["extra"] = arrays[name]
        elif name == "header" or way == 3:
            if "header" in arrays and arrays["header"].dtype.kind == "U" and not arrays["header"].ndim:
                record = changed(json.loads(str(arrays["header"])), rng)
                arrays["header"] = np.array(json.dumps(record))
        else:
            arrays[name] = changed_array(arrays[name], rng)
    (np.savez_compressed if rng.random() < 0.7 else np.savez)(f, **arrays)
