"""A recipe for a user's own agent: a class or a function, given by name.

It is called with those of ``n_states``, ``n_actions``, ``thresholds``, ``costs``, ``seed`` and ``horizon`` that it
takes, by name, and with its options. It returns an ``Agent``, or any object with ``begin`` and ``end``.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError, unknown_name
from psconrl.learning.part import Part
from psconrl.learning.recipe import GIVEN, RESERVED
from psconrl.learning.runtime.adapter import adapt
from psconrl.learning.runtime.contract import is_learner
from psconrl.learning.runtime.player import Player

ARGUMENTS = (*GIVEN, "seed", "horizon")


class UserRecipe:
    """Build an agent by calling the user's class or function; otherwise like ``Recipe``."""

    learns_costs = False
    ranges_include_noise = True
    slots: Mapping[str, Part | None] = {}
    parts_for_systems: Mapping[str, Part] = {}

    def __init__(self, name: str, make: Callable[..., Any]) -> None:
        self.name = name
        self._make = make
        self.theory_constants = tuple(getattr(make, "theory_constants", ()))
        self.title = str(getattr(make, "title", None) or name.rpartition(":")[2])
        self.summary = (inspect.getdoc(make) or "").partition("\n")[0] or "of your own"
        try:
            self._takes = inspect.signature(make).parameters
        except (TypeError, ValueError):
            raise ConfigError(f"{name}: its signature cannot be inspected") from None
        self._takes_all = any(p.kind is p.VAR_KEYWORD for p in self._takes.values())
        self.needs_horizon = "horizon" in self._takes

    def option_names(self) -> list[str]:
        """Return the names of all options."""
        named = (p for p in self._takes.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
        return [p.name for p in named if p.name not in RESERVED]

    def build(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Any,
        *,
        costs: Any = None,
        seed: Any = None,
        horizon: int | None = None,
        **options: Any,
    ) -> Player:
        """Build an agent for (n_states, n_actions, thresholds)."""
        if not self._takes_all:
            for option in options:
                if option not in self.option_names():
                    raise ConfigError(f"{self.name}: {unknown_name('option', option, self.option_names())}")
        numbers = list(thresholds.values()) if isinstance(thresholds, Mapping) else thresholds
        given = dict(zip(ARGUMENTS, (n_states, n_actions, numbers, costs, seed, horizon), strict=True))
        given = {key: value for key, value in given.items() if key in self._takes} | options
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        for parameter in self._takes.values():
            required = parameter.default is parameter.empty and parameter.kind in named
            if required and parameter.name not in given:
                raise ConfigError(
                    f"{self.name}: needs {quoted(parameter.name)}, which is neither an option given nor one of "
                    f"{', '.join(ARGUMENTS)}"
                )
        made = self._make(**given)
        if isinstance(made, Player):
            made.recipe = self.name
            return made
        if not is_learner(made):
            raise ConfigError(f"{self.name}: an agent has begin(state) and end(record); got {type(made).__name__}")
        player = adapt(made, n_states, n_actions, thresholds, seed)
        player.recipe = self.name
        return player
