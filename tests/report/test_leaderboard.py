"""The leaderboard: scores, ranks and verdicts by hand; the commands as a user runs them."""

import dataclasses
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import psconrl
from held_out import HELD_OUT
from psconrl.answers.pareto import cost_ranges
from psconrl.cli import main
from psconrl.envs.registry import ENVIRONMENTS
from psconrl.errors import ConfigError
from psconrl.experiment.board_protocol import MOST_VALUES
from psconrl.experiment.checks import check_jobs
from psconrl.experiment.spec import COSTS_SUFFIX, EnvironmentGroup
from psconrl.experiment.spec_file import parse_spec, shipped_spec
from psconrl.learning.registry import RECIPES, title_of
from psconrl.report.curves import Curves, Experiment
from psconrl.report.leaderboard import STRUCTURE_SUFFIX, leaderboard, leaderboards
from psconrl.report.leaderboard_figures import leaderboard_figure, sensitivity_figure
from psconrl.report.leaderboard_tables import (
    entry_table,
    environments_tables,
    markdown_page,
    parts_table,
    standings_table,
)
from psconrl.report.priced_regret import Charge
from psconrl.report.print_table import Bold
from psconrl.report.sensitivity import hyperparameter_table, hyperparameters

RUNS = 12
# Rows of the board by what they are called in the study of hyperparameters. The other Triple-QA there is on no board.
ROWS = {label: label for label in shipped_spec("sensitivity").agents} | {"triple-qa-each": "triple-qa"}
del ROWS["triple-qa"], ROWS["uniform"]
NOT_TUNED = ("psconrl-paper", "safe")  # the authors' value; the level of a guarantee
NATURAL_BORDERS = {"coef": 0.0, "bonus": 0.0, "K": 0.0}  # which these hyperparameters cannot cross
NOISE = np.linspace(-1.0, 1.0, RUNS)


def curves(label, regret, violation, strong=0.0, worst=0.0, seconds=1.0):
    """Runs of 100 rounds with optimum .5 and threshold .2, ending with this regret and violation."""
    totals = np.zeros((RUNS, 1, 2))
    totals[:, 0, 0] = 50.0 + regret + np.zeros(RUNS)
    totals[:, 0, 1] = 20.0 + violation + np.zeros(RUNS)
    return Curves(
        label=label,
        agent=label,
        rounds=np.array([100]),
        cumulative=totals,
        thresholds=np.full((RUNS, 1), 0.2),
        optimum=np.full(RUNS, 0.5),
        replicates=np.arange(RUNS),
        seconds=np.full(RUNS, seconds),
        planning_seconds=np.zeros(RUNS),
        probe=np.empty((RUNS, 0)),
        strong=np.full((RUNS, 1, 2), strong),
        largest_excess=np.full((RUNS, 1, 2), worst),
        summaries=({},) * RUNS,
        title=label,
    )


def environment(name, *agents, price=2.0, range_price=0.5):
    facts = {"prices": [price], "range_prices": [range_price]}
    return Experiment(name, facts, None, {c.label: c for c in agents})


def test_losses_are_in_hundredths_of_uniform_play_and_places_by_hand():
    a = curves("a", 8.0, 1.0, strong=1.5, worst=2.5, seconds=3.0)
    board = leaderboard([environment("w", a, curves("b", 30.0, -5.0), curves("uniform", 80, 30))])
    place = board.places["w"]["a"]
    assert float(place.score.mean) == pytest.approx(12.0)
    assert place.loss == pytest.approx(12.0 / 200 * 100)
    assert place.overspent == pytest.approx(2.0 / 200 * 100)
    assert place.worst == pytest.approx(5.0 / 200 * 100)
    assert place.strong == pytest.approx(3.0 / 200 * 100)
    assert (place.not_worse, place.seconds) == (True, 3.0)
    assert board.places["w"]["b"].overspent == 0.0
    assert [s.label for s in board.standings] == ["a", "b", "uniform"]
    assert [float(s.rank.mean) for s in board.standings] == [1.0, 2.0, 3.0]


