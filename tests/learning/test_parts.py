"""Agents are made of parts: objects in Python, names and tables in specs, with the same meaning."""

import copy
import inspect
import itertools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import psconrl
from psconrl import CMDP, CMDPEnv, PSConRL, simulate
from psconrl.agents import (
    CUCRL,
    FHA,
    Balance,
    Bernstein,
    Budget,
    Dirichlet,
    Doubling,
    EmpiricalMeans,
    Endless,
    EveryRound,
    Explore,
    FlooredCounts,
    Hoeffding,
    LearnedMass,
    Ouyang,
    Proportional,
    Published,
    PublishedMeans,
    RarelyExplore,
    Repay,
    SampledCosts,
    Scaled,
    Schedule,
    SquareRoot,
    Unconstrained,
    Uniformly,
    WhenSlow,
    make,
)
from psconrl.errors import AgentError, ConfigError
from psconrl.learning.part import Part, argument_names, same_data
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.learning.registry import RECIPES, TABLE, load_agent
from psconrl.report.style import title_of
from psconrl.systems.noise import Bernoulli
from psconrl.systems.priors import Beta
from psconrl.systems.system import System

EVERY_PART = [part for kind in Part.kinds.values() for part in kind.known.values()]
ALONE = [part for part in EVERY_PART if part.stands_alone]


def made_of(part):
    """A part with default options, for two states, two actions and a constraint."""
    if part is not Structured:
        return part()
    system = System(
        state={"on": 2},
        action={"press": 2},
        noise={"works": Bernoulli(Beta(1, 1))},
        step={"on": "1 - on if press == 1 and works == 1 else on"},
        costs={"light": "on", "effort": "press"},
        minimise="light",
        limits=["effort <= 0.5"],
    )
    return Structured(system.structure)


@pytest.mark.parametrize("part", [*ALONE, Structured])
def test_every_part_is_made_of_its_own_table(part):
    made = made_of(part)
    again = Part.kinds[part.kind].from_dict(made.to_dict())
    assert type(again) is part
    assert same_data(again.to_dict(), made.to_dict())
    assert repr(made).startswith(f"{part.__name__}(")
    assert inspect.getdoc(part)
    assert made.made_for(2, 2, 1) is not made


def test_the_kinds_and_names_are_those_of_the_documentation():
    found = {kind: sorted(part.known) for kind, part in Part.kinds.items()}
    expected = {
        "belief": ["dirichlet", "floored", "learned-mass", "candidates", "draws", "structured", "tied"],
        "schedule": [
            "ouyang",
            "doubling",
            "steady",
            "square-root",
            "cube-root",
            "length-only",
            "growing",
            "every-round",
            "published",
        ],
        "cost_belief": ["empirical-means", "published-means", "sampled"],
        "fallback": ["explore", "uniform", "unconstrained", "least-excess", "rarely-explore"],
        "radius": ["scaled", "hoeffding", "bernstein"],
        "ledger": ["repay", "balance", "gradual", "tightened"],
        "planning_horizon": ["endless", "proportional"],
        "commitment": ["when-slow"],
        "doubt": ["budget"],
    }
    assert found == {kind: sorted(names) for kind, names in expected.items()}


