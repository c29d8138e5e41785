"""Counts that are as sparse as what was seen, against plain tables that are counted by hand."""

from collections import Counter

import numpy as np
import pytest

from psconrl.base.caps import MOST_ROUNDS
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.posterior.sparse_counts import LOG_LENGTH, Tally


def noted(n_pairs, n_states, steps, seed, few=None):
    """A tally of random steps, and the same as a table; of a ``few`` distinct ones if wanted."""
    rng = np.random.default_rng(seed)
    pairs, states = rng.integers(n_pairs, size=steps), rng.integers(n_states, size=steps)
    if few is not None:
        chosen = rng.integers(few, size=steps)
        pairs, states = chosen % n_pairs, chosen * 7 % n_states
    tally, table = Tally(n_pairs, n_states), np.zeros((n_pairs, n_states), dtype=np.int64)
    for pair, state in zip(pairs.tolist(), states.tolist(), strict=True):
        tally.note(pair, state)
    np.add.at(table, (pairs, states), 1)
    return tally, table


def assert_is(tally, table):
    """Compare everything that a tally reports."""
    assert tally.numbers.tolist() == np.flatnonzero(table).tolist()
    assert tally.times.tolist() == table.ravel()[np.flatnonzero(table)].tolist()
    np.testing.assert_array_equal(tally.toarray(), table)
    np.testing.assert_array_equal(tally.csr().toarray(), table)
    np.testing.assert_array_equal(tally.visits(), table.sum(axis=1))
    assert tally.csr().has_canonical_format


@pytest.mark.parametrize("steps", [0, 1, LOG_LENGTH - 1, LOG_LENGTH, LOG_LENGTH + 1, 3 * LOG_LENGTH + 17])
@pytest.mark.parametrize("few", [None, 5])
def test_a_tally_counts_as_a_table_does_however_often_its_log_is_full(steps, few):
    assert_is(*noted(12, 9, steps, steps, few))


def test_a_log_that_a_loop_fills_itself_is_counted_like_single_notes():
    """A compiled loop writes as many numbers as fit, and asks again."""
    rng, tally, seen = np.random.default_rng(1), Tally(50, 40), Counter()
    for _ in range(30):
        n = min(int(rng.integers(1, LOG_LENGTH)), tally.room())
        assert n > 0
        numbers = rng.integers(50 * 40, size=n)
        tally.log[tally.logged : tally.logged + n] = numbers
        tally.logged += n
        seen.update(numbers.tolist())
        if rng.random() < 0.3:
            assert tally.times.sum() == sum(seen.values())  # a query in between changes nothing
    assert tally.numbers.tolist() == sorted(seen)
    assert tally.times.tolist() == [seen[number] for number in sorted(seen)]
    assert tally.room() == LOG_LENGTH


def test_two_tallies_add_up_whatever_they_have_in_common():
    rng = np.random.default_rng(2)
    for trial in range(60):
        few = None if trial % 3 else int(rng.integers(1, 6))
        one, first = noted(6, 5, int(rng.integers(0, 40)), 2 * trial, few)
        two, second = noted(6, 5, int(rng.integers(0, 40)), 2 * trial + 1, few)
        one.add(two)
        assert_is(one, first + second)
        assert_is(two, second)  # the other is as it was
        one.add(one)
        assert_is(one, 2 * (first + second))


def test_what_is_added_later_does_not_change_the_other():
    one, table = noted(6, 5, 30, 0)
    empty = Tally(6, 5)
    empty.add(one)
    empty.add(one)
    assert_is(empty, 2 * table)
    assert_is(one, table)


def test_a_copy_is_independent_and_a_cleared_one_begins_again():
    tally, table = noted(6, 5, 40, 3)
    other = tally.copy()
    other.note(0, 0)
    assert_is(tally, table)
    other.clear()
    assert_is(other, np.zeros_like(table))
    assert other.room() == LOG_LENGTH
    other.note(5, 4)
    assert (other.numbers.tolist(), other.times.tolist()) == ([29], [1])
    other.note(5, 4)  # not sorted in yet when it is cleared
    other.clear()
    assert other.numbers.size == 0
    assert_is(tally, table)


def test_a_sparse_matrix_of_counts_is_a_copy():
    tally, table = noted(6, 5, 40, 4)
    tally.csr().data[:] = 0
    assert_is(tally, table)


def test_a_saved_tally_is_put_back():
    tally, table = noted(6, 5, 40, 5)
    state = {key: value.copy() for key, value in tally.state().items()}
    other = Tally(6, 5)
    other.note(0, 0)  # forgotten
    other.restore(state)
    assert_is(other, table)
    other.add(tally)
    assert state["times"].tolist() == tally.times.tolist()  # what was handed in is not changed


@pytest.mark.parametrize(
    ("numbers", "times"),
    [
        ([3, 3], [1, 1]),
        ([3, 2], [1, 1]),
        ([5, -(2**63) + 2], [1, 1]),  # the difference of which is beyond the range, and seems to be positive
        ([-1, 2], [1, 1]),
        ([0, 30], [1, 1]),
        ([0, 1], [1, 0]),
        ([0, 1], [1, -1]),
        ([0, 1], [1]),
        ([[0, 1]], [[1, 1]]),
        ([0.5, 1.5], [1, 1]),
        ([0, 1], [1.5, 1.0]),
        ([np.nan], [1]),
        ([0, 1], [2**63 - 1, 2]),  # the sum of which is beyond the range
        ([0], [MOST_ROUNDS + 1]),
    ],
)
def test_counts_that_cannot_be_are_refused_and_change_nothing(numbers, times):
    """A kernel would write wherever such a number points."""
    tally, table = noted(6, 5, 40, 6)
    with pytest.raises(ValueError, match=r"(numbers|times)\b.* must "):
        tally.restore({"numbers": np.array(numbers), "times": np.array(times)})
    assert_is(tally, table)


