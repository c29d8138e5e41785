"""Twins: an agent does as well if a limit is added that says nothing, or if the same problem is stated otherwise.

Agents that put a price on every constraint, or ignore constraints, play exactly the same if the price of a vacuous
limit stays zero (``EXACT``). Agents that plan with the constraints may break ties otherwise; their scores are compared
by independent runs, ``FIRST`` on a model and ``RUNS`` on its twin. The means may differ by ``MARGIN`` of the score of
uniform play, plus noise: Student's quantile times the standard error. The standard deviation is that on the model
alone, since a twin on which one run of several is lost has a large one. The level is ``ALARMS`` divided by the number
of cases, so that all of them together raise a false alarm with probability 1e-4, if scores are normal, whatever the
margin.

What a theory says of further constraints, and what is allowed for it:

================  =====================================================================================
agents            a limit that never binds, is nearly binding, or is stated twice
================  =====================================================================================
PSConRL, with     nothing depends on m; the plans of a sample are the same. Ledgers have a balance for
any parts         every constraint. Allowed: noise.
UC-CURL,          nothing depends on m; a margin or confidence radius for every constraint (C-UCRL: its
UCRL-CMDP, FHA,   radius of the theory has the log of m + 1, the default has not). Allowed: noise.
C-UCRL, safe      The safe agent's bound of costs that are learned has the log of m S A.
Lagrangian PSRL,  a multiplier for every constraint. A limit stated twice has two, which together are as
PD-LSCVI-UCB,     large as with twice the step size and twice the largest multiplier; a nearly binding one
PD-LSVI-UCB,      has that until it is kept. Step sizes of the theories are tuned for m = 1. Allowed:
PO-CMDP, PDNAC    ``FACTOR`` times the margin for these two twins.
Triple-QA         a queue for every constraint, raised by a tightening that exceeds 1 at such horizons:
                  with a limit stated twice it learns nothing, as without. It begins with the first
                  action, so that labels matter. Only vacuous limits are tested, exactly.
TSDE, UCRL2,      constraints are ignored. Allowed: nothing. UCRL2 and PMEVI-DT break ties by the order of
PMEVI-DT          the actions, so that labels matter.
================  =====================================================================================
"""

from functools import cache

import numpy as np
import pytest
from scipy.stats import t as student

import psconrl
from psconrl import CMDP, plan, simulate
from psconrl.learning.registry import RECIPES, make_agent, with_hints
from psconrl.learning.safe.baseline import known_baseline, safest_policy
from twins import ABOVE, TWINS, Judge, nearly_binding, relabelled, stated_twice, vacuous, vacuous_action, with_limit

T, FIRST, RUNS = 2000, 8, 4
ALARMS, MARGIN, FACTOR = 1e-4, 0.1, 2.0

MODELS = {
    "corridor": {},
    "islands": {},
    "riverswim": {},
    "marsrover-4x4": {},
    "chain": {},
    "queue": {},
    "counterexample": {},
    "garnet": {"states": 8, "seed": 3},
}
IGNORING = ("tsde", "ucrl2", "pmevi-dt", "uniform")
PRICING = ("lagrangian", "lagrangian-published", "lagrangian-theorem", "pd-lscvi-ucb", "pd-lsvi-ucb", "po-cmdp")
EXACT = (*IGNORING, *PRICING, "triple-qa")
ONE_LIMIT = ("sa-cvi-ucb", "tilted", "psconrl-account")
# SpanFHA takes too long.
PLANNING = tuple(name for name in RECIPES if name not in (*EXACT, *ONE_LIMIT, "span-fha"))
DEAR = ("safe", "ucrl-cmdp", "uc-curl", "fha")  # a run takes up to a second
SINGLE = (vacuous.__name__, vacuous_action.__name__)


@cache
def model_of(env: str) -> CMDP:
    return psconrl.load(env, **MODELS[env])


def spent(name, model, seed, rounds=T, policy=None, **options):
    """The cumulative costs of a run; the policy is the baseline of the safe agent."""
    if name == "safe":
        known = known_baseline(model, policy)
        options |= {key: known[key] for key in ("baseline", "slack", "span")}
    if name == "fha":
        options |= {"H": 16}
    costs = None if RECIPES[name].learns_costs else model.costs
    options = with_hints(name, model, options) if costs is None else options
    sizes = model.n_states, model.n_actions
    agent = make_agent(name, *sizes, model.thresholds, costs, seed, rounds, **options)
    return simulate(model, agent, rounds, seed=seed, checkpoints=rounds).cumulative[-1]


@cache
def scores(name: str, env: str, twin: str | None) -> np.ndarray:
    """The scores of runs on a model or on one of its twins, with seeds of their own."""
    model = model_of(env)
    policy = safest_policy(model) if name == "safe" else None
    played, first, runs = model, 0, FIRST
    if twin:
        played, first, runs = TWINS[twin](model), FIRST + RUNS * list(TWINS).index(twin), RUNS
        policy = policy[::-1, ::-1] if twin == relabelled.__name__ and policy is not None else policy
    judge = Judge(model)
    return np.array([judge.score(spent(name, played, first + k, policy=policy), T) for k in range(runs)])


@pytest.mark.parametrize("env", MODELS)
@pytest.mark.parametrize("twin", TWINS)
def test_a_twin_has_the_same_optimum(env, twin):
    model = model_of(env)
    found, again = plan(model), plan(TWINS[twin](model))
    assert again.value == pytest.approx(found.value, abs=1e-9)
    assert again.feasible
    judge = Judge(model)
    assert judge.score(T * np.append([judge.value], model.thresholds), T) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.filterwarnings("ignore:with these constants:psconrl.errors.AdviceWarning")
