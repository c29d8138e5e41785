"""Prior knowledge in a spec: support, trust and worth, the same as on the command line and in Python."""

import dataclasses
import textwrap

import numpy as np
import pytest

import psconrl
from psconrl.errors import AgentError, ConfigError, PsconrlError
from psconrl.experiment.job import execute
from psconrl.experiment.prior_knowledge import Knowledge
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec, shipped_spec
from psconrl.experiment.true_constants import true_constants
from psconrl.learning.registry import RECIPES
from psconrl.learning.safe.baseline import baseline_policy
from psconrl.markov.evaluation import evaluate_policy
from psconrl.planning.slater import slater_gap
from psconrl.planning.tolerances import FEASIBLE

SPEC = """
seed = 3
replicates = 1
[agents.nothing]
agent = "psconrl"
[agents.support]
agent = "psconrl"
support = true
[agents.trust]
agent = "psconrl"
trust = "rough.npz"
[agents.worth]
agent = "psconrl"
trust = "rough.npz"
worth = 20
[experiments.network]
options = { side = 3 }
horizon = 150
"""


@pytest.fixture
def folder(tmp_path):
    psconrl.save(psconrl.load("network", side=3, arrival=1.3), tmp_path / "rough.npz")
    return tmp_path


def jobs_by_label(text, folder):
    return {job.label: job for job in parse_spec(text, folder=folder).jobs()}


def test_the_agent_is_the_one_of_python(folder):
    jobs = jobs_by_label(SPEC, folder)
    environment = psconrl.load("network", side=3)
    rough = psconrl.load(folder / "rough.npz")
    agents = {label: job.make_agent(environment) for label, job in jobs.items()}
    assert agents["nothing"].belief.support is None
    support = agents["support"].belief.support
    np.testing.assert_array_equal(support.toarray(), (environment.transition.toarray() > 0).astype(float))
    learned = psconrl.PSConRL.trusting(rough)
    np.testing.assert_array_equal(agents["trust"].belief.support.toarray(), learned.belief.support.toarray())
    assert agents["trust"].belief.grid == learned.belief.grid
    fixed = psconrl.PSConRL.trusting(rough, 20)
    np.testing.assert_array_equal(agents["worth"].belief.prior.toarray(), fixed.belief.prior.toarray())
    assert agents["worth"].recipe == "psconrl"


def test_all_play_otherwise_and_it_is_part_of_the_hash(folder):
    jobs = jobs_by_label(SPEC, folder)
    results = {label: execute(job) for label, job in jobs.items()}
    assert not any(result.error for result in results.values())
    assert len({tuple(result.cumulative[-1]) for result in results.values()}) == 4
    same_label = {dataclasses.replace(job, label="x").hash for job in jobs.values()}
    assert len(same_label) == 4
    more = jobs_by_label(SPEC.replace("worth = 20", "worth = 21"), folder)
    assert {label for label in jobs if more[label].hash != jobs[label].hash} == {"worth"}


def test_the_hash_covers_what_is_in_the_file_not_where_it_is(folder, tmp_path_factory):
    jobs = jobs_by_label(SPEC, folder)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "rough.npz").write_bytes((folder / "rough.npz").read_bytes())
    moved = jobs_by_label(SPEC, elsewhere)
    assert {label: job.hash for label, job in moved.items()} == {label: job.hash for label, job in jobs.items()}
    psconrl.save(psconrl.load("network", side=3, arrival=1.4), elsewhere / "rough.npz")
    changed = jobs_by_label(SPEC, elsewhere)
    assert {label for label in jobs if changed[label].hash != jobs[label].hash} == {"trust", "worth"}
    assert "rough.npz has changed, or is missing" in execute(moved["trust"]).error
    assert execute(moved["support"]).error == ""


