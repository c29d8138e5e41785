"""Specs as data: their expansion, and errors for unknown entries."""

import dataclasses
import hashlib
import os
import subprocess
import sys

import pytest

import psconrl
from psconrl.cli.reproduce import GRID_EXPERIMENTS
from psconrl.errors import ConfigError
from psconrl.experiment import job as job_module
from psconrl.experiment.checks import check_jobs
from psconrl.experiment.job import execute
from psconrl.experiment.spec_file import parse_spec, read_spec, shipped_spec
from psconrl.experiment.versions import update
from psconrl.report.metrics import WINDOWS

FULL = """
seed = 7
replicates = 4

[agents.cautious]
agent = "psconrl"
options = { prior = 0.05 }
grid = { schedule = ["ouyang", "doubling"] }

[experiments.slippery]
env = "marsrover-4x4"
options = { threshold = 0.3 }
grid = { slip = [0.0, 0.1] }
agents = ["cautious", "c-ucrl"]
override.c-ucrl = { options = { h = 20 }, replicates = 2 }
quick = { horizon = 500, replicates = 1 }
"""


def test_a_spec_is_environments_times_agents_times_parameters_times_replicates():
    jobs = parse_spec(FULL).jobs()
    assert len(jobs) == 2 * (2 * 4 + 2)
    assert {job.experiment for job in jobs} == {"slippery slip=0.0", "slippery slip=0.1"}
    assert {job.label for job in jobs} == {"cautious schedule=ouyang", "cautious schedule=doubling", "c-ucrl"}
    first = jobs[0]
    assert first.env_options == {"threshold": 0.3, "slip": 0.0}
    assert first.agent_options == {"prior": 0.05, "schedule": "ouyang"}
    assert first.horizon == 11_000
    assert jobs[-1].agent_options == {"h": 20}
    assert len({job.hash for job in jobs}) == len(jobs)
    check_jobs(jobs)


def test_limits_can_be_changed_by_name():
    text = '[experiments.queue]\nagents = ["psconrl"]\nthresholds = { delay = 3.5 }'
    assert parse_spec(text).jobs()[0].environment().thresholds.tolist() == [3.5, 0.3]
    with pytest.raises(psconrl.errors.PsconrlError, match="dela"):
        check_jobs(parse_spec(text.replace("delay", "dela")).jobs())


def test_agents_that_learn_rewards_are_given_the_largest():
    text = '[agents.blind]\nagent = "psconrl"\nknown_costs = false\n[experiments.riverswim]\nagents = ["blind"]'
    job = parse_spec(text).jobs()[0]
    assert job.make_agent(job.environment()).optimistic_cost == -1.0


def test_quick_is_the_short_form():
    jobs = parse_spec(FULL).jobs(quick=True)
    assert len(jobs) == 2 * 3
    assert {job.horizon for job in jobs} == {500}


def test_the_short_form_says_what_it_leaves_out():
    text = """
        replicates = 4
        [experiments.box]
        agents = ["psconrl", "uniform", "fha"]
        horizon = 2_000
        quick = { replicates = 2, horizon = 500, agents = ["psconrl"] }
        [experiments.queue]
        agents = ["psconrl"]
        horizon = 100
    """
    assert parse_spec(text).shortened() == ["box: 2 of 4 runs, 500 of 2,000 rounds, without uniform and fha"]


