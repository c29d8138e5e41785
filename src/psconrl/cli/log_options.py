"""The argument TABLE of commands on logs, and the options that say how it is read."""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import click

from psconrl.base.escaping import quoted
from psconrl.data.log import Log
from psconrl.envs.registry import open_environment
from psconrl.envs.user_systems import holds_system, read_system
from psconrl.errors import ConfigError
from psconrl.model.cmdp import CMDP
from psconrl.systems.system import System

_OPTIONS = (
    click.argument("table"),
    click.option("--state", metavar="COLUMNS", help="Columns of the state, separated by commas."),
    click.option("--action", metavar="COLUMNS", help="Columns of the action."),
    click.option(
        "--next-state", metavar="COLUMNS", help="Columns of the next state; by default, it is in the next row."
    ),
    click.option("--costs", metavar="COLUMNS", help="Columns of the costs, the objective first."),
    click.option("--run", metavar="COLUMN", help="Column that tells runs or plants apart."),
    click.option("--time", metavar="COLUMN", help="Column with times, by which rows are in order."),
    click.option(
        "--system", "described", metavar="MODEL", help="System (shop.toml, shop.py) or model that wrote the log."
    ),
    click.option("--skip-bad", is_flag=True, help="Leave out rows that are at fault; by default they are an error."),
)


class GivenLog(NamedTuple):
    """The argument TABLE, and how it is read."""

    table: str
    columns: dict[str, str | None]  # of state, action, next_state and costs, separated by commas
    run: str | None
    time: str | None
    described: str | None
    skip_bad: bool

    def model(self) -> System | CMDP | None:
        """Return the system or the model that is said to have written the log."""
        if self.described is None:
            return None
        found = read_system(self.described) if holds_system(self.described) else open_environment(self.described)
        if not isinstance(found, System | CMDP):
            raise ConfigError(f"--system: {quoted(self.described)} is neither a System nor a model")
        return found

    def read(self, model: System | CMDP | None) -> Log:
        """Read the log of a system or of a model, or without either."""
        given: dict[str, Any] = {
            name: _listed(name, value) for name, value in self.columns.items() if value is not None
        }
        if isinstance(model, System):
            given["system"] = model
        elif model is not None:
            given["support"] = model
        for option in ("state", "action"):
            if option not in given and not isinstance(model, System):
                raise ConfigError(f"--{option}: name its columns, or give a --system whose variables they are")
        return Log(self.table, run=self.run, time=self.time, skip_bad=self.skip_bad, **given)


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument TABLE and the options that say how it is read, passed on as one argument, ``given``."""

    @wraps(command)
    def with_log(
        table: str, run: str | None, time: str | None, described: str | None, skip_bad: bool, **options: Any
    ) -> Any:
        columns = {name: options.pop(name) for name in ("state", "action", "next_state", "costs")}
        return command(given=GivenLog(table, columns, run, time, described, skip_bad), **options)

    for option in reversed(_OPTIONS):
        with_log = option(with_log)
    return with_log


def _listed(option: str, value: str) -> list[str]:
    names = [name.strip() for name in value.split(",")]
    if not all(names):
        raise ConfigError(f"--{option.replace('_', '-')}: must be names separated by commas; got {quoted(value)}")
    return names
