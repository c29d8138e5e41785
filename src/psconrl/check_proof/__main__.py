"""``python -m check_proof MODEL PROOF``."""

import argparse
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path

from . import check, read_proof
from .errors import BadInputError, RefusedError
from .model_files import read_model, with_thresholds


def clean(text: str) -> str:
    """Replace control characters, which names in a file may hold."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def check_files(arguments: Sequence[str] | None = None) -> int:
    """Check a proof from the command line, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="check_proof", description="Check a proof against a model, in exact arithmetic."
    )
    parser.add_argument("model", type=Path, help="a .npz or .json file, as psconrl.save writes it")
    parser.add_argument("proof", type=Path, help="a .json file, as plan.save_proof writes it")
    parser.add_argument("--threshold", action="append", default=[], metavar="NAME=VALUE", help="change a limit")
    given = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names may have letters that the terminal has not
            stream.reconfigure(errors="backslashreplace")
    reading = given.model
    try:
        model = with_thresholds(read_model(reading), given.threshold)
        reading = given.proof
        lines = check(model, read_proof(reading))
    except RefusedError as refused:
        print(clean(f"REFUSED: {refused}"))
        return 1
    except (BadInputError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        print(clean(f"{reading}: {reason}"), file=sys.stderr)
        return 2
    print(*map(clean, lines), sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(check_files())