def test_an_experiment_without_replicates_is_left_out_of_the_short_form():
    text = '[experiments.queue]\nagents = ["psconrl"]\nreplicates = 4\nquick = { replicates = 0 }'
    spec = parse_spec(text)
    assert (len(spec.jobs()), len(spec.jobs(quick=True))) == (4, 0)
    assert spec.shortened() == ["queue: 0 of 4 runs"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("seed = 7", "sed = 7"), "unknown key 'sed'; did you mean 'seed'"),
        (("seed = 7", "seed = -1"), "seed must be at least 0"),
        (("replicates = 4", "replicates = 0"), "replicates must be a whole number from 1 on; got 0"),
        (("replicates = 4", "replicates = true"), "replicates must be a whole number; got True"),
        (
            ('agent = "psconrl"', 'agent = "pscorl"'),
            r"\[agents.cautious\] unknown agent 'pscorl'; did you mean 'psconrl'",
        ),
        (
            ("options = { prior", "option = { prior"),
            r"\[agents.cautious\] unknown key 'option'; did you mean 'options'",
        ),
        (
            ('"marsrover-4x4"', '"marsrover-4x5"'),
            r"\[experiments.slippery\] unknown environment 'marsrover-4x5'; did you",
        ),
        (('"cautious", "c-ucrl"]', '"caution", "c-ucrl"]'), "unknown agent 'caution'; did you mean 'cautious'"),
        (("override.c-ucrl", "override.c-url"), "override: unknown agent 'c-url'; did you mean 'c-ucrl'"),
        (
            ("{ h = 20 }, rep", "{ h = 20 }, repl"),
            "override.c-ucrl unknown key 'repllicates'; did you mean 'replicates'",
        ),
        (("horizon = 500", "horizon = 0"), "quick horizon must be a whole number from 1 on; got 0"),
        (("replicates = 1 }", "replicates = -1 }"), "quick replicates must be a whole number from 1 on; got -1"),
        (("horizon = 500", 'horizon = "500"'), "quick horizon must be a whole number; got '500'"),
        (("slip = [0.0, 0.1]", "slip = 0.1"), "grid.slip must be a list of values; got 0.1"),
        (("[experiments.slippery]", "[experiment.slippery]"), "unknown key 'experiment'; did you mean 'experiments'"),
        (("horizon = 500", "horizon = 10_000_000_000_000"), "horizon must be at most 1,000"),
        (("{ h = 20 }", "{ seed = 20 }"), "option 'seed' is set by the sweep itself"),
        (('agents = ["cautious", "c-ucrl"]', "agents = []"), "agents must name at least one agent"),
        (('agents = ["cautious", "c-ucrl"]', 'agents = [["c-ucrl"]]'), "unknown agent"),
        (
            ('env = "marsrover-4x4"', 'env = "marsrover-4x4"\ncheckpoints = true'),
            "checkpoints must be a whole",
        ),
        (("seed = 7", "seed = "), "not valid TOML"),
        (('env = "marsrover-4x4"', 'env = "marsrover-4x4"\nemission = "gamma"'), "unknown emission 'gamma'"),
        (('env = "marsrover-4x4"', 'env = "marsrover-4x4"\nprobe = [1, 2]'), "probe must be"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_its_place(change, message):
    assert change[0] in FULL
    with pytest.raises(ConfigError, match=message):
        parse_spec(FULL.replace(*change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("prior = 0.05", "prio = 0.05"), "agent 'cautious schedule=ouyang': .*prio"),
        (("threshold = 0.3", "treshold = 0.3"), "unknown option 'treshold'; did you mean 'threshold'"),
        (("prior = 0.05", "prior = -1"), "prior must be finite and not negative"),
        (('env = "marsrover-4x4"', 'env = "marsrover-4x4"\ncheckpoints = "lgo"'), "'slippery slip=0.0'.*'log'"),
        (('env = "marsrover-4x4"', 'env = "marsrover-4x4"\nprobe = [0, 4, 1]'), "probe .* is not within"),
    ],
)
def test_misspelt_options_are_found_before_anything_runs(change, message):
    with pytest.raises(psconrl.errors.PsconrlError, match=message):
        check_jobs(parse_spec(FULL.replace(*change)).jobs())


def test_two_runs_of_one_name_are_refused():
    text = """
[agents.a]
agent = "psconrl"
grid = { schedule = ["doubling"] }
[agents."a schedule=doubling"]
agent = "uniform"
[experiments.queue]
"""
    with pytest.raises(ConfigError, match="two different runs are called 'a schedule=doubling' in 'queue'"):
        check_jobs(parse_spec(text).jobs())


def test_drawn_models_come_from_the_seed():
    text = 'seed = {}\n[experiments.d]\nenv = "dirichlet"\ndraw = true\nagents = ["psconrl"]\nreplicates = 3'
    drawn = [{job.env_options["seed"] for job in parse_spec(text.format(seed)).jobs()} for seed in (1, 2)]
    assert len(drawn[0] | drawn[1]) == 6
    with pytest.raises(ConfigError, match="draw chooses the model's seed itself"):
        parse_spec(text.format(1) + "\noptions = { seed = 3 }")