def test_a_model_that_code_makes_is_trusted_and_its_source_hashed(folder, monkeypatch):
    own = f"rough_{folder.name}".replace("-", "_")
    source = folder / f"{own}.py"
    source.write_text(
        textwrap.dedent("""
        import psconrl
        def model():
            return psconrl.load("network", side=3, arrival=1.3)
    """)
    )
    monkeypatch.chdir(folder)
    text = SPEC.replace("rough.npz", f"{own}:model")
    jobs = jobs_by_label(text, folder)
    assert [bool(job.code) for job in jobs.values()] == [False, False, True, True]
    with_file = execute(jobs_by_label(SPEC, folder)["worth"])
    assert execute(jobs["worth"]).cumulative.tolist() == with_file.cumulative.tolist()
    source.write_text(source.read_text() + "ANOTHER = 1\n")
    assert jobs_by_label(text, folder)["worth"].hash != jobs["worth"].hash


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("worth = 20", 'worth = "much"'), r"[agents.worth] worth must be a number; got 'much'"),
        (("worth = 20", "worth = 0"), "weight must be above 0"),
        (("support = true", "support = true\nworth = 3"), "[agents.support] worth says how much the model of trust"),
        (("support = true", 'support = true\ntrust = "queue"'), "[agents.support] give support or trust, not both"),
        (("support = true", "support = 1"), "support must be true or false; got 1"),
        (("rough.npz", "queue"), "trust: queue has (S, A, m) = (10, 6, 2), the environment (9, 4, 1)"),
        (("rough.npz", "rogh"), "[agents.trust] trust: unknown environment 'rogh'"),
        (("rough.npz", "missing.npz"), "missing.npz"),
        (('"psconrl"\nsupport', '"c-ucrl"\nsupport'), "support: agent 'c-ucrl' has no prior belief to set"),
        (("support = true", "support = true\noptions = { prior = 3 }"), "option prior and support contradict"),
        (('[experiments.network]\noptions = { side = 3 }', '[experiments.a]\nenv = "gym:Blackjack-v1"'),
         "support needs a model, and gym:Blackjack-v1 has none"),
    ],
)  # fmt: skip
def test_knowledge_that_cannot_be_given_ends_in_one_line_before_anything_runs(folder, change, complaint):
    with pytest.raises(PsconrlError) as error:
        run_sweep(parse_spec(SPEC.replace(*change), folder=folder).jobs(), folder / "never.db", workers=1)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_words_on_the_command_line_have_dashes():
    with pytest.raises(ConfigError, match="--worth says how much the model of --trust"):
        Knowledge(worth=3.0, dashes="--")
    assert Knowledge(support=True, dashes="--").word == "--support"
    assert Knowledge(trust="queue").word == "trust"
    assert not Knowledge()


CONSTANTS = """
replicates = 1

[agents.horizon]
agent = "fha"
true_constants = true

[agents.account]
agent = "sa-cvi-ucb"
true_constants = true

[experiments.chain]
horizon = 200
"""
SEVERAL = """
replicates = 1
[agents.fha]
true_constants = true
[agents.pd-lscvi-ucb]
true_constants = true
[agents.pd-lsvi-ucb]
true_constants = true
[agents.pdnac]
true_constants = true
[agents.triple-qa]
true_constants = true
[experiments.queue]
horizon = 200
"""


def test_theory_that_needs_constants_gets_those_of_the_true_model():
    """Those of the chain are verified independently in test_environment_models.py."""
    horizon, account = (job.make_agent(job.environment()) for job in parse_spec(CONSTANTS).jobs())
    assert horizon.span == pytest.approx([0.84708], abs=1e-5)
    assert (account.span_objective, account.span_limited) == pytest.approx((1.0, 0.84708), abs=1e-5)
    assert account.gap == pytest.approx(0.1378948896, abs=1e-9)


def test_with_several_limits_there_is_a_span_and_a_gap_for_each():
    """On the queue, a policy that admits no customer has no delay, and a power of 0.1 where 0.3 is allowed.

    These 0.2 are 2/9 of the range of the power, 0.9. The same share of the range of the delay, 9, is 2.
    """
    jobs = parse_spec(SEVERAL).jobs()
    model = jobs[0].environment()
    spans = np.ptp(psconrl.evaluate(model, psconrl.plan(model).policy).biases, axis=1)
    agents = {job.label: job.make_agent(model) for job in jobs}
    assert agents["fha"].span == pytest.approx(spans[1:])
    assert agents["pd-lscvi-ucb"].span_limited == pytest.approx(spans[1:])
    assert agents["pd-lscvi-ucb"].span_objective == pytest.approx(spans[0])
    for label in ("pd-lscvi-ucb", "pd-lsvi-ucb", "pdnac"):
        assert agents[label].gap == pytest.approx([2.0, 0.2], rel=1e-9)
    ranges = np.ptp(model.costs.reshape(3, -1), axis=1)
    assert agents["triple-qa"].kappa == pytest.approx((spans / ranges).max())


@pytest.mark.parametrize("label", sorted(name for name, recipe in RECIPES.items() if recipe.theory_constants))
@pytest.mark.parametrize("environment", ["counterexample", "islands", "garnet-two-limits", "inventory"])
def test_every_assumed_constant_is_given_and_is_an_option(label, environment):
    model = psconrl.load("garnet", constraints=2) if "two" in environment else psconrl.load(environment)
    assumed = RECIPES[label].theory_constants
    assert set(assumed) <= set(RECIPES[label].option_names())
    if label in ("sa-cvi-ucb", "psconrl-account") and model.n_constraints > 1:
        return
    given = true_constants(model, label)
    assert tuple(given) == assumed
    if label == "span-fha" and model.n_states > 4:
        return
    agent = psconrl.agents.make(
        label, model.n_states, model.n_actions, model.thresholds, model.costs, horizon=100, **given
    )
    for name in assumed:
        np.testing.assert_array_equal(getattr(agent, name), np.asarray(given[name]))


