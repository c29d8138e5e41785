"""The agent ``safe``: its intervals, its certificates, its inputs, and that it plays certified policies only.

Two independent checks: closed forms and brute force over models of the confidence set against the certificate; exact
evaluation of every played policy in the true model.
"""

import itertools
import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import beta

import psconrl
from models import examples
from psconrl import CMDP, evaluate, plan, simulate
from psconrl.agents import SafeStart, known_baseline, make
from psconrl.errors import AgentError, BaselineWarning, ConfigError
from psconrl.experiment.prior_knowledge import Knowledge
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.kernels.sets.intervals import end_of_interval
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.safe.baseline import safest_policy
from psconrl.learning.safe.confidence_intervals import Intervals, highest_means
from psconrl.markov.chain import chain_of
from psconrl.planning.robust.pessimism import largest_means, worst_average
from psconrl.simulation.model_run import Simulation
from sweeps import AtOnce


def garnet(seed, S=6, m=1, slack=0.1):
    return psconrl.load("garnet", states=S, actions=3, branching=3, constraints=m, slack=slack, seed=seed)


def exactly(transition):
    """A confidence set of one model."""
    P = transition.csr()
    probability = P.data.copy()
    return P.indptr, P.indices, probability, probability, np.zeros(P.shape[0])


def seen(cmdp, rounds, seed=0):
    """Counts of uniform play."""
    counts = Counts(cmdp.n_states, cmdp.n_actions, cmdp.n_constraints + 1)
    record, rng = Record.empty(counts), np.random.default_rng(seed)
    P = cmdp.transition.toarray()
    s = 0
    for _ in range(rounds):
        a = int(rng.integers(cmdp.n_actions))
        t = int(rng.choice(cmdp.n_states, p=P[s * cmdp.n_actions + a]))
        record.step(s, a, t, cmdp.costs[:, s, a])
        s = t
    counts.add(record)
    return counts


# Intervals.


@pytest.mark.parametrize(("k", "n"), [(0, 1), (0, 50), (3, 10), (10, 10), (40, 1000)])
def test_an_interval_ends_where_the_mixture_of_all_distributions_is_likelier_by_the_factor(k, n):
    """By the density of Beta(k+1, n-k+1), which is the inverse of the ratio."""
    log_inverse = math.log(20.0)
    low, high = (end_of_interval(k, n, log_inverse, outer) for outer in (0.0, 1.0))
    assert low <= k / n <= high
    for end in {low, high} - {0.0, 1.0}:
        assert beta(k + 1, n - k + 1).pdf(end) == pytest.approx(1 / 20.0, rel=1e-6)
    assert (low == 0.0) == (k == 0)
    assert (high == 1.0) == (k == n)
    if k == 0:
        assert high == pytest.approx(1 - (0.05 / (n + 1)) ** (1 / n), rel=1e-9)


def test_nothing_is_known_before_the_first_visit():
    assert end_of_interval(0.0, 0.0, math.log(20.0), 1.0) == 1.0
    assert end_of_interval(0.0, 0.0, math.log(20.0), 0.0) == 0.0


def test_intervals_fail_no_more_often_than_they_say_however_long_one_looks():
    """300 Bernoulli sequences of length 200, checked after each draw, delta .2: at most 60 failures are expected; 88 or
    more would then have probability 1e-4."""
    rng, failed = np.random.default_rng(0), 0
    for _ in range(300):
        p = rng.random()
        heads = np.cumsum(rng.random(200) < p)
        failed += any(
            not end_of_interval(k, n, math.log(5.0), 0.0) <= p <= end_of_interval(k, n, math.log(5.0), 1.0)
            for n, k in enumerate(heads.tolist(), start=1)
        )
    assert failed < 88


def test_mean_costs_are_bounded_in_their_own_units():
    cmdp = garnet(0)
    counts = seen(cmdp, 200)
    top = highest_means(counts, np.array([[-2.0, 6.0]]), math.log(20.0))[0]
    pair = int(counts.visits.argmax())
    n, total = int(counts.visits[pair]), float(counts.cost_sums[1, pair])
    assert top[pair] == pytest.approx(-2 + 8 * end_of_interval((total + 2 * n) / 8, n, math.log(20.0), 1.0))
    assert (top[counts.visits == 0] == 6.0).all()


# The certificate.