def test_files_name_themselves_and_find_models_beside_them(tmp_path):
    psconrl.save(psconrl.load("counterexample"), tmp_path / "mine.npz")
    text = '[experiments.mine]\nenv = "mine.npz"\nagents = ["psconrl"]'
    (tmp_path / "spec.toml").write_text(text)
    jobs = read_spec(tmp_path / "spec.toml").jobs()
    check_jobs(jobs)
    psconrl.save(psconrl.load("counterexample", theta=0.8), tmp_path / "mine.npz")
    again = read_spec(tmp_path / "spec.toml").jobs()
    assert jobs[0].hash != again[0].hash  # another model under the same name is another run
    assert "has changed, or is missing, since the sweep began" in execute(jobs[0]).error
    assert execute(again[0]).error == ""
    (tmp_path / "spec.toml").write_text("x")
    with pytest.raises(ConfigError, match=r"spec\.toml: not valid TOML"):
        read_spec(tmp_path / "spec.toml")
    with pytest.raises(ConfigError, match=r"other\.toml: no such file"):
        read_spec(tmp_path / "other.toml")


def test_the_hash_depends_on_everything_that_matters(monkeypatch):
    job = parse_spec(FULL).jobs()[0]
    changes = {
        "env_options": {"slip": 0.2}, "agent_options": {"prior": 0.1}, "horizon": 5, "seed": 8, "replicate": 9,
        "checkpoints": 3, "emission": "bernoulli", "known_costs": False, "label": "x", "experiment": "y",
    }  # fmt: skip
    hashes = {dataclasses.replace(job, **{key: value}).hash for key, value in changes.items()}
    assert len(hashes | {job.hash}) == len(changes) + 1
    before = job.hash
    monkeypatch.setattr(job_module, "versions", lambda: {"code": "another"})
    assert job.hash != before


def test_comments_and_docstrings_are_not_code():
    def digest(source):
        found = hashlib.sha256()
        update(found, compile(source, "any", "exec", dont_inherit=True, optimize=2))
        return found.hexdigest()

    plain = digest("def f(x):\n    return x in {'a', 'b'}\n")
    assert digest("# What.\n\ndef f(\n    x\n):\n    return x in {'a', 'b'}  # why\n") == plain
    assert digest("'One.'\ndef f():\n    'One.'\n") == digest("'Two.'\n\ndef f():\n    'Two.'\n")
    others = ["return x in {'a'}", "return x not in {'a', 'b'}", "return f in {'a', 'b'}", "x in {'a', 'b'}"]
    assert len({digest(f"def f(x):\n    {body}\n") for body in others} | {plain}) == 5
    assert digest("def f(*, x):\n    return x in {'a', 'b'}\n") != plain
    code = "from psconrl.experiment.versions import code_digest\nprint(code_digest())"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True
        ).stdout
        for seed in "12"
    }
    assert len(found) == 1


def test_seeds_come_from_seed_environment_agent_and_replicate_alone():
    jobs = parse_spec(FULL).jobs()
    cmdp = psconrl.load("marsrover-4x4")
    same_luck = [job for job in jobs if job.experiment == "slippery slip=0.0" and job.replicate == 1]
    assert len({tuple(job.environment_seed()) for job in same_luck}) == 1
    assert len({job.make_agent(cmdp).rng.bit_generator.state["state"]["state"] for job in same_luck}) == len(same_luck)
    renamed = dataclasses.replace(jobs[0], experiment="another", label="other", horizon=5)
    assert renamed.environment_seed() == jobs[0].environment_seed()
    assert tuple(jobs[1].environment_seed()) != tuple(jobs[0].environment_seed())


def first_runs(jobs):
    """Return a run of every experiment."""
    return {job.experiment: job for job in jobs}.values()


