"""Damage a saved agent or run by structure: the file stays a readable archive, what it says is changed.

A file is opened as one tree of tables, lists, arrays and numbers. A mutation changes one node of it: drops it, swaps it
with another, or puts something in its place.
"""

import io
import json

import numpy as np

from damage.archives import header_changed

ARRAY = "@array"  # the key of a reference to an array of the archive
PARTS = ("config", "state", "extra")
NUMBERS = (0, 1, -1, 2, 3, 7, 1e300, -1e300, 1e-300, 0.5, 1.5, float("nan"), float("inf"), -float("inf"), 10**8, 10**12,
           2**31, 2**63, -(2**63), 10**30)  # fmt: skip
OTHERS = (None, True, False, "", "x", "x" * 10_000, [], {}, [[]], [None], {"a": 1}, [1, [2]])
DTYPES = (
    np.int8,
    np.uint8,
    np.int32,
    np.uint64,
    np.float16,
    np.float32,
    np.float64,
    np.bool_,
    np.complex128,
    "S3",
    "U3",
)


def read_tree(path):
    """Return the header of a file with its arrays in place."""
    with np.load(path) as members:
        arrays = dict(members)
    return _with_arrays(json.loads(str(arrays["header"])), arrays)


def write_tree(tree, path):
    """Write what ``read_tree`` returned, checking nothing."""
    arrays = {}
    header = json.dumps(_without_arrays(tree, arrays))
    np.savez_compressed(path, header=np.array(header), **arrays)


def saved_tree_changed(content, rng):
    """Change the tree of a saved agent or run; of other archives the header."""
    tree = read_tree(io.BytesIO(content))
    if not set(PARTS) <= set(tree):
        return header_changed(content, rng)
    mutate(tree, rng)
    written = io.BytesIO()
    write_tree(tree, written)
    return written.getvalue()


def _with_arrays(node, arrays):
    if isinstance(node, dict):
        if set(node) == {ARRAY}:
            return arrays[node[ARRAY]]
        return {key: _with_arrays(part, arrays) for key, part in node.items()}
    return [_with_arrays(part, arrays) for part in node] if isinstance(node, list) else node


def _without_arrays(node, arrays):
    if isinstance(node, dict):
        return {key: _without_arrays(part, arrays) for key, part in node.items()}
    if isinstance(node, list):
        return [_without_arrays(part, arrays) for part in node]
    if isinstance(node, np.ndarray):
        name = f"array{len(arrays)}"
        arrays[name] = node
        return {ARRAY: name}
    return node.item() if isinstance(node, np.generic) else node


