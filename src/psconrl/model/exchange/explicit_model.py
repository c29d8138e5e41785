"""What an explicit model file says, whatever its format: states, their choices, the branches of these, rewards, labels.

Such a model has no objective and no limits. ``conversion`` makes a ``CMDP`` of it and of a ``Goal``, and the way back.
"""

from dataclasses import dataclass, field

import numpy as np

from psconrl.arrays import Bools, Floats, Ints
from psconrl.errors import ModelError

MOST_NAMED = 100_000  # states up to which their names are read: beyond, nobody looks at them, and they take the memory


@dataclass(frozen=True, eq=False)
class Reward:
    """A reward model. In continuous time that of a state is earned per unit of time, the others at every jump."""

    states: Floats | None = None  # (S,)
    choices: Floats | None = None  # (C,)
    branches: Floats | None = None  # (B,)


@dataclass(frozen=True, eq=False)
class ChoiceNames:
    """What the choices are called: distinct names, and which of them each choice has."""

    names: tuple[str, ...]
    of_choice: Ints  # (C,)


@dataclass(frozen=True, eq=False)
class ExplicitModel:
    """States with choices with branches, one list after the other, as in a CSR matrix."""

    first_choice: Ints  # (S+1,) the choices of state s are first_choice[s] to first_choice[s+1]
    first_branch: Ints  # (C+1,)
    targets: Ints  # (B,) the state that a branch leads to
    probabilities: Floats  # (B,)
    initial: Bools  # (S,) where the model may start
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
        """Number of choices C of all states together."""
        return self.first_branch.size - 1

    @property
    def quantities(self) -> dict[str, str]:
        """All that can be minimised, maximised or limited, and which kind it is: "reward" or "label"."""
        known = dict.fromkeys(self.rewards, "reward")
        return known | {self.label_name(label): "label" for label in self.labels}

    def label_name(self, label: str) -> str:
        """What a label is called where a reward has its name."""
        return f"{label} (label)" if label in self.rewards else label


def distinct(names: list[str], copy: str) -> list[str]:
    """Names of which none is there twice; a second one is called as ``copy`` says.

    >>> distinct(["a", "b", "a"], "{} ({})")
    ['a', 'b', 'a (2)']
    """
    result: list[str] = []
    for name in names:
        others = (copy.format(name, k) for k in range(2, len(names) + 2))
        result.append(name if name not in result else next(other for other in others if other not in result))
    return result


def check_offsets(offsets: Ints, n: int, total: int, what: str) -> None:
    """The n + 1 places where the lists of n things begin must rise from 0 to the number of all entries."""
    if offsets.size != n + 1 or offsets[0] != 0 or offsets[-1] != total or (np.diff(offsets) < 0).any():
        raise ModelError(f"{what} must be {n + 1} numbers that rise from 0 to {total}")
