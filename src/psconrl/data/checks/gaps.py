r"""Do gaps depend on the state before them?

Where the next row is missing, no round is read. If that depends on nothing, or on state and action alone, the
frequencies of transitions are right, since given state and action the rounds that are left are a fair sample; only
averages over the log itself then favour some states. If it depends on the next state, as where a sensor fails under
load, they are wrong: :math:`P(s' | s, a, \text{seen}) \propto P(s' | s, a) P(\text{seen} | s')`. This cannot be seen
directly, but then gaps follow more often on states that lead to such next states.

So the test is whether gaps are independent of the state before them, given the part of the log: states that last and
gaps that come in stretches would otherwise seem to depend on each other. The score of a row is 1 if a gap follows: the
test of general association of Mantel and Haenszel, which is right where gaps are rare, too.
"""

import numpy as np

from psconrl.base.arrays import Ints
from psconrl.data.checks.association import NO_TEST, Test, mean_score
from psconrl.data.checks.finding import GAPS, Finding
from psconrl.data.rounds.recorded import Recorded

PARTS = 20  # of the log, within which gaps and states are compared
FEWEST_GAPS = 20  # in a log that is tested
EXPECTED = 5.0  # gaps after a class of states, if they depend on nothing
SUBJECT = "the gaps"


def gap_test(log: Recorded) -> Test:
    """Test whether gaps are independent of the state before them."""
    broken = log.broken
    if broken.states.size < FEWEST_GAPS:
        return NO_TEST
    states: Ints = np.append(log.states, broken.states).astype(np.int64)
    parts = np.append(np.arange(log.n_rounds), broken.places) * PARTS // (log.n_rounds + 1)
    outcomes = np.repeat([0, 1], [log.n_rounds, broken.states.size])
    labels = state_classes(states, log.n_states, broken.states.size)
    return mean_score(parts, labels, outcomes.astype(np.float64))


def state_classes(states: Ints, n_states: int, gaps: int) -> Ints:
    """Return classes of states such that enough gaps are expected in each; states that are rare are taken together.

    >>> state_classes(np.array([0] * 50 + [1] * 40 + [2] * 5 + [3] * 5), 4, 20)[[0, 50, 90, 95]].tolist()
    [1, 2, 0, 0]
    """
    times = np.bincount(states, minlength=n_states)
    frequent = times * gaps >= EXPECTED * states.size
    return np.asarray(np.where(frequent, np.cumsum(frequent), 0)[states])


def gap_finding(log: Recorded, p_value: float) -> Finding:
    """Say that gaps depend on the state, and after which state they are most frequent."""
    gaps = np.bincount(log.broken.states, minlength=log.n_states)
    times = gaps + np.bincount(log.states, minlength=log.n_states)
    known = times * gaps.sum() >= EXPECTED * times.sum()
    shares = np.where(known, gaps / np.maximum(times, 1), -1.0)
    most = int(shares.argmax())
    text = (
        f"gaps follow some states more often than others ({shares[most]:.1%} of rows in {log.state_labels[most]}, "
        f"{gaps.sum() / times.sum():.1%} of all): frequencies of transitions are right only if state and action decide "
        "that, and not what comes next; fill the gaps, or name the column that tells the stretches between planned "
        "breaks apart, run=..."
    )
    return Finding(GAPS, SUBJECT, text, p_value)
