"""Vector rewards, as in mo-gymnasium: which component is the objective, and which are costs.

By default the first is the objective, and all others are costs with the opposite sign: a reward of -1 per step is a
cost of 1, and "at least 0.3 of the second" is a threshold of -0.3 on its cost.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError, unknown_name

Component = int | str


class RewardComponents:
    """The objective and the costs of a reward with several components.

    >>> treasure = RewardComponents(2, names=("treasure", "time"))
    >>> treasure.split([23.7, -1.0])
    (23.7, array([1.]))
    >>> RewardComponents(3, objective=2, costs={0: 1.0}).split([4.0, 5.0, 6.0])
    (6.0, array([4.]))
    """

    def __init__(
        self,
        size: int,
        objective: Component = 0,
        costs: Sequence[Component] | Mapping[Component, float] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.size = size
        if names is not None and len(names) != size:
            raise ModelError(f"the reward has {size} components; got {len(names)} names for them")
        self._names = None if names is None else [str(name) for name in names]
        self.objective = self._index(objective)
        if costs is None:
            costs = [k for k in range(size) if k != self.objective]
        signs = dict(costs) if isinstance(costs, Mapping) else dict.fromkeys(costs, -1.0)
        self.costs = [self._index(which) for which in signs]
        self.cost_names = tuple(self._name(k) for k in self.costs)
        try:
            self._signs = np.array(list(signs.values()), dtype=np.float64)
        except (TypeError, ValueError):
            self._signs = np.array([np.nan])
        if not np.isfinite(self._signs).all() or not self._signs.all():
            raise ModelError(f"costs must have a sign for every component, 1 or -1; got {quoted(dict(signs))}")
        if len(set(self.costs)) < len(self.costs):
            raise ModelError(f"costs name a component twice: {list(signs)}")

    def _index(self, which: Any) -> int:
        if isinstance(which, str):
            if self._names is None or which not in self._names:
                raise ModelError(unknown_name("component of the reward", which, self._names or range(self.size)))
            return self._names.index(which)
        if isinstance(which, bool) or not isinstance(which, int | np.integer) or not 0 <= which < self.size:
            raise ModelError(f"components of the reward are numbered from 0 to {self.size - 1}; got {quoted(which)}")
        return int(which)

    def _name(self, index: int) -> str:
        return f"component {index}" if self._names is None else self._names[index]

    def split(self, reward: Any) -> tuple[float, Floats]:
        """Return the reward that is the objective, and the costs."""
        vector = np.asarray(reward, dtype=np.float64)
        if vector.shape != (self.size,):
            raise ModelError(f"the reward must have {self.size} components; got {quoted(reward)}")
        return float(vector[self.objective]), self._signs * vector[self.costs]
