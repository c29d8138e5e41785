"""Files that a reader failed on: made smaller as long as the failure remains, and kept as they are."""

import hashlib
import json
import time
from contextlib import suppress
from pathlib import Path

from damage.formats import FORMATS, Damage, damaged

DATA = Path(__file__).parents[1] / "data"
FOLDER = DATA / "files"
EXPECTED_TO_FAIL = DATA / "files_expected_to_fail.json"  # names of files and reasons, until there is a fix
REFUSE = "refuse"  # ends the name of a file whose numbers were changed, although it has checksums


def write_case(reader, content: bytes, must_be_refused=False) -> str:
    """Write a file that a reader failed on; return its name."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    parts = [reader.name, hashlib.sha256(content).hexdigest()[:8], *([REFUSE] if must_be_refused else [])]
    name = "-".join(parts) + reader.ending
    (FOLDER / name).write_bytes(content)
    return name


def cases() -> dict[Path, tuple[str, bool]]:
    """Return all files that were kept, with the name of their reader, and whether it must refuse them."""
    found = {}
    for path in sorted(FOLDER.glob("*")):
        must_be_refused = path.stem.endswith(f"-{REFUSE}")
        found[path] = path.stem.removesuffix(f"-{REFUSE}").rpartition("-")[0], must_be_refused
    return found


def expected_to_fail() -> dict[str, str]:
    """Return the reasons why files are still failing, by name."""
    return json.loads(EXPECTED_TO_FAIL.read_text()) if EXPECTED_TO_FAIL.exists() else {}


def shrunk(ending: str, whole: bytes, other: bytes, damage: Damage, fails, seconds: float) -> bytes:
    """Return a smaller file for which ``fails`` is still true: less damage, fewer parts, fewer bytes."""
    deadline = time.monotonic() + seconds

    def still_fails(content):
        return time.monotonic() < deadline and fails(content)

    damage = _least_damage(damage, lambda less: still_fails(damaged(whole, other, ending, less)))
    content = damaged(whole, other, ending, damage)
    content = _simplest(content, FORMATS[ending].simpler, still_fails)
    return _shortest(content, still_fails)


def _least_damage(damage, fails):
    """Leave out changes, one after the other, that the failure does not need."""
    for change in damage.changes:
        less = damage._replace(changes=tuple(each for each in damage.changes if each is not change))
        if less.changes and fails(less):
            damage = less
    return damage


def _simplest(content, simpler, fails):
    """Take the first simpler file that fails, again and again."""
    while True:
        with suppress(Exception):  # a file that is too bad to be taken apart
            for candidate in simpler(content):
                if len(candidate) < len(content) and fails(candidate):
                    content = candidate
                    break
            else:
                return content
            continue
        return content


def _shortest(content, fails):
    """Remove blocks of bytes, large ones first."""
    size = len(content) // 2
    while size:
        start = 0
        while start < len(content):
            candidate = content[:start] + content[start + size :]
            if fails(candidate):
                content = candidate
            else:
                start += size
        size //= 2
    return content
