"""Every radius, bonus, budget, step size and epoch rule against its formula, on models with closed forms."""

import math
from dataclasses import replace

import numpy as np
import pytest

from psconrl import CMDP, AgentError, Status, evaluate, plan
from psconrl.agents import (
    CUCRL,
    FHA,
    UCRLCMDP,
    Bernstein,
    Doubling,
    EveryRound,
    Hoeffding,
    LagrangianPSRL,
    Ouyang,
    Published,
    Repay,
    Scaled,
    SpanFHA,
    make,
)
from psconrl.learning.parts.radii import Box, empirical
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.rivals import c_ucrl

# One state, two actions. The first costs 0 and spends 1, the second costs 1 and spends nothing: the threshold on
# spending is the probability of the first.
CHOICE = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
# Two states, one action. Only the first state costs.
TWO_STATES = np.array([[[1.0], [0.0]]])


def taught(agent, moves, costs=None):
    """The agent after an episode with these moves {(state, action, next state): times}; costs (m+1, S, A)."""
    record = Record.empty(agent.counts)
    given = agent.costs if costs is None else costs
    for (s, a, t), times in moves.items():
        for _ in range(times):
            record.step(s, a, t, given[:, s, a])
    agent.end(record)
    return agent


# Radii


def unknown(delta):
    raise AssertionError("the radius of the experiments has no delta")


@pytest.mark.parametrize("coef", [0.1, 0.5])
def test_radius_of_the_experiments(coef):
    ours = Scaled(coef)(np.array([0, 1, 25, 400]), np.ones((4, 1)), unknown)
    assert ours == pytest.approx([1.0, coef, coef / 5, coef / 20])


def test_radius_of_hoeffding():
    ours = Hoeffding(0.25)(np.array([0, 1, 8, 32]), np.ones((4, 1)), lambda delta: 1 / delta)
    assert ours == pytest.approx([1.0, 1.0, 0.5, 0.25])


def test_radius_of_bernstein():
    n = 10_000
    p_bar = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]])
    ours = Bernstein(1 / 9)(np.array([n, n, 0]), p_bar, lambda delta: 1 / delta)
    wanted = [4 * math.sqrt(p * 9 / n) + 28 * 9 / n for p in (0.25, 0.75, 1.0, 0.0)]
    assert ours.ravel() == pytest.approx([*wanted, 1.0, 1.0])


def test_a_box_is_cut_at_zero_and_one():
    box = Box.around(np.array([[0.1, 0.9]]), np.array([0.2]))
    assert (box.low.tolist(), box.high.tolist()) == ([[0.0, pytest.approx(0.7)]], [[pytest.approx(0.3), 1.0]])


def test_frequencies_are_counts_over_visits_and_untried_pairs_stay():
    counts = Counts(2, 2, 1)
    record = Record.empty(counts)
    for t in (0, 1, 1, 1):
        record.step(1, 0, t, np.zeros(1))
    counts.add(record)
    assert empirical(counts).tolist() == [[1, 0], [1, 0], [0.25, 0.75], [0, 1]]


# C-UCRL


def c_ucrl_by_hand(c0, c1, b, tau):
    """Probability of the first action, and value, of ``min pi.(c0 - b)`` under ``pi.(c1 + b) <= tau``, both tight."""
    hoped, feared = np.maximum(c0 - b, c0.min()), np.minimum(c1 + b, c1.max())
    share = (tau - feared[1]) / (feared[0] - feared[1])
    return share, share * hoped[0] + (1 - share) * hoped[1]


def cautious(visits, **options):
    agent = CUCRL(1, 2, [0.5], CHOICE, h=3, seed=0, **options)
    taught(agent, {(0, a, 0): n for a, n in enumerate(visits)})
    episodes = [agent.begin(0) for _ in range(3)]
    assert [episode.kind for episode in episodes] == ["baseline", "baseline", "optimal"]
    return episodes[-1]