@pytest.mark.part(16)
@pytest.mark.parametrize("env", MODELS)
@pytest.mark.parametrize("twin", SINGLE)
@pytest.mark.parametrize("name", [name for name in EXACT if name != "lagrangian-theorem"])
def test_a_vacuous_limit_changes_no_action_of_an_agent_with_prices(name, twin, env):
    model = model_of(env)
    alone, together = (spent(name, played, 1, 600) for played in (model, TWINS[twin](model)))
    assert together[: alone.size].tolist() == alone.tolist()


@pytest.mark.parametrize("name", IGNORING)
@pytest.mark.parametrize("twin", [nearly_binding, stated_twice])
def test_agents_that_ignore_limits_play_the_same_with_others(name, twin):
    model = model_of("riverswim")
    alone, together = (spent(name, played, 1, 600) for played in (model, twin(model)))
    assert together[: alone.size].tolist() == alone.tolist()


def _cases():
    """All agents, models and twins; of those that are not slow, every agent meets every twin once."""
    names = [*PLANNING, *PRICING]
    for a, name in enumerate(names):
        for e, env in enumerate(MODELS):
            for k, twin in enumerate(TWINS):
                if name in PRICING and twin in SINGLE:
                    continue  # exact
                marks = [] if (e - a - 3 * k) % len(MODELS) == 0 else [pytest.mark.slow]
                if name == "psconrl" and env in ("corridor", "islands"):
                    marks = []
                if name in DEAR:
                    marks = [] if env == "garnet" else [pytest.mark.slow]
                if not marks and not (name == "psconrl" and env == "corridor"):
                    marks = [pytest.mark.full]
                yield pytest.param(name, env, twin, marks=marks)


CASES = list(_cases())


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "env", "twin"), CASES)
def test_a_twin_changes_no_score_beyond_noise(name, env, twin):
    alone, together = scores(name, env, None), scores(name, env, twin)
    error = alone.std(ddof=1) * np.sqrt(1.0 / FIRST + 1.0 / RUNS)
    noise = student.isf(ALARMS / len(CASES) / 2.0, FIRST - 1) * error
    margin = MARGIN * abs(scores("uniform", env, None).mean())
    if name in PRICING and twin in (nearly_binding.__name__, stated_twice.__name__):
        margin *= FACTOR
    assert abs(together.mean() - alone.mean()) <= margin + noise


@pytest.mark.filterwarnings("ignore:with these constants:psconrl.errors.AdviceWarning")
def test_triple_qa_has_no_queue_for_a_limit_that_cannot_be_exceeded():
    """The tightening of a threshold above the highest cost would fill its queue, as its hats would stop the others."""
    for together in (True, False):
        model = model_of("garnet")
        options = {"together": together, "kappa": 0.1, "eps": 2.0, "frame": 100}
        runs = [spent("triple-qa", played, 1, 1000, **options) for played in (model, vacuous_action(model))]
        assert runs[1][:2].tolist() == runs[0].tolist()
    agent = make_agent("triple-qa", 2, 2, [0.5, 1.0 + ABOVE], np.full((3, 2, 2), [0.0, 1.0]), 0, 300, frame=3, eps=2.0)
    for _ in range(9):
        agent.observe(agent.act(0), 0, [0.0, 0.0, 0.0])
    agent.act(0)
    assert agent.queues[0] > 0.0
    assert agent.queues[1] == 0.0


def test_a_limit_that_no_policy_exceeds_takes_no_slack_from_the_baseline():
    """A constant cost stays 0.05 below its threshold, whatever is played: no reason to keep the other as close."""
    model = model_of("garnet")
    constant = with_limit(model, np.tile([0.5, 0.6, 0.5], (8, 1)), 0.65)
    assert np.array_equal(safest_policy(constant), safest_policy(model))
    assert known_baseline(constant)["slack"][0] == pytest.approx(known_baseline(model)["slack"][0])
    free = CMDP(model.transition, model.costs[:1], initial=model.initial)
    only = with_limit(free, model.costs[1], model.costs[1].max() + 1.0)
    assert np.array_equal(safest_policy(only), safest_policy(free))


def test_a_long_span_of_one_cost_does_not_loosen_the_budget_of_another(monkeypatch):
    """SpanFHA: with a span of its own for every cost, that of a vacuous limit changes no other constraint."""
    import scipy.optimize

    model = psconrl.load("counterexample")
    found = []

    def minimize(function, x0, constraints, **options):
        found.append((x0, constraints[0]["fun"](x0)))
        return real(function, x0, constraints=constraints, **options)

    real = scipy.optimize.minimize
    monkeypatch.setattr(scipy.optimize, "minimize", minimize)
    slacks = []
    for span in (0.5, [0.5], [0.5, 3.0]):
        played = vacuous(model) if np.size(span) == 2 else model
        agent = make_agent("span-fha", 2, 2, played.thresholds, played.costs, 0, 60, H=2, span=span)
        found.clear()
        agent._search(np.full((2, 2, 2), 0.5), agent._box(), played.costs, 0)
        slacks.append(found[0][1])
    assert slacks[0].tolist() == slacks[1].tolist()
    # One budget for each limit, then 2 sp - range for every cost and step; only the objective has the largest span.
    budget, of_objective, of_cost = slacks[1][:1], slacks[1][1:3], slacks[1][3:5]
    assert slacks[2][:1] == pytest.approx(budget)
    assert slacks[2][2:4] == pytest.approx(of_objective + 5.0)
    assert slacks[2][4:6] == pytest.approx(of_cost)


def test_relabelling_is_undone_by_relabelling():
    model = model_of("garnet")
    again = relabelled(relabelled(model))
    assert np.array_equal(again.costs, model.costs)
    assert np.array_equal(again.transition.csr().toarray(), model.transition.csr().toarray())
