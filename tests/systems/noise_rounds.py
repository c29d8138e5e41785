"""Rounds of a system with random actions, in which some of its noise is reported."""

import numpy as np

from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.posterior.noise_posterior import Structured


def simulated(system, truth, rounds, seed, report=(), counts=None):
    """Counts of rounds of random actions, and what was seen; of each, the noise of some names is reported.

    ``counts``: to which the rounds are added.
    """
    rng = np.random.default_rng(seed)
    structure, words = system.structure, system.vocabulary()
    belief = Structured.of(system)
    counts = counts or Counts(structure.n_states, structure.n_actions, len(structure.fixed_costs))
    record, table = Record.empty(counts), structure.table(truth)
    state, seen = 0, []
    for _ in range(rounds):
        action = int(rng.integers(structure.n_actions))
        pair = state * structure.n_actions + action
        outcome = int(rng.choice(table.shape[1], p=table[structure.contexts[pair]]))
        following = int(structure.successors[pair, outcome])
        record.step(state, action, following, np.zeros(len(structure.fixed_costs)))
        noise = {name: words.outcomes[name][outcome].item() for name in report} or None
        if noise is not None:
            cells = belief.explained(pair, following, noise).cells
            record.noise.note(pair * structure.n_states + following, words.reported(noise), cells)
        seen.append((pair, following, noise))
        state = following
    counts.add(record)
    return counts, seen