def test_c_ucrl_is_optimistic_about_the_objective_and_pessimistic_about_the_limit():
    episode = cautious((25, 16), radius=Scaled(0.4))
    share, value = c_ucrl_by_hand(CHOICE[0, 0], CHOICE[1, 0], np.array([0.08, 0.1]), 0.5)
    assert share == pytest.approx(0.4 / 0.9)
    assert episode.policy[0] == pytest.approx([share, 1 - share])
    assert episode.value == pytest.approx(value)


def test_c_ucrl_with_the_radius_of_the_theory():
    """The plan is made for round t, the one after those already played."""
    n, m, t, delta = np.array([400, 900]), 1, 1301, 0.1
    b = np.sqrt(np.log(np.pi**2 * 1 * 2 * (m + 1) * t**3 / (3 * delta)) / (2 * n))
    share, value = c_ucrl_by_hand(CHOICE[0, 0], CHOICE[1, 0], b, 0.5)
    episode = cautious(n, radius=Hoeffding(delta))
    assert episode.policy[0] == pytest.approx([share, 1 - share], rel=1e-12)
    assert episode.value == pytest.approx(value, rel=1e-12)


def test_c_ucrl_alternates_blocks_of_the_baseline_and_growing_blocks_of_its_plan():
    agent = taught(CUCRL(1, 2, [0.9], CHOICE, h=7, seed=0), {(0, 0, 0): 9, (0, 1, 0): 9})
    episodes = [agent.begin(0) for _ in range(7)]
    assert [e.max_steps for e in episodes] == [7, 7, 7, 7, 14, 7, 21]
    assert [e.kind for e in episodes] == ["baseline", "baseline", "optimal", *["baseline", "optimal"] * 2]
    assert episodes[0].policy.tolist() == [[0.5, 0.5]]


