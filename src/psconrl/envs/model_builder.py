"""Helpers of the environments that are written as systems."""

import functools
import math
from collections.abc import Callable
from typing import Any

from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP
from psconrl.systems.system import System


def model_builder(system: Callable[..., System], *, sparse: bool) -> Callable[..., CMDP]:
    """Return a function with the same options that returns the model of the system, dense or sparse."""

    @functools.wraps(system)
    def build(*args: Any, **options: Any) -> CMDP:
        return system(*args, **options).expected_model(sparse=sparse)

    return build


def at_most(cost: str, threshold: float) -> str:
    """Return a limit as text.

    >>> at_most("lost", 0.1)
    'lost <= 0.1'
    """
    if not math.isfinite(threshold):
        raise ModelError(f"thresholds must be finite; got {threshold}")
    return f"{cost} <= {float(threshold)!r}"