def test_columns_charge_what_has_no_shadow_price_at_its_range_price():
    a, uniform = curves("a", 8.0, 1.0, strong=1.5, worst=2.5), curves("uniform", 80, 30)
    one = environment("w", a, uniform, price=0.0, range_price=4.0)
    place = leaderboard([one]).places["w"]["a"]
    assert (place.score.mean, place.loss) == (pytest.approx(8.0 + 4.0), pytest.approx(12.0 / 200 * 100))
    assert [place.overspent, place.worst, place.strong] == pytest.approx([4.0 / 2, 10.0 / 2, 6.0 / 2])
    place = leaderboard([one], Charge(floor=0.5)).places["w"]["a"]
    assert (place.score.mean, place.overspent) == (pytest.approx(8.0 + 2.0), pytest.approx(4.0 / 1.4))


@pytest.mark.parametrize(("strong", "shown"), [(1e-15, 0.0), (1e-8, 2e-8), (np.nan, np.nan)])
def test_violations_that_are_errors_of_rounding_are_0(strong, shown):
    a, uniform = curves("a", 8.0, 1.0, strong=strong), curves("uniform", 80, 30)
    place = leaderboard([environment("w", a, uniform, price=0.0, range_price=4.0)]).places["w"]["a"]
    assert place.strong == pytest.approx(shown, rel=1e-6, abs=0.0, nan_ok=True)


def test_results_of_an_earlier_version_get_one_line():
    one = environment("w", curves("a", 1.0, 0.0), curves("uniform", 9.0, 0.0))
    old = dataclasses.replace(one, facts={"prices": [2.0]})
    with pytest.raises(ConfigError, match="'w' was run by an earlier version, without range prices; run it again"):
        leaderboard([old])
    with pytest.raises(ConfigError, match="'w' was run by an earlier version"):
        hyperparameters([old])
    with pytest.raises(ConfigError, match="'w' has no score, since it has no shadow prices"):
        hyperparameters([dataclasses.replace(one, facts={})])


def test_ranks_are_averaged_over_the_environments_that_an_agent_plays():
    environments = [
        environment("one", curves("a", 1.0, 0.0), curves("b", 2.0, 0.0), curves("uniform", 9.0, 0.0)),
        environment(
            "two", curves("a", 5.0, 0.0), curves("b", 2.0, 0.0), curves("c", 3.0, 0.0), curves("uniform", 9.0, 0.0)
        ),
    ]
    standings = {s.label: s for s in leaderboard(environments).standings}
    ranks = {label: float(standing.rank.mean) for label, standing in standings.items()}
    assert ranks == {"a": 2.0, "b": 1.5, "c": 2.0, "uniform": 3.5}
    assert standings["c"].environments == 1
    assert standings["a"].environments == 2
    assert (standings["b"].rank.low, standings["b"].rank.high) == (1.5, 1.5)  # these runs are deterministic


def test_equal_scores_share_their_rank():
    board = leaderboard([environment("w", curves("a", 1.0, 0.0), curves("b", 1.0, 0.0), curves("uniform", 9.0, 0.0))])
    assert [float(s.rank.mean) for s in board.standings] == [1.5, 1.5, 3.0]


def test_an_agent_indistinguishable_from_the_best_is_not_significantly_worse():
    luck = 5.0 * np.cos(7.0 * np.arange(RUNS))
    board = leaderboard(
        [
            environment(
                "w",
                curves("a", 10.0, 0.0),
                curves("b", 10.5 + luck - luck.mean(), 0.0),
                curves("c", 14 + NOISE, 0.0),
                curves("uniform", 90.0, 0.0),
            ),
        ]
    )
    assert {label: place.not_worse for label, place in board.places["w"].items()} == {
        "a": True, "b": True, "c": False, "uniform": False,
    }  # fmt: skip
    low, high = board.standings[1].rank.low, board.standings[1].rank.high
    assert low < 2.0 < high or (low, high) == (1.0, 2.0)


