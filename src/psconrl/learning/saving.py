"""Agents in files: one ``.npz`` with everything, generators included. Never pickle."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from psconrl.errors import AgentError, PsconrlError
from psconrl.files import write_atomically
from psconrl.model.archive import Archive

FORMAT = "psconrl-agent"
VERSION = 1


class Saved(NamedTuple):
    """What a file holds: which agent, how to build it, where it stood, and whatever else belongs to the run."""

    agent: str
    config: dict[str, Any]
    state: dict[str, Any]
    extra: dict[str, Any]


def write(saved: Saved, path: Any) -> None:
    """Write to one file that appears whole or not at all. Only an agent's own file is overwritten."""
    taken = Path(path).is_file() and Path(path).stat().st_size > 0
    if taken and _format_of(Path(path)) != FORMAT:
        raise AgentError(f"{path}: exists and holds no agent; choose another name")
    arrays: dict[str, Any] = {}
    header = {"format": FORMAT, "version": VERSION, "agent": saved.agent}
    for part in ("config", "state", "extra"):
        header[part] = _flatten(getattr(saved, part), part, arrays)
    try:
        arrays["header"] = np.array(json.dumps(header))
    except (TypeError, ValueError) as error:
        raise AgentError(f"{path}: only numbers, text, lists, tables and arrays can be saved ({error})") from None
    write_atomically(Path(path), lambda f: np.savez_compressed(f, **arrays), AgentError)


def _format_of(path: Path) -> str:
    try:
        with path.open("rb") as f:
            return str(json.loads(str(Archive(f, AgentError)["header"]))["format"])
    except Exception:  # whatever it is, it is not ours
        return ""


def read(path: Any) -> Saved:
    """Read what ``write`` wrote."""
    source = Path(path)
    if not source.is_file():
        raise AgentError(f"{source}: is a directory" if source.is_dir() else f"{source}: no such file")
    try:
        with source.open("rb") as f:
            arrays = Archive(f, AgentError)
            header = json.loads(str(arrays["header"]))
            if header["format"] != FORMAT:
                raise AgentError(f"not a {FORMAT} file but a {header['format']} one")
            if header["version"] != VERSION:
                raise AgentError(f"format version {header['version']} is newer than {VERSION}; update psconrl")
            parts = [_unflatten(header[part], arrays) for part in ("config", "state", "extra")]
            if not isinstance(header["agent"], str) or not all(isinstance(part, dict) for part in parts):
                raise TypeError
            return Saved(header["agent"], *parts)
    except PsconrlError as error:
        raise AgentError(f"{source}: {error}") from None
    except OSError as error:
        raise AgentError(f"{source}: cannot be read ({error.strerror or error})") from None
    except Exception as error:  # zip, zlib, JSON and NumPy: each has errors of its own
        raise AgentError(f"{source}: truncated, or not a {FORMAT} file ({type(error).__name__})") from None


def _flatten(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """JSON in which every array is replaced by a reference to its entry in the file."""
    if isinstance(value, dict):
        return {key: _flatten(part, f"{name}.{key}", arrays) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_flatten(part, f"{name}.{i}", arrays) for i, part in enumerate(value)]
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"@array": name}
    return value.item() if isinstance(value, np.generic) else value


def _unflatten(value: Any, arrays: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"@array"}:
            return arrays[value["@array"]]
        return {key: _unflatten(part, arrays) for key, part in value.items()}
    if isinstance(value, list):
        return [_unflatten(part, arrays) for part in value]
    return value
