"""The variables of a system that noises are tested against."""

from typing import Any, NamedTuple

import numpy as np

from psconrl.base.arrays import Ints
from psconrl.systems.structure import Structure
from psconrl.systems.vocabulary import Vocabulary

TIME, VALUE = "(time)", "(value)"  # causes of a doubt besides variables: it changed; a known parameter is another


class VaryingVariable(NamedTuple):
    """A variable of the states or actions, with a value in every pair."""

    name: str
    values: list[Any]
    of_pair: Ints  # the place of its value
    ordered: bool


def varying_variables(structure: Structure, words: Vocabulary) -> list[VaryingVariable]:
    """Return the variables that have several values in the system."""
    S, A = structure.n_states, structure.n_actions
    taken = np.where(words.available, np.arange(A), words.available.argmax(axis=1)[:, None]).ravel()
    found = []
    for space, numbers in ((words.states, np.repeat(words.reachable, A)), (words.actions, taken)):
        for variable, column in zip(space.variables, space.values(numbers).values(), strict=True):
            values, of_pair = np.unique(column, return_inverse=True)
            if values.size > 1:
                found.append(VaryingVariable(variable.name, values.tolist(), of_pair.ravel(), values.dtype.kind != "U"))
    assert all(v.of_pair.size == S * A for v in found)
    return found
