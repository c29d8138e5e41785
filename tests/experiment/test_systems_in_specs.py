"""Systems on the command line and in sweeps: data files and Python files, with the structure known or not."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import psconrl
from psconrl.agents import PSConRL, SafeStart, known_baseline, make
from psconrl.cli import app
from psconrl.envs.registry import load_system
from psconrl.errors import AgentError, ConfigError
from psconrl.experiment.checks import check_jobs
from psconrl.experiment.job import execute
from psconrl.experiment.prior_knowledge import known_structure
from psconrl.experiment.spec_file import parse_spec
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.learning.posterior.transition_beliefs import Dirichlet
from psconrl.systems.noise import Bernoulli
from psconrl.systems.priors import Beta
from psconrl.systems.system import System

QUEUE = {
    "state": {"waiting": range(5)},
    "action": {"fast": [0, 1]},
    "noise": {"arrival": Bernoulli(Beta(1, 1)), "done": Bernoulli("0.6 if fast == 1 else 0.4")},
    "step": {"waiting": "min(max(waiting - done, 0) + arrival, 4)"},
    "costs": {"power": "fast", "delay": "waiting"},
    "minimise": "power",
    "limits": ["delay <= 1"],
}
CODE = """
from psconrl.systems.noise import Bernoulli
from psconrl.systems.priors import Beta
from psconrl.systems.system import System

def make(size=5):
    return System(
        state={"waiting": range(size)}, action={"fast": [0, 1]},
        noise={"arrival": Bernoulli(Beta(1, 1)), "done": Bernoulli("0.6 if fast == 1 else 0.4")},
        step=lambda waiting, done, arrival: {"waiting": min(max(waiting - done, 0) + arrival, SIZE)},
        costs={"power": "fast", "delay": "waiting"}, minimise="power", limits=["delay <= 1"])

SIZE = 4
queue = make()
"""


def run(*args):
    return CliRunner().invoke(app, list(args))


@pytest.fixture
def folder(tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    System(**QUEUE).save("queue.toml")
    name = f"own_queue_{abs(hash(request.node.name))}"  # modules of the same name would be found in sys.modules
    (tmp_path / f"{name}.py").write_text(CODE)
    return name


def value(*args):
    done = run("solve", *args, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["value"]


def test_solve_takes_a_system_wherever_it_is(folder):
    exact = psconrl.plan(System(**QUEUE).model(arrival=0.3)).value
    for name in ("queue.toml", f"{folder}.py", f"{folder}.py:queue", f"{folder}:queue", f"{folder}.py:make"):
        assert value(name, "--set", "arrival=0.3") == pytest.approx(exact, abs=1e-12)
    assert value(f"{folder}:make", "--set", "arrival=0.3", "--set", "size=5") == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(
    "command",
    [
        ("inspect",),
        ("explain", "--state", "waiting=2"),
        ("pareto", "--points", "3"),
        ("solve", "--threshold", "delay=2"),
    ],
)
def test_other_commands_take_a_system(folder, command):
    done = run(command[0], "queue.toml", "--set", "arrival=0.3", *command[1:])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("solve", "queue.toml"), "'arrival' has an unknown parameter; give its value, as in --set arrival=0.5"),
        (("solve", "queue.toml", "--set", "arival=0.5"), "unknown noise or event 'arival'; did you mean 'arrival'?"),
        (("solve", "queue.toml", "--set", "arrival=2"), "p must be a probability from 0 to 1; got 2"),
        (("solve", "nothing.toml"), "no such file"),
        (("learn", "queue.toml", "--set", "arrival=0.3", "--emission", "poisson"), "incurs realised costs"),
        (("learn", "queue.toml", "--set", "arrival=0.3", "--agent", "c-ucrl", "--structure"), "cannot use a system"),
        (("learn", "riverswim", "--structure"), "riverswim is no System"),
        (
            ("learn", "riverswim", "--agent", "safe", "--structure", "--baseline", "safest"),
            "riverswim is no System, so that there is no structure to know",
        ),
        (
            ("learn", "queue.toml", "--set", "arrival=0.3", "--agent", "safe"),
            "agent 'safe' needs a policy that is known to be safe: --baseline, safest or the .npz file of a plan",
        ),
        (
            ("learn", "queue.toml", "--set", "arrival=0.3", "--structure", "--baseline", "safest"),
            "--baseline: agent 'psconrl' has no baseline; 'safe' and 'c-ucrl' have",
        ),
        (
            ("learn", "queue.toml", "--set", "arrival=0.3", "--agent", "safe", "--support"),
            "--support: agent 'safe' has no prior belief to set",
        ),
        (
            ("learn", "queue.toml", "--set", "arrival=0.3", "--agent", "safe", "--structure", "--trust", "queue"),
            "give --structure without --trust: it says what is possible, and what it costs",
        ),
        (
            (
                *("learn", "queue.toml", "--set", "arrival=0.3", "--agent", "safe", "--structure"),
                *("--baseline", "safest", "--option", "baseline=1"),
            ),
            "--option baseline and --baseline contradict each other",
        ),
        (
            ("learn", "queue.toml", "--set", "arrival=0.3", "--structure", "--unknown-costs"),
            "the structure determines the costs",
        ),
        (
            ("learn", "queue.toml", "--set", "arrival=0.3", "--structure", "--option", "prior=1"),
            "option prior and --structure contradict each other",
        ),
        (("learn", "queue.toml", "--set", "arrival=0"), "5 states can be reached if the parameters are unknown, and 1"),
    ],
)
def test_mistakes_on_the_command_line(folder, args, said):
    done = run(*args)
    assert done.exit_code != 0
    assert said in str(done.exception or done.output)


def learned(*args):
    done = run("learn", "queue.toml", "--set", "arrival=0.3", "--horizon", "300", *args)
    assert done.exit_code == 0, done.output + str(done.exception)


def test_learn_knows_the_structure_unless_told_otherwise(folder):
    learned("--save", "a.npz")
    agent = psconrl.load_agent("a.npz")
    assert isinstance(agent.belief, Structured)
    assert agent.costs is None
    for k, given in enumerate((["--no-structure"], ["--option", "prior=0.1"], ["--unknown-costs"])):
        learned(*given, "--save", f"b{k}.npz")
        assert not isinstance(psconrl.load_agent(f"b{k}.npz").belief, Structured)
    assert isinstance(psconrl.load_agent("b1.npz").belief, Dirichlet)
    learned("--agent", "c-ucrl")
    learned("--background", "--threshold", "delay=2")
    # A run in two parts has the bits of one in one part.
    learned("--save", "whole.npz", "--seed", "4")
    done = run("learn", "queue.toml", "--set", "arrival=0.3", "--horizon", "100", "--save", "half.npz", "--seed", "4")
    assert done.exit_code == 0
    learned("--resume", "half.npz")
    whole, half = (psconrl.load_agent(name) for name in ("whole.npz", "half.npz"))
    np.testing.assert_array_equal(whole.counts.cost_sums, half.counts.cost_sums)
    np.testing.assert_array_equal(whole.belief.parameters["arrival"], half.belief.parameters["arrival"])


SPEC = """
[agents.knows]
agent = "psconrl"
structure = true

