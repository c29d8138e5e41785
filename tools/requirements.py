"""What an extra of pyproject.toml needs, one requirement a line, for ``pip install --requirement``.

Installing the extra itself, ``pip install --editable '.[dev]'``, would build the kernels once more.

    python tools/requirements.py dev            what the extra asks for
    python tools/requirements.py dev --lowest   every library pinned to the lowest version that is promised to work
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OWN = re.compile(r"psconrl\[(.*)\]")


def requirements(extra: str) -> list[str]:
    """Those of an extra, and of the extras that it includes."""
    found = []
    for line in PROJECT["optional-dependencies"][extra]:
        included = OWN.fullmatch(line)
        found += [one for name in included[1].split(",") for one in requirements(name)] if included else [line]
    return sorted(set(found))


def main(extra: str, lowest: bool) -> None:
    """Print them."""
    for line in requirements(extra) + (PROJECT["dependencies"] if lowest else []):
        if not lowest:
            print(line)
        elif bound := re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\w.]+)", line):
            print("{}=={}".format(*bound.groups()))


if __name__ == "__main__":
    main(sys.argv[1], "--lowest" in sys.argv[2:])
