"""The lowest versions that pyproject.toml promises, as constraints for pip: what ``make test-lowest`` installs."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"].values()
for requirement in sorted({*project["dependencies"], *(line for extra in extras for line in extra)}):
    if bound := re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\w.]+)", requirement):
        print("{}=={}".format(*bound.groups()))