def test_the_verdict_is_corrected_for_all_tests_of_the_board():
    """A p-value between .05/150 and .05/3: significant in a single environment, not on a board of fifty."""
    close = curves("b", 10.0 + 1.45 * (0.75 + NOISE * 0.9), 0.0)
    one = environment("w", curves("a", 10.0, 0.0), close, curves("uniform", 90.0, 0.0))
    assert not leaderboard([one]).places["w"]["b"].not_worse
    many = [one, *(dataclasses.replace(one, name=f"w{k}") for k in range(49))]
    assert leaderboard(many).places["w"]["b"].not_worse


def test_of_few_runs_nothing_is_said():
    agents = [curves("a", 1.0 + NOISE, 0.0), curves("b", 50.0, 0.0), curves("uniform", 90.0, 0.0)]
    parts = ("cumulative", "thresholds", "optimum", "replicates", "seconds", "strong", "largest_excess")
    few = [dataclasses.replace(c, **{name: getattr(c, name)[:3] for name in parts}) for c in agents]
    board = leaderboard([environment("w", *few)])
    assert all(place.not_worse is None for place in board.places["w"].values())
    assert [row[3] for row in standings_table(board, {})["rows"]] == ["-"] * 3
    assert "Bold" not in str(environments_tables(board)[0]["rows"])
    assert "•" not in str([t.get_text() for t in leaderboard_figure({"w": board}).axes[0].texts])


def test_an_environment_with_enough_runs_counts_though_others_have_few():
    agents = [curves("a", 1.0 + NOISE, 0.0), curves("b", 50.0, 0.0), curves("uniform", 90.0, 0.0)]
    parts = ("cumulative", "thresholds", "optimum", "replicates", "seconds", "strong", "largest_excess")
    few = [dataclasses.replace(c, **{name: getattr(c, name)[:9] for name in parts}) for c in agents]
    standings = leaderboard([environment("few", *few), environment("enough", *agents)]).standings
    assert [s.not_worse for s in standings] == [1, 0, 0]


GROUPS = (
    EnvironmentGroup("seen", "Known to the authors.", ("one", "one (costs noisy)")),
    EnvironmentGroup("not seen", "Written later.", ("two", "three")),
    EnvironmentGroup("empty", "", ("four",)),
)


def grouped():
    """Agent a is the best of the first environment and the worst of the others, which c does not all play."""
    return [
        environment("one", curves("a", 1.0, 0.0), curves("b", 2.0, 0.0), curves("uniform", 10.0, 0.0)),
        environment("two", curves("a", 9.0, 0.0), curves("b", 2.0, 0.0), curves("uniform", 8.0, 0.0)),
        environment(
            "three", curves("a", 6.0, 0.0), curves("b", 2.0, 0.0), curves("c", 1.0, 0.0), curves("uniform", 5.0, 0.0)
        ),
    ]


def test_a_board_in_parts_has_standings_for_each_and_for_both():
    board = leaderboard(grouped(), groups=GROUPS)
    assert [(part.title, part.environments) for part in board.parts] == [
        ("seen", ("one",)),
        ("not seen", ("two", "three")),
    ]
    first, second = ({s.label: (float(s.rank.mean), s.loss) for s in part.standings} for part in board.parts)
    assert first == {"a": (1.0, 10.0), "b": (2.0, 20.0), "uniform": (3.0, 100.0)}
    assert second == {
        "a": (3.5, pytest.approx((112.5 + 120) / 2)),
        "b": (1.5, pytest.approx((25 + 40) / 2)),
        "c": (1.0, pytest.approx(20.0)),
        "uniform": (2.5, 100.0),
    }
    assert [s.label for s in board.parts[1].standings] == ["c", "b", "uniform", "a"]
    overall = {s.label: float(s.rank.mean) for s in board.standings}
    assert overall == {s.label: float(s.rank.mean) for s in leaderboard(grouped()).standings}
    assert overall["a"] == pytest.approx((1.0 + 3.0 + 4.0) / 3)
    assert leaderboard(grouped()).parts == ()
    assert leaderboard(grouped()[:1], groups=GROUPS).parts == ()  # one group: the standings are the same


