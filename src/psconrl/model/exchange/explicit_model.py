"""An explicit model, independent of its file format: states, their choices, branches, rewards and labels.

Such a model has no objective and no constraints. ``conversion`` combines it with a ``Goal`` to a ``CMDP``, and converts
back.
"""

from dataclasses import dataclass, field

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.errors import ModelError

MOST_NAMED = 100_000  # larger models are read without state names, which take much memory


@dataclass(frozen=True, eq=False)
class Reward:
    """A reward model. In continuous time, state rewards are earned per unit of time, the others at every jump."""

    states: Floats | None = None  # (S,)
    choices: Floats | None = None  # (C,)
    branches: Floats | None = None  # (B,)


@dataclass(frozen=True, eq=False)
class ChoiceNames:
    """Names of the choices: distinct names, and the index of each choice's name."""

    names: tuple[str, ...]
    of_choice: Ints  # (C,)


@dataclass(frozen=True, eq=False)
class ExplicitModel:
    """States with choices with branches, as concatenated lists, as in a CSR matrix."""

    first_choice: Ints  # (S+1,) the choices of state s are first_choice[s] to first_choice[s+1]
    first_branch: Ints  # (C+1,)
    targets: Ints  # (B,) the target state of a branch
    probabilities: Floats  # (B,)
    initial: Bools  # (S,) states in which the model may start
    exit_rates: Floats | None = None  # (S,) in continuous time
    rewards: dict[str, Reward] = field(default_factory=dict)
    labels: dict[str, Bools] = field(default_factory=dict)  # (S,) each
    choice_names: ChoiceNames | None = None
    state_names: tuple[str, ...] | None = None

    @property
    def n_states(self) -> int:
        """Number of states S."""
        return self.first_choice.size - 1

    @property
    def n_choices(self) -> int:
        """Total number of choices C of all states."""
        return self.first_branch.size - 1

    @property
    def quantities(self) -> dict[str, str]:
        """Return all quantities that can be optimised or constrained, and the kind of each: "reward" or "label"."""
        known = dict.fromkeys(self.rewards, "reward")
        return known | {self.label_name(label): "label" for label in self.labels}

    def label_name(self, label: str) -> str:
        """Return the name of a label, marked if a reward has the same name."""
        return f"{label} (label)" if label in self.rewards else label


def distinct(names: list[str], copy: str) -> list[str]:
    """Make names distinct by renaming repeated ones with the template ``copy``.

    >>> distinct(["a", "b", "a"], "{} ({})")
    ['a', 'b', 'a (2)']
    """
    last: dict[str, int] = {}  # copy of every name
    result: dict[str, None] = {}
    for name in names:
        shown = name
        while shown in result:
            last[name] = last.get(name, 1) + 1
            shown = copy.format(name, last[name])
        result[shown] = None
    return list(result)


def check_offsets(offsets: Ints, n: int, total: int, what: str) -> None:
    """Check that the n + 1 offsets of n lists rise from 0 to the total number of entries."""
    if offsets.size != n + 1 or offsets[0] != 0 or offsets[-1] != total or (np.diff(offsets) < 0).any():
        raise ModelError(f"{what} must be {n + 1} numbers that rise from 0 to {total}")