@pytest.mark.parametrize(
    ("name", "flat", "parts"),
    [
        ("psconrl", {}, (LearnedMass(), SquareRoot(), RarelyExplore(), Balance(0.1), Proportional(1 / 3))),
        (
            "psconrl",
            {"prior": 0.05},
            (Dirichlet(0.05), SquareRoot(), RarelyExplore(), Balance(0.1), Proportional(1 / 3)),
        ),
        ("psconrl", {"within": 0.1}, (LearnedMass(), SquareRoot(), RarelyExplore(), Balance(0.1), Proportional(1 / 3))),
        ("psconrl", {"share": 0.3}, (LearnedMass(), SquareRoot(), RarelyExplore(), Balance(0.3), Proportional(1 / 3))),
        (
            "psconrl",
            {"schedule": "doubling", "ledger": "repay", "share": 0.3},
            (LearnedMass(), Doubling(), RarelyExplore(), Repay(0.3), Proportional(1 / 3)),
        ),
        (
            "psconrl",
            {"exact": False, "pool": "all", "ledger": "none", "factor": 1.0},
            (LearnedMass(exact=False, pool="all"), SquareRoot(), RarelyExplore(), None, Proportional(1.0)),
        ),
        (
            "psconrl",
            {"belief": None, "ledger": None, "planning_horizon": "endless"},
            (LearnedMass(), SquareRoot(), RarelyExplore(), None, Endless()),
        ),
        ("psconrl-plain", {}, (Dirichlet(), Ouyang(), Explore(), None, Endless())),
        ("psconrl-plain", {"prior": 0.05}, (Dirichlet(0.05), Ouyang(), Explore(), None, Endless())),
        (
            "psconrl-plain",
            {"belief": "floored", "prior": 1.0},
            (FlooredCounts(1.0), Ouyang(), Explore(), None, Endless()),
        ),
        (
            "psconrl-plain",
            {"belief": {"name": "floored", "prior": 1.0}},
            (FlooredCounts(1.0), Ouyang(), Explore(), None, Endless()),
        ),
        ("psconrl-plain", {"action": "least_tried"}, (Dirichlet(), Ouyang(), Explore("least_tried"), None, Endless())),
        ("psconrl-plain", {"schedule": EveryRound()}, (Dirichlet(), EveryRound(), Explore(), None, Endless())),
        ("psconrl-plain", {"ledger": "repay"}, (Dirichlet(), Ouyang(), Explore(), Repay(0.1), Endless())),
        ("psconrl-paper", {}, (Dirichlet(0.1), Ouyang(), Explore(), None, Endless())),
        ("psconrl-paper", {"belief": "floored"}, (FlooredCounts(0.1), Ouyang(), Explore(), None, Endless())),
        ("psconrl-repaying", {"share": 1.0}, (Dirichlet(), Ouyang(), Explore(), Repay(1.0), Endless())),
        ("psconrl-repaying", {"ledger": None}, (Dirichlet(), Ouyang(), Explore(), None, Endless())),
        ("psconrl-published", {}, (FlooredCounts(0.05), Published(), Uniformly(), None, Endless())),
        ("psconrl-published", {"prior": 0.2}, (FlooredCounts(0.2), Published(), Uniformly(), None, Endless())),
        ("cmdp-psrl", {}, (Dirichlet(), Doubling(), Unconstrained(), None, Endless())),
        ("cmdp-psrl", {"schedule": "every-round"}, (Dirichlet(), EveryRound(), Unconstrained(), None, Endless())),
    ],
)
def test_words_and_objects_make_the_same_agent(name, flat, parts):
    agent = make(name, 3, 2, [0.2], seed=0, **flat)
    slots = dict(zip(("belief", "schedule", "fallback", "ledger", "planning_horizon"), parts, strict=True))
    slots["commitment"] = WhenSlow(flat.get("within", 0.05)) if name == "psconrl" else None
    slots["doubt"] = Budget() if name == "psconrl" else None
    means = PublishedMeans() if name == "psconrl-published" else EmpiricalMeans()
    slots["cost_belief"] = SampledCosts() if name == "psconrl" else means
    wanted = PSConRL(3, 2, [0.2], **slots, seed=0).config()
    assert repr(agent.config()) == repr(wanted)
    assert agent.recipe == name


