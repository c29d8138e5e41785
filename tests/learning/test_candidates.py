"""Beliefs about finitely many models, against weights by hand."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import psconrl
from psconrl.agents import Candidates, Draws, make
from psconrl.errors import AgentError, ConfigError, StructureWarning
from psconrl.learning.posterior.counts import Counts, Record


def chain(p):
    """Two states; from both, state 1 comes next with probability p."""
    return np.tile([1 - p, p], (2, 2, 1))


def counted(moves, n_states=2, n_actions=2):
    counts = Counts(n_states, n_actions, 2)
    record = Record.empty(counts)
    for s, a, t in moves:
        record.step(s, a, t, np.zeros(2))
    counts.add(record)
    return counts


MOVES = [(0, 0, 1)] * 3 + [(1, 1, 0)] * 2


def test_the_weights_are_prior_times_likelihood():
    belief = Candidates([chain(p) for p in (0.2, 0.5, 0.9)], weights=[1, 2, 1]).made_for(2, 2, 1)
    exact = np.array([0.2**3 * 0.8**2, 2 * 0.5**5, 0.9**3 * 0.1**2])
    counts = counted(MOVES)
    np.testing.assert_allclose(belief.probabilities(counts), exact / exact.sum(), rtol=1e-12)
    mean = exact @ [0.2, 0.5, 0.9] / exact.sum()
    np.testing.assert_allclose(belief.mean(counts)[:, 1], mean, rtol=1e-12)
    rng = np.random.default_rng(1)
    drawn = np.array([belief.sample(counts, rng).toarray()[0, 1] for _ in range(1000)])
    shares = [(np.abs(drawn - p) < 1e-12).mean() for p in (0.2, 0.5, 0.9)]
    np.testing.assert_allclose(shares, exact / exact.sum(), atol=6 * 0.5 / 1000**0.5)


def test_without_observations_the_weights_are_the_prior():
    belief = Candidates([chain(0.2), csr_array(chain(0.5).reshape(4, 2))], weights=[1, 3]).made_for(2, 2, 1)
    np.testing.assert_allclose(belief.probabilities(counted([])), [0.25, 0.75])


def test_transitions_that_are_new_since_the_last_sample_count():
    belief = Candidates([chain(p) for p in (0.2, 0.5)]).made_for(2, 2, 1)
    counts = counted([])
    for moves in ([(0, 0, 1)], [(0, 0, 1)] * 2, [(1, 1, 0)], [(0, 0, 1), (1, 0, 1)]):
        record = Record.empty(counts)
        for s, a, t in moves:
            record.step(s, a, t, np.zeros(2))
        counts.add(record)
        n = counts.transitions.sum(axis=0)
        exact = np.array([p ** n[1] * (1 - p) ** n[0] for p in (0.2, 0.5)])
        np.testing.assert_allclose(belief.probabilities(counts), exact / exact.sum(), rtol=1e-12)
    np.testing.assert_allclose(belief.probabilities(counted([])), [0.5, 0.5])
    assert not belief.doubts


def test_one_candidate_that_explains_everything_is_enough():
    belief = Candidates([chain(0.0), chain(0.5)]).made_for(2, 2, 1)
    assert belief.probabilities(counted(MOVES))[1] == pytest.approx(1.0)
    assert not belief.doubts
    neither = Candidates([chain(0.0), chain(1.0)]).made_for(2, 2, 1)
    neither.probabilities(counted(MOVES))
    assert "no candidate" in neither.doubts


def test_draws_are_weighed_only_if_asked_for():
    models = np.array([chain(p) for p in (0.2, 0.5, 0.9)])
    np.testing.assert_allclose(Draws(models).made_for(2, 2, 1).probabilities(counted(MOVES)), 1 / 3)
    weighed = Draws(models, weigh=True).made_for(2, 2, 1).probabilities(counted(MOVES))
    np.testing.assert_allclose(weighed, Candidates(models).made_for(2, 2, 1).probabilities(counted(MOVES)))


def test_an_agent_finds_the_true_candidate_and_plans_with_its_costs(tmp_path):
    models = [psconrl.load("queue", arrival=p) for p in (0.2, 0.3, 0.4)]
    true = models[1]
    agent = psconrl.PSConRL(true.n_states, true.n_actions, true.thresholds, belief=Candidates(models), seed=1)
    psconrl.simulate(true, agent, 3000, seed=2)
    assert agent.belief.probabilities(agent.counts)[1] > 0.999
    assert agent.doubts() == ()
    np.testing.assert_array_equal(agent.belief.costs(), true.costs)
    agent.save(tmp_path / "agent.npz")
    again = psconrl.load_agent(tmp_path / "agent.npz")
    one, two = (psconrl.simulate(true, each, 300, seed=3).cumulative for each in (agent, again))
    np.testing.assert_array_equal(one, two)


def test_a_transition_that_no_candidate_explains_is_a_doubt():
    stay = np.zeros((2, 2, 2))
    stay[[0, 1], :, [0, 1]] = 1.0
    agent = psconrl.PSConRL(2, 2, [0.5], belief=Candidates([stay, stay]), seed=1)
    agent.observe(agent.act(0), 1, [0.0, 0.0])
    agent.finish()
    with pytest.warns(StructureWarning, match="no candidate explains all transitions that were observed"):
        agent.act(1)


@pytest.mark.parametrize(
    ("make_it", "message"),
    [
        (lambda: Candidates([]), "models must be a list of CMDPs"),
        (lambda: Candidates(3), "models must be a list of CMDPs"),
        (lambda: Candidates([chain(0.5) * 2]), "must be distributions"),
        (lambda: Candidates(["a"]), "a model must be a CMDP"),
        (lambda: Candidates([chain(0.5)], weights=[1, 2]), "weights must be 1 numbers"),
        (lambda: Candidates([chain(0.5)], weights=[0]), "not all 0"),
        (lambda: Candidates([chain(0.5)]).made_for(3, 2, 1), r"a model has \(S\*A, S\)"),
        (lambda: Candidates([chain(0.5)], costs=np.zeros((1, 2, 2, 2))).made_for(2, 2, 2), "costs must have shape"),
        (lambda: Draws([chain(0.5)], weigh=3), "weigh"),
    ],
)
def test_wrong_candidates_are_refused(make_it, message):
    with pytest.raises((AgentError, ConfigError), match=message):
        make_it()


def test_words_alone_do_not_make_candidates():
    with pytest.raises(ConfigError, match="belief 'candidates' needs models; make it in Python"):
        make("psconrl", 2, 2, [0.5], belief="candidates")
    with pytest.raises(ConfigError, match="unknown option 'models'"):
        make("psconrl", 2, 2, [0.5], models=3)
