"""Errors that a user can cause. Each message is one line: what is wrong, where, and what to do next."""

import difflib
from collections.abc import Iterable

from psconrl.base.escaping import printable, quoted, shortened

LONGEST_NAME = 200  # characters of a name for which the nearest known one is sought
KNOWN_SHOWN = 600  # characters of the names that are known
MOST_MESSAGE = 2000  # characters; what is wrong stands at the beginning, and what to do next at the end


class PsconrlError(Exception):
    """Base class of all errors that the caller can repair; the command line turns them into exit code 2.

    Names from a file may have any length and any characters, so the message is shortened, and control characters are
    shown as symbols.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(shortened(printable(str(message)), MOST_MESSAGE))


class ModelError(PsconrlError, ValueError):
    """The model, or the file that holds it, is not a valid CMDP."""


class LogError(PsconrlError, ValueError):
    """A log, or the table that holds it, cannot be used as it is."""


class PolicyError(PsconrlError, ValueError):
    """A policy does not fit the model."""


class AgentError(PsconrlError, ValueError):
    """An agent was built, used or restored in a way that cannot work."""


class ConfigError(PsconrlError, ValueError):
    """An option, a name or a configuration key is unknown or out of range."""


class StoreError(PsconrlError, OSError):
    """A results file cannot be read or written."""


class SolverError(PsconrlError, ArithmeticError):
    """A numerical method could not solve the problem; the message says which other method may."""


class InfeasibleError(PsconrlError):
    """No policy meets the thresholds."""


class CostsWarning(UserWarning):
    """Much is known about the transitions and nothing about the costs, so that untried pairs look free."""


class BaselineWarning(UserWarning):
    """A baseline that should satisfy the constraints seems to violate them."""


class AdviceWarning(UserWarning):
    """An agent can play, but will learn little; the message says what would help."""


class ConstraintWarning(UserWarning):
    """A constraint is violated although every plan promises to satisfy it."""


class StructureWarning(UserWarning):
    """The structure of a system that an agent was given contradicts what it observed."""


class SlowWarning(UserWarning):
    """The requested operation works, but takes long; the message says what would help."""


def unknown_name(kind: str, name: object, known: Iterable[object]) -> str:
    """Return a message for an unknown name, with the nearest known one.

    >>> unknown_name("cost", "dealy", ["delay", "power"])
    "unknown cost 'dealy'; did you mean 'delay'?"
    """
    names = [str(k) for k in known]
    given = str(name)[:LONGEST_NAME]
    near = difflib.get_close_matches(given, names, n=1)
    listed = " ".join(", ".join(names[:8]).split())  # in one line, whatever is in the names
    shown = shortened(listed + (", …" if len(names) > 8 else ""), KNOWN_SHOWN)
    hint = f"did you mean {quoted(near[0])}?" if near else f"known: {shown or 'none'}"
    return f"unknown {kind} {quoted(str(name))}; {hint}"