@pytest.mark.parametrize(
    ("name", "flat", "radius"),
    [
        ("c-ucrl", {}, Scaled(0.1)),
        ("c-ucrl", {"coef": 0.5}, Scaled(0.5)),
        ("c-ucrl", {"coef": None}, Hoeffding(0.05)),
        ("c-ucrl", {"coef": None, "delta": 0.2}, Hoeffding(0.2)),
        ("c-ucrl", {"delta": 0.2}, Hoeffding(0.2)),
        ("ucrl-cmdp", {"coef": None}, Hoeffding(0.05)),
        ("ucrl-cmdp", {"radius": "bernstein", "delta": 0.2}, Bernstein(0.2)),
        ("fha", {"coef": None}, Bernstein(0.05)),
        ("fha", {"delta": 0.2, "coef": None}, Bernstein(0.2)),
        ("fha", {"radius": {"name": "hoeffding", "delta": 0.3}}, Hoeffding(0.3)),
        ("span-fha", {"coef": 0}, Scaled(0)),
    ],
)
def test_a_radius_is_chosen_by_its_options_too(name, flat, radius):
    assert repr(make(name, 3, 2, [0.2], seed=0, horizon=50, **flat).radius) == repr(radius)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("psconrl", {"schedule": "doublin"}, "unknown schedule 'doublin'; did you mean 'doubling'"),
        ("psconrl", {"schedule": {"name": "doubling", "prior": 1}}, "schedule 'doubling': unknown option 'prior'"),
        ("psconrl", {"belief": "flored", "prior": 1}, "unknown belief 'flored'; did you mean 'floored'"),
        ("psconrl", {"schedule": {}}, "schedule must be a name or a table with one"),
        ("psconrl", {"schedule": Repay()}, r"schedule must be one such as Doubling\(\); got Repay\(share=0.1\)"),
        ("psconrl", {"piror": 1}, "psconrl: unknown option 'piror'; did you mean 'prior'"),
        ("psconrl-paper", {"share": 0.1}, "option 'share' needs a ledger; say ledger=repay or ledger=balance"),
        ("psconrl", {"planning_horizon": "endles"}, "unknown planning_horizon 'endles'; did you mean 'endless'"),
        ("psconrl", {"factor": 0.0}, "factor must be a number above 0 and at most 1"),
        ("psconrl", {"belief": "none"}, "unknown belief 'none'"),
        ("c-ucrl", {"repay": 0.1}, "unknown option 'repay'"),
        ("cmdp-psrl", {"action": "shortest"}, "option 'action' does not go with fallback 'unconstrained'"),
        ("c-ucrl", {"coef": 0.1, "delta": 0.1}, "option 'delta' does not go with radius 'scaled'"),
        ("c-ucrl", {"delta": 0.1, "coef": 0.1}, "option 'coef' does not go with radius 'hoeffding'"),
        ("c-ucrl", {"radius": "bernstein"}, r"one for each pair, such as Hoeffding\(\); got Bernstein\(delta=0.05\)"),
    ],
)
def test_what_is_wrong_with_a_part_is_said_in_one_line(name, options, message):
    with pytest.raises((AgentError, ConfigError), match=message) as caught:
        make(name, 3, 2, [0.2], **options)
    assert "\n" not in str(caught.value)


class Pulsing(Schedule):
    """A user's own part: episodes of a fixed length, every other one twice as long. It remembers which."""

    name = "pulsing"

    def __init__(self, steps=5):
        self.steps = steps
        self.odd = False

    def caps(self, counts):
        return self.steps * (1 + self.odd), None

    def ended(self, steps):
        self.odd = not self.odd

    def state(self):
        return {"odd": self.odd}

    def restore(self, state):
        self.odd = bool(state["odd"])


@pytest.fixture
def _without_pulsing():
    yield
    Schedule.known.pop("pulsing", None)


@pytest.mark.usefixtures("_without_pulsing")
def test_a_part_of_ones_own_works_like_ours_and_is_saved_with_its_memory(tmp_path):
    Schedule.known["pulsing"] = Pulsing
    cmdp = psconrl.load("counterexample")
    agent = PSConRL(2, 2, cmdp.thresholds, cmdp.costs, schedule=Pulsing(3), seed=0)
    trace = simulate(cmdp, agent, 12, seed=0)
    assert trace.episodes.length == [3, 6, 3]
    agent.finish()
    agent.save(tmp_path / "agent.npz")
    again = load_agent(tmp_path / "agent.npz")
    assert (again.schedule.steps, again.schedule.odd) == (3, True)
    assert make("psconrl", 2, 2, [0.5], schedule="pulsing", steps=7).schedule.steps == 7
    del Schedule.known["pulsing"]
    with pytest.raises(AgentError, match=r"unknown schedule 'pulsing'.*a part of your own is known once"):
        load_agent(tmp_path / "agent.npz")


Schedule.known.pop("pulsing")