def distributions_within(distributions, pair, S, rng, n):
    """Distributions of one pair inside its bounds, by rejection towards the middle, and the vertices for small S."""
    low, high = np.zeros(S), np.full(S, distributions[4][pair])
    entries = slice(distributions[0][pair], distributions[0][pair + 1])
    low[distributions[1][entries]], high[distributions[1][entries]] = (
        distributions[2][entries],
        distributions[3][entries],
    )
    for order in itertools.islice(itertools.permutations(range(S)), n):
        p = low.copy()
        for j in order:
            p[j] += min(high[j] - low[j], max(1 - p.sum(), 0.0))
        yield p


@pytest.mark.parametrize("seed", range(4))
def test_the_worst_distribution_is_the_worst_of_all_vertices(seed):
    cmdp = garnet(seed, S=4)
    distributions = Intervals.of(seen(cmdp, 60, seed), math.log(100.0))
    rng = np.random.default_rng(seed)
    h = rng.normal(size=4)
    found = largest_means(distributions, h)
    for pair in range(12):
        assert found[pair] == pytest.approx(
            max(p @ h for p in distributions_within(distributions, pair, 4, rng, 24)), abs=1e-12
        )


@pytest.mark.parametrize("seed", range(4))
def test_no_model_of_the_set_costs_more_than_the_bound_and_one_costs_as_much(seed):
    cmdp = garnet(seed, S=4)
    distributions = Intervals.of(seen(cmdp, 400, seed), math.log(100.0))
    rng = np.random.default_rng(seed)
    policy = rng.dirichlet(np.ones(3), size=4)
    case = worst_average(policy, cmdp.costs[1], distributions)
    vertices = [list(distributions_within(distributions, pair, 4, rng, 24)) for pair in range(12)]
    top = 0.0
    for trial in range(300):
        P = np.array([v[int(rng.integers(len(v)))] for v in vertices])
        if trial == 0:  # the worst case of the certificate
            P = np.array([max(v, key=lambda p: float(p @ case.bias)) for v in vertices])
        model = CMDP(P / P.sum(axis=1, keepdims=True), cmdp.costs, cmdp.thresholds)
        top = max(top, float(evaluate(model, policy).gains[1].max()))
    unit = float(np.ptp(cmdp.costs[1]))
    assert case.bound - 2e-3 * unit <= top <= case.bound + 1e-9


@given(st.integers(0, 10_000))
@examples(25)
def test_without_doubt_the_bound_is_the_average(seed):
    cmdp = garnet(seed % 50)
    policy = np.random.default_rng(seed).dirichlet(np.ones(3), size=6)
    case = worst_average(policy, cmdp.costs[1], exactly(cmdp.transition))
    exact, unit = float(evaluate(cmdp, policy).gains[1].max()), float(np.ptp(cmdp.costs[1]))
    assert exact - 1e-9 <= case.bound <= exact + 2e-3 * unit


@pytest.mark.parametrize("sweeps", [1, 2, 7])
def test_the_bound_holds_however_early_the_iteration_stops(sweeps):
    cmdp = garnet(3)
    policy = np.full((6, 3), 1 / 3)
    case = worst_average(policy, cmdp.costs[1], exactly(cmdp.transition), sweeps=sweeps)
    assert case.bound >= float(evaluate(cmdp, policy).gains[1].max())


@pytest.mark.parametrize("seed", range(6))
def test_states_that_rely_on_the_baseline_cost_what_was_given(seed):
    """The transitions of two states are unknown; the bound of the true model holds for all of them."""
    cmdp = garnet(seed)
    given = known_baseline(cmdp)
    policy = np.random.default_rng(seed).dirichlet(np.ones(3), size=6)
    relying = np.arange(6) < 2
    policy[relying] = given["baseline"][relying]
    case = worst_average(
        policy, cmdp.costs[1], exactly(cmdp.transition), relying=relying, recovery=float(given["span"][0])
    )
    exact = float(evaluate(cmdp, policy).gains[1].max())
    assert exact <= max(case.bound, float(cmdp.thresholds[0] - given["slack"][0])) + 1e-9
    assert case.bias[relying] == pytest.approx(case.bias[~relying].max() + given["span"][0])
    unknown = worst_average(policy, cmdp.costs[1], exactly(cmdp.transition), relying=relying)
    assert unknown.bound == math.inf


# Knowledge about a baseline.