[agents.psconrl]

[experiments.e]
env = "{env}"
options = {{ arrival = 0.3 }}
agents = ["knows", "psconrl", "c-ucrl"]
horizon = 200
replicates = 1
"""


@pytest.mark.parametrize("kind", ["file", "python", "object"])
def test_a_sweep_of_a_system(folder, kind, tmp_path):
    env = {"file": "queue.toml", "python": f"{folder}.py", "object": f"{folder}:queue"}[kind]
    jobs = parse_spec(SPEC.format(env=env), folder=tmp_path).jobs()
    results = [execute(job) for job in jobs]
    assert [result.error for result in results] == [""] * 3
    assert results[0].optimum == pytest.approx(psconrl.plan(System(**QUEUE).model(arrival=0.3)).costs, abs=1e-9)
    agent = jobs[0].make_agent(jobs[0].environment())
    assert isinstance(agent.belief, Structured)
    assert agent.costs is None
    assert bool(jobs[0].file) == (kind == "file")
    assert bool(jobs[0].code) == (kind != "file")


def test_a_structure_needs_a_system(tmp_path):
    spec = SPEC.format(env="riverswim").replace("options = { arrival = 0.3 }", "")
    job = parse_spec(spec, folder=tmp_path).jobs()[0]
    with pytest.raises(ConfigError, match="riverswim is no System"):
        job.make_agent(job.environment())


def test_a_file_has_one_system_or_says_which(folder, tmp_path):
    (tmp_path / f"{folder}_two.py").write_text(CODE + "other = make()\n")
    with pytest.raises(ConfigError, match="must have one System; it has several: queue, other; say which, as in"):
        psconrl.load(f"{folder}_two.py", arrival=0.3)
    (tmp_path / f"{folder}_none.py").write_text("x = 1\n")
    with pytest.raises(ConfigError, match="must have one System; it has none"):
        psconrl.load(f"{folder}_none.py", arrival=0.3)


def test_a_system_pays_what_happened_and_nothing_else(folder):
    system = System(**QUEUE).with_noise(arrival=0.3)
    with pytest.raises(ConfigError, match="incurs realised costs"):
        psconrl.simulate(system, psconrl.PSConRL.of(system, seed=1), 10, emission="poisson")


@pytest.mark.parametrize(
    ("agent", "parts"),
    [("psconrl", PSConRL.parts_for_systems), ("psconrl-paper", {}), ("cmdp-psrl", {}), ("lagrangian", {})],
)
def test_only_the_default_agent_changes_other_parts_if_the_structure_is_known(agent, parts):
    system = System(**QUEUE)
    found = known_structure(system, system.model(arrival=0.3), agent)
    assert isinstance(found.pop("belief"), Structured)
    assert found == parts


def test_sweeps_build_the_agent_that_of_builds():
    system = System(**QUEUE)
    options = known_structure(system, system.model(arrival=0.3), "psconrl")
    own, other = PSConRL.of(system), make("psconrl", 5, 2, [1.0], **options)
    assert all(repr(getattr(own, slot)) == repr(getattr(other, slot)) for slot in PSConRL.parts)
    assert (repr(own.fallback), repr(own.schedule)) == ("LeastExcess()", "LengthOnly()")


def test_a_threshold_of_a_ratio_is_that_of_the_ratio(folder):
    system = System(**QUEUE | {"limits": {"slow": "delay / arrival <= 3"}, "cost_names": {"slow": "shown"}})
    system.save("ratio.toml")
    wanted = psconrl.plan(system.with_limits({"slow": 5}).model(arrival=0.3)).value
    for name in ("slow", "shown"):
        assert value("ratio.toml", "--set", "arrival=0.3", "--threshold", f"{name}=5") == pytest.approx(wanted)
    done = run("solve", "ratio.toml", "--set", "arrival=0.3", "--threshold", "slwo=5")
    assert "unknown limit 'slwo'; did you mean 'slow'" in str(done.exception)


# The agent ``safe``, which needs a baseline besides the system.

SAFE = """
[agents.safe]
structure = true
baseline = "{baseline}"