def test_a_part_is_shown_in_one_line_and_its_prior_is_not_copied_for_every_agent():
    belief = Dirichlet(np.ones((3, 2, 3)))
    assert (repr(belief), repr(Dirichlet(0.1))) == ("Dirichlet(prior=array(3, 2, 3))", "Dirichlet(prior=0.1)")
    assert repr(Dirichlet(csr_array(np.ones((6, 3))), surprise=0.1)) == "Dirichlet(prior=sparse(6, 3), surprise=0.1)"
    assert PSConRL(3, 2, [0.5], belief=belief).belief.prior is belief.prior
    assert not belief.prior.flags.writeable


def test_a_part_needs_a_name_that_is_not_taken():
    with pytest.raises(AgentError, match="Nameless needs a name of its own, such as name = 'nameless'"):
        type("Nameless", (Doubling,), {})
    with pytest.raises(AgentError, match="Other: Doubling is a schedule called 'doubling' already"):
        type("Other", (Schedule,), {"name": "doubling"})
    assert Schedule.known["doubling"] is Doubling


def test_config_is_what_the_constructor_takes():
    for recipe in TABLE:
        if recipe.listed:
            baseline = {"baseline": np.full((2, 2), 0.5), "slack": 0.1, "ranges": [[0, 1]] * 2}
            given = baseline if recipe.name == "safe" else {}
            agent = make(recipe.name, 2, 2, [0.5], seed=0, horizon=50, **given)
            assert set(agent.config()) == set(argument_names(recipe.cls))

    class Forgetful(CUCRL):
        name = "forgetful"

        def __init__(self, n_states, n_actions, thresholds, costs=None, *, boldness=1, seed=None):
            super().__init__(n_states, n_actions, thresholds, costs, seed=seed)

    with pytest.raises(AgentError, match=r"Forgetful takes 'boldness' and must keep it as self\.boldness"):
        Forgetful(2, 2, [0.5]).config()

    class Vague(CUCRL):
        name = "vague"

        def __init__(self, *args, **options):
            super().__init__(*args, **options)

    with pytest.raises(AgentError, match=r"Vague\.__init__ must name its arguments, or override config\(\)"):
        Vague(2, 2, [0.5]).config()


@pytest.mark.parametrize("fallback", [Explore(), Explore("least_tried"), Uniformly(), Unconstrained()])
def test_a_fallback_is_for_infeasible_samples_alone(fallback):
    kinds = {"explore": "explore", "uniform": "uniform", "unconstrained": "unconstrained"}
    costs = np.ones((2, 2, 2))
    assert PSConRL(2, 2, [2.0], costs, fallback=fallback, seed=0).begin(0).kind == "optimal"
    assert PSConRL(2, 2, [0.5], costs, fallback=fallback, seed=0).begin(0).kind == kinds[fallback.name]


@pytest.mark.parametrize("fallback", [Explore(), Uniformly(), Unconstrained()])
def test_what_could_not_be_settled_is_played_as_unsettled(fallback, monkeypatch):
    def never(*args):
        raise psconrl.errors.SolverError("beyond floating point")

    agent = PSConRL(2, 2, [2.0], np.ones((2, 2, 2)), fallback=fallback, seed=0)
    monkeypatch.setattr(agent.planner, "optimal", never)
    episode = agent.begin(0)
    assert episode.kind == "unsettled"
    deterministic = bool((episode.policy.max(axis=1) == 1).all())
    assert deterministic == (fallback.name == "explore")


@pytest.mark.parametrize("seed", range(6))
def test_a_radius_of_one_is_as_good_as_a_larger_one_in_c_ucrl(seed):
    """The theory's radius may be beyond 1; costs are cut to their range, so that nothing but rounding depends on it."""
    rng = np.random.default_rng(seed)
    agent = CUCRL(3, 2, [0.5, 0.1], rng.normal(size=(3, 3, 2)), radius=Hoeffding(0.05))
    agent.counts.visits[:] = rng.integers(0, 12, size=6)
    agent.rounds = int(agent.counts.visits.sum())
    cut = agent._cautious_costs(np.empty((6, 3)))
    iota = agent._log_term(0.05)
    beyond = np.sqrt(iota / (2 * np.maximum(agent.counts.visits, 1)))
    assert beyond.max() > 1
    agent.radius = SimpleNamespace(checked_widths=lambda visits, p_bar, log_term: beyond)
    np.testing.assert_allclose(agent._cautious_costs(np.empty((6, 3))), cut, rtol=1e-14, atol=1e-15)


