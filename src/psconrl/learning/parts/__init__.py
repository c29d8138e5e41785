"""What agents are made of: belief, schedule, fallback, radius, ledger, outlook, commitment, each with its options.

All are imported here, since a part is known by its name once its module is.
"""

from psconrl.learning.parts import (
    beliefs,
    commitment,
    cost_beliefs,
    fallbacks,
    learned_mass,
    ledger,
    outlooks,
    radii,
    schedules,
    tightened,
)

__all__ = [
    "beliefs",
    "commitment",
    "cost_beliefs",
    "fallbacks",
    "learned_mass",
    "ledger",
    "outlooks",
    "radii",
    "schedules",
    "tightened",
]
