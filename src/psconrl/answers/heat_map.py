"""A policy over two variables of the state: how often each pair of values occurs, and what is done there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.answers.answer import Answer
from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError, ModelError, unknown_name


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Data over the values of two variables; cells that are never visited are nan in ``actions``."""

    x: str
    y: str
    x_values: NDArray[Any]  # (X,)
    y_values: NDArray[Any]  # (Y,)
    share: Floats  # (X, Y) of rounds
    actions: Mapping[str, Floats]  # mean of every numeric action variable, (X, Y)
    likeliest: NDArray[Any]  # (X, Y) number of the most frequent action; -1 if never visited
    certainty: Floats  # (X, Y) share of that action
    likeliest_values: Mapping[str, NDArray[Any]]  # of that action, (X, Y) for every variable; None if never visited


def heat_map(answer: Answer, x: str, y: str) -> HeatMap:
    """Return how often two variables of the state have each pair of values, and the mean action there."""
    if not isinstance(answer, Answer):
        raise ModelError(f"heat_map needs an answer, as psconrl.plan(system) returns it; got {type(answer).__name__}")
    system, occupancy = answer.asked, answer.plan.occupancy
    table, actions = system.state_table, system.action_table
    for name in (x, y):
        if name not in table:
            raise ConfigError(unknown_name("variable of the state", name, table))
    if x == y:
        raise ConfigError(f"a map needs two different variables; got {quoted(x)} twice")
    x_values, i = np.unique(table[x], return_inverse=True)
    y_values, j = np.unique(table[y], return_inverse=True)
    flow = np.zeros((x_values.size, y_values.size, occupancy.shape[1]))
    np.add.at(flow, (i, j), occupancy)
    share = flow.sum(axis=2)
    visited = share > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        means = {name: (flow @ values) / share for name, values in actions.items() if values.dtype.kind in "biuf"}
        certainty = flow.max(axis=2) / share
    likeliest = flow.argmax(axis=2)
    chosen: dict[str, NDArray[Any]] = {
        name: np.where(visited, values[likeliest].astype(object), np.array(None)) for name, values in actions.items()
    }
    return HeatMap(x, y, x_values, y_values, share, means, np.where(visited, likeliest, -1), certainty, chosen)