def test_the_largest_and_the_smallest_number_are_allowed():
    tally = Tally(6, 5)
    tally.restore({"numbers": np.array([0, 29]), "times": np.array([1, MOST_ROUNDS - 1])})
    assert tally.visits().tolist() == [1, 0, 0, 0, 0, MOST_ROUNDS - 1]


# Records and counts


def played(S, A, m, episodes, seed):
    """Counts after some episodes of random steps, the transitions as a table, the sums of costs, and the last record.

    The dense table is asked for after the second episode, so that it is kept up to date from then on.
    """
    rng = np.random.default_rng(seed)
    counts, record = Counts(S, A, m + 1), None
    table, sums = np.zeros((S * A, S), dtype=np.int64), np.zeros((m + 1, S * A))
    for k in range(episodes):
        record = record or Record.empty(counts)
        record.clear()
        for _ in range(int(rng.integers(1, 60))):
            s, a, t, costs = int(rng.integers(S)), int(rng.integers(A)), int(rng.integers(S)), rng.random(m + 1)
            record.step(s, a, t, costs)
            table[s * A + a, t] += 1
            sums[:, s * A + a] += costs
        counts.add(record)
        if k >= 2:
            np.testing.assert_array_equal(counts.transitions, table)
        np.testing.assert_array_equal(counts.moves.toarray(), table)
    return counts, table, sums, record


def test_the_table_of_all_counts_stays_equal_to_the_tally():
    counts, table, sums, _ = played(7, 3, 2, 40, 0)
    np.testing.assert_array_equal(counts.transitions, counts.tally.toarray())
    np.testing.assert_array_equal(counts.visits, table.sum(axis=1))
    np.testing.assert_array_equal(counts.pairs, table.sum(axis=1).reshape(7, 3))
    np.testing.assert_allclose(counts.cost_sums, sums)
    with pytest.raises(ValueError, match="read-only"):
        counts.transitions[0, 0] = 1


def test_counts_and_records_are_saved_and_put_back():
    counts, table, sums, record = played(7, 3, 2, 5, 1)
    again = Counts(7, 3, 3)
    assert not again.transitions.any()  # a table that must not outlive the restoring
    again.restore(counts.state())
    np.testing.assert_array_equal(again.transitions, table)
    np.testing.assert_allclose(again.cost_sums, sums)
    other = Record.empty(counts)
    other.restore(record.state())
    assert other.steps == record.steps == record.tally.times.sum()
    np.testing.assert_array_equal(other.transitions, record.transitions)
    copy = record.copy()
    record.clear()
    assert (record.steps, record.visits.sum(), record.cost_sums.any(), record.tally.numbers.size) == (0, 0, False, 0)
    assert (copy.steps, copy.visits.sum()) == (other.steps, other.visits.sum())
    np.testing.assert_array_equal(copy.moves.toarray(), other.moves.toarray())


@pytest.mark.parametrize("damage", ["visits", "costs", "steps", "sum"])
def test_counts_that_contradict_each_other_are_refused(damage):
    _, _, _, record = played(4, 2, 1, 1, 2)
    state = record.state()
    state |= {"visits": state["visits"].copy(), "cost_sums": state["cost_sums"].copy()}
    if damage == "visits":
        state["visits"][[0, 1]] = state["visits"][[1, 0]] + [0, 1]
    elif damage == "costs":
        state["cost_sums"][0, 0] = np.nan
    elif damage == "steps":
        state["steps"] += 1
    else:  # as many visits as a 64-bit sum of the times would have
        state["transitions"] = {"numbers": np.array([0, 1]), "times": np.array([2**63 - 1, 2])}
        state["visits"] = np.array([-(2**63) + 1, 0, 0, 0, 0, 0, 0, 0])
        state["steps"] = -(2**63) + 1
    with pytest.raises(ValueError, match=r"^(visits|cost_sums|steps|transitions/times)\b.* must "):
        Record(4, 2, 2).restore(state)


def test_mean_costs_of_what_was_seen_of_a_guess_and_of_hope():
    """Pair 0 was seen twice, at a sum of 3; guesses of 4 count 2.5 times, an optimistic cost of -1 once."""
    counts = Counts(2, 1, 2)
    record = Record.empty(counts)
    for cost in (1.0, 2.0):
        record.step(0, 0, 1, np.array([cost, 10.0 * cost]))
    counts.add(record)
    guess = np.array([[[4.0], [5.0]], [[6.0], [7.0]]])
    assert counts.mean_costs()[:, :, 0].tolist() == [[1.5, 0.0], [15.0, 0.0]]
    assert counts.mean_costs(-1.0)[:, :, 0].tolist() == [[2.0 / 3.0, -1.0], [15.0, 0.0]]
    assert counts.mean_costs(None, guess, 2.5)[:, :, 0].tolist() == [[13.0 / 4.5, 5.0], [45.0 / 4.5, 7.0]]
    assert counts.mean_costs(-1.0, guess, 2.5)[0, :, 0].tolist() == [12.0 / 5.5, 11.5 / 3.5]
    each = np.array([[0.0], [2.0]])  # a guess for the second pair alone
    assert counts.mean_costs(None, guess, each)[:, :, 0].tolist() == [[1.5, 5.0], [15.0, 7.0]]
    assert counts.cost_sums.tolist() == [[3.0, 0.0], [30.0, 0.0]]  # not changed
