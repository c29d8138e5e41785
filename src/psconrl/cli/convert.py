"""The command ``convert``."""

import click
from rich.text import Text

from psconrl.cli.options import GivenModel, model_options, output_path
from psconrl.cli.render import (
    console,
)
from psconrl.model.io import WRITTEN, save


@click.command("convert")
@model_options
@click.argument("file")
def convert_command(model: GivenModel, file: str) -> None:
    """Write MODEL to FILE, which ends in .npz or .json, or in .umb or .drn for Storm and PRISM.

    The formats of Storm and PRISM hold no limits, and the objective is a reward among others.
    """
    target = output_path("FILE", file, WRITTEN)
    assert target is not None
    cmdp = model.read()
    save(cmdp, target)
    console().print(Text(f"{target}: {cmdp!r}"))