def test_environments_in_no_group_are_a_part_of_their_own():
    board = leaderboard(grouped(), groups=GROUPS[:1])
    assert [(part.title, part.environments) for part in board.parts] == [
        ("seen", ("one",)),
        ("other", ("two", "three")),
    ]
    whole = leaderboard(grouped(), groups=GROUPS)
    assert [(s.label, s.loss) for s in board.parts[1].standings] == [
        (s.label, s.loss) for s in whole.parts[1].standings
    ]
    assert [t["header"] for t in environments_tables(board)] == [["agent", "one"], ["agent", "two", "three"]]
    assert parts_table(board)["header"][1:4] == ["rank, all", "rank, seen", "rank, other"]
    assert parts_table(board)["note"].endswith(" other: 2 environments.")


def test_the_tables_and_the_figure_of_a_board_in_parts():
    board = leaderboard(grouped(), groups=GROUPS)
    table = parts_table(board)
    assert table["header"] == [
        "agent", "rank, all", "rank, seen", "rank, not seen", "loss, all", "loss, seen", "loss, not seen",
    ]  # fmt: skip
    rows = {row[0]: [str(cell) for cell in row[1:]] for row in table["rows"]}
    assert rows["c"] == ["1 [1, 1]", "", "1 [1, 1]", "20", "", "20"]
    assert rows["a"] == ["2.67 [2.67, 2.67]", "1 [1, 1]", "3.5 [3.5, 3.5]", "81", "10", "116"]
    assert "seen: 1 environments. Known to the authors." in table["note"]
    assert [t["header"] for t in environments_tables(board)] == [["agent", "one"], ["agent", "two", "three"]]
    text = markdown_page({"Costs known": board}, {})
    assert "### By part" in text
    assert "### By environment, not seen" in text
    assert [row[0] for row in entry_table("a", {"Costs known": board})["rows"]] == [
        "Costs known", "Costs known, seen", "Costs known, not seen",
    ]  # fmt: skip
    shuffled = leaderboard(grouped()[::-1], groups=GROUPS)
    axes = leaderboard_figure({"Costs known": shuffled}).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["one", "three", "two"]
    assert [t.get_text() for t in axes.texts][-2:] == ["seen", "not seen"]
    assert [line.get_xdata()[0] for line in axes.lines] == [0.5]


def test_environments_without_prices_or_uniform_play_and_boards_without_runs_get_one_line():
    with pytest.raises(ConfigError, match=r"'w' has no place on a leaderboard: it needs .* runs of 'uniform'"):
        leaderboard([environment("w", curves("a", 1.0, 0.0))])
    with pytest.raises(ConfigError, match="needs finished runs"):
        leaderboard([])


def test_tables_and_pictures():
    strong = [curves("a", 1.0, 0.0), curves("uniform", 9.0, 1.0, strong=np.nan)]
    board = leaderboard(
        [environment("w", *strong), environment("v", curves("uniform", 4.0, 0.0), curves("b", 1.0, 0.0))]
    )
    table = standings_table(board, {"a": "authors'"})
    shown = [str(cell) for cell in table["rows"][0]]
    assert shown == ["a", "authors'", "1 [1, 1]", "1", "1", "7.7", "7.7", "7.7", "0", "0", "0", "-", "1"]
    assert table["rows"][-1][10] == "-"
    assert environments_tables(board)[0]["rows"][0] == ["a", Bold(board.places["w"]["a"].score), ""]
    text = markdown_page({"Costs known": board}, {})
    assert "## Costs known" in text
    assert "\n| a | **1 [1, 1]** |  |\n" in text
    figure = leaderboard_figure({"Costs known": board, "Costs learned": board})
    shown = [t.get_text() for t in figure.axes[0].texts]
    assert shown == ["7.7•", "25•", "100", "100"]