def test_fha_takes_any_radius():
    cmdp = psconrl.load("counterexample")
    for radius in (Scaled(0.5), Hoeffding(0.1), Bernstein(0.1)):
        agent = FHA(2, 2, cmdp.thresholds, cmdp.costs, horizon=60, H=5, radius=radius, seed=0)
        assert simulate(cmdp, agent, 60, seed=0).horizon == 60


# The registry


def test_one_table_names_titles_and_classes():
    assert len({recipe.name for recipe in TABLE}) == len(TABLE)
    assert title_of("cmdp-psrl") == "CMDP-PSRL"
    assert title_of("psconrl-published") == "PSConRL (authors' code, learns costs)"
    assert title_of("resampling-psconrl") == "PSConRL, resampling"
    assert title_of("user's") == "user's"
    assert all(recipe.title and recipe.summary for recipe in TABLE)


@pytest.mark.parametrize("name", ["cmdp-psrl", "psconrl-paper", "psconrl-published"])
def test_an_agent_remembers_its_recipe_in_provenance_and_file(name, tmp_path):
    from psconrl.simulation.model_run import Simulation

    cmdp = psconrl.load("counterexample")
    run = Simulation(cmdp, make(name, 2, 2, cmdp.thresholds, cmdp.costs, 0), 0)
    assert run.run(20).provenance["agent"] == name
    run.save(tmp_path / "run.npz")
    again = Simulation.resume(cmdp, tmp_path / "run.npz")
    assert (again.agent.recipe, again.trace().provenance["agent"]) == (name, name)
    assert PSConRL.load(tmp_path / "run.npz").recipe == name  # the class is the same


def test_cmdp_psrl_is_psconrl_with_other_parts():
    cmdp = psconrl.load("counterexample")
    parts = {"belief": Dirichlet(), "schedule": Doubling(), "fallback": Unconstrained(), "planning_horizon": Endless()}
    parts["cost_belief"] = EmpiricalMeans()
    one = make("cmdp-psrl", 2, 2, cmdp.thresholds, cmdp.costs, seed=3)
    two = PSConRL(2, 2, cmdp.thresholds, cmdp.costs, ledger=None, commitment=None, seed=3, **parts)
    traces = [simulate(cmdp, agent, 500, seed=1) for agent in (one, two)]
    assert traces[0].cumulative.tolist() == traces[1].cumulative.tolist()
    assert "unconstrained" in traces[0].episodes.kind


def test_the_module_of_agents_has_all_of_them():
    classes = {recipe.cls.__name__ for recipe in TABLE}
    assert classes <= set(psconrl.agents.__all__)
    parts = {part.__name__ for part in EVERY_PART}
    assert parts <= set(psconrl.agents.__all__)
    assert all(inspect.getdoc(getattr(psconrl.agents, name)) for name in psconrl.agents.__all__)
    assert "agents" in dir(psconrl)


def test_every_pair_of_belief_and_schedule_and_fallback_runs():
    cmdp = CMDP(np.full((4, 2), 0.5), np.array([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.2, 0.4]]]), [0.3])
    for belief, schedule, fallback in itertools.product(
        *(
            [n for n, part in Part.kinds[k].known.items() if part.stands_alone]
            for k in ("belief", "schedule", "fallback")
        )
    ):
        agent = make("psconrl", 2, 2, cmdp.thresholds, None, 0, belief=belief, schedule=schedule, fallback=fallback)
        assert simulate(cmdp, agent, 30, seed=0).horizon == 30
    assert len(RECIPES) == len(TABLE) - 1


@pytest.fixture
def forgotten():
    """Names of parts that a test defines, removed after it."""
    before = {kind: dict(part.known) for kind, part in Part.kinds.items()}
    yield
    for kind, part in Part.kinds.items():
        part.known.clear()
        part.known.update(before[kind])


