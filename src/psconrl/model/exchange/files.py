"""Files of other programs, by extension: read with a goal as a ``CMDP``, and written."""

import os
from pathlib import Path
from typing import Any

from psconrl.base.caps import need
from psconrl.base.files import reading
from psconrl.errors import ConfigError, ModelError, PsconrlError, unknown_name
from psconrl.model.cmdp import CMDP
from psconrl.model.exchange import symbolic
from psconrl.model.exchange.conversion import everything, from_cmdp, from_policy, to_cmdp
from psconrl.model.exchange.drn_reader import read_drn
from psconrl.model.exchange.drn_writer import write_drn
from psconrl.model.exchange.explicit_model import ExplicitModel
from psconrl.model.exchange.goal import read_goal
from psconrl.model.exchange.umb import read_umb, write_umb
from psconrl.model.policy_validation import as_policy

ENDINGS = (".umb", ".drn")  # read and written
PACKED = (".gz", ".xz")  # allowed after .drn
OPTIONS = ("minimise", "maximise", "limits")
SHOWN = 12  # names listed in a message


def is_exchange_file(name: str) -> bool:
    """True if the name has the extension of another program's file."""
    return _ending(Path(name)) in (*ENDINGS, *symbolic.ENDINGS)


def read_explicit(path: str | os.PathLike[str], constants: Any = "") -> ExplicitModel:
    """Return the contents of a file. ``constants``: values for those that a source leaves undefined."""
    source = Path(path)
    ending = _ending(source)
    with reading(source):
        if ending in symbolic.ENDINGS:
            return symbolic.read_symbolic(source, constants)
        if constants:
            raise ConfigError(f"constants go with {', '.join(symbolic.ENDINGS)}; those of a {ending} file have values")
        need(source.stat().st_size, "the file", ModelError)
        data = source.read_bytes()
        try:
            return read_umb(data) if ending == ".umb" else read_drn(data)
        except (PsconrlError, OSError, MemoryError):
            raise
        except Exception as error:  # tar, JSON and NumPy each raise their own errors for damaged data
            raise ModelError(f"truncated or damaged, or not a {ending} file ({type(error).__name__})") from None


def read_cmdp(path: str | os.PathLike[str], **options: Any) -> CMDP:
    """Return the model of a file under a goal: ``minimise`` or ``maximise``, and ``limits``."""
    known = (*OPTIONS, "constants")
    for option in options:
        if option not in known:
            raise ConfigError(f"{path}: {unknown_name('option', option, known)}")
    constants = options.pop("constants", "")
    goal = read_goal(**options)
    model = read_explicit(path, constants)
    with reading(Path(path)):
        if goal is None:
            raise ConfigError(f"say what to minimise or maximise; {_offer(model)}")
        return to_cmdp(model, goal)


def read_everything(path: str | os.PathLike[str], constants: Any = "") -> tuple[CMDP, dict[str, str]]:
    """Return the model of a file with all its rewards and labels as unconstrained costs, and the kind of each."""
    model = read_explicit(path, constants)
    with reading(Path(path)):
        return to_cmdp(model, everything(model)), model.quantities


def encoded(cmdp: CMDP, path: Path, policy: Any = None) -> bytes:
    """Return the contents of a file for the model, or for the chain of a policy in it."""
    if path.suffix not in ENDINGS:
        raise ModelError(f"{path}: the chain of a policy is written to {' or '.join(ENDINGS)}")
    model = from_cmdp(cmdp) if policy is None else from_policy(cmdp, as_policy(cmdp, policy))
    return write_umb(model) if path.suffix == ".umb" else write_drn(model)


def _ending(path: Path) -> str:
    """Return the extension, which for ``model.drn.gz`` is ``.drn``."""
    return Path(path.stem).suffix if path.suffix in PACKED else path.suffix


def _offer(model: ExplicitModel) -> str:
    kinds = model.quantities
    parts = []
    for kind in ("reward", "label"):
        names = [name for name, its in kinds.items() if its == kind]
        if names:
            parts.append(f"{kind}s: {', '.join(names[:SHOWN])}{', …' if len(names) > SHOWN else ''}")
    return f"it has {'; '.join(parts)}" if parts else "it has neither rewards nor labels"