def test_the_hyperparameter_of_an_agent_has_its_mean_loss_over_environments():
    one = environment(
        "one", curves("c-ucrl K=1.0", 10.0, 0.0), curves("c-ucrl K=0.5", 30.0, 0.0), curves("uniform", 100.0, 0.0)
    )
    two = environment(
        "two", curves("c-ucrl K=1.0", 40.0, 0.0), curves("c-ucrl K=0.5", 10.0, 0.0), curves("uniform", 200.0, 0.0)
    )
    (hyperparameter,) = hyperparameters([one, two])
    assert (hyperparameter.label, hyperparameter.option, hyperparameter.values) == ("c-ucrl", "K", (0.5, 1.0))
    assert [float(loss.mean) for loss in hyperparameter.losses] == pytest.approx([(30 + 5) / 2, (10 + 20) / 2])
    assert hyperparameter.best == 1
    assert hyperparameter_table([hyperparameter])["rows"] == [["C-UCRL", "K", "0.5: 18", "1: 15*"]]
    figure = sensitivity_figure([hyperparameter])
    assert (figure.axes[0].get_title(), figure.axes[0].get_xscale()) == ("C-UCRL", "log")


def test_a_hyperparameter_may_be_0_and_agents_may_have_different_numbers_of_values():
    labels = [*(f"c-ucrl coef={x}" for x in (0, 0.01, 0.1)), "fha H=8", "fha H=16", "uniform"]
    found = hyperparameters([environment("one", *(curves(x, 10.0 * k, 0.0) for k, x in enumerate(labels, 1)))])
    assert [each.values for each in found] == [(0.0, 0.01, 0.1), (8.0, 16.0)]
    assert [len(row) for row in hyperparameter_table(found)["rows"]] == [5, 5]
    assert hyperparameter_table(found)["rows"][1][-1] == ""
    panels = sensitivity_figure(found).axes
    assert [panel.get_xscale() for panel in panels[:2]] == ["symlog", "log"]
    places = panels[0].transData.transform([(x, 10.0) for x in found[0].values])[:, 0]
    assert (np.diff(places) > 10).all()  # pixels apart
    assert [tick.get_text() for tick in panels[0].get_xticklabels()] == ["0", "0.01", "0.1"]


def test_the_shipped_board_has_every_environment_for_all_costs_and_every_agent():
    spec = shipped_spec("leaderboard")
    jobs = [job for job in spec.jobs() if not job.experiment.endswith(STRUCTURE_SUFFIX)]
    known = {job.experiment for job in jobs if "(costs" not in job.experiment}
    assert {name + suffix for name in known for suffix in COSTS_SUFFIX.values()} == {job.experiment for job in jobs}
    assert all(job.known_costs == (job.experiment in known) for job in jobs)
    assert all((job.emission == "uniform") == job.experiment.endswith(" (costs noisy)") for job in jobs)
    assert all(agent.setting for agent in spec.agents.values())
    environments = {(job.env, str(job.env_options)) for job in jobs}
    tuned_on = {(job.env, str(job.env_options)) for job in shipped_spec("sensitivity").jobs()}
    assert not environments & tuned_on
    assert shipped_spec("sensitivity").seed != spec.seed


def test_the_shipped_board_is_in_two_groups_of_which_one_was_not_seen_in_any_design():
    spec = shipped_spec("leaderboard")
    seen, unseen = (list(dict.fromkeys(name.partition(" (")[0] for name in g.experiments)) for g in spec.groups)
    assert seen == [
        "marsrover-4x4", "slip", "marsrover-8x8", "box", "counterexample", "riverswim", "corridor", "islands", "queue",
        "inventory", "small-ward", "small-network", "small-stock",
    ]  # fmt: skip
    assert unseen == ["chain", "garnet seed=101", "garnet seed=102", "garnet-two-limits", *HELD_OUT]
    structured = {job.experiment for job in spec.jobs() if job.experiment.endswith(STRUCTURE_SUFFIX)}
    assert {job.experiment for job in spec.jobs()} - structured == {n for g in spec.groups for n in g.experiments}
    for name, (env, options, horizon, _) in HELD_OUT.items():
        experiment = spec.experiments[name]
        assert (experiment.env, experiment.options, experiment.horizon) == (env, options, horizon)