def islands():
    """Staying costs (0, 1) in one state and (1, 0) in the other, moving (1, 1); all tried often, limit .5."""
    costs = np.array([[[0.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]])
    agent = CUCRL(3, 2, [0.5], np.pad(costs, ((0, 0), (0, 1), (0, 0))), h=5, radius=Scaled(0.0), seed=0)
    return taught(agent, {(0, 0, 0): 9, (0, 1, 1): 9, (1, 0, 1): 9, (1, 1, 0): 9})


def test_c_ucrl_connects_classes_that_never_meet_and_plays_its_baseline_where_nothing_is_known():
    agent = islands()
    episode = [agent.begin(0) for _ in range(3)][-1]
    assert (episode.kind, episode.value) == ("connected", pytest.approx(0.5, abs=1e-3))
    for state in (0, 1):
        stay, move = episode.policy[state]
        assert stay > 0.99
        assert move > 0  # so that it moves between them
    assert episode.policy[2].tolist() == [0.5, 0.5]  # a state it has not visited
    model = CMDP(np.array([[1.0, 0], [0, 1], [0, 1], [1, 0]]), agent.costs[:, :2], [0.5])
    assert evaluate(model, episode.policy[:2]).costs[1] <= 0.5 + 1e-9


@pytest.mark.parametrize("status", [Status.OPTIMAL, Status.NOT_ATTAINED, Status.UNCERTIFIED])
def test_c_ucrl_plays_its_baseline_unless_the_limits_are_proven_to_be_kept(status, monkeypatch):
    def unproven(model):
        found = plan(model)
        doubt = replace(found.certificate, excess=np.array([0.1]), holds=status is Status.UNCERTIFIED)
        mixture = None if found.mixture is None else replace(found.mixture, policy_certificate=doubt)
        return replace(found, status=status, certificate=doubt, mixture=mixture)

    monkeypatch.setattr(c_ucrl, "plan_unexplained", unproven)
    agent = islands()
    episode = [agent.begin(0) for _ in range(3)][-1]
    assert (episode.kind, episode.max_steps) == ("baseline", 5)
    assert episode.policy.tolist() == [[0.5, 0.5]] * 3


def test_c_ucrl_leads_states_without_mass_to_its_plan():
    """A line of states with everything at its left end: from the others the policy goes left."""
    S = 5
    costs = np.ones((2, S, 2))
    costs[0, 0, 0], costs[1] = 0.0, 0.0
    agent = CUCRL(S, 2, [0.5], costs, h=5, radius=Scaled(0.0), seed=0)
    taught(agent, {(s, 0, max(s - 1, 0)): 3 for s in range(S)} | {(s, 1, min(s + 1, S - 1)): 3 for s in range(S)})
    episode = [agent.begin(4) for _ in range(3)][-1]
    assert episode.kind == "optimal"
    assert episode.policy[:, 0].tolist() == [1.0] * S


# UCRL-CMDP


def hopeful_average(p_leave, p_return, b_leave, b_return):
    """The least share of time in the first state, given confidence sets for leaving it and for returning."""
    leave, back = min(1.0, p_leave + b_leave), max(0.0, p_return - b_return)
    return back / (leave + back)


MOVES = {(0, 0, 0): 60, (0, 0, 1): 40, (1, 0, 0): 45, (1, 0, 1): 180}  # 100 and 225 visits; 0.4 and 0.2


def test_ucrl_cmdp_hopes_within_the_radius_of_the_experiments():
    agent = taught(UCRLCMDP(2, 1, [], TWO_STATES, horizon=1000, radius=Scaled(0.3), seed=0), MOVES)
    assert agent.begin(0).value == pytest.approx(hopeful_average(0.4, 0.2, 0.03, 0.02))


def test_ucrl_cmdp_hopes_within_the_radius_of_hoeffding():
    S, A, T, delta = 2, 1, 1000, 0.1
    moves = {move: 10 * times for move, times in MOVES.items()}
    agent = taught(UCRLCMDP(S, A, [], TWO_STATES, horizon=T, radius=Hoeffding(delta), seed=0), moves)
    b = [math.sqrt(math.log(2 * S**2 * A * T / delta) / (2 * n)) for n in (1000, 2250)]
    assert agent.begin(0).value == pytest.approx(hopeful_average(0.4, 0.2, *b))


@pytest.mark.parametrize(
    ("T", "exponent", "length"), [(1000, 1 / 3, 10), (1001, 1 / 3, 11), (10_000, 0.5, 100), (7, 1.0, 7)]
)
def test_ucrl_cmdp_episodes_last_the_horizon_to_its_exponent(T, exponent, length):
    agent = UCRLCMDP(1, 2, [0.5], CHOICE, horizon=T, exponent=exponent, seed=0)
    assert agent.begin(0).max_steps == length
    assert UCRLCMDP(1, 2, [0.5], CHOICE, horizon=1000).exponent == pytest.approx(1 / 3)


# FHA


def test_fha_has_the_budget_of_its_horizon_and_the_span():
    """Of H rounds the first action takes the share tau + sp / H."""
    agent = FHA(1, 2, [0.3], CHOICE, horizon=1000, H=5, span=0.5, radius=Scaled(0.0), seed=0)
    episode = taught(agent, {(0, 0, 0): 1, (0, 1, 0): 1}).begin(0)
    assert episode.max_steps == len(episode.policy) == 5
    assert episode.policy[:, 0, 0].mean() == pytest.approx(0.3 + 0.5 / 5)
    assert episode.value == pytest.approx(1 - (0.3 + 0.5 / 5))


def test_fha_has_a_span_for_each_limit():
    costs = np.array([[[0.0, 1.0]], [[1.0, 0.0]], [[2.0, 0.0]]])
    agent = FHA(1, 2, [0.9, 0.4], costs, horizon=1000, H=4, span=[0.0, 0.8], radius=Scaled(0.0), seed=0)
    assert taught(agent, {(0, 0, 0): 1, (0, 1, 0): 1}).begin(0).value == pytest.approx(1 - (0.4 + 0.8 / 4) / 2)


def hopeful_rounds(p_stay, radius):
    """Average cost of three rounds from the first state, optimistically left as soon as possible and not re-entered."""
    stay = max(0.0, p_stay - radius)
    return (1 + stay + stay**2) / 3


@pytest.mark.parametrize("coef", [0.5, None])
def test_fha_hopes_within_its_radius(coef):
    T, delta, n = 1000, 0.1, 10_000
    radius = Bernstein(delta) if coef is None else Scaled(coef)
    agent = FHA(2, 1, [], TWO_STATES, horizon=T, H=3, radius=radius, seed=0)
    taught(agent, {(0, 0, 0): n // 2, (0, 0, 1): n // 2, (1, 0, 1): n})
    i = math.log(2 * 2 * 1 * T / delta)
    radius = 4 * math.sqrt(0.5 * i / n) + 28 * i / n if coef is None else coef / math.sqrt(n)
    assert agent.begin(0).value == pytest.approx(hopeful_rounds(0.5, radius))


@pytest.mark.parametrize(
    ("S", "A", "T", "H"), [(2, 2, 64_000, 20), (2, 2, 64_008, 21), (16, 4, 11_000, 3), (9, 9, 5, 1)]
)
def test_fha_blocks_are_the_cube_root_of_rounds_over_pairs(S, A, T, H):
    assert FHA(S, A, [0.5], horizon=T).H == H


# SpanFHA


@pytest.mark.parametrize(("S", "A", "T", "H"), [(2, 2, 32, 2), (2, 2, 33, 3), (2, 2, 10**6, 6)])
def test_span_fha_blocks_are_the_square_root(S, A, T, H):
    assert SpanFHA(S, A, [0.5], horizon=T).H == H


def test_span_fha_has_the_same_budget():
    agent = SpanFHA(1, 2, [0.3], CHOICE, horizon=1000, H=2, span=0.5, radius=Scaled(0.0), seed=0)
    episode = taught(agent, {(0, 0, 0): 1, (0, 1, 0): 1}).begin(0)
    assert (episode.kind, episode.value) == ("approximate", pytest.approx(1 - (0.3 + 0.5 / 2), abs=1e-5))


def test_span_fha_keeps_the_span_of_every_value_within_twice_the_bound():
    """The second state costs 1 under any action, so the first may not cost less than 1 - 2 sp."""
    costs = np.array([[[0.0, 1.0], [1.0, 1.0]]])
    agent = SpanFHA(2, 2, [], costs, horizon=1000, H=1, span=0.3, radius=Scaled(0.1), seed=0)
    episode = taught(agent, {(0, 0, 0): 1, (0, 1, 0): 1, (1, 0, 0): 1, (1, 1, 0): 1}).begin(0)
    assert (episode.kind, episode.value) == ("approximate", pytest.approx(1 - 2 * 0.3, abs=1e-5))


# LagrangianPSRL


def test_the_multiplier_moves_by_the_excess_over_the_square_root_of_the_rounds():
    agent = LagrangianPSRL(1, 2, [0.25], CHOICE, rate=0.3, start=0.5, seed=0)
    taught(agent, {(0, 0, 0): 12, (0, 1, 0): 4})  # 12 spent in 16 rounds, 4 allowed
    first = 0.5 + 0.3 * (12 - 4) / 4
    assert agent.multipliers == pytest.approx([first])
    taught(agent, {(0, 1, 0): 9})  # nothing spent in 9 rounds, 25 in all
    assert agent.multipliers == pytest.approx([first - 0.3 * (9 * 0.25) / 5])


def test_the_multiplier_stays_between_nothing_and_its_ceiling():
    agent = LagrangianPSRL(1, 2, [0.25], CHOICE, rate=1.0, ceiling=2.0, seed=0)
    assert taught(agent, {(0, 1, 0): 100}).multipliers.tolist() == [0.0]
    assert taught(agent, {(0, 0, 0): 1000}).multipliers.tolist() == [2.0]


@pytest.mark.parametrize(("start", "first"), [(0.9, [1.0, 0.0]), (1.1, [0.0, 1.0])])
def test_what_is_played_is_cheapest_at_the_multiplier(start, first):
    """One unit of spending saves one unit of the objective."""
    agent = LagrangianPSRL(1, 2, [0.25], CHOICE, start=start, seed=0)
    assert agent.begin(0).policy[0].tolist() == first


# Schedules


def test_the_limits_of_an_episode():
    counts = Counts(1, 3, 1)
    record = Record.empty(counts)
    for action, times in enumerate((0, 1, 5)):
        for _ in range(times):
            record.step(0, action, 0, np.zeros(1))
    counts.add(record)
    ouyang = Ouyang()
    assert ouyang.caps(counts)[0] == 2  # T_0 = 1
    ouyang.ended(8)
    steps, caps = ouyang.caps(counts)  # over with the first round beyond t_k + 8, and with 2 N + 1 visits in all
    assert (steps, caps.tolist()) == (9, [[1, 2, 6]])
    assert Doubling().caps(counts)[1].tolist() == [[1, 1, 5]]
    assert Published().caps(counts)[1].tolist() == [[3, 6, 18]]
    assert EveryRound().caps(counts) == (1, None)
    assert Doubling().caps(counts)[0] == Published().caps(counts)[0] > 10**18


SAMPLERS = {
    "psconrl": [4, 1],
    "psconrl-plain": [5, 2],
    "cmdp-psrl": [4, 1],
    "lagrangian": [5, 2],
    "psconrl-published": [15, 6],
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_posterior_sampler_has_its_schedule(name):
    agent = make(name, 1, 2, [0.5], CHOICE, seed=0)
    caps = 3 if name == "psconrl-published" else 1
    first = agent.begin(0)
    assert first.visit_caps.tolist() == [[caps, caps]]
    taught(agent, {(0, 0, 0): 4, (0, 1, 0): 1}, CHOICE)
    second = agent.begin(0)
    assert second.visit_caps.tolist() == [SAMPLERS[name]]
    if name in ("psconrl-plain", "lagrangian"):
        assert (first.max_steps, second.max_steps) == (2, 6)
    if name == "psconrl":
        assert (first.max_steps, second.max_steps) == (1, 3)  # the root of 5, rounded up


# Priors and ledgers


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("psconrl-plain", [3.5, 0.5]),
        ("psconrl-paper", [3.1, 0.1]),
        ("psconrl-published", [3.0, 0.05]),
        ("lagrangian", [3.5, 0.5]),
    ],
)
def test_parameters_of_the_posterior(name, parameters):
    agent = make(name, 2, 1, [], TWO_STATES, seed=0)
    taught(agent, {(0, 0, 0): 3}, TWO_STATES)
    assert agent.belief.parameters(agent.counts)[0] == pytest.approx(parameters)


def test_a_debt_is_paid_by_its_share_over_the_square_root_of_the_rounds():
    ledger, limits = Repay(0.3).made_for(1, 1, 2), np.array([0.5, 0.2])
    counts = Counts(1, 1, 3)
    record = Record.empty(counts)
    for _ in range(16):
        record.step(0, 0, 0, np.array([9.0, 1.0, 0.1]))
    ledger.enter(record, limits)
    assert ledger.balance == pytest.approx([8.0, -1.6])
    targets = list(ledger.targets(limits, 16))
    assert targets[0] == pytest.approx([0.5 - 0.3 * 8 / 4, 0.2])
    assert targets[1] == pytest.approx([0.5 - 0.3 * 8 / 4 / 4, 0.2])
    assert len(targets) == 8


def test_a_saved_multiplier_must_not_be_negative():
    agent = make("lagrangian", 2, 2, [0.5], seed=0)
    with pytest.raises(AgentError, match=r"multipliers: must hold finite numbers from 0; has -1\.0"):
        agent.restore(agent.state() | {"multipliers": [-1.0]})
