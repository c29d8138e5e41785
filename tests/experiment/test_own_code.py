"""User-defined agents and environments by name: in calls, in specs, on the command line."""

import contextlib
import importlib
import io
import sqlite3
import sys
import textwrap
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import psconrl
from psconrl.base import named_code
from psconrl.base.named_code import digest, find_code, is_code
from psconrl.cli import main
from psconrl.cli.experiments import print_outcome
from psconrl.errors import ConfigError, ModelError, PsconrlError
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec, shipped_spec
from psconrl.experiment.store import Store
from psconrl.learning.registry import make_agent, recipe_for
from psconrl.report.curves import read_experiments
from sweeps import AtOnce

CODE = '''
    import gymnasium
    import numpy as np
    import psconrl
    from {helper} import SHARE

    class Mixed:
        """Plays at random."""
        def __init__(self, n_states, n_actions, thresholds, seed=None, share=SHARE):
            self.policy = np.full((n_states, n_actions), (1 - share) / (n_actions - 1))
            self.policy[:, 0] = share
        def begin(self, state):
            return psconrl.Episode(self.policy, max_steps=50)
        def end(self, record):
            pass

    class Mine(psconrl.agents.PSConRL):
        """A default of its own."""
        name = "mine"

    class NoBegin:
        def __init__(self, n_states):
            pass

    class Greedy:
        def __init__(self, n_states, secret):
            pass

    def model(slip=0.1):
        """A rover."""
        return psconrl.load("marsrover-4x4", slip=slip)

    def cards():
        hand = gymnasium.make("Blackjack-v1")
        return psconrl.continuing(hand, cost=lambda s, a, t: float(a), limits={{"cards": 0.3}})

    def hole(state, action, next_state):
        return float(next_state in (5, 7, 11, 12))

    def nothing():
        return 3

    NUMBER = 4
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a module of a unique name, and what it imports."""
    name = f"own_{tmp_path.name}".replace("-", "_")
    helper = f"help_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{helper}.py").write_text("SHARE = 0.5\n")
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(CODE.format(helper=helper)))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for each in (name, helper):
        sys.modules.pop(each, None)


@pytest.fixture
def own(folder):
    """The name of the module."""
    return next(path.stem for path in folder.glob("own_*.py"))


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("mine:Agent", True), ("a.b:C", True), ("a.b:C.made", True), ("folder/mine.py:Agent", True), ("psconrl", False),
        ("gym:FrozenLake-v1", False), ("C:\\models\\one.npz", False), ("a:b:c", False), (":x", False), ("x:", False),
        (3, False), ("1a:b", False),
    ],
)  # fmt: skip
def test_what_names_code(name, answer):
    assert is_code(name) is answer


def test_agents_of_all_kinds_are_made_by_name(own):
    mixed = make_agent(f"{own}:Mixed", 4, 2, [0.5], share=0.25)
    assert mixed.recipe == f"{own}:Mixed"
    assert mixed.begin(0).policy[0].tolist() == [0.25, 0.75]
    mine = make_agent(f"{own}:Mine", 4, 2, [0.5], np.zeros((2, 4, 2)), seed=1, prior=0.5)
    assert type(mine).__name__ == "Mine"
    assert mine.belief.prior == 0.5
    assert mine.costs is not None
    by_file = recipe_for(f"{own}.py:Mixed")
    assert (by_file.title, by_file.summary) == ("Mixed", "Plays at random.")
    assert by_file.option_names() == ["share"]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("{}:Missing", "has no 'Missing'; it has"),
        ("{}:NUMBER", "must be a class or a function; got int"),
        ("nowhere_at_all:Agent", "there is no module 'nowhere_at_all', neither in"),
        ("missing.py:Agent", "no such file"),
        ("{}:NoBegin", "an agent has begin(state) and end(record); got NoBegin"),
        ("{}:Greedy", "needs 'secret', which is neither an option given nor one of n_states"),
        ("psconl", "did you mean 'psconrl'?"),
    ],
)
def test_an_agent_that_cannot_be_made_ends_in_one_line(own, name, complaint):
    with pytest.raises(ConfigError) as error:
        make_agent(name.format(own), 4, 2, [0.5])
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_option(own):
    with pytest.raises(ConfigError, match="unknown option 'shar'; did you mean 'share'"):
        make_agent(f"{own}:Mixed", 4, 2, [0.5], shar=0.2)


def test_a_module_that_fails_says_why(folder):
    (folder / "own_broken.py").write_text("import a_package_that_is_not_there\n")
    with pytest.raises(ConfigError, match="its import failed: No module named 'a_package_that_is_not_there'"):
        find_code("own_broken:Agent")
    (folder / "own_wrong.py").write_text("1/0\n")
    with pytest.raises(ConfigError, match="ZeroDivisionError: division by zero"):
        find_code("own_wrong:Agent")
    (folder / "json.py").write_text("Agent = dict\n")
    with pytest.raises(ConfigError, match="another module is called 'json'"):
        find_code("json.py:Agent")


def test_environments_by_name(own):
    assert psconrl.load(f"{own}:model", slip=0.2).n_states == 16
    lake = psconrl.load("gym:FrozenLake-v1", cost=f"{own}:hole", limits={"holes": 0.05}, is_slippery=False)
    assert lake.cost_names == ("reward", "holes")
    assert lake.thresholds.tolist() == [0.05]
    with pytest.raises(ModelError, match="has no table of its transitions"):
        psconrl.load(f"{own}:cards")


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("{}:nothing", {}, "must return a CMDP, a System or a Gymnasium environment; got int"),
        ("{}:model", {"slipp": 1}, "unknown option 'slipp'; did you mean 'slip'"),
        ("{}:hole", {}, "missing a required argument: 'state'"),
        ("gym:CartPole-v1", {}, "infinitely many"),
        ("gym:NoSuchLake-v1", {}, "doesn't exist"),
        ("gym:FrozenLake-v1", {"limits": [0.1]}, "limits need costs"),
        ("gym:FrozenLake-v1", {"wind": 3}, "cannot be made"),
        ("missing", {}, "your own is module:function"),
    ],
)
def test_an_environment_that_cannot_be_opened_ends_in_one_line(own, name, options, complaint):
    with pytest.raises(PsconrlError) as error:
        psconrl.load(name.format(own), **options)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_the_digest_covers_the_source_and_what_it_imports_from_beside_it(folder, own):
    before = digest(f"{own}:Mixed")
    helper = next(folder.glob("help_*.py"))
    helper.write_text("SHARE = 0.6\n")
    assert digest(f"{own}:Mixed") != before
    helper.write_text("SHARE = 0.5\n")
    assert digest(f"{own}:Mixed") == before
    (folder / "unrelated.py").write_text("x = 1\n")
    assert digest(f"{own}:Mixed") == before
    assert digest("psconrl") == ""


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("import numpy as np\n", "import numpy as np  # arrays\n\n\n", True),
        ('"""Plays at random."""', '"""Plays every action.\n\n    Often."""', True),
        ('    """Plays at random."""\n', "", True),
        ('"""A rover."""', '"""A rover."""; "another text"', False),
        ("self.policy[:, 0] = share", "self.policy[:,0]=(share)", True),
        ("self.policy[:, 0] = share", "self.policy[:, 0] = share + 0", False),
        ("return 3", "return 3.0", False),
        ("return 3", 'return "3"', False),
    ],
)
def test_the_digest_does_not_change_with_comments_layout_or_docstrings(folder, own, old, new, is_same):
    before, source = digest(f"{own}:Mixed"), folder / f"{own}.py"
    assert old in source.read_text()
    source.write_text(source.read_text().replace(old, new))
    assert (digest(f"{own}:Mixed") == before) is is_same


def test_a_constant_that_is_no_text_is_no_docstring():
    assert named_code._without_comments(b"3") != named_code._without_comments(b"")
    assert named_code._without_comments(b"'three'") == named_code._without_comments(b"")


@pytest.mark.parametrize("source", [b"def :", b"a = '\0'", b"("])
def test_the_digest_of_a_source_that_cannot_be_parsed_is_of_its_bytes(source):
    assert named_code._without_comments(source) == source


SPEC = """
replicates = 2
[agents.mixed]
agent = "{own}:Mixed"
options = {{ share = 0.2 }}
[experiments.a]
env = "{own}:model"
options = {{ slip = 0.05 }}
agents = ["mixed", "uniform"]
horizon = 200
[experiments.b]
env = "{own}:cards"
agents = ["mixed"]
horizon = 60
"""


@pytest.mark.full
def test_a_sweep_of_code_of_ones_own_on_processes(folder, own):
    """Runs have the same bits as in this process; a changed source makes another run."""
    jobs = parse_spec(SPEC.format(own=own), folder=folder).jobs()
    assert all(bool(job.code) for job in jobs if job.label == "mixed" or job.experiment == "b")
    outcome = run_sweep(jobs, folder / "r.db", workers=1)
    assert (outcome.done, outcome.failed) == (6, 0)
    with contextlib.closing(sqlite3.connect(folder / "r.db")) as results:
        facts = dict(results.execute("SELECT name, facts FROM experiments"))
    assert '"status": "unknown"' in facts["b"]
    assert '"optimum"' in facts["a"]  # one model for all, though the agents' code differs
    assert "drawn" not in facts["a"]
    assert run_sweep(jobs, folder / "r.db", executor=AtOnce()).known == 6
    source = folder / f"{own}.py"
    source.write_text(source.read_text() + "\n# a comment\n")
    same = parse_spec(SPEC.format(own=own), folder=folder).jobs()
    assert run_sweep(same, folder / "r.db", executor=AtOnce()).known == 6
    source.write_text(source.read_text() + "\nANOTHER = 1\n")
    again = parse_spec(SPEC.format(own=own), folder=folder).jobs()
    assert {job.hash for job in again}.isdisjoint({job.hash for job in jobs if job.code})


def test_a_spec_elsewhere_finds_what_lies_beside_it(folder, own, tmp_path_factory, monkeypatch):
    """Also as a file, as a cost, with a module of the same name in the current folder, and in workers."""
    here = tmp_path_factory.mktemp("elsewhere")
    (here / f"{own}.py").write_text("Mixed = 3\n")
    monkeypatch.chdir(here)
    text = (
        SPEC.replace("{own}:Mixed", "{own}.py:Mixed").format(own=own)
        + f"""
[experiments.c]
env = "gym:FrozenLake-v1"
options = {{ cost = "{own}.py:hole", limits = {{ holes = 0.1 }} }}
agents = ["mixed"]
horizon = 50
"""
    )
    jobs = parse_spec(text, folder=folder).jobs()
    assert {job.agent for job in jobs} == {f"{own}:Mixed", "uniform"}
    assert all(job.code for job in jobs if job.experiment == "c")
    outcome = run_sweep(jobs, here / "r.db", workers=1)
    assert (outcome.done, outcome.errors) == (8, [])


PAYING = '''
import gymnasium
import psconrl
from gymnasium import spaces

