"""Recipes, which build agents from plain data: a class, the parts that fill its slots, and options by name.

Specs and the command line use words and numbers only. A part is chosen by the name of its slot
(``schedule=doubling``, or a table with its options). An option of a part may also be given on its own if only one slot
can be meant (``prior=0.05``, ``share=0.1``). ``coef`` of None selects the radius of the theory, with ``delta``.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError, unknown_name
from psconrl.learning.agent import Agent
from psconrl.learning.part import Part, argument_names

GIVEN = ("n_states", "n_actions", "thresholds", "costs")  # arguments of every agent, which are not options
RESERVED = (*GIVEN, "seed", "horizon", "name")  # determined by the environment and the run


@dataclass(frozen=True)
class Recipe:
    """A way to build an agent, with its name, title and summary."""

    name: str
    cls: type[Agent]
    title: str  # in figures and tables
    summary: str
    parts: Mapping[str, Part | None] = field(default_factory=dict)  # those that differ from the defaults of the class
    learns_costs: bool = False  # even if they are known
    needs_horizon: bool = False  # must know the number of rounds in advance
    listed: bool = True  # whether its name alone is enough to build it

    @property
    def slots(self) -> Mapping[str, Part | None]:
        """The default parts of the class, by slot."""
        return self.cls.parts

    @property
    def theory_constants(self) -> tuple[str, ...]:
        """The options for constants of the model that the theory of the class assumes to be known."""
        return self.cls.theory_constants

    @property
    def ranges_include_noise(self) -> bool:
        """Whether the ranges of costs that the class is given must hold noisy costs, and not only their means."""
        return self.cls.ranges_include_noise

    @property
    def parts_for_systems(self) -> Mapping[str, Part]:
        """The parts that replace default ones if a system's structure is known; a published agent keeps its own."""
        return {} if self.parts else getattr(self.cls, "parts_for_systems", {})

    def build(self, *sizes: Any, costs: Any = None, seed: Any = None, **options: Any) -> Agent:
        """Build an agent for (n_states, n_actions, thresholds), and record the recipe in it."""
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
        """Return the names of all options: its own, its slots, and those of the parts that may fill them."""
        own = [name for name in argument_names(self.cls) if name not in GIVEN]
        parts = [part for slot in self.cls.parts for part in _known(slot).values() if part.stands_alone]
        flat = [name for part in parts for name in argument_names(part)]
        return list(dict.fromkeys([*own, *flat]))

    def _check_names(self, options: Mapping[str, Any]) -> None:
        for option in options:
            if option not in self.option_names():
                raise ConfigError(f"{self.name}: {unknown_name('option', option, self.option_names())}")

    def _chosen_parts(self, options: Mapping[str, Any]) -> dict[str, Part | None]:
        """Return the parts for all slots, from the options for slots and for parts."""
        chosen = {slot: options[slot] for slot in self.cls.parts if slot in options}
        flat = {option: value for option, value in options.items() if option not in argument_names(self.cls)}
        if self.cls.theory is not None and flat.get("coef", 0.0) is None and "radius" not in chosen:
            del flat["coef"]
            chosen["radius"] = self.cls.theory.name
        tables = {slot: self._table(slot, chosen) for slot in self.cls.parts}
        fixed = {*chosen, *self.parts}  # slots whose part must not be replaced
        for option, value in flat.items():
            slot = self._choose_slot(option, tables, fixed)
            tables[slot] = {**tables[slot], option: value}
            fixed.add(slot)
        return {slot: _as_part(slot, table) for slot, table in tables.items()}

    def _table(self, slot: str, chosen: Mapping[str, Any]) -> Any:
        """Return the part for a slot, as a table of name and options; None for an empty slot."""
        default = self.cls.parts[slot]
        usual = _as_table(self.parts.get(slot, default))
        if slot not in chosen:
            return usual
        given = chosen[slot]
        if given is None or (given == "none" and Part.kinds[slot].may_be_missing):
            return None if Part.kinds[slot].may_be_missing else _as_table(default)
        if isinstance(given, str):
            if given not in _known(slot):
                names = [*_known(slot), *(["none"] if Part.kinds[slot].may_be_missing else [])]
                raise ConfigError(f"{self.name}: {unknown_name(slot, given, names)}")
            kept = argument_names(_known(slot)[given])  # options in common with the usual part are kept
            return {"name": given} | {key: value for key, value in (usual or {}).items() if key in kept}
        return given

    def _choose_slot(self, option: str, tables: dict[str, Any], fixed: set[str]) -> str:
        """Return the slot whose part has an option. If none has, choose a part that does, unless the slot is fixed."""
        fitting = [slot for slot, table in tables.items() if option in _options_of(slot, table)]
        if len(fitting) == 1:
            return fitting[0]
        able = {
            slot: [p for p in _known(slot).values() if p.stands_alone and option in argument_names(p)]
            for slot in tables
        }
        able = {slot: parts for slot, parts in able.items() if parts}
        slot = next(iter(able))
        theory = [part for part in able[slot] if part is self.cls.theory]
        if len(able) == 1 and slot not in fixed:
            tables[slot] = {"name": (theory or able[slot])[0].name}  # the first one is the simplest
            return slot
        if len(fitting) > 1:
            raise ConfigError(
                f"{self.name}: option {quoted(option)} of {' or '.join(fitting)}? Give it in the table of one"
            )
        if tables[slot] is None:
            names = " or ".join(f"{slot}={part.name}" for part in able[slot])
            raise ConfigError(f"{self.name}: option {quoted(option)} needs a {slot}; say {names}")
        taken = tables[slot].get("name") if isinstance(tables[slot], dict) else tables[slot]
        raise ConfigError(f"{self.name}: option {quoted(option)} does not go with {slot} {quoted(taken)}")


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