@pytest.mark.filterwarnings("ignore:with these constants Triple-QA learns nothing")
@pytest.mark.parametrize("label", ["pd-lscvi-ucb", "pd-lsvi-ucb", "pdnac", "triple-qa", "fha"])
@pytest.mark.parametrize("unit", [128.0, 2.0**-20])
def test_a_twin_in_other_units_is_played_identically(label, unit):
    """The units are powers of 2, so that nothing is rounded otherwise."""
    model, units = psconrl.load("inventory"), np.array([1.0, unit, 1.0])
    twin = psconrl.CMDP(
        model.transition, model.costs * units[:, None, None], model.thresholds * units[1:], initial=model.initial
    )
    options = {"pd-lscvi-ucb": {"bonus": 0.001}, "pd-lsvi-ucb": {"bonus": 0.001}, "pdnac": {"alpha": 1.0}}
    totals = []
    for each in (model, twin):
        given = options.get(label, {}) | true_constants(each, label)
        agent = psconrl.agents.make(
            label, each.n_states, each.n_actions, each.thresholds, each.costs, horizon=2_000, seed=1, **given
        )
        totals.append(psconrl.simulate(each, agent, 2_000, seed=1).cumulative[-1])
    assert (totals[0] * units).tolist() == totals[1].tolist()


def test_the_largest_multipliers_are_twice_the_inverse_of_the_gap_in_ranges():
    model = psconrl.load("inventory")
    sizes = (model.n_states, model.n_actions, model.thresholds, model.costs)
    wanted = pytest.approx([2.0 / slater_gap(model)] * 2)
    for label in ("pd-lscvi-ucb", "pd-lsvi-ucb", "pdnac"):
        agent = psconrl.agents.make(label, *sizes, horizon=100, **true_constants(model, label))
        assert (agent._ceilings(agent._units()) if label == "pd-lscvi-ucb" else agent.ceilings) == wanted


def test_a_gap_is_a_share_of_the_range_however_different_the_units_are():
    """One state: costs (1e9, 0) and (0, 1) under 0.7e9 and 0.8 leave a quarter of both ranges."""
    costs = np.array([[[0.0, 0.0]], [[1e9, 0.0]], [[0.0, 1.0]]])
    model = psconrl.CMDP(np.ones((1, 2, 1)), costs, [0.7e9, 0.8])
    assert true_constants(model, "pdnac")["gap"] == pytest.approx([0.25e9, 0.25], rel=1e-9)


@pytest.mark.parametrize("label", ["pd-lsvi-ucb", "sa-cvi-ucb"])
def test_without_a_constraint_that_can_be_violated_the_gap_is_the_whole_range(label):
    model = psconrl.CMDP(np.ones((1, 2, 1)), np.array([[[0.0, 1.0]], [[0.0, 4.0]]]), [4.0])
    assert true_constants(model, label)["gap"] == 4.0


def test_without_constraints_there_is_no_gap():
    model = psconrl.CMDP(np.ones((1, 2, 1)), np.array([[[0.0, 1.0]]]), [])
    assert true_constants(model, "pdnac") == {}
    assert true_constants(model, "pd-lscvi-ucb") == {"span_objective": 0.0, "span_limited": []}


def ring(cost):
    """Eight states in turn, of which the first four have a cost: its bias has the span 4 cost / 2."""
    P = np.roll(np.eye(8), 1, axis=1).reshape(8, 1, 8)
    costs = np.zeros((2, 8, 1))
    costs[1, :4] = cost
    return psconrl.CMDP(P, costs, [cost])


@pytest.mark.parametrize(("cost", "learned"), [(0.75, 1.5), (0.25, 1.0), (64.0, 2.0)])
def test_a_bound_on_spans_is_in_the_units_by_which_the_agent_divides(cost, learned):
    """These are the ranges of the costs, and of their outcomes if they are learned: 1 for costs within [0, 1]."""
    model = ring(cost)
    text = SEVERAL.replace("horizon = 200", 'horizon = 200\ncosts = ["known", "learned"]')
    known, learning = (job.make_agent(model) for job in parse_spec(text).jobs() if job.label == "triple-qa")
    assert (known.kappa, learning.kappa) == pytest.approx((2.0, learned))