@pytest.mark.parametrize("seed", range(6))
def test_a_baseline_costs_no_more_than_given_over_any_number_of_rounds(seed):
    """n rounds from any state cost at most n (tau - slack) + span, by matrix-vector products."""
    cmdp = garnet(seed, m=2)
    given = known_baseline(cmdp)
    P = chain_of(cmdp.transition, given["baseline"]).toarray()
    for i in range(2):
        cost = (given["baseline"] * cmdp.costs[i + 1]).sum(axis=1)
        total = np.zeros(6)
        for n in range(1, 200):
            total = cost + P @ total
            allowed = n * (cmdp.thresholds[i] - given["slack"][i]) + given["span"][i]
            assert total.max() <= allowed + 1e-6
    assert (given["slack"] > 0).all()


def test_the_safest_policy_is_the_cheapest_for_one_limit():
    cmdp = garnet(1)
    least = plan(CMDP(cmdp.transition, cmdp.costs[1:])).value
    assert evaluate(cmdp, safest_policy(cmdp)).costs[1] == pytest.approx(least)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([[-5.0, 0.0], [-5.0, 0.0]], [-5.0, 0.0]),  # in sparse costs the 0 is not stored
        ([[5.0, 0.0], [2.0, 7.0]], [0.0, 7.0]),
        ([[0.2, 0.0], [0.0, 0.7]], [0.0, 1.0]),
        ([[3.0, 3.0], [3.0, 3.0]], [3.0, 4.0]),
        ([[0.0, 0.0], [0.0, 0.0]], [0.0, 1.0]),
    ],
)  # fmt: skip
def test_ranges_are_of_all_that_can_come_out(kind, outcomes, expected):
    P = np.full((2, 2), 0.5)
    free = np.zeros((2, 2))
    costs = [free, outcomes] if kind is np.asarray else [csr_array(free), csr_array(np.array(outcomes))]
    shaped = [np.reshape(c, (2, 1, 2)) for c in costs] if kind is np.asarray else costs
    cmdp = CMDP(P.reshape(2, 1, 2) if kind is np.asarray else csr_array(P), shaped, [8.0])
    assert known_baseline(cmdp)["ranges"].tolist() == [[0.0, 1.0], expected]


def test_limits_that_nothing_can_break_have_a_slack_too():
    """A constant cost, and one whose threshold exceeds all its values."""
    costs = np.zeros((3, 2, 2))
    costs[1], costs[2, 0, 1] = 0.3, 1.0
    cmdp = CMDP([[[0, 1], [1, 0]], [[1, 0], [0, 1]]], costs, [0.5, 4.0])
    given = known_baseline(cmdp, [1, 1])
    assert given["slack"] == pytest.approx([0.2, 3.0])
    assert given["span"] == pytest.approx([0.0, 0.0])
    agent = SafeStart(2, 2, cmdp.thresholds, costs, **given, seed=0)
    assert (agent.begin(0).policy[:, 0] == 1.0).all()  # no action can violate them


def test_a_baseline_that_breaks_a_limit_is_refused():
    cmdp = psconrl.load("marsrover-4x4")
    with pytest.raises(AgentError, match=r"the baseline must keep 'risk' below 0\.2; its average is"):
        known_baseline(cmdp, np.full((16, 4), 0.25))
    with pytest.raises(AgentError, match="needs a model"):
        known_baseline("marsrover-4x4")
    with pytest.raises(AgentError, match="no policy keeps the limits"):
        safest_policy(garnet(0, m=2).with_thresholds([-1.0, -1.0]))


# Play.


def test_the_share_that_is_tried_first_has_its_closed_form():
    costs = np.zeros((2, 3, 2))
    costs[1, :, 1] = 1.0
    agent = SafeStart(3, 2, [0.5], costs, baseline=[[0.0, 1.0]] * 3, slack=0.2, span=2.0, seed=0)
    first = agent.begin(0)
    assert first.kind == "mixed"
    assert first.policy[:, 0] == pytest.approx(0.2 / (0.0 + 2.0 - 0.5 + 0.2))
    agent = SafeStart(3, 2, [0.5], costs[:, :, ::-1], baseline=[[0.0, 1.0]] * 3, slack=0.2, span=2.0, seed=0)
    assert agent.begin(0).policy[:, 0] == pytest.approx(0.2 / (1.0 + 2.0 - 0.5 + 0.2))
    agent = SafeStart(3, 2, [0.5], costs, baseline=[[0.0, 1.0]] * 3, slack=0.2, seed=0)
    assert agent.begin(0).kind == "baseline"
    assert (agent.begin(0).policy == agent.baseline).all()


