"""Numbers in the names of states: "3 waiting" is at 3, "2 and 5 waiting" at (2, 5)."""

import re
from collections.abc import Sequence

import numpy as np

from psconrl.arrays import Floats

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")


def coordinates(names: Sequence[str] | None) -> Floats | None:
    """Where each state is, (S, k), if the names are alike but for their k numbers; otherwise None.

    >>> coordinates(["0 waiting", "1 waiting"]).tolist()
    [[0.0], [1.0]]
    >>> coordinates(["idle", "busy"]) is None
    True
    """
    if not names:
        return None
    alike = NUMBER.sub("#", names[0])
    if "#" not in alike or any(NUMBER.sub("#", name) != alike for name in names):
        return None
    return np.array([[float(x) for x in NUMBER.findall(name)] for name in names])
