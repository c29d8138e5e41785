"""Reading models and NAME=VALUE options from the command line."""

import signal
import threading
from pathlib import Path

from psconrl.envs.registry import load
from psconrl.errors import ConfigError, unknown_name
from psconrl.model.cmdp import CMDP

PICTURES = (".png", ".svg", ".pdf")


def read_model(name: str, settings: tuple[str, ...] = (), thresholds: tuple[str, ...] = ()) -> CMDP:
    """The model of a name or file, with environment options and thresholds given as NAME=VALUE."""
    cmdp = load(name, **pairs("--set", settings))
    limits = pairs("--threshold", thresholds)
    for cost in limits:
        if cost not in cmdp.cost_names[1:]:
            raise ConfigError("--threshold: " + unknown_name("constrained cost", cost, cmdp.cost_names[1:]))
    return cmdp.with_thresholds(limits) if limits else cmdp


def picture_path(path: str | None) -> Path | None:
    """Where to draw, checked before any work is done."""
    if path is None:
        return None
    target = Path(path)
    if target.suffix.lower() not in PICTURES:
        raise ConfigError(f"--plot: {path!r} must end in {', '.join(PICTURES)}")
    if not target.parent.is_dir():
        raise ConfigError(f"--plot: folder {str(target.parent)!r} does not exist")
    return target


def end_politely() -> None:
    """Whoever ends the process by SIGTERM gets what Ctrl-C gets: everything is kept and put away."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pairs(option: str, values: tuple[str, ...]) -> dict[str, float]:
    """Options given as NAME=VALUE."""
    result = {}
    for item in values:
        name, equals, number = item.partition("=")
        try:
            if not equals or not name:
                raise ValueError
            result[name.strip()] = float(number)
        except ValueError:
            raise ConfigError(f"{option}: must be NAME=VALUE with a number; got {item!r}") from None
    return result
