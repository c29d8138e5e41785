"""Writing figures to files, and the settings that all of them share."""

import io
import os
from pathlib import Path
from typing import IO

import matplotlib as mpl
from matplotlib.figure import Figure

from psconrl.base.escaping import xml_text
from psconrl.base.files import write_atomically
from psconrl.errors import ConfigError

PRINT_DPI = 300
LITERAL = mpl.rc_context({"text.parse_math": False})  # a $ in a user's name is shown as $


def write_figure(figure: Figure, path: str | os.PathLike[str], exact: bool = False) -> None:
    """Save a figure atomically, in the format of the file's suffix.

    ``exact``: keep the exact size of the figure, for print; otherwise crop it to what is drawn.
    """
    target = Path(path)
    form = target.suffix.lower().removeprefix(".")

    def write(f: IO[bytes]) -> None:
        picture = io.BytesIO()
        with mpl.rc_context({"svg.fonttype": "none", "pdf.fonttype": 42}):
            figure.savefig(
                picture, format=form, dpi=PRINT_DPI if exact else 150, bbox_inches=None if exact else "tight"
            )
        f.write(xml_text(picture.getvalue().decode()).encode() if form == "svg" else picture.getvalue())

    write_atomically(target, write, ConfigError)
