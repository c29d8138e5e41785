"""Files that hold a system as data: ``.toml`` and ``.json``."""

import json
from pathlib import Path
from typing import Any

from psconrl.base.caps import MOST_TEXT
from psconrl.base.escaping import quoted
from psconrl.base.files import as_path, reading, write_atomically
from psconrl.base.toml_reading import need_shallow, parse_toml
from psconrl.errors import ModelError
from psconrl.systems.reading import FORMAT
from psconrl.systems.writing import toml_text

ENDINGS = (".toml", ".json")


def read_data(path: Any) -> dict[str, Any]:
    """Read the plain data of a file."""
    source = as_path(path, ModelError)
    if source.suffix not in ENDINGS:
        raise ModelError(f"{source}: the file of a system must end in {' or '.join(ENDINGS)}")
    with reading(source):
        text = _text(source)
        if source.suffix == ".toml":
            return parse_toml(text, "the file of a system", ModelError)
        return _json(text)


def write_data(data: dict[str, Any], path: Any) -> None:
    """Write plain data to a file, which is replaced atomically."""
    target = as_path(path, ModelError)
    if target.suffix not in ENDINGS:
        raise ModelError(f"{target}: the file of a system must end in {' or '.join(ENDINGS)}")
    text = toml_text(data) if target.suffix == ".toml" else json.dumps(data, indent=1) + "\n"
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise ModelError(
            f"{target}: {quoted(error.object[error.start])} is no character that a file can hold"
        ) from None
    write_atomically(target, lambda f: f.write(content), ModelError)


def is_system_file(name: str) -> bool:
    """True for a ``.toml`` file, and for a ``.json`` file that says that it holds a system."""
    path = Path(name)
    if path.suffix != ".json" or not path.is_file():
        return path.suffix == ".toml"
    with path.open("rb") as f:
        beginning = f.read(MOST_TEXT + 1)
    if len(beginning) > MOST_TEXT or FORMAT.encode() not in beginning:
        return False
    try:
        return bool(json.loads(beginning).get("format") == FORMAT)
    except (ValueError, AttributeError, RecursionError):
        return False


def _text(path: Path) -> str:
    with path.open("rb") as f:
        content = f.read(MOST_TEXT + 1)  # bounded: the file may be an endless device
    if len(content) > MOST_TEXT:
        raise ModelError(f"the file of a system has at most {MOST_TEXT:,} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ModelError(f"not UTF-8 ({error.reason} at byte {error.start})") from None


def _json(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"not valid JSON ({error})") from None
    if not isinstance(data, dict):
        raise ModelError("a system must be a JSON object")
    need_shallow(data, "the file of a system", ModelError)
    return data
