"""Learning from rounds of the past, such as a log, before the first round of an agent."""

from itertools import pairwise
from typing import Protocol

import numpy as np

from psconrl.errors import AgentError
from psconrl.learning.posterior.counts import Counts, Record, Seen

PARTS = 20  # of the past, for a belief about costs: it learns how much they vary from the differences of parts


class PastRounds(Protocol):
    """What ``psconrl.data.log.Log`` has: rounds of states and actions numbered as by the agent."""

    @property
    def n_states(self) -> int:
        """Number of states."""

    @property
    def n_actions(self) -> int:
        """Number of actions."""

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""

    def counts(self) -> Counts:
        """Return the statistics of all rounds."""

    def seen_in(self, rounds: slice) -> Seen:
        """Return the statistics of some rounds, without what they revealed of the noise."""


def records_of(past: PastRounds, counts: Counts, learns_costs: bool) -> list[Record]:
    """Return past rounds in parts, for an agent with these counts; the last one has what was seen of the noise."""
    own, its = (counts.n_states, counts.n_actions), (past.n_states, past.n_actions)
    if own != its:
        raise AgentError(f"the log has {its[0]} states and {its[1]} actions, the agent {own[0]} and {own[1]}")
    ends = [past.n_rounds * k // PARTS for k in range(PARTS + 1)]
    records = []
    for begin, end in pairwise(ends):
        seen, record = past.seen_in(slice(begin, end)), Record.empty(counts)
        record.tally.add(seen.tally)
        record.visits += seen.visits
        record.steps = end - begin
        if learns_costs:
            _need_costs(seen, counts)
            record.cost_sums += seen.cost_sums
        else:
            record.unknown_costs += record.steps
        records.append(record)
    records[-1].noise.add(past.counts().noise)
    return records


def _need_costs(seen: Seen, counts: Counts) -> None:
    """Raise an error unless all costs that an agent learns are known in all rounds."""
    has, needs = len(seen.cost_sums), len(counts.cost_sums)
    if has != needs:
        raise AgentError(f"the log has {has} costs, and the agent learns {needs}: the objective, then every limit")
    if np.any(seen.unknown_costs):
        raise AgentError("costs are missing in some rounds of the log, and the agent learns costs from all rounds")