def test_the_shipped_board_leaves_out_agents_only_where_their_theory_does_not_apply():
    spec = shipped_spec("leaderboard")
    several = {name for name, e in spec.experiments.items() if psconrl.load(e.env, **e.options).n_constraints > 1}
    left_out = {name: set(e.without) for name, e in spec.experiments.items() if e.without}
    assert left_out.pop("no-breakdown") == {
        "sa-cvi-ucb", "psconrl-account", "lagrangian-theorem", "safe", "pd-lscvi-ucb", "pd-lsvi-ucb", "pdnac", "tilted",
    }  # fmt: skip
    one = {"sa-cvi-ucb", "psconrl-account", "tilted"}
    assert left_out == {name: one for name in several if not name.endswith(STRUCTURE_SUFFIX)}


def test_the_shipped_board_gives_the_structure_of_every_built_in_system():
    jobs = [job for job in shipped_spec("leaderboard").jobs() if job.experiment.endswith(STRUCTURE_SUFFIX)]
    assert {job.env for job in jobs} == {name for name, e in ENVIRONMENTS.items() if e.system is not None}
    assert {job.label for job in jobs if job.knowledge.structure} == {
        job.label for job in jobs if "struct" in job.label
    }
    plain = {(job.env, str(job.env_options), job.horizon) for job in shipped_spec("leaderboard").jobs()}
    assert {(job.env, str(job.env_options), job.horizon) for job in jobs} <= plain
    assert all(job.known_costs for job in jobs)


def test_agents_that_know_the_structure_stay_in_their_experiments_which_get_no_others():
    spec = shipped_spec("leaderboard").with_agents(["tsde", "psconrl", "PSConRL with structure", "uniform"])
    labels = defaultdict(set)
    for job in spec.jobs():
        labels[job.experiment.endswith(STRUCTURE_SUFFIX)].add(job.label)
    assert labels[False] == {"tsde", "psconrl", "uniform"}
    assert labels[True] == {"psconrl", "PSConRL with structure", "uniform"}


def test_every_agent_is_on_the_board_and_had_five_to_eight_values_of_its_hyperparameter():
    tuned, board = shipped_spec("sensitivity"), shipped_spec("leaderboard")
    check_jobs(tuned.jobs(quick=True))
    published = {"psconrl-published", "psconrl-published-2023", "lagrangian-published"}  # with the authors' values
    assert set(RECIPES) - set(board.agents) - published == {"span-fha"}
    values = defaultdict(set)
    for job in tuned.jobs():
        values[job.label.partition(" ")[0]].add(job.label)
    agents = {tuned.agents[label].agent for label in values}
    fixed = {"uniform", "psconrl-plain", "span-fha"} | published  # without a hyperparameter to tune
    assert set(RECIPES) - agents == fixed - {"uniform"}
    assert {len(labels) for label, labels in values.items() if label not in fixed} == {5, 6, 7}
    assert MOST_VALUES == 8


def grid_of(label):
    """The hyperparameter of an agent in the study, and its values."""
    ((option, values),) = shipped_spec("sensitivity").agents[label].grid.items()
    return option, [float(value) for value in values]


@pytest.mark.parametrize("label", [label for label in ROWS if label not in NOT_TUNED])
def test_a_tuned_value_is_inside_its_grid_or_at_a_border_that_it_cannot_cross(label):
    option, values = grid_of(label)
    assert values == sorted(set(values))
    tuned, row = shipped_spec("sensitivity").agents[label], shipped_spec("leaderboard").agents[ROWS[label]]
    value = float(row.options[option])
    assert value in values
    assert value not in (values[0], values[-1]) or value == NATURAL_BORDERS.get(option)
    assert row.setting.startswith(f"tuned: {option} {value:g}")
    assert {**tuned.options, option: row.options[option]} == row.options
    assert tuned.knowledge == row.knowledge


