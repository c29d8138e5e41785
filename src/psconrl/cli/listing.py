"""The commands ``envs`` and ``agents``."""

import inspect

import click
from rich.table import Table
from rich.text import Text

from psconrl.base.named_code import AGENTS, from_package, installed
from psconrl.base.named_code import ENVIRONMENTS as OWN_ENVIRONMENTS
from psconrl.cli.render import console
from psconrl.envs.continuing import ContinuingEnv
from psconrl.envs.registry import ENVIRONMENTS, open_environment
from psconrl.errors import PsconrlError
from psconrl.learning.registry import RECIPES, recipe_for
from psconrl.model.cmdp import CMDP
from psconrl.systems.system import System


@click.command("envs")
def envs_command() -> None:
    """List the environments, including those of installed packages."""
    table = Table("environment", "S", "A", "limits", "what it is")
    for name, environment in ENVIRONMENTS.items():
        table.add_row(name, *_size_and_limits(environment.build()), Text(environment.summary))
    for name in installed(OWN_ENVIRONMENTS):
        try:
            found = open_environment(name)
            table.add_row(Text(name), *_size_and_limits(found), Text(_summary_of(name)))
        except Exception as error:  # of a third-party package; the others are still listed
            table.add_row(Text(name), "", "", "", Text(_failure(name, error)))
    console().print(table)


def _size_and_limits(environment: CMDP | System | ContinuingEnv) -> tuple[str, str, Text]:
    if isinstance(environment, System):
        environment = environment.model_for_learning()
    limits = ", ".join(
        f"{n} <= {t:.4g}" for n, t in zip(environment.cost_names[1:], environment.thresholds, strict=False)
    )
    if isinstance(environment, CMDP):
        return str(environment.n_states), str(environment.n_actions), Text(limits)
    return str(environment.states.size), str(environment.actions.size), Text(limits)


def _summary_of(name: str) -> str:
    """Return the first line of the docstring of an environment."""
    return (inspect.getdoc(from_package(OWN_ENVIRONMENTS, name)) or "").partition("\n")[0]


def _failure(name: str, error: Exception) -> str:
    line = " ".join(str(error).split()) if isinstance(error, PsconrlError) else f"{type(error).__name__}: {error}"
    return "cannot be used: " + line.removeprefix(f"{name}: ")


@click.command("agents")
def agents_command() -> None:
    """List the agents, including those of installed packages."""
    table = Table("agent", "title", "what it is")
    for name in [*RECIPES, *installed(AGENTS)]:
        try:
            recipe = recipe_for(name)
            title, summary = recipe.title, recipe.summary
        except PsconrlError as error:
            title, summary = "", _failure(name, error)
        table.add_row(Text(name), Text(title), Text(summary))
    console().print(table)
