"""What agents are made of: a belief, a schedule, a fallback, a radius, a ledger, an outlook, each with its options.

All are imported here, since a part is known by its name once its module is.
"""

from psconrl.learning.parts import beliefs, fallbacks, learned_mass, ledger, outlooks, radii, schedules, tightened

__all__ = ["beliefs", "fallbacks", "learned_mass", "ledger", "outlooks", "radii", "schedules", "tightened"]
