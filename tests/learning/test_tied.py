"""Rows that share a distribution up to relabelling, against conjugate posteriors by hand."""

import numpy as np
import pytest

import psconrl
from psconrl.agents import Tied
from psconrl.errors import AgentError, StructureWarning
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.model.cmdp import CMDP

S = 5
STEPS = (np.arange(S) - np.arange(S)[:, None]) % S  # from s to s' on a ring


def ring_labels():
    """Steps by 0, 1 or 2 forward; all others are impossible."""
    labels = np.where(STEPS <= 2, STEPS, -1)
    return np.repeat(labels[:, None, :], 2, axis=1)


def counted(moves):
    counts = Counts(S, 2, 2)
    record = Record.empty(counts)
    for s, a, t in moves:
        record.step(s, a, t % S, np.zeros(2))
    counts.add(record)
    return counts


MOVES = [(0, 0, 0), (1, 0, 2), (2, 0, 3), (3, 0, 5), (4, 1, 4), (4, 1, 4)]


@pytest.mark.parametrize(("groups", "alpha"), [(0, [[4, 3, 2], [4, 3, 2]]), (1, [[2, 3, 2], [3, 1, 1]])])
def test_all_rows_of_a_group_learn_together(groups, alpha):
    """With one group for all rows, or one for each action; the prior has one observation of each label."""
    belief = Tied(np.tile(np.arange(2) * groups, (S, 1)), ring_labels(), prior=3).made_for(S, 2, 1)
    counts = counted(MOVES)
    exact = np.array(alpha) / np.sum(alpha, axis=1, keepdims=True)
    for s in range(S):
        for a in range(2):
            row = belief.mean(counts)[2 * s + a]
            np.testing.assert_allclose(row[(s + np.arange(3)) % S], exact[a], rtol=1e-12)
            assert row.sum() == pytest.approx(1.0)
    rng = np.random.default_rng(1)
    drawn = np.array([belief.sample(counts, rng).toarray()[[0, 1], :3] for _ in range(4000)])
    total = np.sum(alpha, axis=1, keepdims=True)
    error = 6 * np.sqrt(exact * (1 - exact) / (total + 1) / 4000)
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - exact), error)
    one = belief.sample(counts, rng).toarray()
    np.testing.assert_allclose(np.roll(one[0], 1), one[2], rtol=1e-12)  # the next state, relabelled


def test_by_default_labels_are_next_states():
    belief = Tied(np.zeros((S, 2)), prior=5).made_for(S, 2, 1)
    np.testing.assert_allclose(belief.mean(counted([(0, 0, 1), (3, 1, 1)]))[7], np.array([1, 3, 1, 1, 1]) / 7)


def test_an_agent_learns_from_all_rows(tmp_path):
    P = np.zeros((S, 2, S))
    for s in range(S):
        P[s, 0, s], P[s, 0, (s + 1) % S] = 0.9, 0.1
        P[s, 1, (s + 1) % S], P[s, 1, (s + 2) % S] = 0.5, 0.5
    costs = np.zeros((2, S, 2))
    costs[0], costs[1] = np.arange(S)[:, None], [0, 1]
    model = CMDP(P, costs, [0.5])
    agent = psconrl.PSConRL(S, 2, [0.5], costs, belief=Tied(np.tile([0, 1], (S, 1)), ring_labels()), seed=1)
    psconrl.simulate(model, agent, 2000, seed=2)
    np.testing.assert_allclose(agent.belief.mean(agent.counts), P.reshape(-1, S), atol=0.08)
    agent.save(tmp_path / "agent.npz")
    again = psconrl.load_agent(tmp_path / "agent.npz")
    one, two = (psconrl.simulate(model, each, 300, seed=3).cumulative for each in (agent, again))
    np.testing.assert_array_equal(one, two)


def test_a_transition_without_a_label_is_a_doubt():
    agent = psconrl.PSConRL(S, 2, [0.5], belief=Tied(np.zeros((S, 2)), ring_labels()), seed=1)
    agent.observe(agent.act(0), 4, [0.0, 0.0])
    agent.finish()
    with pytest.warns(StructureWarning, match="a transition was observed that has no label"):
        agent.act(4)


def other_labels(state):
    labels = ring_labels()
    labels[state, 1] = np.where(labels[state, 1] == 2, 3, labels[state, 1])
    return labels


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tied("a"), r"groups must be whole numbers of shape \(S, A\)"),
        (lambda: Tied([[0.5]]), "groups must be whole numbers"),
        (lambda: Tied([0, 1]), "groups must be whole numbers"),
        (lambda: Tied(np.zeros((S, 2)), np.zeros((S, 2))), "labels must be whole numbers"),
        (lambda: Tied(np.zeros((S, 2)), prior=0), "prior must be"),
        (lambda: Tied(np.zeros((3, 2))).made_for(S, 2, 1), r"groups must have shape \(S, A\) = \(5, 2\)"),
        (lambda: Tied(np.zeros((S, 2)), np.zeros((3, 2, 3))).made_for(S, 2, 1), r"labels must have shape"),
        (lambda: Tied(np.zeros((S, 2)), other_labels(3)).made_for(S, 2, 1), "the row of state"),
        (
            lambda: Tied(np.zeros((S, 2)), np.zeros((S, 2, S))).made_for(S, 2, 1),
            "rows of a group must have the same",
        ),
    ],
)
def test_wrong_ties_are_refused(make, message):
    with pytest.raises(AgentError, match=message):
        make()
