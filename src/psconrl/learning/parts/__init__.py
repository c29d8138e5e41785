"""The parts of agents: schedule, fallback, radius, ledger, planning horizon, commitment, doubt; each has options.

Beliefs are parts, too; they are in ``psconrl.learning.posterior``. All parts are imported here, since importing a
module registers the names of its parts.
"""

# ruff: noqa: F401
from psconrl.learning.parts import commitment, doubt, fallbacks, ledger, planning_horizons, radii, schedules, tightened
from psconrl.learning.posterior import cost_beliefs, learned_mass, transition_beliefs
