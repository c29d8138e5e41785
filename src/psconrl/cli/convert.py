"""The command ``convert``."""

from typing import Any

import click
from rich.text import Text

from psconrl.cli.options import (
    goal_options,
    model_argument,
    output_path,
    read_model,
    set_option,
)
from psconrl.cli.render import (
    console,
)
from psconrl.model.io import WRITTEN, save


@click.command("convert")
@model_argument
@click.argument("file")
@goal_options
@set_option
def convert_command(model: str, file: str, settings: tuple[str, ...], goal: dict[str, Any]) -> None:
    """Write MODEL to FILE, which ends in .npz or .json, or in .umb or .drn for Storm and PRISM.

    The formats of Storm and PRISM hold no limits, and the objective is a reward among others.
    """
    target = output_path("FILE", file, WRITTEN)
    assert target is not None
    cmdp = read_model(model, settings, goal=goal)
    save(cmdp, target)
    console().print(Text(f"{target}: {cmdp!r}"))
