"""Messages on sweeps that are not complete."""

from collections.abc import Iterable

from rich.text import Text

from psconrl.cli.render import console


def print_unfinished(lines: Iterable[str]) -> None:
    """Print lines on runs that are not done, on standard error."""
    for line in lines:
        console(stderr=True).print(Text(f"Unfinished: {line}"), soft_wrap=True)
