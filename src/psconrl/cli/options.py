"""Reading models and NAME=VALUE options from the command line."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from psconrl.base.escaping import quoted
from psconrl.base.extras import need_matplotlib
from psconrl.cli.progress import build_with_progress
from psconrl.envs.registry import load, open_environment
from psconrl.errors import ConfigError, unknown_name
from psconrl.model.cmdp import CMDP
from psconrl.model.exchange.files import is_exchange_file
from psconrl.systems.system import System

if TYPE_CHECKING:
    from psconrl.envs.continuing import ContinuingEnv

PICTURES = (".png", ".svg", ".pdf")
WORDS = {"none": None, "true": True, "false": False}

_model = click.argument("model")
set_option = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Environment option, such as slip=0.1."
)
threshold_option = click.option(
    "--threshold", "thresholds", multiple=True, metavar="NAME=VALUE", help="Change a limit; may be repeated."
)
_minimise = click.option("--minimise", metavar="NAME", help="Reward or label of a .umb or .drn file to minimise.")
_maximise = click.option("--maximise", metavar="NAME", help="Reward or label of a .umb or .drn file to maximise.")
_limit = click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="'NAME>=VALUE'",
    help="Constrain another reward or label, or a quantity of a System, by <= or >=; may be repeated.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


class GivenModel(NamedTuple):
    """The argument MODEL of a command, and the options that change the model."""

    name: str
    settings: tuple[str, ...]
    thresholds: tuple[str, ...]
    goal: dict[str, Any]  # the objective and the limits of a .umb or .drn file

    def open(self) -> "CMDP | System":
        """Return the model or the system, with environment options, a goal, and thresholds given as NAME=VALUE."""
        if self.goal and not is_exchange_file(self.name):
            return self._with_limits()
        if not self.goal:
            found = read_environment(self.name, self.settings, self.thresholds)
            if isinstance(found, CMDP | System):
                return found
        options = words("--set", self.settings)
        for option in self.goal:
            if option in options:
                raise ConfigError(f"--set {option}: already given by --{option.removesuffix('s')}")
        return _limited(load(self.name, **options, **self.goal), pairs("--threshold", self.thresholds))

    def read(self) -> CMDP:
        """Return the model; a system must have a linear objective and linear limits."""
        found = self.open()
        return build_with_progress(found) if isinstance(found, System) else found

    def _with_limits(self) -> System:
        """Return a system with the limits that are given as texts in place of its own, or added to them."""
        found = read_environment(self.name, self.settings, ())
        if not isinstance(found, System):
            raise ConfigError(
                "--minimise, --maximise and --limit go with .umb and .drn files, and --limit with a System; this model "
                "has an objective, and --threshold NAME=VALUE changes its limits"
            )
        if set(self.goal) - {"limits"}:
            raise ConfigError("--minimise, --maximise: a System has its objective in its file; change it there")
        limits = pairs("--threshold", self.thresholds)
        return (found.with_thresholds(limits) if limits else found).with_limits(list(self.goal["limits"]))


def model_options(command: Callable[..., Any], *more: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument MODEL and the options that change it, passed on as one argument, ``model``."""

    @wraps(command)
    def with_model(model: str, settings: tuple[str, ...], thresholds: tuple[str, ...] = (), **options: Any) -> Any:
        goal = {name: value for name in ("minimise", "maximise", "limits") if (value := options.pop(name))}
        return command(model=GivenModel(model, settings, thresholds, goal), **options)

    for option in (set_option, *more, _limit, _maximise, _minimise, _model):
        with_model = option(with_model)
    return with_model


def model_and_threshold_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument MODEL and the options that change it, among them ``--threshold``."""
    return model_options(command, threshold_option)


def read_environment(
    name: str, settings: tuple[str, ...], thresholds: tuple[str, ...]
) -> "CMDP | System | ContinuingEnv":
    """Return the model or system of a name or file, or a task that can only be played, with options and thresholds."""
    environment, limits = open_environment(name, **words("--set", settings)), pairs("--threshold", thresholds)
    if isinstance(environment, CMDP):
        return _limited(environment, limits)
    return environment.with_thresholds(limits) if limits else environment


def _limited(cmdp: CMDP, limits: dict[str, float]) -> CMDP:
    for cost in limits:
        if cost not in cmdp.cost_names[1:]:
            raise ConfigError("--threshold: " + unknown_name("constrained cost", cost, cmdp.cost_names[1:]))
    return cmdp.with_thresholds(limits) if limits else cmdp


def picture_path(path: str | None) -> Path | None:
    """Return the file for a plot, checked before any work is done."""
    target = output_path("--plot", path, PICTURES)
    if target is not None:
        need_matplotlib("--plot")
    return target


def output_path(option: str, path: str | None, endings: tuple[str, ...]) -> Path | None:
    """Return the file for output, checked before any work is done."""
    if path is None:
        return None
    target = Path(path)
    if target.suffix.lower() not in endings:
        raise ConfigError(f"{option}: {quoted(path)} must end in {', '.join(endings)}")
    if not target.parent.is_dir():
        raise ConfigError(f"{option}: folder {quoted(str(target.parent))} does not exist")
    return target


def words(option: str, values: tuple[str, ...]) -> dict[str, Any]:
    """Parse options given as KEY=VALUE: a number, none, true, false, another word, or several of these (0.1,1,10)."""
    result: dict[str, Any] = {}
    for item in values:
        key, equals, text = item.partition("=")
        if not equals or not key or not text:
            raise ConfigError(f"{option}: must be KEY=VALUE; got {quoted(item)}")
        if key.strip() in result:
            raise ConfigError(f"{option}: {quoted(key.strip())} is given twice")
        result[key.strip()] = [_word(part) for part in text.split(",")] if "," in text else _word(text)
    return result


def _word(text: str) -> Any:
    try:
        number = float(text)
    except ValueError:
        return WORDS.get(text.lower(), text)
    return int(number) if number.is_integer() else number


def pairs(option: str, values: tuple[str, ...]) -> dict[str, float]:
    """Parse options given as NAME=VALUE, with a number or a percentage as value; a name may contain ``=``.

    >>> pairs("--threshold", ("P(shelf == 0)=5%", "lost=2"))
    {'P(shelf == 0)': 0.05, 'lost': 2.0}
    """
    result = {}
    for item in values:
        name, equals, text = item.rpartition("=")
        number, percent, rest = text.strip().partition("%")
        try:
            if not equals or not name.strip() or rest or name.rstrip()[-1] in "<>=!":
                raise ValueError
            value = float(number) / (100.0 if percent else 1.0)
        except ValueError:
            raise ConfigError(f"{option}: must be NAME=VALUE with a number; got {quoted(item)}") from None
        if name.strip() in result:
            raise ConfigError(f"{option}: {quoted(name.strip())} is given twice")
        result[name.strip()] = value
    return result