@given(st.integers(0, 10_000))
@examples(40)
def test_any_policy_mixed_into_the_baseline_by_that_share_keeps_the_limit(seed):
    """The inequality of performance differences, against exact evaluation."""
    cmdp = garnet(seed % 60)
    given = known_baseline(cmdp)
    slack, span, tau = float(given["slack"][0]), float(given["span"][0]), float(cmdp.thresholds[0])
    other = np.random.default_rng(seed).dirichlet(0.3 * np.ones(3), size=6)
    alpha = min(1.0, slack / max(float(cmdp.costs[1].max()) + span - tau + slack, slack))
    mixed = (1 - alpha) * given["baseline"] + alpha * other
    assert evaluate(cmdp, mixed).gains[1].max() <= tau + 1e-9


def anything(rng):
    """A unichain or multichain model, periodic or not, in any unit, with several constraints and a feasible policy."""
    S, A, m = (int(rng.integers(low, high)) for low, high in ((1, 6), (1, 4), (1, 4)))
    P, kind = np.zeros((S * A, S)), rng.integers(3)
    for pair in range(S * A):
        if kind == 0:
            P[pair, rng.integers(S)] = 1.0
        elif kind == 1:
            P[pair] = rng.dirichlet(np.full(S, 0.3))
        else:
            P[pair, (pair // A + (rng.random() < 0.7)) % S] = 1.0
    unit = 10.0 ** rng.integers(-3, 4)
    costs = unit * (rng.random((m + 1, S, A)) + rng.choice([-5, -1, 0, 3]))
    baseline = rng.dirichlet(np.full(A, rng.choice([0.1, 1.0])), size=S)
    averages = evaluate(CMDP(P, costs, np.zeros(m)), baseline).gains[1:].max(axis=1)
    limits = averages + unit * rng.choice([1e-9, 1e-3, 0.05, 0.3], size=m)
    return CMDP(P, costs, limits), baseline, unit


def look_around(agent, cmdp, rng):
    """Every pair some number of times, or never."""
    record, P, most = Record.empty(agent.counts), cmdp.transition.toarray(), 10 ** rng.uniform(0, 3)
    for pair in range(len(P)):
        state, action = divmod(pair, cmdp.n_actions)
        n = int(most * rng.random() ** 3) if rng.random() < 0.8 else 0
        for successor in rng.choice(cmdp.n_states, size=n, p=P[pair]).tolist():
            record.step(state, action, successor, cmdp.costs[:, state, action])
    agent.counts.add(record)


def is_in(agent, cmdp):
    """True if the true model is in the agent's confidence set."""
    distributions, P = Intervals.of(agent.counts, agent._log_inverse), cmdp.transition.toarray()
    for pair, truth in enumerate(P):
        low, high = np.zeros(truth.size), np.full(truth.size, distributions.unseen[pair])
        entries = slice(distributions.indptr[pair], distributions.indptr[pair + 1])
        low[distributions.successors[entries]], high[distributions.successors[entries]] = (
            distributions.low[entries],
            distributions.high[entries],
        )
        if (truth < low - 1e-15).any() or (truth > high + 1e-15).any():
            return False
    return bool((agent._highest_costs() >= cmdp.costs[1:] - 1e-12 * np.abs(cmdp.costs).max()).all())


@pytest.mark.part(2)
@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(2))
def test_whatever_was_seen_what_is_played_keeps_every_limit_from_every_state(part, full):
    """Deterministic: while the true model is in the set, the certificate must hold."""
    certified = 0
    for seed in range(60 * part, 60 * part + (60 if full else 30)):
        rng = np.random.default_rng(seed)
        cmdp, baseline, unit = anything(rng)
        given = known_baseline(cmdp, baseline)
        spread = np.array([[c.min() - 0.1 * unit, c.max() + 0.1 * unit] for c in cmdp.costs])
        costs, given["ranges"] = cmdp.costs if rng.random() < 0.6 else None, spread
        if rng.random() < 0.15:
            given["span"] = None
        agent = SafeStart(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, costs, **given, seed=seed)
        for _ in range(3):
            look_around(agent, cmdp, rng)
            episode = agent.begin(int(rng.integers(cmdp.n_states)))
            if is_in(agent, cmdp):
                over = evaluate(cmdp, episode.policy).gains[1:].max(axis=1) - cmdp.thresholds
                assert (over <= 1e-12 * unit).all()
                certified += episode.kind == "certified"
    assert certified > (10 if full else 5)


def test_where_little_is_known_the_baseline_is_played_as_it_is():
    """Two states are well known, a third was never visited: there it plays the baseline, apart from exploration."""
    P = np.zeros((3, 3, 3))
    P[:2, :, :2], P[2, :, 0] = 0.5, 1.0
    costs = np.zeros((2, 3, 3))
    costs[0], costs[1, :, 0] = [0.0, 0.5, 1.0], 1.0
    cmdp, baseline = CMDP(P, costs, [0.6]), np.array([[0.2, 0.5, 0.3]] * 3)
    agent = SafeStart(3, 3, cmdp.thresholds, costs, baseline=baseline, slack=0.4, span=0.1, seed=0)
    record = Record.empty(agent.counts)
    for turn in range(18_000):
        pair, successor = turn % 6, turn // 6 % 2
        record.step(*divmod(pair, 3), successor, costs[:, pair // 3, pair % 3])
    agent.counts.add(record)
    episode = agent.begin(0)
    assert episode.kind == "certified"
    assert episode.policy[0, 0] > 0.3  # it is better, and not exploration
    assert episode.policy[2, 1] / episode.policy[2, 2] == pytest.approx(5 / 3)
    assert 0.0 < episode.policy[2, 2] < 0.3


@pytest.mark.parametrize("order", [[1, 2], [2, 1]])
def test_what_is_tried_keeps_the_limit_that_leaves_least(order):
    costs = np.zeros((3, 3, 2))
    costs[1], costs[2, :, 1] = 0.3, 1.0
    span = np.array([2.0, 5.0])[np.array(order) - 1]
    agent = SafeStart(3, 2, [0.5, 0.5], costs[[0, *order]], baseline=[[0.0, 1.0]] * 3, slack=0.2, span=span, seed=0)
    assert agent.begin(0).policy[:, 0] == pytest.approx(0.2 / (0.0 + 5.0 - 0.5 + 0.2))


MODELS = {
    "chain": (psconrl.load("chain"), 3_000),
    "4x4": (psconrl.load("marsrover-4x4"), 3_000),
    "garnet": (garnet(2, S=5), 6_000),
    "two limits": (garnet(4, S=4, m=2), 4_000),
}


@pytest.mark.statistical
@pytest.mark.part(3)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("environment", MODELS)
def test_every_policy_that_is_played_keeps_every_limit_from_every_state(environment, known, full):
    """Delta .01: the certificates of a seed fail in at most one of 100; of four seeds (``--full``), in one of 25."""
    cmdp, horizon = MODELS[environment]
    given = known_baseline(cmdp)
    kinds = set()
    for seed in range(4 if full else 1):
        costs = cmdp.costs if known else None
        agent = SafeStart(
            cmdp.n_states, cmdp.n_actions, cmdp.thresholds, costs, **given, delta=0.01, schedule=None, seed=seed
        )
        trace = Simulation(cmdp, agent, seed, evaluate_policies=True).run(horizon)
        over = np.array(trace.policies.costs)[:, 1:] - cmdp.thresholds
        assert over.max() <= 1e-9
        kinds |= set(trace.episodes.kind)
        assert (agent.excess <= agent.allowance).all()
    assert kinds <= {"baseline", "mixed", "certified"}
    assert known is False or environment == "two limits" or "certified" in kinds


def test_nothing_holds_whose_bound_is_above_a_limit():
    agent = psconrl.agents.make(
        "safe", 2, 2, [0.3, 2.0], np.zeros((3, 2, 2)), 0, baseline=np.full((2, 2), 0.5), slack=0.1, span=1.0
    )

    def holds(*bounds):
        return agent._certifier.holds(SimpleNamespace(cases=[SimpleNamespace(bound=bound) for bound in bounds]))

    assert holds(0.3, 2.0)
    assert not holds(np.nextafter(0.3, 1), 2.0)
    assert not holds(0.3, np.nextafter(2.0, 3))


def test_it_leaves_the_baseline_and_gains_by_it():
    """One seed; how far the bounds are from the mean over others has not been measured."""
    cmdp = psconrl.load("chain")
    agent = make("safe", 8, 2, cmdp.thresholds, cmdp.costs, 0, **known_baseline(cmdp))
    trace = simulate(cmdp, agent, 10_000, seed=0)
    late = trace.window_averages()[-20:].mean(axis=0)
    assert late[0] < evaluate(cmdp, agent.baseline).costs[0] - 0.01
    assert late[1] < 0.35


@pytest.mark.full
def test_a_baseline_that_lied_is_found_out():
    cmdp = psconrl.load("marsrover-4x4")
    risky = plan(CMDP(cmdp.transition, -cmdp.costs[1:]))
    agent = SafeStart(16, 4, cmdp.thresholds, cmdp.costs, baseline=risky, slack=0.1, span=0.0, seed=0)
    with pytest.warns(BaselineWarning, match=r"was spent beyond limit 1 in .* check that its slack and span"):
        simulate(cmdp, agent, 2_000, seed=0)
    with warnings.catch_warnings():  # it says so once
        warnings.simplefilter("error")
        simulate(cmdp, agent, 2_500, seed=1)


def test_what_may_have_been_spent_has_its_closed_form():
    cmdp = psconrl.load("marsrover-4x4")
    agent = SafeStart(16, 4, cmdp.thresholds, cmdp.costs, baseline=safest_policy(cmdp), slack=0.1, span=3.0, seed=0)
    agent.begin(0)
    record = Record.empty(agent.counts)
    for _ in range(10):
        record.step(0, 0, 0, cmdp.costs[:, 0, 0])
    agent.end(record)
    v = 10 * (1.0 + 3.0) ** 2 / 4 + 1.0
    assert agent.allowance == pytest.approx([3.0 + math.sqrt(2 * v * math.log(math.sqrt(v) / 0.05))])
    assert agent.excess == pytest.approx([10 * (cmdp.costs[1, 0, 0] - 0.2)])


def test_every_interval_has_its_share_of_delta():
    """One interval per transition; for learned costs one per constrained mean."""
    costs, given = np.zeros((3, 4, 2)), {"baseline": [[0.5, 0.5]] * 4, "slack": 0.1, "delta": 0.2}
    known = SafeStart(4, 2, [0.5, 0.5], costs, **given)
    learned = SafeStart(4, 2, [0.5, 0.5], **given, ranges=[[0, 1]] * 3)
    assert known._log_inverse == pytest.approx(math.log(4 * 4 * 2 / 0.2))
    assert learned._log_inverse == pytest.approx(math.log((4 * 4 * 2 + 2 * 4 * 2) / 0.2))


def test_what_may_have_been_spent_holds_for_all_limits_at_once_and_in_their_own_units():
    costs = np.zeros((3, 2, 2))
    costs[1, 0], costs[2, 0] = 1.0, 10.0
    agent = SafeStart(
        2, 2, [0.6, 6.0], costs, baseline=[[0.5, 0.5]] * 2, slack=0.1, span=[1.0, 20.0], delta=0.1, seed=0
    )
    agent.begin(0)
    record = Record.empty(agent.counts)
    record.step(0, 0, 1, costs[:, 0, 0])
    agent.end(record)
    v = np.array([(1.0 + 1.0) ** 2 / 4 + 1.0, (10.0 + 20.0) ** 2 / 4 + 100.0])
    growth = v / np.array([1.0, 100.0])
    expected = np.array([1.0, 20.0]) + np.sqrt(2 * v * np.log(2 * np.sqrt(growth) / 0.1))
    assert agent.allowance == pytest.approx(expected)


def test_a_certified_episode_is_accounted_with_the_span_of_its_proof():
    cmdp = psconrl.load("chain")
    agent = make("safe", 8, 2, cmdp.thresholds, cmdp.costs, 5, **known_baseline(cmdp))
    simulate(cmdp, agent, 4_000, seed=6)
    agent.finish()
    episode = agent.begin(0)
    assert episode.kind == "certified"
    P, cost = chain_of(cmdp.transition, episode.policy).toarray(), (episode.policy * cmdp.costs[1]).sum(axis=1)
    total, over = np.zeros(8), []
    for n in range(1, 101):  # from the worst state, beyond the limit
        total = cost + P @ total
        over.append(float(total.max()) - n * 0.3)
    assert 0.0 < max(over) <= agent._spans[0]


def test_other_limits_change_the_slack_and_none_below_the_baseline_is_taken():
    cmdp = psconrl.load("chain")
    agent = make("safe", 8, 2, [0.3], cmdp.costs, 0, baseline=safest_policy(cmdp), slack=0.1, span=1.0)
    agent.set_thresholds([0.35])
    assert agent.slack == pytest.approx([0.15])
    with pytest.raises(AgentError, match=r"thresholds must stay above what the baseline is known to keep, \[0.19"):
        agent.set_thresholds([0.19])
    assert agent.thresholds == pytest.approx([0.35])


def test_a_run_resumes_bit_for_bit_while_certified(tmp_path):
    cmdp = psconrl.load("chain")
    given = known_baseline(cmdp)

    def begun():
        return Simulation(cmdp, make("safe", 8, 2, cmdp.thresholds, cmdp.costs, 5, **given), seed=6)

    whole = begun().run(3_000, checkpoints=20)
    first = begun()
    first.run(2_500)
    assert "certified" in first.log.kind
    first.save(tmp_path / "run.npz")
    rest = Simulation.resume(cmdp, tmp_path / "run.npz")
    assert rest.run(3_000, checkpoints=[3_000]).cumulative[-1].tolist() == whole.cumulative[-1].tolist()


class Later:
    """An executor that has made the plan, and reports it on request only."""

    ready = False

    def submit(self, task):
        self.planned = task()
        return self

    def done(self):
        return self.ready

    def result(self):
        return self.planned


def test_while_it_plans_in_the_background_it_plays_the_baseline():
    """Neither a uniform policy at first, nor one certified for other thresholds."""
    cmdp = psconrl.load("chain")
    given = known_baseline(cmdp)
    agent, later = make("safe", 8, 2, cmdp.thresholds, cmdp.costs, 5, **given), Later()
    simulate(cmdp, agent, 2_500, seed=6)
    agent.finish()
    assert (agent.begin(0).policy != agent.baseline).any()
    fresh = make("safe", 8, 2, cmdp.thresholds, cmdp.costs, 5, **given)
    for one in (fresh, agent):
        one.plan_in_background(executor=later)
        one.set_thresholds([0.25])
        current = one.present(0)
        assert current.interim
        assert current.episode.kind == "interim"
        assert (current.episode.policy == one.baseline).all()


def test_an_interim_episode_is_accounted_with_the_span_of_the_baseline():
    cmdp = psconrl.load("chain")
    given = known_baseline(cmdp)
    agent, later = make("safe", 8, 2, cmdp.thresholds, cmdp.costs, 5, **given | {"span": 3.0}), Later()
    simulate(cmdp, agent, 4_000, seed=6)
    agent.finish()
    agent.plan_in_background(executor=later)
    spent, begun, kinds = agent._variance.copy(), agent._beginnings.copy(), []
    agent.watch(lambda event: kinds.append(event.kind))
    later.ready = True
    agent.act(0)
    proof = agent._spans.copy()  # of the finished plan
    assert proof != pytest.approx([3.0])
    agent.observe(0, 0, cmdp.costs[:, 0, 0])
    assert kinds == ["interim"]
    assert agent._beginnings - begun == pytest.approx([3.0])
    assert agent._variance - spent == pytest.approx([(1.0 + 3.0) ** 2 / 4])
    agent.act(0)
    agent.observe(0, 0, cmdp.costs[:, 0, 0])
    agent.finish()
    assert agent._beginnings - begun == pytest.approx(3.0 + proof)


# Bad input.

GIVEN = {"baseline": [[0.5, 0.5]] * 3, "slack": 0.1, "ranges": [[0, 1]] * 2}
BAD = [
    ({"baseline": None}, "a baseline must be given: a policy"),
    ({"baseline": [[0.5, 0.5]] * 2}, r"baseline must have shape \(S, A\) = \(3, 2\); got \(2, 2\)"),
    ({"baseline": [[0.5, 0.6]] * 3}, "baseline must hold a distribution over 2 actions"),
    ({"slack": None}, "slack must be given"),
    ({"slack": 0.0}, "slack must be above 0"),
    ({"slack": -0.1}, "slack must be a number from 0 on"),
    ({"slack": [0.1, 0.1]}, r"one per threshold \(1\)"),
    ({"span": -1.0}, "span must be a number from 0 on"),
    ({"delta": 1.0}, "delta must be a number strictly between 0 and 1"),
    ({"ranges": None}, "ranges must be given if costs are learned"),
    ({"ranges": [[1, 0]] * 2}, "ranges must hold the lowest and the highest of each of 2 costs"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_input_gets_one_line(change, message):
    with pytest.raises(AgentError, match=message) as caught:
        SafeStart(3, 2, [0.2], **(GIVEN | change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("known", [{}, {"costs": [[[0.0, 1.0]] * 3] * 2}])
def test_a_slack_that_no_policy_can_have_gets_a_warning(known):
    message = r"cannot cost -0.01 a round on average, since no round costs less than 0 \(constraint 1\)"
    with pytest.warns(BaselineWarning, match=message):
        SafeStart(3, 2, [0.2], **(GIVEN | known | {"slack": 0.21}))
    assert SafeStart(3, 2, [0.2], **(GIVEN | known | {"slack": 0.2})).slack == [0.2]  # warnings are errors here


def test_a_plan_is_a_baseline_too():
    cmdp = psconrl.load("chain")
    cautious = plan(cmdp.with_thresholds([0.2]))
    agent = SafeStart(8, 2, cmdp.thresholds, cmdp.costs, baseline=cautious, slack=0.1)
    np.testing.assert_allclose(agent.baseline, cautious.policy)
    assert known_baseline(cmdp, cautious)["slack"][0] <= 0.1 + 1e-9


# Knowledge given in sweeps and on the command line.


def test_a_spec_tells_the_baseline(tmp_path):
    cautious = plan(psconrl.load("chain").with_thresholds([0.2]))
    cautious.save(tmp_path / "cautious.npz")
    text = """
        [agents.safest]
        agent = "safe"
        baseline = "safest"
        [agents.cautious]
        agent = "safe"
        baseline = "cautious.npz"
        options = { slack = 0.05 }
        [experiments.chain]
        horizon = 100
        replicates = 1
    """
    safest, own = parse_spec(text, folder=tmp_path).jobs()
    cmdp = psconrl.load("chain")
    np.testing.assert_allclose(safest.make_agent(cmdp).baseline, safest_policy(cmdp))
    agent = own.make_agent(cmdp)
    np.testing.assert_allclose(agent.baseline, cautious.policy)
    assert agent.slack == [0.05]
    assert own.knowledge.file
    assert safest.hash != own.hash
    outcome = run_sweep([safest, own], tmp_path / "r.db", executor=AtOnce())
    assert outcome.errors == []
    psconrl.plan(cmdp).save(tmp_path / "cautious.npz")
    outcome = run_sweep([own], tmp_path / "again.db", executor=AtOnce())
    assert "cautious.npz has changed, or is missing, since the sweep began" in outcome.errors[0]


def test_a_spec_tells_the_ranges_of_what_can_come_out_not_of_means():
    """With a slip of a tenth no pair has a mean risk of 1, but a fall costs 1."""
    text = """
        [agents.safe]
        baseline = "safest"
        [agents.own]
        agent = "safe"
        baseline = "safest"
        options = { ranges = [[0, 3], [0, 2]] }
        [experiments.slip]
        env = "marsrover-4x4"
        options = { slip = 0.1 }
        costs = ["learned"]
        horizon = 100
        replicates = 1
    """
    derived, own = parse_spec(text).jobs()
    cmdp = derived.environment()
    assert cmdp.costs[1].max() < 1.0
    assert derived.make_agent(cmdp).ranges.tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert own.make_agent(cmdp).ranges.tolist() == [[0.0, 3.0], [0.0, 2.0]]


def test_words_that_contradict_a_baseline_are_refused():
    with pytest.raises(ConfigError, match="give --baseline or --support, not both"):
        Knowledge(support=True, baseline="safest", dashes="--")
    with pytest.raises(ConfigError, match="--baseline: agent 'psconrl' has no baseline; 'safe' and 'c-ucrl' have"):
        Knowledge(baseline="safest", dashes="--").need_believer("psconrl", [])
    with pytest.raises(ConfigError, match="--option baseline and --baseline contradict each other"):
        Knowledge(baseline="safest", dashes="--").need_believer("safe", ["baseline"])


def test_in_the_corridor_it_comes_to_alternate_at_the_far_end():
    """The baseline never uses the far end, the optimum 0.75 does in a quarter of the rounds."""
    corridor = psconrl.load("corridor")
    agent = make("safe", 8, 2, corridor.thresholds, corridor.costs, seed=0, **known_baseline(corridor))
    trace = simulate(corridor, agent, 5_000, seed=0, evaluate_policies=True)
    assert trace.policies.costs[-1][0] < 0.85
    assert max(costs[1] for costs in trace.policies.costs) <= 0.25