class Paying(gymnasium.Env):
    """One state, two actions; the second one pays 1."""

    observation_space, action_space = spaces.Discrete(1), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, float(action), False, False, {"cost": [0.0]}

def pays():
    return psconrl.continuing(Paying(), limits={"work": 0.5})
'''


def test_a_sweep_says_once_which_agents_learn_nothing(tmp_path, monkeypatch, capsys):
    """Also when it is repeated; runs without advice have no entry, as those of earlier versions."""
    (tmp_path / "paying_env.py").write_text(PAYING)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    text = """
[experiments.pays]
env = "paying_env.py:pays"
agents = ["psconrl-published", "triple-qa", "psconrl"]
horizon = 100
replicates = 2
[experiments.counterexample]
agents = ["psconrl"]
horizon = 100
replicates = 2
"""
    for done in (8, 0):
        outcome = run_sweep(parse_spec(text, folder=tmp_path).jobs(), tmp_path / "r.db", executor=AtOnce())
        assert outcome.errors == []
        assert outcome.done == done
        first, second = outcome.advice
        assert "'psconrl-published' takes actions that were never tried to pay 0" in first
        assert "Triple-QA learns nothing" in second
        assert [dict(runs) for runs in outcome.advice.values()] == [{"psconrl-published": 2}, {"triple-qa": 2}]
        print_outcome(outcome, "r.db")
        said = capsys.readouterr().err.splitlines()
        assert said == [
            f"Advice on 2 runs (2 of psconrl-published): {first}.",
            f"Advice on 2 runs (2 of triple-qa): {second}.",
        ]
    with Store(tmp_path / "r.db") as store:
        summaries = [text for (text,) in store.query("SELECT summary FROM runs")]
        assert sum('"advice"' in text for text in summaries) == 4


def test_a_sweep_says_what_is_wrong_before_it_begins(folder, own):
    for change, complaint in (
        (("Mixed", "Missing"), "has no 'Missing'"),
        (("share = 0.2", "shar = 0.2"), "unknown option 'shar'"),
        (('"{own}:cards"', '"gym:CartPole-v1"'), "infinitely many"),
        (("horizon = 60", "horizon = 60\nevaluate = true"), "need a model"),
    ):
        with pytest.raises(PsconrlError) as error:
            _swept(SPEC.replace(*change).format(own=own), folder)
        assert complaint in str(error.value)


def test_costs_of_an_environment_without_a_model_are_learned(folder, own):
    """They are recorded as learned by default, and cannot be asked for as known."""
    text = SPEC.format(own=own)
    cards = f'env = "{own}:cards"\n'
    jobs = [job for job in parse_spec(text, folder=folder).jobs() if job.env == f"{own}:cards"]
    assert jobs
    assert not any(job.known_costs for job in jobs)
    assert len({job.experiment for job in jobs}) == 1
    asked = parse_spec(text.replace(cards, cards + 'costs = ["learned"]\n'), folder=folder).jobs()
    assert {job.hash for job in jobs} <= {job.hash for job in asked}
    for costs in ('["known"]', '["known", "learned"]'):
        spec = parse_spec(text.replace(cards, cards + f"costs = {costs}\n"), folder=folder)
        with pytest.raises(ConfigError, match=r'cards has no model, so that no agent .* write costs = \["learned"\]$'):
            spec.jobs()
    others = [job for job in parse_spec(text, folder=folder).jobs() if job.env != f"{own}:cards"]
    assert others
    assert all(job.known_costs for job in others)


def _swept(spec, folder):
    return run_sweep(parse_spec(spec, folder=folder).jobs(), folder / "never.db", workers=1)


def test_entry_points_of_packages(own, monkeypatch):
    points = {
        named_code.AGENTS: {"mixed": EntryPoint("mixed", f"{own}:Mixed", named_code.AGENTS)},
        named_code.ENVIRONMENTS: {"small": EntryPoint("small", f"{own}:model", named_code.ENVIRONMENTS)},
    }
    find_code(f"{own}:Mixed")
    for module in (
        "psconrl.base.named_code",
        "psconrl.learning.registry",
        "psconrl.envs.user_environments",
        "psconrl.envs.registry",
    ):
        monkeypatch.setattr(sys.modules[module], "installed", lambda group: points.get(group, {}))
    assert make_agent("mixed", 3, 2, [0.1]).recipe == "mixed"
    assert psconrl.load("small").n_states == 16
    broken = {"bad": EntryPoint("bad", "nowhere_at_all:x", named_code.AGENTS)}
    points[named_code.AGENTS] = broken
    with pytest.raises(ConfigError, match="bad: the package that has it, unknown, fails"):
        make_agent("bad", 3, 2, [0.1])


# On the command line


def said(*arguments):
    """Exit code, standard output and standard error of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0), out.getvalue(), err.getvalue()


@pytest.mark.usefixtures("no_processes")
def test_a_command_says_once_what_code_it_runs(folder, own):
    (folder / "spec.toml").write_text(SPEC.format(own=own))
    code, out, err = said("sweep", "spec.toml", "--out", "r.db", "--workers", "1")
    assert (code, err) == (0, f"Running code from {own}.py\n")
    assert "6 runs done" in out
    code, out, err = said("learn", f"{own}:model", "--agent", f"{own}.py:Mixed", "--horizon", "50")
    assert (code, err) == (0, f"Running code from {own}.py\n")  # in every command
    code, _, err = said("solve", f"{own}:model")
    assert (code, err) == (0, f"Running code from {own}.py\n")
    assert said("solve", "marsrover-4x4")[2] == ""


def test_code_that_fails_was_announced_before(folder):
    (folder / "own_fails.py").write_text("raise RuntimeError('no')\n")
    code, _, err = said("learn", "marsrover-4x4", "--agent", "own_fails:Agent")
    assert code == 2
    assert err.splitlines()[0] == "Running code from own_fails.py"
    assert err.splitlines()[1].startswith("ConfigError: own_fails:Agent: its import failed: RuntimeError: no")


def test_where_announced_code_is(folder, tmp_path_factory, monkeypatch, caplog):
    caplog.set_level("INFO", logger=named_code.LOG.name)
    (folder / "own_parcel").mkdir()
    (folder / "own_parcel" / "__init__.py").write_text("")
    (folder / "own_parcel" / "part.py").write_text("def make(): ...\n")
    find_code("own_parcel.part:make")
    find_code("colorsys:rgb_to_hsv")
    with pytest.raises(ConfigError):
        find_code("nowhere_at_all:x")
    with pytest.raises(PsconrlError):
        psconrl.load("gym:nowhere_at_all:Lake-v1")
    where = importlib.import_module("colorsys").__file__
    assert caplog.messages == [
        f"Running code from {text}"
        for text in ("own_parcel", str(Path(where).resolve()), "nowhere_at_all", "the package nowhere_at_all")
    ]
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    find_code("own_parcel.part:make", folder)
    assert caplog.messages[-1] == f"Running code from {folder / 'own_parcel'}"


def test_what_packages_offer_is_listed_and_a_broken_one_does_no_harm(own, monkeypatch):
    points = {
        named_code.AGENTS: {
            "mixed": EntryPoint("mixed", f"{own}:Mixed", named_code.AGENTS),
            "broken": EntryPoint("broken", "nowhere_at_all:x", named_code.AGENTS),
        },
        named_code.ENVIRONMENTS: {
            "small": EntryPoint("small", f"{own}:model", named_code.ENVIRONMENTS),
            "hands": EntryPoint("hands", f"{own}:cards", named_code.ENVIRONMENTS),
            "three": EntryPoint("three", f"{own}:nothing", named_code.ENVIRONMENTS),
            "bad": EntryPoint("bad", f"{own}:hole", named_code.ENVIRONMENTS),
        },
    }
    find_code(f"{own}:Mixed")
    for module in ("psconrl.base.named_code", "psconrl.learning.registry", "psconrl.envs.user_environments",
                   "psconrl.envs.registry", "psconrl.cli.listing"):  # fmt: skip
        monkeypatch.setattr(importlib.import_module(module), "installed", lambda group: points.get(group, {}))
    code, out, _ = said("agents")
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert code == 0
    assert "│ mixed │ mixed │ Plays at random. │" in rows
    assert any(row.startswith("│ broken │ │ cannot be used: the package that has it, unknown,") for row in rows)
    code, out, _ = said("envs")
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert code == 0
    assert "│ small │ 16 │ 4 │ risk <= 0.2 │ A rover. │" in rows
    assert any(row.startswith("│ hands │ 704 │ 2 │ cards <= 0.3 │") for row in rows)
    assert any(row.startswith("│ three │ │ │ │ cannot be used: must return a CMDP") for row in rows)
    assert any(row.startswith("│ bad │ │ │ │ cannot be used: missing a") for row in rows)


def test_an_agent_of_ones_own_meets_the_model_that_the_others_meet(folder, own):
    """A run depends on the agent's code; the environment does not, and its exact values serve all runs."""
    spec = f'[agents.mixed]\nagent = "{own}:Mixed"\n[experiments.marsrover-4x4]\nagents = ["mixed", "uniform"]\n'
    jobs = parse_spec(spec + "horizon = 50\nreplicates = 1", folder=folder).jobs()
    assert len({job.model_key for job in jobs}) == 1
    assert len({job.code for job in jobs}) == 2
    run_sweep(jobs, folder / "r.db", executor=AtOnce())
    with Store(folder / "r.db") as store:
        (experiment,) = read_experiments(store)
    assert experiment.facts["prices"] == [0.5]
    assert experiment.cost_names == ["steps", "risk"]
    assert experiment.model is not None
    own_model = parse_spec(
        f'[experiments.mine]\nenv = "{own}:model"\nagents = ["uniform"]\nreplicates = 1', folder=folder
    )
    assert own_model.jobs()[0].model_key[2]  # which the code of an environment is part of


def test_the_papers_experiments_with_other_agents(own):
    paper = shipped_spec("paper")
    chosen = paper.with_agents(["c-ucrl", "psconrl-published", f"{own}:Mixed"])
    for quick in (False, True):
        jobs = [job for job in chosen.jobs(quick) if job.experiment.partition(" ")[0] == "box"]
        labels = {(job.experiment, job.label, job.known_costs): None for job in jobs}
        assert list(labels) == [
            ("box (costs learned)", "c-ucrl", False),
            ("box (costs learned)", "psconrl-published", False),
            ("box (costs learned)", "Mixed", False),
            ("box", "c-ucrl", True),  # psconrl-published would repeat its runs
            ("box", "Mixed", True),
        ]
    rival, mixed = (next(job for job in jobs if job.label == label) for label in ("c-ucrl", "Mixed"))
    assert rival.agent_options == {"h": 1000, "coef": 0.5}  # the settings of the file stay
    assert mixed.agent == f"{own}:Mixed"
    assert mixed.horizon == rival.horizon == 20_000
    more = paper.with_agents(["all", f"{own}.py:Mixed"])
    for quick in (False, True):
        usual = {job.label for job in paper.jobs(quick) if job.experiment == "marsrover-8x8"}
        assert {job.label for job in more.jobs(quick) if job.experiment == "marsrover-8x8"} == usual | {"Mixed"}
    assert ("fha" in usual, len(usual)) == (False, 6)  # as the short form says
    with pytest.raises(ConfigError, match="unknown agent 'psconl'; did you mean 'psconrl'"):
        paper.with_agents(["psconl"])
    with pytest.raises(ConfigError, match="names that differ; got 'fha, fha'"):
        paper.with_agents(["fha", "fha"])


@pytest.mark.full
@pytest.mark.usefixtures("no_processes", "no_maps")
def test_figure_2_with_an_agent_of_ones_own_is_one_command(folder, own, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "figure2", "--quick", "--agents", f"uniform,{own}.py:Mixed", "--out", "r", "--workers", "2"])
    assert stop.value.code in (0, None)
    drawn = (folder / "r" / "figure2.svg").read_text()
    assert "Mixed" in drawn
    assert "uniform" in drawn
    assert "PSConRL" not in drawn
    assert "violation" in drawn
    for arguments, message in (
        (["figure1", "--agents", "fha"], "--agents: figure1 has fixed agents"),
        (["figure2", "--agents", ","], "--agents: at least one agent must be named"),
        (["figure2", "--agents", "psconl"], "--agents: unknown agent 'psconl'; did you mean 'psconrl'?"),
        (["figure3", "--agents", f"{own}:Missing"], f"--agents: {own}:Missing: {own} has no 'Missing'"),
    ):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(["reproduce", *arguments, "--out", "never"])
        assert stop.value.code == 2
        *_, line = capsys.readouterr().err.splitlines()  # after the notice that user code is run
        assert message in line
    assert not (folder / "never").exists()


def test_an_experiment_names_code_of_its_own_without_a_table(folder, own):
    """By file or by module, with overrides; it plays as under a label, and other processes find it."""
    text = f"""
    replicates = 1
    [experiments.marsrover-4x4]
    agents = ["{own}.py:Mixed", "uniform"]
    horizon = 100
    quick = {{ agents = ["{own}:Mixed"] }}
    override."{own}.py:Mixed" = {{ options = {{ share = 0.25 }} }}
    """
    spec = parse_spec(text, folder=folder)
    jobs = spec.jobs()
    assert [(job.agent, job.label) for job in jobs] == [(f"{own}:Mixed", f"{own}:Mixed"), ("uniform", "uniform")]
    assert [job.agent for job in spec.jobs(quick=True)] == [f"{own}:Mixed"]
    assert [dict(job.agent_options) for job in jobs] == [{"share": 0.25}, {}]
    assert jobs[0].code == digest(f"{own}:Mixed")
    run_sweep(jobs, folder / "results.db", executor=AtOnce())
    with Store(folder / "results.db") as store:
        assert {row[0] for row in store.query("SELECT label FROM runs WHERE error = ''")} == {f"{own}:Mixed", "uniform"}


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("nowhere.py:Mixed", r"\[experiments\.queue\] nowhere\.py:Mixed: no such file"),
        ("{own}:Coil", r"\[experiments\.queue\] .*has no 'Coil'"),
        ("mixed", r"unknown agent 'mixed'.*\(one of your own is module:Class or file\.py:Class\)"),
    ],
)
def test_an_agent_that_an_experiment_cannot_find_is_named(folder, own, agent, message):
    with pytest.raises(ConfigError, match=message):
        parse_spec(f'[experiments.queue]\nagents = ["{agent.format(own=own)}"]', folder=folder)