def test_a_bound_on_spans_is_at_least_1():
    constant = psconrl.CMDP(np.ones((1, 1, 1)), np.array([[[1.0]], [[0.5]]]), [1.0])
    assert true_constants(constant, "triple-qa") == {"kappa": 1.0}


@pytest.mark.parametrize("name", ["leaderboard", "sensitivity"])
def test_every_agent_of_a_shipped_study_can_be_built(name):
    """With all that it is given: constants, baselines, structure. So no run of the study ends before it has begun."""
    environments, built = {}, set()
    for job in shipped_spec(name).jobs():
        case = (job.experiment, job.label)
        if case in built:
            continue
        if job.model_key not in environments:
            environments[job.model_key] = job.environment()
        job.make_agent(environments[job.model_key])
        built.add(case)
    assert len(built) > 1_500


def test_a_baseline_is_given_to_agents_that_take_one():
    text = """
    replicates = 1
    [agents.safe]
    baseline = "safest"
    [agents.c-ucrl-safe]
    agent = "c-ucrl"
    baseline = "safest"
    [experiments.chain]
    horizon = 200
    """
    safe, conservative = (job.make_agent(job.environment()) for job in parse_spec(text).jobs())
    np.testing.assert_array_equal(conservative.baseline, safe.baseline)
    results = [execute(job) for job in parse_spec(text).jobs()]
    assert not any(result.error for result in results)


def test_a_baseline_without_slack_needs_only_to_meet_the_constraints():
    """The threshold of the machine is the least average, 0. A baseline of `safe` must stay below it."""
    text = """
    replicates = 1
    [agents.c-ucrl]
    baseline = "safest"
    [agents.uniform]
    [experiments.machine]
    options = { damaged = 0.0 }
    horizon = 200
    """
    job = parse_spec(text).jobs()[0]
    model = job.environment()
    agent = job.make_agent(model)
    assert evaluate_policy(model, agent.baseline).gains[1].max() == 0.0
    assert not execute(job).error
    with pytest.raises(AgentError, match="the baseline must keep 'damage' below 0; its average is 0"):
        parse_spec(text.replace("[agents.c-ucrl]", "[agents.safe]")).jobs()[0].make_agent(model)


def test_a_given_baseline_that_violates_a_constraint_is_refused(tmp_path):
    model = psconrl.load("chain")
    psconrl.plan(model.with_thresholds([1.0])).save(tmp_path / "bold.npz")
    text = """
    replicates = 1
    [agents.c-ucrl]
    baseline = "bold.npz"
    [experiments.chain]
    horizon = 200
    """
    job = parse_spec(text, folder=tmp_path).jobs()[0]
    with pytest.raises(AgentError, match=r"the baseline must keep 'missed' at most at 0\.\d+; its average is 0\.\d+"):
        job.make_agent(model)
    best = psconrl.plan(model)  # whose average is the threshold
    np.testing.assert_array_equal(baseline_policy(model, best), best.policy)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('"fha"', '"psconrl"'),
         "true_constants: the theory of agent 'psconrl' assumes no constant that can be computed from a model"),
        (('"fha"', '"safe"'), "true_constants: the theory of agent 'safe' assumes no constant that can be computed"),
        (('"fha"', '"po-cmdp"'), "true_constants: the theory of agent 'po-cmdp' assumes no constant that can be"),
        (('"fha"\ntrue_constants = true', '"fha"\ntrue_constants = true\noptions = { span = 1 }'),
         "option span and true_constants contradict"),
        (("true_constants = true", "true_constants = 1"), "true_constants must be true or false; got 1"),
        (("true_constants = true", "spans = true"), "unknown key 'spans'"),
        (("horizon = 200", "horizon = 200\nthresholds = { missed = 0.001 }"),
         "true_constants: the constraints of the model"),
        (('"fha"\ntrue_constants = true', '"uniform"\nbaseline = "safest"'),
         "baseline: agent 'uniform' has no baseline; 'safe' and 'c-ucrl' have"),
    ],
)  # fmt: skip
def test_constants_that_are_not_needed_end_in_one_line(tmp_path, change, complaint):
    with pytest.raises(PsconrlError) as error:
        run_sweep(parse_spec(CONSTANTS.replace(*change)).jobs(), tmp_path / "never.db", workers=1)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("label", ["pd-lsvi-ucb", "pdnac", "sa-cvi-ucb"])
