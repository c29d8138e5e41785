"""Reading TOML from files that may be hostile: texts that would take minutes or exhaust the stack are refused."""

import re
import tomllib
from collections.abc import Iterable
from typing import Any

from psconrl.base.caps import MOST_NESTED, MOST_PARTS, MOST_TEXT
from psconrl.errors import PsconrlError

# An unclosed string ends at the end of its line, so that one pass is enough.
_STRINGS_AND_COMMENTS = re.compile(r""""(?:\\.|[^"\\\n])*"?|'[^'\n]*'?|#[^\n]*""")


def parse_toml(text: str, what: str, error: type[PsconrlError]) -> dict[str, Any]:
    """Parse TOML, after refusing texts so large or so nested that parsing takes minutes or exhausts the stack.

    ``what``: the contents in words, such as "a spec", for messages.
    """
    if len(text) > MOST_TEXT:
        raise error(f"{what} has at most {MOST_TEXT:,} characters")
    bare = _STRINGS_AND_COMMENTS.sub("x", text)
    if any(word.count(".") >= MOST_PARTS for word in re.split(r"[^\w\-. \t]+", bare)):
        raise error(f"a key has at most {MOST_PARTS} parts")
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise error(_too_deep(what)) from None
    except ValueError as failed:
        raise error(f"not valid TOML: {failed}") from None
    need_shallow(data, what, error)
    return data


def need_shallow(data: Any, what: str, error: type[PsconrlError]) -> None:
    """Raise an error if tables and lists are nested too deeply."""
    level: list[Any] = [data]
    for _ in range(MOST_NESTED):
        level = [part for whole in level for part in _parts(whole)]
    if level:
        raise error(_too_deep(what))


def _too_deep(what: str) -> str:
    return f"{what} is nested at most {MOST_NESTED} levels deep"


def _parts(whole: Any) -> Iterable[Any]:
    if isinstance(whole, dict):
        return whole.values()
    return whole if isinstance(whole, list) else ()
