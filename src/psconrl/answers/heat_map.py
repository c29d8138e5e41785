"""A policy over two variables of the state: how often each pair of values occurs, and what is done there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError, unknown_name
from psconrl.systems.stated import Stated


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


def heat_map(system: Stated, occupancy: Floats, x: str, y: str) -> HeatMap:
    """Return the data of a map over two variables of the state."""
    for name in (x, y):
        if name not in system.states.names:
            raise ConfigError(unknown_name("variable of the state", name, system.states.names))
    if x == y:
        raise ConfigError(f"a map needs two different variables; got {quoted(x)} twice")
    table = system.state_table
    x_values, i = np.unique(table[x], return_inverse=True)
    y_values, j = np.unique(table[y], return_inverse=True)
    flow = np.zeros((x_values.size, y_values.size, system.actions.size))
    np.add.at(flow, (i, j), occupancy)
    share = flow.sum(axis=2)
    visited = share > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        means = {
            name: (flow @ values) / share
            for name, values in system.actions.values(np.arange(system.actions.size)).items()
            if values.dtype.kind in "biuf"
        }
        certainty = flow.max(axis=2) / share
    likeliest = flow.argmax(axis=2)
    chosen: dict[str, NDArray[Any]] = {
        name: np.where(visited, values[likeliest].astype(object), np.array(None))
        for name, values in system.actions.values(np.arange(system.actions.size)).items()
    }
    return HeatMap(x, y, x_values, y_values, share, means, np.where(visited, likeliest, -1), certainty, chosen)
