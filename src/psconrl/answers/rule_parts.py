"""What short rules are made of: features of the state that questions ask for, and the actions of leaves."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from psconrl.answers.stated_model import Asked
from psconrl.base.arrays import Bools, Floats, Ints

PAIRED_VARIABLES = 6  # numeric variables up to which sums and differences of two are asked for
MOST_UP_TO = 60  # levels of an order up to a level, for each feature
MOST_CHOICES = 20_000_000  # states times leaves


@dataclass(frozen=True, eq=False)
class Feature:
    """A number that a question compares: a variable, a sum, a difference, or whether a variable has some value."""

    text: str
    values: Floats  # (S,)
    counts: bool = True  # whether its sum with an action makes sense: a variable or a sum
    condition: str = ""  # what holds where the number is zero, of a feature that is zero or one


@dataclass(frozen=True, eq=False)
class Leaf:
    """An action, or an order up to a level of some feature; the nearest available action where it is not available."""

    text: str
    number: int  # its column in the table of choices
    family: str  # leaves that differ in one number only
    level: float


class RuleParts:
    """Features and leaves of a system or a model; ``available``: (S, A)."""

    def __init__(self, asked: Asked, available: Bools) -> None:
        self._asked, self._available = asked, available
        self._actions = asked.action_table
        self.features = self._features()
        self.leaves: list[Leaf] = []
        chosen: list[Ints] = []
        for action in range(available.shape[1]):
            label = asked.action_values(action)
            values = [action] if isinstance(label, str) else list(label.values())
            level = values[0] if len(values) == 1 and isinstance(values[0], int | float) else action
            self.leaves.append(Leaf(_shown(label), len(self.leaves), "action", float(level)))
            chosen.append(self.nearest[:, action])
        for feature, level, actions in self._up_to():
            name = next(iter(self._actions))
            filled = f"({feature.text})" if " " in feature.text else feature.text
            self.leaves.append(Leaf(f"{name} {level:g} - {filled}", len(self.leaves), feature.text, level))
            chosen.append(actions)
        self.choices: Ints = np.ascontiguousarray(np.column_stack(chosen))

    def beside(self, leaf: Leaf) -> Iterator[Leaf]:
        """Yield the leaves of the same family with the next smaller and the next larger number."""
        family = sorted((one for one in self.leaves if one.family == leaf.family), key=lambda one: one.level)
        k = family.index(leaf)
        yield from family[max(k - 1, 0) : k] + family[k + 1 : k + 2]

    def _features(self) -> list[Feature]:
        found, numeric = [], []
        for name, values in self._asked.state_table.items():
            if values.dtype.kind == "U":
                for x in np.unique(values).tolist():
                    other = (values != x).astype(float)
                    found.append(Feature(f"{name} != {x}", other, False, f"{name} == {x}"))
            else:
                numeric.append((name, values.astype(np.float64)))
        found += [Feature(name, values) for name, values in numeric]
        if 2 <= len(numeric) <= PAIRED_VARIABLES:
            for (a, x), (b, y) in combinations(numeric, 2):
                found += [Feature(f"{a} + {b}", x + y), Feature(f"{a} - {b}", x - y, False)]
        if len(numeric) > 2:
            total = np.sum([values for _, values in numeric], axis=0)
            found.append(Feature(" + ".join(name for name, _ in numeric), total))
        return [feature for feature in found if np.ptp(feature.values) > 0]

    @cached_property
    def nearest(self) -> Ints:
        """The available action (S, A) that is nearest to each: itself if it is available."""
        A = self._available.shape[1]
        distance = np.zeros((A, A))
        for values in self._actions.values():
            if values.dtype.kind == "U":
                distance += values[:, None] != values
            else:
                distance += np.abs(values[:, None] - values) / max(float(np.ptp(values)), 1e-300)
        if self._available.all():
            return np.broadcast_to(np.arange(A), self._available.shape)
        return np.column_stack([np.where(self._available, one, np.inf).argmin(axis=1) for one in distance])

    def _up_to(self) -> Iterator[tuple[Feature, float, Ints]]:
        """Yield orders up to a level of every feature that counts, if the action is one number."""
        values = next(iter(self._actions.values()))
        if len(self._actions) > 1 or values.dtype.kind == "U" or values.size < 3:
            return
        entries = self._available.shape[0] * values.size
        order = np.argsort(values, kind="stable")
        for feature in self.features:
            if not feature.counts:
                continue
            levels = np.unique(feature.values)
            levels = levels[:: max(1, levels.size // MOST_UP_TO)]
            entries += self._available.shape[0] * levels.size
            if entries > MOST_CHOICES:
                return
            for level in levels:
                wanted = level - feature.values
                place = np.clip(np.searchsorted(values[order], wanted, side="right") - 1, 0, values.size - 1)
                yield feature, float(level), self.nearest[np.arange(wanted.size), order[place]]


def _shown(action: Any) -> str:
    return action if isinstance(action, str) else ", ".join(f"{name} {x}" for name, x in action.items())
