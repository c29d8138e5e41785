"""Saving agents to files: one ``.npz`` with everything, generators included. Pickle is never used.

A file holds the name of an agent, its configuration and its state; the code comes from this library or from the caller.
A run that is saved and resumed keeps its own state next to the agent's: ``simulation.model_run``.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.sparse import csr_array, issparse

from psconrl.base.caps import need
from psconrl.base.escaping import quoted
from psconrl.base.files import as_path, write_atomically
from psconrl.base.saved_fields import FieldError, in_field, integer, need_that, read_fields, reals, text
from psconrl.errors import AgentError, ConfigError
from psconrl.learning.part import Part
from psconrl.model.archive import Archive, opened_archive

FORMAT = "psconrl-agent"
VERSION = 1
ARRAY, SPARSE = "@array", "@sparse"  # keys of references


class Restorable(Protocol):
    """The interface of an agent that is needed to load it."""

    name: ClassVar[str]
    recipe: str
    extra: dict[str, Any]

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what the agent's ``state`` returned."""


A = TypeVar("A", bound=Restorable)


class Saved(NamedTuple):
    """Contents of a file: the agent's name, its configuration, its state, and additional data of the run."""

    agent: str  # name of its class
    recipe: str  # name under which it was created, such as "cmdp-psrl"
    config: dict[str, Any]
    state: dict[str, Any]
    extra: dict[str, Any]


def write_saved(saved: Saved, path: Any) -> None:
    """Write to one file atomically. Only a file that holds an agent is overwritten."""
    as_path(path, AgentError)
    taken = Path(path).is_file() and Path(path).stat().st_size > 0
    if taken and _format_of(Path(path)) != FORMAT:
        raise AgentError(f"{path}: exists and holds no agent; choose another name")
    arrays: dict[str, Any] = {}
    header = {"format": FORMAT, "version": VERSION, "agent": saved.agent, "recipe": saved.recipe}
    try:
        for part in ("config", "state", "extra"):
            if not isinstance(getattr(saved, part), dict):
                raise TypeError(f"{part} must be a table; got {type(getattr(saved, part)).__name__}")
            header[part] = _flatten(getattr(saved, part), arrays)
        arrays["header"] = np.array(json.dumps(header))
    except (TypeError, ValueError) as error:
        raise AgentError(f"{path}: only numbers, text, lists, tables and arrays can be saved ({error})") from None
    except RecursionError:
        raise AgentError(f"{path}: tables and lists must not hold themselves, nor be nested hundreds deep") from None
    write_atomically(Path(path), lambda f: np.savez_compressed(f, **arrays), AgentError)


def _format_of(path: Path) -> str:
    try:
        with path.open("rb") as f:
            return str(Archive(f, AgentError).json("header")["format"])
    except Exception:  # not one of our files
        return ""


def read_saved(path: Any) -> Saved:
    """Read what ``write`` wrote."""
    source = as_path(path, AgentError)
    if not source.is_file():
        raise AgentError(f"{source}: is a directory" if source.is_dir() else f"{source}: no such file")
    with opened_archive(source, FORMAT, AgentError) as archive:
        return _read(archive)


def _read(arrays: Archive) -> Saved:
    header = arrays.json("header")
    if header["format"] != FORMAT:
        raise arrays.other_format(FORMAT, header["format"])
    if header["version"] != VERSION:
        raise AgentError(f"format version {header['version']} is not {VERSION}; update psconrl")
    names = read_fields(header, {"agent": text(), "recipe": text()})
    parts = {part: _unflatten(header[part], arrays, part) for part in ("config", "state", "extra")}
    for name, part in parts.items():
        need_that(isinstance(part, dict), f"{name} must be a table")
    return Saved(**names, **parts)


def rebuilt(cls: type[A], saved: Saved, path: Any) -> A:
    """Return the saved agent, built from its class."""
    if saved.agent != cls.name:
        raise AgentError(f"{path}: holds an agent {quoted(saved.agent)}, not {quoted(cls.name)}")
    make: Callable[..., A] = cls
    with in_file(path):
        need_sizes(saved)
        with in_field("config"):
            agent = make(**{key: _as_part(key, value) for key, value in saved.config.items()})
    return restored(agent, saved, path)


def restored(agent: A, saved: Saved, path: Any) -> A:
    """Restore the saved state in a newly built agent, and return the agent."""
    with in_file(path), in_field("state"):
        agent.restore(saved.state)
    agent.recipe, agent.extra = saved.recipe, saved.extra
    return agent


@contextmanager
def in_file(path: Any) -> Iterator[None]:
    """Prefix errors in what a file says with its name."""
    try:
        yield
    except AgentError as error:
        raise AgentError(f"{path}: {error}") from None


def need_sizes(saved: Saved) -> None:
    """Compare the sizes with what was counted, before anything of these sizes is built."""
    if {"n_states", "n_actions"} <= saved.config.keys():
        with in_field("config"):
            sizes = read_fields(saved.config, {"n_states": integer(1), "n_actions": integer(1)})
        pairs = sizes["n_states"] * sizes["n_actions"]
        with in_field("state"), in_field("counts"):
            read_fields(saved.state.get("counts"), {"visits": reals((pairs,))})


def _as_part(key: str, value: Any) -> Any:
    if key not in Part.kinds or not isinstance(value, dict):
        return value
    with in_field(key):
        try:
            return Part.kinds[key].from_dict(value)
        except ConfigError as error:
            raise FieldError(f"{error} (a part of your own is known once its module is imported)") from None


def _flatten(value: Any, arrays: dict[str, Any]) -> Any:
    """Return JSON data in which every array is replaced by a reference to its entry in the file."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value) or {ARRAY, SPARSE} & value.keys():
            raise TypeError(
                f"the keys of a table must be text, other than {quoted(ARRAY)} and {quoted(SPARSE)}; got "
                f"{list(value)[:8]}"
            )
        return {key: _flatten(part, arrays) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_flatten(part, arrays) for part in value]
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject or isinstance(value, np.ma.MaskedArray):
            raise TypeError("an array must hold numbers or text, none of them masked")
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {ARRAY: name}
    if issparse(value):
        matrix = csr_array(value)
        parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": list(matrix.shape)}
        return {SPARSE: _flatten(parts, arrays)}
    return value.item() if isinstance(value, np.generic) else value


def _unflatten(value: Any, arrays: Archive, name: str) -> Any:
    """Return the data with its arrays in place of references; ``name``: of the field that holds it."""
    if isinstance(value, dict):
        with in_field(name):
            if set(value) == {ARRAY}:
                return arrays[value[ARRAY]]
            if set(value) == {SPARSE}:
                return _matrix(**_unflatten(value[SPARSE], arrays, SPARSE))
            return {key: _unflatten(part, arrays, key) for key, part in value.items()}
    if isinstance(value, list):
        return [_unflatten(part, arrays, name) for part in value]
    return value


def _matrix(data: Any, indices: Any, indptr: Any, shape: Any) -> csr_array:
    """Return a sparse matrix from a file after checking it, since compiled loops trust its arrays."""
    need(shape[0] * 8.0, f"a matrix of {shape[0]:,} rows", AgentError)
    matrix = csr_array((data, indices, indptr), shape=tuple(shape))
    matrix.check_format(full_check=True)
    return matrix