def places(tree):
    """Return the paths of all nodes below configuration, state and additional data; of long lists only some."""
    found = []

    def visit(node, path):
        if len(path) > 1:
            found.append(path)
        if isinstance(node, dict):
            for key in node:
                visit(node[key], (*path, key))
        elif isinstance(node, list):
            for k in sorted({0, 1, 2, len(node) // 2, len(node) - 1} & set(range(len(node)))):
                visit(node[k], (*path, k))

    for part in PARTS:
        visit(tree[part], (part,))
    return found


def value_at(tree, path):
    """Return the node at a path."""
    for key in path:
        tree = tree[key]
    return tree


def put(tree, path, value):
    """Replace the node at a path."""
    value_at(tree, path[:-1])[path[-1]] = value


def drop(tree, path):
    """Remove the node at a path."""
    del value_at(tree, path[:-1])[path[-1]]


def mutate(tree, rng, number=1):
    """Change a tree in one place or several, and return a description of what was done."""
    done = []
    for _ in range(number):
        paths = places(tree)
        path = paths[int(rng.integers(len(paths)))]
        kind = rng.random()
        if kind < 0.1:
            drop(tree, path)
            done.append(f"{shown(path)} dropped")
        elif kind < 0.2:
            other = paths[int(rng.integers(len(paths)))]
            if other[: len(path)] == path or path[: len(other)] == other:
                continue
            first, second = value_at(tree, path), value_at(tree, other)
            put(tree, path, second)
            put(tree, other, first)
            done.append(f"{shown(path)} swapped with {shown(other)}")
        else:
            value = changed(value_at(tree, path), rng)
            put(tree, path, value)
            done.append(f"{shown(path)} = {brief(value)}")
    return "; ".join(done)


def shown(path):
    """Return a path as text."""
    return "/".join(map(str, path))


def brief(value):
    """Return a short text for a value."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape} {value.ravel()[:6].tolist()}"
    return repr(value)[:100]


def chosen(options, rng):
    """Return one of the options."""
    return options[int(rng.integers(len(options)))]


def changed(value, rng):
    """Return something else in place of a value, usually of the same kind."""
    if rng.random() < 0.1:
        return chosen(OTHERS + NUMBERS, rng)
    if isinstance(value, np.ndarray):
        return changed_array(value, rng)
    if isinstance(value, bool):
        return not value if rng.random() < 0.5 else chosen(NUMBERS, rng)
    if isinstance(value, int | float):
        return chosen((*NUMBERS, value + 1, value - 1, value * 2, -value, value * 1000, float(value), str(value)), rng)
    if isinstance(value, str):
        return chosen((value + "x", value[:-1], value.upper(), "", "\ud7ff" * 50, 0), rng)
    if isinstance(value, list):
        return changed_list(value, rng)
    if isinstance(value, dict) and value:
        first, second = chosen(list(value), rng), chosen(list(value), rng)
        return chosen(
            (value | {first: value[second]}, value | {f"{first}x": value[first]}, {}, list(value.values())), rng
        )
    return chosen(OTHERS + NUMBERS, rng)


def changed_list(value, rng):
    """Return a list with elements missing, repeated, reversed or replaced."""
    if not value:
        return chosen(([0], [[0]], ["x"], [{}], [None], [[0, 0, 0]]), rng)
    k = int(rng.integers(len(value)))
    return chosen((value[:k], value[:k] + value[k + 1 :], [*value, value[k]], value[::-1], value * 3,
                   [*value[:k], changed(value[k], rng), *value[k + 1 :]], np.zeros(len(value)),
                   [value]), rng)  # fmt: skip


def changed_array(array, rng):
    """Return an array with other numbers, or of another shape or type."""
    kind = int(rng.integers(10))
    with np.errstate(all="ignore"):
        if kind < 5 and array.size:
            return replaced(array, rng)
        if kind == 5:
            return array.astype(chosen(("S3", "U3") if array.dtype.kind in "US" else DTYPES, rng))
        if kind == 6 and array.ndim:
            return array[: int(rng.integers(len(array) + 1))]
        if kind == 7 and array.ndim and len(array):
            return np.concatenate([array, array[:1]])
        reshaped = (array[..., None], array.T, array.ravel(), array[None], array.ravel()[:0], array.ravel()[::-1],
                    array.tolist(), np.zeros_like(array), np.ones_like(array), np.sort(array.ravel()))  # fmt: skip
        return chosen(reshaped, rng)


def replaced(array, rng):
    """Return an array in which one number, or a few, are replaced."""
    number = chosen(NUMBERS, rng)
    if array.dtype.kind in "US":
        number = chosen(("", "x", "0"), rng)
    elif array.dtype.kind == "b":
        number = bool(rng.random() < 0.5)
    elif array.dtype.kind in "iu" and number != number // 1 if isinstance(number, float) else False:
        array = array.astype(np.float64)
    array = array.copy()
    if array.dtype.kind in "iu":
        low, high = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
        number = int(min(max(number, low), high))
    elif array.dtype.kind == "f":
        number = float(number)
    for _ in range(1 if rng.random() < 0.7 else 3):
        array.flat[int(rng.integers(array.size))] = number
    return array
