"""Is the description of a system right? The tests that agents make while they learn, made on a log.

Rounds are handed to ``StructureCheck`` in their order, block by block: noises are tested against their families, their
variables, time and each other, costs against their formulas. A right description is doubted with a probability of at
most ``FALSE_ALARMS`` by the noises, and by the costs, whatever the length of the log.
"""

import numpy as np

from psconrl.data.checks.finding import STRUCTURE, Finding
from psconrl.data.rounds.recorded import Recorded
from psconrl.learning.posterior.checks.structure_check import FIRST_CHECK, StructureCheck
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.noise_posterior import Structured

BLOCKS_SHOWN = 100  # in which the rounds are handed over, with at least FIRST_CHECK each


def structure_findings(log: Recorded) -> list[Finding]:
    """Return the doubts about a system; nothing without a system."""
    revealed = log.system_rounds
    if revealed is None:
        return []
    belief, rng = Structured.of(revealed.system), np.random.default_rng(0)
    check = StructureCheck(revealed.structure, revealed.words)
    counts = Counts(log.n_states, log.n_actions, len(log.cost_names))
    doubts: dict[str, str] = {}
    step = max(FIRST_CHECK, log.n_rounds // BLOCKS_SHOWN)
    for k in range(0, log.n_rounds, step):
        rounds = slice(k, min(k + step, log.n_rounds))
        seen = log.seen_in(rounds)
        revealed.add_to(seen, rounds, whole=True)
        counts.add(seen)
        if k == 0:
            belief.sample(counts, rng)
        check.update(doubts, counts, belief.parameters)
    return [Finding(STRUCTURE, name, text) for name, text in doubts.items()]