def test_the_shipped_specs_have_the_papers_figures():
    jobs = shipped_spec("paper").jobs()
    check_jobs(jobs)
    check_jobs(shipped_spec("theory").jobs(quick=True))

    def numbers(experiment, label):
        own = [job for job in jobs if (job.experiment, job.label) == (experiment, label)]
        return own[0].horizon, len(own), float(own[0].environment().thresholds[0])

    for costs in ("", " (costs learned)"):
        assert numbers(f"marsrover-4x4{costs}", "psconrl-paper") == (11_000, 100, 0.2)
        assert numbers(f"marsrover-8x8{costs}", "psconrl-paper") == (20_000, 30, 0.1)
        assert numbers(f"box{costs}", "psconrl-paper") == (500_000, 30, 0.6)
    columns = {(job.experiment, job.known_costs) for job in jobs if job.experiment != "counterexample"}
    assert columns == {(name, not name.endswith(" (costs learned)")) for name in GRID_EXPERIMENTS}
    assert {(job.experiment.partition(" ")[0], job.environment().n_states) for job in first_runs(jobs)} == {
        ("counterexample", 2), ("marsrover-4x4", 16), ("marsrover-8x8", 64), ("box", 121), ("box-reachable", 60),
    }  # fmt: skip
    for name in GRID_EXPERIMENTS:  # full windows of the paper's metric begin and end at checkpoints
        job = next(job for job in jobs if job.experiment == name)
        assert WINDOWS[job.env] % (job.horizon // job.checkpoints) == job.horizon % job.checkpoints == 0
    assert numbers("counterexample", "resampling-psconrl") == (1_500, 100, 0.5275)
    assert len(shipped_spec("paper").jobs(quick=True)) < len(jobs) / 4


def test_parts_are_words_and_tables_in_a_spec():
    spec = parse_spec("""
    [agents.mine]
    agent = "psconrl"
    options.schedule = "doubling"
    options.fallback = { name = "explore", action = "least_tried" }
    options.ledger = { name = "repay", share = 0.2 }
    grid = { belief = ["dirichlet", { name = "floored", prior = 0.5 }] }
    [experiments.counterexample]
    agents = ["mine"]
    """)
    jobs = spec.jobs()
    check_jobs(jobs)
    one, two = (jobs[k].make_agent(jobs[k].environment()) for k in (0, -1))
    assert (one.schedule.name, one.fallback.action, one.ledger.share) == ("doubling", "least_tried", 0.2)
    assert (one.belief.name, two.belief.name, two.belief.prior) == ("dirichlet", "floored", 0.5)
    with pytest.raises(ConfigError, match="unknown schedule 'doublin'; did you mean 'doubling'"):
        check_jobs(
            parse_spec('[agents.a]\nagent = "psconrl"\noptions = { schedule = "doublin" }\n[experiments.box]').jobs()
        )


def test_the_seeds_of_the_shipped_experiments_are_those_of_their_flat_options():
    """Seeds come from a hash of the options as written: a different spelling would change all figures."""
    jobs = [job for job in shipped_spec("paper").jobs() if not job.experiment.startswith("box")]
    words = {job.label: job._entropy("agent", [job.agent, job.agent_options, job.known_costs])[2:] for job in jobs}
    assert words["resampling-psconrl"] == [346428041, 3850778562, 3025789623, 1397374572]
    assert words["c-ucrl"] == [600738631, 1182405823, 3872175309, 3862880193]


COSTS = """
replicates = 2
[agents.psconrl]
[agents.psconrl-published]
[agents.own]
agent = "c-ucrl"
known_costs = false
[experiments.queue]
costs = ["known", "learned"]
"""


def test_costs_known_and_learned_are_two_experiments_with_the_same_luck():
    jobs = parse_spec(COSTS).jobs()
    known = [job for job in jobs if job.experiment == "queue"]
    learned = [job for job in jobs if job.experiment == "queue (costs learned)"]
    assert [(job.label, job.known_costs) for job in known] == [("psconrl", True)] * 2
    assert [job.label for job in learned] == ["psconrl"] * 2 + ["psconrl-published"] * 2 + ["own"] * 2
    assert not any(job.known_costs for job in learned)
    assert [job.environment_seed() for job in known] == [job.environment_seed() for job in learned[:2]]
    assert len(jobs) == 8
    assert learned[0].make_agent(learned[0].environment()).costs is None


def test_noisy_costs_are_learned_from_draws_around_the_means():
    def jobs(costs, emission=""):
        return parse_spec(COSTS.replace('["known", "learned"]', costs) + emission).jobs()

    emissions = {(job.experiment, job.label): job.emission for job in jobs('["known", "learned", "noisy"]')}
    assert emissions == {
        ("queue", "psconrl"): "deterministic",
        **{("queue (costs learned)", label): "deterministic" for label in ("psconrl", "psconrl-published", "own")},
        **{("queue (costs noisy)", label): "uniform" for label in ("psconrl", "psconrl-published", "own")},
    }
    named = jobs('["learned", "noisy"]', 'emission = "poisson"')
    assert {(job.experiment, job.emission) for job in named} == {
        ("queue (costs learned)", "deterministic"),
        ("queue (costs noisy)", "poisson"),
    }
    assert not any(job.known_costs for job in named)


def test_costs_learned_alone_keep_the_name_of_the_experiment():
    jobs = parse_spec(COSTS.replace('["known", "learned"]', '["learned"]')).jobs()
    assert {job.experiment for job in jobs} == {"queue"}
    assert not any(job.known_costs for job in jobs)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("[]", r"costs must be a list of some of known, learned, noisy, each once; got \[\]"),
        ('["known", "known"]', "each once; got"),
        ('["lerned"]', "unknown costs 'lerned'; did you mean 'learned'"),
        ('"known"', "costs must be a list; got 'known'"),
    ],
)
def test_bad_costs_are_refused(given, complaint):
    with pytest.raises(ConfigError, match=complaint):
        parse_spec(COSTS.replace('["known", "learned"]', given))