def test_agents_that_know_the_structure_have_the_values_of_those_that_do_not():
    board = shipped_spec("leaderboard").agents
    for agent in board.values():
        if agent.knowledge.structure and agent.options:
            assert agent.options == board[agent.agent].options
            assert agent.setting == board[agent.agent].setting


def published_grids():
    """The rows of the table of hyperparameters: label, values, and the one with a star."""
    labels = {title_of(label): label for label in shipped_spec("sensitivity").agents}
    text = (Path(__file__).parents[2] / "docs/leaderboard/protocol.md").read_text("utf-8")
    table = text.partition("| agent | hyperparameter |")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        title, _, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        pairs = [cell.split(": ") for cell in cells if cell]
        best = [float(value) for value, loss in pairs if loss.endswith("*")]
        yield pytest.param(labels[title], [float(value) for value, _ in pairs], best, id=title)


@pytest.mark.parametrize(("label", "values", "best"), list(published_grids()))
def test_the_published_best_value_is_that_of_the_board(label, values, best):
    option, grid = grid_of(label)
    if values != grid:
        pytest.skip("the table was published with another grid")
    assert len(best) == 1
    if label in ROWS and label not in NOT_TUNED:
        assert best == [float(shipped_spec("leaderboard").agents[ROWS[label]].options[option])]


def test_the_practical_board_keeps_the_settings_and_has_the_environments_that_it_promises():
    spec, board = shipped_spec("practical"), shipped_spec("leaderboard")
    assert all(agent == board.agents[label] for label, agent in spec.agents.items())
    models = {job.experiment: psconrl.load(job.env, **job.env_options) for job in spec.jobs()}
    assert sum(100 <= cmdp.n_states <= 1000 for cmdp in models.values()) == len(models) - 1  # all except one river
    assert {job.horizon for job in spec.jobs()} == {100_000, 1_000_000}
    assert [name for name, cmdp in models.items() if cmdp.n_constraints == 3] == ["ward", "stock"]
    tight = models["tight-garnet"]
    low, high = cost_ranges(tight)[1]
    assert 0.0 < (tight.thresholds[0] - low) / (high - low) < 0.006
    queue = models["slow-queue"]
    policy = psconrl.plan(queue).policy
    chain = np.einsum("sa,sat->st", policy, queue.transition.toarray().reshape(queue.n_states, queue.n_actions, -1))
    second = np.sort(np.abs(np.linalg.eigvals(chain)))[-2]
    assert 1.0 / (1.0 - second) > 150.0
    assert all((psconrl.plan(cmdp).multipliers > 0).any() for cmdp in models.values())


def test_every_kind_of_costs_has_a_board_of_its_own():
    played = [
        environment(name + suffix, curves("psconrl", 10.0, 0.0), curves("uniform", 100.0, 0.0))
        for name in ("one", "two")
        for suffix in ("", " (costs noisy)", " (structure known)")
    ]
    boards = leaderboards(played)
    assert {title: board.environments for title, board in boards.items()} == {
        "Costs known": ("one", "two"),
        "Costs noisy": ("one (costs noisy)", "two (costs noisy)"),
        "Structure known": ("one (structure known)", "two (structure known)"),
    }
    with pytest.raises(ConfigError, match="a leaderboard needs finished runs"):
        leaderboards([])