ROVER = psconrl.load("marsrover-4x4")


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize(
    ("limits", "message"),
    [((5, np.ones((2, 2), dtype=np.int64)), "visit_caps"), ((0, None), "max_steps"), ((2.5, None), "max_steps")],
)
def test_what_a_part_of_ones_own_returns_is_looked_at_before_it_is_played(limits, message):
    class Mistaken(Schedule):
        name = "mistaken"

        def caps(self, counts):
            return limits

    agent = PSConRL(16, 4, ROVER.thresholds, ROVER.costs, schedule=Mistaken(), seed=0)
    with pytest.raises(AgentError, match=message):
        simulate(ROVER, agent, 100, seed=0)
    assert agent.episodes == 0  # an episode that could not begin does not count


@pytest.mark.usefixtures("forgotten")
def test_a_part_that_remembers_nothing_at_first_is_restored_all_the_same(tmp_path):
    class Counting(Schedule):
        name = "counting"
        seen = 0

        def caps(self, counts):
            return 1 + self.seen, None

        def ended(self, steps):
            self.seen += 1

        def state(self):
            return {"seen": self.seen} if self.seen else {}

        def restore(self, state):
            self.seen = int(state["seen"])

    agent = PSConRL(16, 4, ROVER.thresholds, ROVER.costs, schedule=Counting(), seed=0)
    simulate(ROVER, agent, 50, seed=0)
    agent.save(tmp_path / "agent.npz")
    assert load_agent(tmp_path / "agent.npz").schedule.seen == agent.schedule.seen > 0


@pytest.mark.usefixtures("forgotten")
def test_a_fault_inside_a_part_is_not_passed_off_as_a_wrong_option():
    class Faulty(Schedule):
        name = "faulty"

        def __init__(self):
            self.broken = None + 1

        def caps(self, counts):
            return 1, None

    with pytest.raises(TypeError, match="unsupported operand"):
        make("psconrl", 16, 4, [0.2], schedule="faulty")
    with pytest.raises(ConfigError, match=r"ucrl-cmdp: missing a required .*'horizon'"):
        make("ucrl-cmdp", 16, 4, [0.2])


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize(
    ("drawn", "message"),
    [(np.ones((3, 2)), "shape"), (np.full((64, 16), np.nan), "distribution"), (np.full((64, 16), 0.5), "distribution")],
)
def test_what_a_belief_of_ones_own_draws_is_looked_at(drawn, message):
    class Odd(Dirichlet):
        name = "odd"

        def sample(self, counts, rng):
            return drawn

    with pytest.raises(AgentError, match=f"what a belief samples.*{message}"):
        PSConRL(16, 4, ROVER.thresholds, ROVER.costs, belief=Odd(), seed=0).begin(0)


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("width", [np.full(64, np.nan), np.full(64, -1.0), np.ones(3)])
@pytest.mark.parametrize("name", ["ucrl-cmdp", "fha", "c-ucrl"])
def test_what_a_radius_of_ones_own_says_is_looked_at(name, width):
    class Odd(Scaled):
        name = "odd"

        def __call__(self, visits, p_bar, log_term):
            return width

    agent = make(name, 16, 4, ROVER.thresholds, ROVER.costs, 0, 100, radius=Odd())
    with pytest.raises(AgentError, match="radius 'odd' must be numbers from 0 on"):
        simulate(ROVER, agent, 200, seed=0)


@pytest.mark.usefixtures("forgotten")
def test_a_belief_that_remembers_is_copied_but_for_its_prior():
    class Remembering(Dirichlet):
        name = "remembering"

        def __init__(self, prior=None):
            super().__init__(prior)
            self.drawn = []

    belief = Remembering(np.ones((2, 2, 2)))
    one, two = (PSConRL(2, 2, [0.5], belief=belief).belief for _ in range(2))
    one.drawn.append(1)
    assert (two.drawn, belief.drawn) == ([], [])
    assert one.prior is two.prior is belief.prior


@pytest.mark.usefixtures("forgotten")
def test_a_part_must_name_its_arguments():
    with pytest.raises(AgentError, match="must name its arguments"):

        class Vague(Schedule):
            name = "vague"

            def __init__(self, **options):
                pass

    assert "vague" not in Schedule.known


