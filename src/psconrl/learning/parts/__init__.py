"""What agents are made of: schedule, fallback, radius, ledger, planning horizon, commitment, each with its options.

Beliefs are parts, too; they are in ``psconrl.learning.posterior``. All parts are imported here: a part is known by its
name once its module is.
"""

from psconrl.learning.parts import commitment, fallbacks, ledger, planning_horizons, radii, schedules, tightened
from psconrl.learning.posterior import beliefs, cost_beliefs, learned_mass

__all__ = [
    "beliefs",
    "commitment",
    "cost_beliefs",
    "fallbacks",
    "learned_mass",
    "ledger",
    "planning_horizons",
    "radii",
    "schedules",
    "tightened",
]
