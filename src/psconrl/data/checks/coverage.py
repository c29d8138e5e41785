r"""Coverage: what was never tried where it matters.

A state matters by the share of rounds that the plan on means spends in it: the best policy of the model of observed
frequencies, in which only what was tried is possible, or of a system with parameters drawn from the posterior.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats
from psconrl.base.sizes import PLANNED_DENSE_STATES
from psconrl.data.checks.finding import COVERAGE, Finding
from psconrl.data.rounds.recorded import Recorded
from psconrl.errors import LogError, PsconrlError, unknown_name
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.model.cmdp import CMDP
from psconrl.planning.planner import plan_model
from psconrl.planning.proof.certificate import Status

HARDLY = 10  # times; a pair that was tried less often is hardly known
LEAST_WEIGHT = 0.01  # of the rounds of the plan, of a state that matters, or of pairs that are hardly known
MOST_GAPS = 10  # that are listed
DRAWS_BEFORE = 5  # of a system's parameters, the last of which is planned with
MOST_PLANNED = 20_000  # states of a model that is planned


@dataclass(frozen=True)
class Gap:
    """A pair that was hardly tried, in a state in which the plan spends a share of all rounds."""

    state: str
    action: str
    share: float
    times: int


@dataclass(frozen=True)
class Coverage:
    """What was tried. ``hardly_known``: the share of the plan's rounds in pairs that were tried less than ten times."""

    n_pairs: int
    untried: int
    hardly_known: float
    gaps: tuple[Gap, ...]
    weights: str  # of which policy the shares are

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "pairs": self.n_pairs,
            "untried": self.untried,
            "hardly_known": self.hardly_known,
            "gaps": [vars(gap) for gap in self.gaps],
            "weights": self.weights,
        }


def coverage(log: Recorded, counts: Counts, limits: Mapping[str, float] | None) -> Coverage:
    """Return what was tried, and what was not where it matters."""
    S, A = log.n_states, log.n_actions
    for name in {} if limits is None else limits:
        if name not in log.cost_names[1:]:
            raise LogError(unknown_name("limit", name, log.cost_names[1:]))
    available = np.ones((S, A), dtype=bool)
    if log.system_rounds is not None:
        available = log.system_rounds.words.available
    occupancy, weights = _weights(log, counts, limits)
    share = occupancy.sum(axis=1)
    few = (counts.pairs < HARDLY) & available
    order = np.lexsort((counts.pairs.ravel(), -np.where(few, share[:, None], 0.0).ravel()))
    gaps = []
    for pair in order[: MOST_GAPS if few.any() else 0].tolist():
        state, action = divmod(pair, A)
        if few[state, action] and share[state] >= LEAST_WEIGHT:
            times = int(counts.pairs[state, action])
            gaps.append(Gap(log.state_labels[state], log.action_labels[action], float(share[state]), times))
    untried = int(((counts.pairs == 0) & available).sum())
    return Coverage(int(available.sum()), untried, float(occupancy[few].sum()), tuple(gaps), weights)


def coverage_findings(log: Recorded, found: Coverage) -> list[Finding]:
    """Return what the coverage means for the user."""
    findings = []
    taken = np.flatnonzero(np.bincount(log.actions, minlength=log.n_actions))
    if taken.size == 1:
        only = log.action_labels[int(taken[0])]
        text = f"the action is always {only}: the log tells nothing about other actions"
        findings.append(Finding(COVERAGE, "the action", text))
    never = [gap for gap in found.gaps if gap.times == 0]
    if never:
        one = never[0]
        text = (
            f"{found.untried:,} of {found.n_pairs:,} pairs of state and action were never tried; of those that matter, "
            f"first {one.action} in {one.state}, where {found.weights} spends {one.share:.1%} of all rounds"
        )
        findings.append(Finding(COVERAGE, f"{one.state} / {one.action}", text))
    if found.hardly_known >= LEAST_WEIGHT:
        share = f"{found.hardly_known:.1%} of its rounds"
        text = f"{found.weights} spends {share} in pairs that were tried fewer than {HARDLY} times"
        findings.append(Finding(COVERAGE, "the plan", text))
    return findings


def _weights(log: Recorded, counts: Counts, limits: Mapping[str, float] | None) -> tuple[Floats, str]:
    """Return shares (S, A) of rounds, and of which policy they are."""
    if log.cost_names and log.n_states <= MOST_PLANNED and not (log.system is None and counts.unknown_costs.any()):
        try:
            model = _system_model(log, counts) if log.system_rounds is not None else _model(log, counts, limits)
            found = plan_model(model)
            if found.status is not Status.INFEASIBLE:
                taken = np.asarray(found.occupancy)
                return np.where(model.available, taken, 0.0), "the plan on means"
        except PsconrlError:  # there is no plan
            pass
    return counts.pairs / max(int(counts.visits.sum()), 1), "the log itself"


def _system_model(log: Recorded, counts: Counts) -> CMDP:
    """Return the model of a system with parameters drawn from the posterior."""
    assert log.system_rounds is not None
    system = log.system_rounds.system
    belief, rng = Structured.of(system), np.random.default_rng(0)
    for _ in range(DRAWS_BEFORE):
        belief.sample(counts, rng)
    structure = system.structure
    transition = structure.expected_transition(structure.table(belief.parameters))
    is_sparse = structure.n_states > PLANNED_DENSE_STATES
    return system.cmdp(transition if is_sparse else transition.toarray(), structure.costs(belief.parameters))


def _model(log: Recorded, counts: Counts, limits: Mapping[str, float] | None) -> CMDP:
    """Return the model of what was tried. A state that was never left returns to where runs began."""
    S, A = log.n_states, log.n_actions
    limits = {} if limits is None else limits
    visits = counts.visits.astype(np.float64)
    moves = counts.moves.astype(np.float64)
    never = counts.pairs.sum(axis=1) == 0
    starts = np.bincount(log.states[~log.follows], minlength=S).astype(np.float64)
    back = np.repeat(never, A)
    scale = np.where(visits > 0.0, 1.0 / np.maximum(visits, 1.0), 0.0)
    rest = csr_array(np.outer((back | (visits == 0.0)).astype(np.float64), np.ones(1))) @ csr_array(
        (starts / starts.sum())[None, :]
    )
    transition = csr_array(moves.multiply(scale[:, None])) + rest
    rows = [0, *(k for k, name in enumerate(log.cost_names) if name in limits)]
    costs = counts.mean_costs()[rows]
    costs[:, never] = (counts.cost_sums[rows].sum(axis=1) / max(visits.sum(), 1.0))[:, None, None]
    is_sparse = S > PLANNED_DENSE_STATES
    return CMDP(
        csr_array(transition) if is_sparse else transition.toarray(),
        costs,
        [limits[log.cost_names[k]] for k in rows[1:]],
        available=(counts.pairs > 0) | never[:, None],
        initial=int(log.states[0]),
    )