GROUPED = """
replicates = 1
[groups.seen]
title = "seen"
description = "Known to the authors."
[groups.unseen]
[agents.psconrl]
[agents.tuned]
agent = "psconrl"
[agents.structured]
agent = "psconrl"
structure = true
[experiments.queue]
agents = "board"
seen = true
costs = ["known", "noisy"]
[experiments.garnet]
agents = "board"
grid = { seed = [1, 2] }
seen = false
quick = { agents = "board" }
[experiments.garnet.without]
tuned = "it takes too long"
[experiments.chain]
agents = ["psconrl", "uniform"]
"""


def test_experiments_are_in_groups_and_leave_out_agents():
    spec = parse_spec(GROUPED)
    assert [(group.title, group.description, group.experiments) for group in spec.groups] == [
        ("seen", "Known to the authors.", ("queue", "queue (costs noisy)")),
        ("unseen", "", ("garnet seed=1", "garnet seed=2")),
    ]
    names = [job.experiment for job in spec.jobs()]
    assert [name for group in spec.groups for name in group.experiments] == list(dict.fromkeys(names))[:-1]
    for quick in (False, True):
        played = {(job.experiment, job.label) for job in spec.jobs(quick)}
        assert {label for name, label in played if name.startswith("queue")} == {"psconrl", "tuned"}
        assert {label for name, label in played if name.startswith("garnet")} == {"psconrl"}
    assert spec.with_agents(["all", "tsde"]).groups == spec.groups
    both = {job.label for job in spec.with_agents(["tuned", "tsde"]).jobs() if job.experiment == "garnet seed=1"}
    assert both == {"tsde"}  # what an experiment leaves out is not played on request either


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('[groups.unseen]', '[groups.unsee]'), r"\[groups\] unknown group 'unsee'; did you mean 'unseen'"),
        (('[groups.unseen]', ''), r"\[experiments.garnet\] seen needs a table \[groups.unseen\]"),
        (('title = "seen"', 'title = 1'), r"\[groups.seen\] title must be text; got 1"),
        (('title = "seen"', 'title = "unseen"'), r"\[groups\] titles must differ, .* got 'unseen'"),
        (('title = "seen"', 'title = " "'), "titles must differ, and not be 'all', 'other' or empty; got ''"),
        (('title = "seen"', 'title = "all"'), r"\[groups\] titles must differ, .* got 'all'"),
        (('title = "seen"', 'title = "other "'), r"\[groups\] titles must differ, .* got 'other'"),
        (("seen = true", "seen = 1"), "seen must be true or false; got 1"),
        (('agents = "board"', 'agents = "all"'), "agents must be a list, or 'board'; got 'all'"),
        (("tuned = ", "tune = "), "without: unknown agent 'tune'; did you mean 'tuned'"),
        (('"it takes too long"', '""'), "without.tuned must be the reason, as text; got ''"),
        (('"it takes too long"', '" "'), "without.tuned must be the reason, as text; got ' '"),
        (("tuned = ", 'psconrl = "a"\ntuned = '), r"\[experiments.garnet\] without leaves no agent"),
        (('agents = ["psconrl", "uniform"]', 'agents = ["fha", "fha"]\nwithout = { fha = "slow" }'),
         r"\[experiments.chain\] without leaves no agent"),
        (('quick = { agents = "board" }', 'quick = { agents = ["tuned"] }'),
         r"\[experiments.garnet\] quick.agents has only agents that without leaves out"),
        (('quick = { agents = "board" }', "override.tuned = { replicates = 3 }"),
         r"\[experiments.garnet\] override.tuned has no effect: without leaves this agent out"),
    ],
)  # fmt: skip
def test_wrong_groups_and_agents_left_out_are_refused(change, message):
    assert change[0] in GROUPED
    with pytest.raises(ConfigError, match=message):
        parse_spec(GROUPED.replace(*change))