def test_a_fresh_agent_to_restore_into_must_have_the_same_options(tmp_path):
    agent = PSConRL(16, 4, ROVER.thresholds, seed=0)
    agent.save(tmp_path / "agent.npz")
    assert load_agent(tmp_path / "agent.npz", PSConRL(16, 4, ROVER.thresholds)).rounds == 0
    for other in (
        PSConRL(16, 4, ROVER.thresholds, belief=Dirichlet(5.0)),
        PSConRL(16, 4, ROVER.thresholds, ROVER.costs),
        PSConRL(16, 4, ROVER.thresholds, ledger=Repay(0.1)),
    ):
        with pytest.raises(AgentError, match=r"made with other (belief|costs|ledger)"):
            load_agent(tmp_path / "agent.npz", other)


def test_a_class_that_extends_another_is_not_taken_for_it(tmp_path):
    class Mine(PSConRL):
        pass

    Mine(2, 2, [0.5]).save(tmp_path / "agent.npz")
    with pytest.raises(AgentError, match="unknown agent 'Mine'"):
        load_agent(tmp_path / "agent.npz")
    assert type(load_agent(tmp_path / "agent.npz", Mine)) is Mine


@pytest.mark.parametrize(
    ("make_it", "message"),
    [
        (
            lambda: PSConRL(ROVER),
            r"PSConRL is not given the model, which it has to learn; write PSConRL\(model\.n_states, model\.n_actions, "
            r"model\.thresholds, model\.costs\); PSConRL\.trusting\(model\) begins with what the model says$",
        ),
        (lambda: PSConRL(ROVER, seed=0), "PSConRL is not given the model"),
        (lambda: PSConRL(model=ROVER, seed=0), "PSConRL is not given the model"),
        (lambda: CUCRL(ROVER), r"CUCRL is not given the model, which it has to learn; write CUCRL\(.*costs\)$"),
        (lambda: PSConRL(CMDPEnv(ROVER)), r"PSConRL\(task\.states\.size, task\.actions\.size, thresholds\) with task"),
        (
            lambda: PSConRL(16, 4, [0.2], prior=0.1),
            r"PSConRL has no argument 'prior', which is an option of a part; write belief=Dirichlet\(prior=\.\.\.\) or",
        ),
        (lambda: PSConRL(16, 4, [0.2], share=0.1), r"ledger=Repay\(share=\.\.\.\)"),
        (lambda: PSConRL(16, 4, [0.2], doubling=True), r"the name of a part; write schedule=Doubling\(\.\.\.\)"),
        (lambda: PSConRL(16, 4, [0.2], sched=0), "has no argument 'sched'; unknown argument 'sched'"),
        (lambda: PSConRL(16, 4, [0.2], shcedule=0), "did you mean 'schedule'"),
        (
            lambda: PSConRL(16, 4),
            r"missing a required argument: 'thresholds'; it takes PSConRL\(n_states, n_act",
        ),
        (lambda: PSConRL(16, 4, [0.2], None, 3), r"too many positional arguments; it takes PSConRL\(n_states"),
        (lambda: PSConRL(16, 4, [0.2], belief="dirichlet"), r"got 'dirichlet'; write Dirichlet\(\.\.\.\), or make"),
        (lambda: PSConRL(16, 4, [0.2], belief=0.1), r"belief must be one such as Dirichlet\(0\.1\); got 0\.1$"),
    ],
)
def test_wrong_arguments_end_in_what_to_write_instead(make_it, message):
    with pytest.raises(AgentError, match=message):
        make_it()


def test_checked_arguments_leave_signatures_and_copies_alone():
    assert list(inspect.signature(PSConRL).parameters)[:4] == ["n_states", "n_actions", "thresholds", "costs"]
    agent = PSConRL(16, 4, ROVER.thresholds, ROVER.costs, seed=0)
    for again in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        assert again.act(0) == copy.deepcopy(agent).act(0)

    class Own(PSConRL):
        def __init__(self, *sizes, **options):
            super().__init__(*sizes, **options)

    assert Own(16, 4, [0.2], seed=0).n_states == 16
