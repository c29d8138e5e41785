"""Agents of hundreds and thousands of states: plans of sparse samples, saving and resuming, crashes, damaged files."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse

import psconrl
from psconrl import CMDP, PSConRL, Status, evaluate, load_agent, plan
from psconrl.agents import Dirichlet, LagrangianPSRL, LearnedMass, make
from psconrl.envs.network import network
from psconrl.errors import AgentError
from psconrl.learning import episode_planner
from psconrl.learning.episode_planner import EpisodePlanner
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.runtime.persistence import Saved, read_saved, write_saved
from psconrl.markov.elimination_order import NO_ORDER
from psconrl.model.transition import DenseTransition, SparseTransition
from psconrl.simulation.model_run import Simulation

MODEL = network(side=13, waiting=6.0)  # 169 states, more than are planned in dense form
S, A = MODEL.n_states, MODEL.n_actions
SUPPORT = csr_array(MODEL.transition.csr() > 0, dtype=float)
TOL = 1e-6  # how far a plan for one episode may be from the optimum of its sample, in costs of at most some units


def experienced(steps=4000, seed=0):
    """Counts of a random walk in the model."""
    rng, state = np.random.default_rng(seed), 0
    counts = Counts(S, A, 2)
    record = Record.empty(counts)
    P = MODEL.transition.csr()
    for _ in range(steps):
        action = int(rng.integers(A))
        low, high = P.indptr[state * A + action], P.indptr[state * A + action + 1]
        to = int(rng.choice(P.indices[low:high], p=P.data[low:high] / P.data[low:high].sum()))
        record.step(state, action, to, MODEL.costs[:, state, action])
        state = to
    counts.add(record)
    return counts


BELIEFS = {
    "nothing known": lambda: LearnedMass(),
    "a prior": lambda: Dirichlet(),
    "a support": lambda: LearnedMass(support=SUPPORT),
    "a support and surprise": lambda: LearnedMass(support=SUPPORT, surprise=0.01),
    "a rough model": lambda: Dirichlet(20.0 * MODEL.transition.csr()),
}


@pytest.mark.parametrize("known", BELIEFS)
def test_a_sparse_sample_has_the_plan_of_the_same_sample_in_dense_form(known):
    """Short and long planning horizons, also with infeasible thresholds, against the general planner."""
    counts, rng = experienced(), np.random.default_rng(1)
    belief = BELIEFS[known]().made_for(S, A, 1)
    sparse, dense = EpisodePlanner(S, A), EpisodePlanner(S, A)
    verdicts = set()
    for limit, probability in ((6.0, 0.01), (3.0, 1e-4), (0.05, 0.01), (12.0, 1e-9)):
        drawn = belief.sample(counts, rng)
        assert drawn.is_sparse
        P = drawn.restarting(5, probability)
        limits = np.array([limit])
        found = sparse.optimal(P, MODEL.costs, limits, 5)
        wanted = dense.optimal(DenseTransition(P.toarray()), MODEL.costs, limits, 5)
        referee = plan(CMDP(P.toarray(), MODEL.costs, limits, initial=5))
        verdicts.add(found is None)
        assert (found is None) == (wanted is None) == (referee.status is Status.INFEASIBLE)
        if found is not None:
            assert found.value == pytest.approx(wanted.value, abs=TOL)
            assert found.value == pytest.approx(referee.costs[0], abs=TOL)
            played = evaluate(CMDP(P.toarray(), MODEL.costs, limits, initial=5), found.policy).costs
            assert played[0] == pytest.approx(found.value, abs=TOL)
            assert played[1] <= limit + 1e-7
    assert verdicts == {True, False}


def test_an_order_is_found_once_for_a_support_and_again_if_that_grows(monkeypatch):
    asked, find = [], episode_planner.order_for

    def noticed(*arguments):
        asked.append(find(*arguments))
        return asked[-1]

    monkeypatch.setattr(episode_planner, "order_for", noticed)
    belief, counts, rng = LearnedMass(support=SUPPORT).made_for(S, A, 1), experienced(), np.random.default_rng(0)
    planner = EpisodePlanner(S, A)
    for probability in (0.1, 0.01):
        assert planner.optimal(belief.sample(counts, rng).restarting(0, probability), MODEL.costs, MODEL.thresholds, 0)
    assert len(asked) == 1
    assert asked[0].position.size == S
    record = Record.empty(counts)
    record.step(0, 0, S - 1, np.zeros(2))  # a transition outside the support
    counts.add(record)
    assert planner.optimal(belief.sample(counts, rng).restarting(0, 0.1), MODEL.costs, MODEL.thresholds, 0)
    assert len(asked) == 2
    monkeypatch.setattr(episode_planner, "MOST_WORK", asked[0].work / 2)
    other = EpisodePlanner(S, A)
    assert other.optimal(belief.sample(counts, rng).restarting(0, 0.1), MODEL.costs, MODEL.thresholds, 0)
    assert asked[-1] is NO_ORDER  # it is planned nevertheless
    anything = LearnedMass().made_for(S, A, 1).sample(counts, rng).restarting(0, 0.1)
    assert planner.optimal(anything, MODEL.costs, MODEL.thresholds, 0)
    assert len(asked) == 3  # patterns that do not repeat have no order


AGENTS = {
    "psconrl": lambda **o: make("psconrl", S, A, MODEL.thresholds, MODEL.costs, **o),
    "psconrl, learning costs": lambda **o: make("psconrl", S, A, MODEL.thresholds, **o),
    "psconrl-plain": lambda **o: make("psconrl-plain", S, A, MODEL.thresholds, MODEL.costs, **o),
    "cmdp-psrl": lambda **o: make("cmdp-psrl", S, A, MODEL.thresholds, MODEL.costs, **o),
    "lagrangian": lambda **o: make("lagrangian", S, A, MODEL.thresholds, MODEL.costs, **o),
    "psconrl, support": lambda **o: PSConRL(
        S, A, MODEL.thresholds, MODEL.costs, belief=LearnedMass(support=SUPPORT), **o
    ),
    "psconrl, support, turns": lambda **o: PSConRL(
        S, A, MODEL.thresholds, MODEL.costs, belief=LearnedMass(support=SUPPORT, exact=False, surprise=0.1), **o
    ),
    "psconrl, trusting": lambda **o: PSConRL.trusting(MODEL, 20, **o),
    "psconrl, trusting as learned": lambda **o: PSConRL.trusting(MODEL, **o),
    "lagrangian, trusting": lambda **o: LagrangianPSRL.trusting(MODEL, np.full((S, A), 3.0), **o),
}


def in_an_episode(run):
    """Play until an episode is in progress."""
    while run.agent.between_episodes:
        run.run(run.round + 1)
    return run


@pytest.mark.part(2)
@pytest.mark.parametrize("name", AGENTS)
def test_a_run_saved_in_the_middle_of_an_episode_goes_on_with_the_same_bits(name, tmp_path):
    first = Simulation(MODEL, AGENTS[name](seed=3), seed=4)
    first.run(40)
    path = tmp_path / "run.npz"
    in_an_episode(first).save(path)
    assert first.agent.sampled.is_sparse
    end = first.round + 30
    second, whole = Simulation.resume(MODEL, path), Simulation(MODEL, AGENTS[name](seed=3), seed=4)
    for run in (second, whole):
        run.run(end)
    assert second.cumulative.tolist() == whole.cumulative.tolist()
    assert second.log.kind == whole.log.kind
    assert second.agent.rng.bit_generator.state == whole.agent.rng.bit_generator.state
    for part in ("numbers", "times"):
        np.testing.assert_array_equal(*(getattr(run.agent.counts.tally, part) for run in (second, whole)))
    assert path.stat().st_size < 50_000  # it grows with the observations, not with the number of possible transitions


def test_a_support_stays_sparse_in_the_file(tmp_path):
    agent = AGENTS["psconrl, support"](seed=0)
    agent.save(tmp_path / "agent.npz")
    again = load_agent(tmp_path / "agent.npz")
    assert issparse(again.belief.support)
    np.testing.assert_array_equal(again.belief.support.toarray(), SUPPORT.toarray())
    assert again.config()["belief"].keys() == agent.config()["belief"].keys()


def kept(value, tmp_path):
    """Save something with an agent and load it."""
    write_saved(Saved("uniform", "uniform", {}, {}, {"thing": value}), tmp_path / "file.npz")
    return read_saved(tmp_path / "file.npz").extra["thing"]


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_matrices_are_saved_whatever_their_form(form, tmp_path):
    """Also in lists and tables, without entries, and with entries out of order."""
    matrix = csr_array(([0.5, -1.0, 2.0], [2, 0, 1], [0, 2, 2, 3]), shape=(3, 4))
    found = kept({"a": [matrix.asformat(form), 1], "b": csr_array((2, 5))}, tmp_path)
    np.testing.assert_array_equal(found["a"][0].toarray(), matrix.toarray())
    assert (found["b"].shape, found["b"].nnz) == ((2, 5), 0)


def test_a_table_that_looks_like_a_matrix_is_refused(tmp_path):
    for key in ("@array", "@sparse"):
        with pytest.raises(AgentError, match=f"other than '@array' and '@sparse'; got .'{key}'"):
            kept({key: 1}, tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        {"indices": [9, 0, 1]},
        {"indices": [-1, 0, 1]},
        {"indptr": [0, 3, 2, 3]},
        {"indptr": [0, 2, 2, 900]},
        {"indptr": [1, 2, 2, 3]},
        {"data": [1.0]},
        {"shape": [3, -4]},
        {"shape": [3]},
        {"shape": [10**12, 4]},
        {"shape": "wide"},
    ],
)
def test_a_matrix_that_cannot_be_is_refused_in_one_line(damage, tmp_path):
    path = tmp_path / "file.npz"
    matrix = csr_array(([0.5, 1.0, 2.0], [2, 0, 1], [0, 2, 2, 3]), shape=(3, 4))
    write_saved(Saved("uniform", "uniform", {}, {}, {"thing": matrix}), path)
    with np.load(path) as members:
        arrays = dict(members)
    header = json.loads(str(arrays["header"]))
    parts = header["extra"]["thing"]["@sparse"]
    for key, value in damage.items():
        if key == "shape":
            parts["shape"] = value
        else:
            arrays[parts[key]["@array"]] = np.array(value, dtype=arrays[parts[key]["@array"]].dtype)
    np.savez(path, **(arrays | {"header": np.array(json.dumps(header))}))
    with pytest.raises(AgentError) as error:
        read_saved(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("weights", [[-1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0], [[0.5, 0.5]]])
def test_weights_of_a_last_plan_that_cannot_be_are_refused(weights, tmp_path):
    agent = AGENTS["psconrl"](seed=1)
    agent.begin(0)
    state = agent.state()
    with pytest.raises(AgentError, match="last_weights: must"):
        AGENTS["psconrl"](seed=1).restore(state | {"last_weights": np.array(weights)})
    agent.restore(state | {"last_weights": np.array([5e-324, 1.0])})  # possible, and no help
    assert agent.begin(0).policy.shape == (S, A)
    agent.restore(state | {"last_weights": np.array([0.2, 0.3, 0.5])})  # of another number of costs
    assert agent.begin(0).policy.shape == (S, A)


def test_a_table_that_is_too_large_is_refused_and_no_other_method_needs_it():
    n = 30_000
    support = csr_array((np.ones(2 * n), (np.arange(2 * n), np.arange(2 * n) // 2)))
    agent = PSConRL(n, 2, [0.5], belief=LearnedMass(support=support))
    with pytest.raises(AgentError, match=r"counts takes 14.4 GB"):
        _ = agent.counts.transitions
    assert agent.counts.moves.shape == (2 * n, n)


# Crashes


@pytest.mark.parametrize("side", [13, pytest.param(50, marks=pytest.mark.slow)])
def test_kill_9_loses_nothing_that_was_saved(side, tmp_path):
    """A real process, killed while it learns with a known support; the run resumes from its file to the same end."""
    script = (
        "import sys\n"
        "from scipy.sparse import csr_array\n"
        "from psconrl import PSConRL\n"
        "from psconrl.agents import LearnedMass\n"
        "from psconrl.envs.network import network\n"
        "from psconrl.simulation.model_run import Simulation\n"
        f"m = network(side={side}, waiting=6.0)\n"
        "support = csr_array(m.transition.csr() > 0, dtype=float)\n"
        "a = PSConRL(m.n_states, 4, m.thresholds, m.costs, belief=LearnedMass(support=support), seed=3)\n"
        "def keep(run):\n"
        "    run.save(sys.argv[1])\n"
        "    print(run.round, flush=True)\n"
        "Simulation(m, a, seed=4).run(10**9, checkpoints=[60], progress=keep)\n"
    )
    path, environment = tmp_path / "run.npz", network(side=side, waiting=6.0)
    child = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    saved = 0
    for line in child.stdout:
        saved = int(line)
        if saved > 100:
            break
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")] == ["run.npz"]
    resumed = Simulation.resume(environment, path)
    end = resumed.round + 50
    assert resumed.round >= saved > 100
    resumed.run(end, checkpoints=[60])
    support = csr_array(environment.transition.csr() > 0, dtype=float)
    agent = PSConRL(side**2, 4, environment.thresholds, environment.costs, belief=LearnedMass(support=support), seed=3)
    whole = Simulation(environment, agent, seed=4)
    whole.run(end, checkpoints=[60])
    assert resumed.cumulative.tolist() == whole.cumulative.tolist()
    assert resumed.agent.episodes == whole.agent.episodes
    assert resumed.agent.rng.bit_generator.state == whole.agent.rng.bit_generator.state


# Regressions found in review


@pytest.mark.parametrize("name", ["lagrangian", "cmdp-psrl", "psconrl-plain"])
def test_plans_for_ever_are_settled_too_when_samples_fall_apart(name):
    """With masses down to 1e-6 most transitions of a sample are too rare to be kept: chains have several classes."""
    agent = make(name, S, A, MODEL.thresholds, MODEL.costs, belief=LearnedMass(support=SUPPORT), seed=1)
    trace = psconrl.simulate(MODEL, agent, 60, seed=2)
    assert "unsettled" not in trace.episodes.kind
    assert "uniform" not in trace.episodes.kind


def test_a_plan_for_ever_has_the_value_of_the_general_planner(monkeypatch):
    """Optimal from the current state, up to the restart probability times the span of a bias."""
    for detour in ("_on_reachable_part", "_from_general_planner"):
        monkeypatch.delattr(EpisodePlanner, detour)
    counts, rng = experienced(), np.random.default_rng(5)
    belief = LearnedMass(support=SUPPORT).made_for(S, A, 1)
    for state in (0, 5, 100):
        P, limits = belief.sample(counts, rng), np.array([6.0])
        found = EpisodePlanner(S, A).optimal(P, MODEL.costs, limits, state)
        model = CMDP(P.restarting(state, episode_planner.ENDLESS).toarray(), MODEL.costs, limits, initial=state)
        wanted = plan(model, method="lp")
        assert (found is None) == (wanted.status is Status.INFEASIBLE)
        if found is not None:
            assert found.value == pytest.approx(wanted.costs[0], abs=1e-5)


@pytest.mark.parametrize("belief", [Dirichlet, lambda matrix: LearnedMass(support=matrix)], ids=["prior", "support"])
@pytest.mark.parametrize("index", [S, -5, 10**6])
def test_a_sparse_matrix_with_indices_out_of_place_is_refused(belief, index):
    matrix = SUPPORT.copy()
    matrix.indices[7] = index
    with pytest.raises(AgentError, match="no valid sparse matrix"):
        PSConRL(S, A, MODEL.thresholds, belief=belief(matrix))


def test_a_support_may_be_a_transition_and_must_be_real():
    agent = PSConRL(S, A, MODEL.thresholds, belief=LearnedMass(support=MODEL.transition))
    np.testing.assert_array_equal(agent.belief.support.toarray() > 0, SUPPORT.toarray() > 0)
    with pytest.raises(AgentError, match="support must be real"):
        LearnedMass(support=SUPPORT.astype(complex))


@pytest.mark.parametrize(
    ("make_agent", "what"),
    [
        (lambda: PSConRL(S, A, MODEL.thresholds, MODEL.costs), "costs"),
        (lambda: PSConRL(S, A, MODEL.thresholds, guessed_costs=MODEL.costs), "guessed_costs"),
        (lambda: PSConRL.trusting(MODEL, 5, costs=None), "guessed_costs"),
        (lambda: PSConRL(S, A, MODEL.thresholds, belief=LearnedMass(support=SUPPORT)), "support"),
        (lambda: PSConRL(S, A, MODEL.thresholds, belief=Dirichlet(SUPPORT)), "prior"),
    ],
)
def test_who_knows_states_by_number_is_not_shown_them_as_they_are_met(make_agent, what):
    with pytest.raises(AgentError, match=f"the agent has {what} by the numbers of the states"):
        psconrl.LabelledAgent(make_agent(), states=None, actions=["a", "b", "c", "d"])
    names = list(MODEL.state_names)
    assert psconrl.LabelledAgent(make_agent(), states=names, actions=["a", "b", "c", "d"]).act(names[3])


def test_labels_with_something_that_is_no_number_are_refused():
    nan = float("nan")
    for labels in (["a", ("b", nan)], [nan], [(1, (2, nan))]):
        with pytest.raises(psconrl.ConfigError, match="equal to itself"):
            psconrl.Labels(labels)
    agent = psconrl.LabelledAgent(PSConRL(6, 2, [0.5], seed=0), states=None, actions=["a", "b"])
    with pytest.raises(psconrl.ConfigError, match="equal to itself"):
        agent.act((1, nan))
    assert len(agent.states) == 0


@pytest.mark.full
def test_what_helps_against_slowness_is_not_what_was_done_already():
    many = network(side=320)
    support = csr_array(many.transition.csr() > 0, dtype=float)
    sizes = (many.n_states, 4, many.thresholds)
    message = PSConRL(*sizes, belief=LearnedMass(support=support)).why_slow()
    assert "plan_in_background" in message
    assert "support" not in message
    assert "learn --support" in PSConRL(30_000, 4, many.thresholds).why_slow()
    assert PSConRL(S, A, MODEL.thresholds).why_slow() == ""
    assert "'ucrl-cmdp' keeps tables" in make("ucrl-cmdp", 2000, 4, [0.5], horizon=1000).why_slow()
    assert make("ucrl-cmdp", 100, 4, [0.5], horizon=1000).why_slow() == ""


@pytest.mark.parametrize("weight", [1e-150, 1e150])
def test_a_weight_beyond_reason_is_called_a_weight(weight):
    with pytest.raises(AgentError, match=r"^weight must lie between"):
        PSConRL.trusting(MODEL, weight)


def test_a_second_question_leaves_the_agent_as_it_was():
    agent = AGENTS["psconrl"](seed=1)
    agent.plan_in_background(executor=Never())
    agent.act(0)
    agent.set_thresholds([5.0])
    with pytest.raises(AgentError, match="act was called twice"):
        agent.act(3)
    assert agent._background.asked_in != 3


class Never:
    """An executor that never finishes."""

    def submit(self, task):
        return self

    def done(self):
        return False

    def result(self):
        raise RuntimeError("shut down")


def test_what_is_impossible_once_is_impossible_for_lower_limits_too(monkeypatch):
    """The certificate of one infeasibility is tried before another search; it never refuses a feasible problem."""
    counts, rng = experienced(), np.random.default_rng(7)
    P = LearnedMass(support=SUPPORT).made_for(S, A, 1).sample(counts, rng).restarting(0, 0.01)
    least = plan(CMDP(P.toarray(), MODEL.costs[::-1], [1e6], initial=0)).costs[0]
    planner, searches, search = EpisodePlanner(S, A), [], episode_planner.solve

    def noticed(*arguments, **options):
        searches.append(1)
        return search(*arguments, **options)

    monkeypatch.setattr(episode_planner, "solve", noticed)
    answers = [planner.optimal(P, MODEL.costs, np.array([least + more]), 0) for more in (-0.2, -0.3, -0.01, 1e-4, 0.5)]
    assert [answer is None for answer in answers] == [True, True, True, False, False]
    assert len(searches) <= 4  # not for the second, which follows from the first
    other = P.base.restarting(1, 0.01)
    planner.optimal(P, MODEL.costs, np.array([least - 0.2]), 0)
    searches.clear()
    planner.optimal(other, MODEL.costs, np.array([least - 0.3]), 1)
    assert len(searches) == 1  # another model


def test_a_refutation_is_a_weighted_average_above_the_weighted_limits():
    costs = np.zeros((3, 2, 2))
    proof = episode_planner.Refutation(None, costs, np.array([2.0, 0.5]), 3.0)
    assert proof.holds_for(None, costs, np.array([1.0, 1.9]))  # 2.95
    assert proof.holds_for(None, costs, np.array([0.2, 5.0]))  # 2.9
    assert not proof.holds_for(None, costs, np.array([1.0, 2.0]))  # 3, which is not above
    assert not proof.holds_for(None, costs, np.array([0.9, 2.5]))  # 3.05
    assert not proof.holds_for(None, costs.copy(), np.array([0.0, 0.0]))


def test_a_model_in_two_parts_is_planned_from_where_one_stands(monkeypatch):
    """A cycle that may be left for another without return: the choice is made once, by their costs."""
    for detour in ("_on_reachable_part", "_from_general_planner"):
        monkeypatch.delattr(EpisodePlanner, detour)
    n = 80
    to = np.array([[(s + 1) % n, (s + 1) % n] if s < n else [n + (s + 1 - n) % n] * 2 for s in range(2 * n)])
    to[0, 1] = n  # the way out
    P = SparseTransition(csr_array((np.ones(4 * n), to.ravel(), np.arange(4 * n + 1)), shape=(4 * n, 2 * n)))
    costs = np.ones((1, 2 * n, 2))
    for cost, value in ((0.25, 0.25), (4.0, 1.0)):
        costs = costs.copy()
        costs[0, n:] = cost
        found = EpisodePlanner(2 * n, 2).optimal(P, costs, np.empty(0), 0)
        assert found.value == pytest.approx(value, abs=1e-6)
        assert found.policy[0].tolist() == ([0.0, 1.0] if cost < 1 else [1.0, 0.0])