def test_theory_without_a_slater_gap_ends_in_one_line(label):
    """The least average is the threshold."""
    model = psconrl.CMDP(np.ones((1, 2, 1)), np.array([[[1.0, 1.0]], [[0.5, 0.75]]]), [0.5])
    with pytest.raises(ConfigError, match=f"agent '{label}' needs a policy that stays below every threshold"):
        true_constants(model, label)
    assert true_constants(model, "fha") == {"span": [0.0]}
    almost = psconrl.CMDP(np.ones((1, 2, 1)), np.array([[[0.0, 0.0]], [[0.5, 1e6]]]), [0.5 + 1e-5])
    assert 0.0 < slater_gap(almost) < FEASIBLE  # a rounding error, in ranges
    with pytest.raises(ConfigError, match="its Slater gap is 0"):
        true_constants(almost, label)


CANDIDATES = """
seed = 5
replicates = 3
[agents.exact]
agent = "psconrl-paper"
candidates = { leak = [0.1, 0.01] }
[agents.nothing]
agent = "psconrl-paper"
[experiments.leaky-islands]
options = { leak = 0.01 }
horizon = 200
"""


def test_candidates_are_the_models_of_the_environment_with_these_options():
    exact, nothing = (
        next(job for job in parse_spec(CANDIDATES).jobs() if job.label == label) for label in ("exact", "nothing")
    )
    agent = exact.make_agent(exact.environment())
    rows = [psconrl.load("leaky-islands", leak=leak).transition.toarray() for leak in (0.1, 0.01)]
    np.testing.assert_array_equal([model.toarray() for model in agent.belief.models], rows)
    np.testing.assert_allclose(agent.belief.probabilities(agent.counts), [0.5, 0.5])
    assert agent.belief.costs() is None  # the agent knows them
    assert not execute(exact).error
    assert len({dataclasses.replace(job, label="x").hash for job in (exact, nothing)}) == 2
    other = parse_spec(CANDIDATES.replace("0.1, 0.01", "0.1, 0.02")).jobs()[0]
    assert other.hash != exact.hash


def test_several_options_are_combined_and_a_number_counts_from_zero():
    text = CANDIDATES.replace("leak = [0.1, 0.01]", "seed = 3, slack = [0.1, 0.2]")
    text = text.replace("leaky-islands", "garnet").replace("leak = 0.01", "states = 4")
    agent = parse_spec(text).jobs()[0].make_agent(psconrl.load("garnet", states=4))
    drawn = [psconrl.load("garnet", states=4, seed=seed).transition.toarray() for seed in (0, 0, 1, 1, 2, 2)]
    np.testing.assert_array_equal([model.toarray() for model in agent.belief.models], drawn)


def test_the_true_model_of_a_draw_is_one_of_the_fifty():
    jobs = [job for job in shipped_spec("theory").jobs() if job.experiment == "rings-1e4"]
    assert len(jobs) == 500
    for job in jobs[:5]:
        P, agent = job.environment().transition.toarray(), job.make_agent(job.environment())
        assert sum(np.array_equal(P, model.toarray()) for model in agent.belief.models) == 1
    drawn = [job.env_options["seed"] % 50 for job in jobs[:100]]
    assert len(set(drawn)) > 25  # of 100 uniform draws out of 50: a false alarm has probability below 1e-9


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("candidates = { leak = [] }", "candidates.leak must be a list of numbers, or how many; got []"),
        ('candidates = { leak = ["a"] }', "candidates.leak must be a list of numbers, or how many; got ['a']"),
        ("candidates = { leak = 0.1 }", "candidates.leak must be a list of numbers, or how many; got 0.1"),
        ("candidates = { leak = 0 }", "candidates.leak must be a whole number from 1 on; got 0"),
        ("candidates = 3", "candidates must be a table; got 3"),
        ("candidates = { leek = [0.1] }", "leaky-islands: unknown option 'leek'"),
        ("candidates = { leak = [0.1] }\nsupport = true", "give candidates or support, not both"),
        ("candidates = { leak = [0.1] }\nstructure = true", "give candidates or structure, not both"),
        ("candidates = { leak = [0.1] }\noptions = { prior = 3 }", "option prior and candidates contradict"),
    ],
)
def test_candidates_that_make_no_sense_end_in_one_line(tmp_path, given, complaint):
    text = CANDIDATES.replace("candidates = { leak = [0.1, 0.01] }", given)
    with pytest.raises(PsconrlError) as error:
        run_sweep(parse_spec(text).jobs(), tmp_path / "never.db", workers=1)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_an_agent_without_a_belief_takes_no_candidates():
    with pytest.raises(ConfigError, match="candidates: agent 'c-ucrl' has no prior belief to set"):
        Knowledge(candidates=(("leak", (0.1,)),)).need_believer("c-ucrl", ())
