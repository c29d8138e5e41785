"""The parts of agents: schedule, fallback, radius, ledger, planning horizon and commitment, each with its options.

Beliefs are parts, too; they are in ``psconrl.learning.posterior``. All parts are imported here, since importing a
module registers the names of its parts.
"""

from psconrl.learning.parts import commitment, fallbacks, ledger, planning_horizons, radii, schedules, tightened
from psconrl.learning.posterior import cost_beliefs, learned_mass, transition_beliefs

__all__ = [
    "commitment",
    "cost_beliefs",
    "fallbacks",
    "learned_mass",
    "ledger",
    "planning_horizons",
    "radii",
    "schedules",
    "tightened",
    "transition_beliefs",
]