def test_all_kinds_of_costs_meet_the_same_luck():
    jobs = [job for job in shipped_spec("leaderboard").jobs() if job.agent == "psconrl" and job.env == "queue"]
    seeds = {job.experiment: job.environment_seed() for job in jobs if job.replicate == 0}
    assert len(seeds) == 4
    assert len({str(seed) for seed in seeds.values()}) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sensitivity", "--agents", "psconrl"], "--agents: sensitivity has fixed agents; they can be"),
        (["leaderboard", "--agents", "psconlr"], "--agents: unknown agent 'psconlr'; did you mean 'psconrl'"),
    ],
)  # fmt: skip
def test_bad_arguments_get_one_line(tmp_path, capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", *arguments, "--out", str(tmp_path)])
    assert ended.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


TINY = """
name = "Leaderboard"
replicates = 2
[agents.psconrl]
setting = "ours"
[agents.uniform]
[experiments.chain]
costs = ["known", "learned"]
horizon = 200
[experiments.queue]
costs = ["known", "learned"]
horizon = 200
"""
MINE = """
from psconrl import Episode

class Mine:
    def __init__(self, n_states, n_actions, thresholds, seed=None):
        self.shape = n_states, n_actions
    def begin(self, state):
        if self.shape[0] == 8:
            raise RuntimeError("eight states are too many")
        return Episode.uniform(*self.shape, max_steps=50)
    def end(self, record):
        pass
"""


def reproduced(capsys, *arguments):
    """The exit code of a command and what it printed."""
    try:
        main(["reproduce", *arguments, "--workers", "1"])
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    printed = capsys.readouterr()
    return code, " ".join((printed.out + printed.err).split())


@pytest.mark.full
@pytest.mark.usefixtures("no_processes", "no_maps")
def test_the_command_ranks_agents_continues_and_takes_one_of_your_own(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("psconrl.cli.leaderboard.shipped_spec", lambda name: parse_spec(TINY))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ranked.py").write_text(MINE)
    code, printed = reproduced(capsys, "leaderboard", "--out", "board")
    assert code == 0
    assert "16 runs done" in printed
    assert "Costs known" in printed
    assert "Costs learned" in printed
    text = (tmp_path / "board" / "leaderboard.md").read_text()
    assert text.count("| PSConRL | ours | 1 | - | 2 |") == 2  # costs known and learned; too few runs to tell
    assert {p.name for p in (tmp_path / "board").iterdir()} == {
        "leaderboard.db", "leaderboard.db.psconrl-lock",
        "leaderboard.md", "leaderboard.html", "leaderboard.pdf", "leaderboard.png", "leaderboard.svg",
    }  # fmt: skip
    monkeypatch.setattr("psconrl.cli.leaderboard._pictures", lambda figure, path: [])  # once is enough
    code, printed = reproduced(capsys, "leaderboard", "--out", "board", "--agents", "all, ranked.py:Mine, uniform")
    assert code == 1  # some runs failed, and the board shows it by the number of environments
    assert "16 were there" in printed
    assert "failed: chain, Mine, run 0: RuntimeError: eight states are too many" in printed
    rows = [line.split(" | ") for line in (tmp_path / "board" / "leaderboard.md").read_text().splitlines()]
    assert [row[4] for row in rows if row[0] == "| Mine" and len(row) > 5] == ["1", "1"]


@pytest.mark.full
@pytest.mark.usefixtures("no_processes")
def test_the_practical_board_has_files_of_its_own(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("psconrl.cli.leaderboard.shipped_spec", lambda name: parse_spec(TINY))
    code, printed = reproduced(capsys, "practical", "--out", str(tmp_path), "--agents", "psconrl")
    assert code == 0
    assert "16 runs done" in printed  # uniform play is added, since losses are relative to it
    endings = ("db", "db.psconrl-lock", "md", "html", "pdf", "png", "svg")
    assert {p.name for p in tmp_path.iterdir()} == {f"practical.{ending}" for ending in endings}


@pytest.mark.full
@pytest.mark.usefixtures("no_processes")
def test_the_command_shows_the_effect_of_a_hyperparameter(tmp_path, capsys, monkeypatch):
    text = TINY.replace('setting = "ours"', "grid = { share = [0.1, 1.0] }").replace("Leaderboard", "Sensitivity")
    monkeypatch.setattr("psconrl.cli.leaderboard.shipped_spec", lambda name: parse_spec(text))
    code, printed = reproduced(capsys, "sensitivity", "--out", str(tmp_path))
    assert code == 0
    assert "One hyperparameter each" in printed
    assert (tmp_path / "sensitivity.png").exists()
    assert (tmp_path / "sensitivity.html").exists()


def test_a_folder_that_cannot_be_gets_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    code, printed = reproduced(capsys, "leaderboard", "--out", str(tmp_path / "file"))
    assert (code, "cannot be made (File exists)" in printed) == (2, True)
