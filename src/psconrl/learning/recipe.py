"""A recipe makes an agent from plain data: a class, the parts that fill its slots, and options by name.

Specs and the command line know words and numbers only. A part is chosen by the name of its slot
(``schedule=doubling``, or a table with its options), and its options may be given on their own where only one slot can
be meant (``prior=0.05``, ``share=0.1``). ``coef`` of None asks for the radius of the theory, with ``delta``.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from psconrl.errors import ConfigError, unknown_name
from psconrl.learning.agent import Agent
from psconrl.learning.arguments import RENAMED
from psconrl.learning.part import Part, argument_names

GIVEN = ("n_states", "n_actions", "thresholds", "costs")  # what every agent takes, none of its options
RESERVED = (*GIVEN, "seed", "horizon", "name")  # what follows from the environment and the run


@dataclass(frozen=True)
class Recipe:
    """A way to make an agent, and what it is."""

    name: str
    cls: type[Agent]
    title: str  # in figures
    summary: str
    parts: Mapping[str, Part | None] = field(default_factory=dict)  # other than those of the class
    learns_costs: bool = False  # even if they are known
    needs_horizon: bool = False  # must be told how many rounds there will be
    listed: bool = True  # can it be made from its name alone?

    @property
    def slots(self) -> Mapping[str, Part | None]:
        """The parts of the class, by slot."""
        return self.cls.parts

    def build(self, *sizes: Any, costs: Any = None, seed: Any = None, **options: Any) -> Agent:
        """An agent for (n_states, n_actions, thresholds), which remembers by which recipe it was made."""
        self._check_names(options)
        own = {name: options[name] for name in argument_names(self.cls) if name in options}
        make: Callable[..., Agent] = self.cls
        given = {"costs": costs, "seed": seed} | own | self._chosen_parts(options)
        try:
            inspect.signature(make).bind(*sizes, **given)
        except TypeError as error:
            raise ConfigError(f"{self.name}: {error}") from None
        agent = make(*sizes, **given)
        agent.recipe = self.name
        return agent

    def option_names(self) -> list[str]:
        """The names of all options: its own, its slots, and those of the parts that may fill them."""
        own = [name for name in argument_names(self.cls) if name not in GIVEN]
        flat = [name for slot in self.cls.parts for part in _known(slot).values() for name in argument_names(part)]
        return list(dict.fromkeys([*own, *flat]))

    def _check_names(self, options: Mapping[str, Any]) -> None:
        for option in options:
            if option in RENAMED and RENAMED[option][0] in self.cls.parts:
                raise ConfigError(f"{self.name}: option {option!r} is now {RENAMED[option][1]}")
            if option not in self.option_names():
                raise ConfigError(f"{self.name}: {unknown_name('option', option, self.option_names())}")

    def _chosen_parts(self, options: Mapping[str, Any]) -> dict[str, Part | None]:
        """The parts for all slots, from what was said of them and of their options."""
        said = {slot: options[slot] for slot in self.cls.parts if slot in options}
        flat = {option: value for option, value in options.items() if option not in argument_names(self.cls)}
        if self.cls.theory is not None and flat.get("coef", 0.0) is None and "radius" not in said:
            del flat["coef"]
            said["radius"] = self.cls.theory.name
        tables = {slot: self._table(slot, said) for slot in self.cls.parts}
        fixed = {*said, *self.parts}  # where no other part is chosen than was said
        for option, value in flat.items():
            slot = self._choose_slot(option, tables, fixed)
            tables[slot] = {**tables[slot], option: value}
            fixed.add(slot)
        return {slot: _as_part(slot, table) for slot, table in tables.items()}

    def _table(self, slot: str, said: Mapping[str, Any]) -> Any:
        """What a slot is filled with, as a table of name and options; None for nothing."""
        default = self.cls.parts[slot]
        usual = _as_table(self.parts.get(slot, default))
        if slot not in said:
            return usual
        given = said[slot]
        if given is None or (given == "none" and Part.kinds[slot].may_be_missing):
            return None if Part.kinds[slot].may_be_missing else _as_table(default)
        if isinstance(given, str):
            if given not in _known(slot):
                names = [*_known(slot), *(["none"] if Part.kinds[slot].may_be_missing else [])]
                raise ConfigError(f"{self.name}: {unknown_name(slot, given, names)}")
            kept = argument_names(_known(slot)[given])  # what it has in common with the usual part
            return {"name": given} | {key: value for key, value in (usual or {}).items() if key in kept}
        return given

    def _choose_slot(self, option: str, tables: dict[str, Any], fixed: set[str]) -> str:
        """The slot whose part has an option. If none has, a part that does is chosen where nothing was said."""
        fitting = [slot for slot, table in tables.items() if option in _options_of(slot, table)]
        if len(fitting) == 1:
            return fitting[0]
        able = {slot: [part for part in _known(slot).values() if option in argument_names(part)] for slot in tables}
        able = {slot: parts for slot, parts in able.items() if parts}
        slot = next(iter(able))
        theory = [part for part in able[slot] if part is self.cls.theory]
        if len(able) == 1 and slot not in fixed:
            tables[slot] = {"name": (theory or able[slot])[0].name}  # the first of them is the plain one
            return slot
        if len(fitting) > 1:
            raise ConfigError(f"{self.name}: option {option!r} of {' or '.join(fitting)}? Give it in the table of one")
        if tables[slot] is None:
            names = " or ".join(f"{slot}={part.name}" for part in able[slot])
            raise ConfigError(f"{self.name}: option {option!r} needs a {slot}; say {names}")
        taken = tables[slot].get("name") if isinstance(tables[slot], dict) else tables[slot]
        raise ConfigError(f"{self.name}: option {option!r} does not go with {slot} {taken!r}")


def _known(slot: str) -> dict[str, type[Part]]:
    return Part.kinds[slot].known


def _options_of(slot: str, table: Any) -> tuple[str, ...]:
    name = table.get("name") if isinstance(table, dict) else None
    return argument_names(_known(slot)[name]) if isinstance(name, str) and name in _known(slot) else ()


def _as_table(part: Part | None) -> dict[str, Any] | None:
    return None if part is None else part.to_dict()


def _as_part(slot: str, table: Any) -> Part | None:
    if isinstance(table, Part):
        return Part.kinds[slot].checked(table)
    return None if table is None else Part.kinds[slot].from_dict(table)
