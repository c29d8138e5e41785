"""Agents in files: one ``.npz`` with everything, generators included. Never pickle."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from psconrl.errors import AgentError, ModelError, PsconrlError
from psconrl.learning.agent import Agent
from psconrl.learning.registry import agent_class
from psconrl.model.io import write_atomically

FORMAT = "psconrl-agent"
VERSION = 1


def save_agent(agent: Agent, path: Any, extra: dict[str, Any] | None = None) -> None:
    """Write an agent, and whatever else belongs to the run, to one file that appears whole or not at all."""
    arrays: dict[str, Any] = {}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "agent": agent.name,
        "config": _flatten(agent.config(), "config", arrays),
        "state": _flatten(agent.state(), "state", arrays),
        "extra": _flatten(extra or {}, "extra", arrays),
    }
    arrays["header"] = np.array(json.dumps(header))
    try:
        write_atomically(Path(path), lambda f: np.savez_compressed(f, **arrays))
    except ModelError as error:
        raise AgentError(str(error)) from None


def load_agent(path: Any) -> Agent:
    """Read an agent that continues bit for bit where the saved one stood."""
    return load_agent_and_extra(path)[0]


def load_agent_and_extra(path: Any) -> tuple[Agent, dict[str, Any]]:
    """Read an agent and what else was saved with it."""
    source = Path(path)
    if not source.is_file():
        raise AgentError(f"{source}: no such file")
    try:
        with source.open("rb") as f, np.load(f, allow_pickle=False) as arrays:
            header = json.loads(str(arrays["header"]))
            if header["format"] != FORMAT:
                raise AgentError(f"{source}: not a {FORMAT} file but a {header['format']} one")
            if header["version"] != VERSION:
                raise AgentError(
                    f"{source}: format version {header['version']} is newer than {VERSION}; update psconrl"
                )
            agent = agent_class(header["agent"])(**_unflatten(header["config"], arrays))
            agent.restore(_unflatten(header["state"], arrays))
            return agent, _unflatten(header["extra"], arrays)
    except PsconrlError:
        raise
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