[experiments.e]
env = "{env}"
options = {options}
horizon = 60
replicates = 1
"""
SYSTEMS = {
    "queue.toml": "{ arrival = 0.3 }",
    "queue": "{}",
    "inventory": "{}",
    "network": "{ side = 4, waiting = 2.0 }",
    "stock": "{ items = 1, room = 5, load = 4, lost = 0.25 }",
    "ward": "{ beds = 3, arrivals = [0.02, 0.03, 0.01], staff = 4.0, refused = 0.08, occupied = 1.5 }",
}


def same_agent(found, wanted):
    """True if the configurations of two agents are equal, names of the limits aside."""
    own, other = found.config(), wanted.config()
    return own.keys() == other.keys() and all(repr(own[key]) == repr(other[key]) for key in own if key != "seed")


@pytest.mark.part(3)
@pytest.mark.parametrize("env", SYSTEMS)
def test_sweeps_build_the_safe_agent_that_of_builds(folder, tmp_path, env):
    (job,) = parse_spec(SAFE.format(env=env, options=SYSTEMS[env], baseline="safest"), folder=tmp_path).jobs()
    if env == "queue.toml":
        system = System(**QUEUE)
        true = system.with_noise(arrival=0.3)
    else:
        system, true = (load_system(env, known=known, **job.env_options) for known in (False, True))
    given = known_baseline(true.model_for_learning(), by_state=True)
    del given["ranges"]
    assert same_agent(job.make_agent(job.environment()), SafeStart.of(system, **given))
    result = execute(job)
    assert result.error == ""
    assert (result.strong[:, 1:] <= 0.0).all()  # no policy violates a limit


def test_learn_builds_the_safe_agent_that_of_builds(folder):
    safe = ("--agent", "safe", "--baseline", "safest")
    learned(*safe, "--save", "whole.npz")  # the structure is known unless excluded
    learned(*safe, "--structure", "--save", "asked.npz")
    learned(*safe, "--no-structure", "--save", "rows.npz")
    whole, asked, rows = (psconrl.load_agent(f"{name}.npz") for name in ("whole", "asked", "rows"))
    system = System(**QUEUE)
    given = known_baseline(system.with_noise(arrival=0.3).model_for_learning(), by_state=True)
    del given["ranges"]
    assert same_agent(whole, SafeStart.of(system, **given))
    np.testing.assert_array_equal(whole.counts.visits, asked.counts.visits)
    assert rows.belief is None
    assert rows.span.shape == (1,)


def test_a_run_of_the_safe_agent_with_structure_resumes_bit_for_bit(folder):
    learned("--agent", "safe", "--baseline", "safest", "--save", "whole.npz")
    done = run(
        *("learn", "queue.toml", "--set", "arrival=0.3", "--horizon", "100", "--save", "half.npz"),
        *("--agent", "safe", "--baseline", "safest"),
    )
    assert done.exit_code == 0, done.output
    learned("--resume", "half.npz")
    whole, half = (psconrl.load_agent(name) for name in ("whole.npz", "half.npz"))
    np.testing.assert_array_equal(whole.counts.visits, half.counts.visits)
    np.testing.assert_array_equal(whole.excess, half.excess)


def test_a_baseline_of_a_system_may_be_the_file_of_a_plan(folder, tmp_path):
    model = System(**QUEUE).model(arrival=0.3)
    cautious = psconrl.plan(model.with_thresholds([0.8]))
    cautious.save("cautious.npz")
    learned("--agent", "safe", "--baseline", "cautious.npz", "--save", "run.npz")
    np.testing.assert_array_equal(psconrl.load_agent("run.npz").baseline, cautious.policy)
    text = SAFE.format(env="queue.toml", options=SYSTEMS["queue.toml"], baseline="cautious.npz")
    (job,) = parse_spec(text, folder=tmp_path).jobs()
    assert same_agent(job.make_agent(job.environment()), psconrl.load_agent("run.npz"))


def test_a_baseline_of_a_system_must_keep_the_limits(folder, tmp_path):
    """The plan for an admissible delay of 2 exceeds the limit of 1."""
    psconrl.plan(System(**QUEUE).model(arrival=0.3).with_thresholds([2.0])).save("bold.npz")
    said = "the baseline must keep 'delay' below 1; its average is"
    done = run("learn", "queue.toml", "--set", "arrival=0.3", "--agent", "safe", "--baseline", "bold.npz")
    assert isinstance(done.exception, AgentError)
    assert said in str(done.exception)
    text = SAFE.format(env="queue.toml", options=SYSTEMS["queue.toml"], baseline="bold.npz")
    with pytest.raises(AgentError, match=f"experiment 'e', agent 'safe': {said}"):
        check_jobs(parse_spec(text, folder=tmp_path).jobs())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('env = "queue"', 'env = "riverswim"', "riverswim is no System"),
        ("[agents.safe]", '[agents.safe]\nagent = "uc-curl"', "structure: agent 'uc-curl' cannot use a system"),
        ('baseline = "safest"', "", "agent 'safe' needs a policy that is known to be safe: baseline, safest or"),
        ("structure = true", "structure = true\nsupport = true", "give structure without support"),
    ],
)
def test_mistakes_with_a_safe_agent_in_a_spec(old, new, said):
    text = SAFE.format(env="queue", options="{}", baseline="safest")
    with pytest.raises(ConfigError, match=said):
        check_jobs(parse_spec(text.replace(old, new)).jobs())


RATIO = QUEUE | {
    "noise": {"arrival": Bernoulli(Beta(1, 1)), "done": Bernoulli("0.6 if fast == 1 else 0.4")},
    "limits": {"slow": "delay / arrival <= 3", "full": "p90(waiting) <= 3"},
}


def test_an_agent_knows_the_system_with_the_thresholds_that_were_given(folder):
    """Those of ratios and percentiles change the costs of rounds, by which an agent infers the noise."""
    System(**RATIO).save("ratio.toml")
    System(**RATIO).with_limits({"slow": 5, "full": 2}).save("other.toml")
    common = ("--set", "arrival=0.3", "--horizon", "150", "--seed", "3", "--save")
    for args in (
        ("ratio.toml", "--threshold", "slow=5", "--threshold", "full=2", *common, "a.npz"),
        ("other.toml", *common, "b.npz"),
    ):
        done = run("learn", *args)
        assert done.exit_code == 0, done.output
    one, other = (psconrl.load_agent(name) for name in ("a.npz", "b.npz"))
    np.testing.assert_array_equal(one.counts.cost_sums, other.counts.cost_sums)
    np.testing.assert_array_equal(one.belief.parameters["arrival"], other.belief.parameters["arrival"])
    assert one.event_names().costs == other.event_names().costs


def test_a_spec_gives_an_agent_the_system_with_its_thresholds(folder, tmp_path):
    System(**RATIO).save("ratio.toml")
    text = SPEC.format(env="ratio.toml").replace('"knows", "psconrl", "c-ucrl"', '"knows"')
    job = parse_spec(text + "thresholds = { slow = 5 }\n", folder=tmp_path).jobs()[0]
    given, wanted = job.make_agent(job.environment()).belief.structure, System(**RATIO).with_limits({"slow": 5})
    np.testing.assert_array_equal(given["fixed_costs"], wanted.structure.to_dict()["fixed_costs"])
    assert execute(job).error == ""


@pytest.mark.parametrize(
    ("option", "value"), [("--set", "arrival=0.3"), ("--threshold", "delay=2")], ids=["--set", "--threshold"]
)
def test_an_option_that_is_given_twice_is_refused(folder, option, value):
    done = run("solve", "queue.toml", "--set", "arrival=0.3", option, value, option, value)
    assert f"{option}: '{value.partition('=')[0]}' is given twice" in str(done.exception)
