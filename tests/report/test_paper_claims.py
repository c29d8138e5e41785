"""Verdicts on the paper's claims: the rules in closed form, and tables of synthetic runs; the diagram of Example 1."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import t as student
from scipy.stats import ttest_ind

import psconrl
from psconrl.report.claim_rules import (
    AGREES,
    DIFFERS,
    LEAST_RUNS,
    UNDECIDED,
    Ends,
    FigureValue,
    MeanOfRuns,
    judge_range,
    judge_value,
    mean_of_runs,
    measured_text,
    welch_interval,
)
from psconrl.report.claims_table import claims_markdown, claims_table, decided_claims
from psconrl.report.curves import Curves, Experiment
from psconrl.report.example_diagram import draw_example, moves_of
from psconrl.report.panel_contents import DRAWN_POINTS
from psconrl.report.paper_claims import BOX, CLAIMS, COMPARISONS, ENDS, LARGE_GRID, SMALL_GRID, VERSIONS, RangeRule
from psconrl.report.paper_figures import figure2

THRESHOLD, OPTIMUM, SAFEST = 0.2, 0.775, 0.875


class Panel(NamedTuple):
    """A panel of figure 2: the target of the authors' script, the threshold, the window, and the last round."""

    target: float
    threshold: float
    window: int
    last: int
    step: int  # between checkpoints


PANELS = {
    SMALL_GRID: Panel(0.775, 0.2, 500, 8_500, 50),
    LARGE_GRID: Panel(0.93809524, 0.1, 1_000, 20_000, 100),
    BOX: Panel(0.8479, 0.6, 9_000, 500_000, 1_000),
}


def curves(label, costs, rounds, probe=None, thresholds=THRESHOLD):
    """Return runs that pay constant costs (runs, 2) in every round."""
    costs, rounds = np.asarray(costs, dtype=float), np.asarray(rounds)
    runs, n = len(costs), rounds.size
    unknown = np.full((runs, n, 2), math.nan)
    return Curves(
        label=label,
        agent=label,
        rounds=rounds,
        cumulative=rounds[None, :, None] * costs[:, None, :],
        thresholds=np.full((runs, 1), thresholds),
        optimum=np.full(runs, OPTIMUM),
        replicates=np.arange(runs),
        seconds=np.ones(runs),
        planning_seconds=np.arange(1.0, runs + 1),
        probe=np.empty((runs, 0)) if probe is None else np.asarray(probe)[:, None] * np.ones(n),
        strong=unknown,
        largest_excess=unknown,
        summaries=({},) * runs,
        title=label.upper(),
    )


def excess(regret, violation, panel=PANELS[SMALL_GRID]):
    """Return costs per round whose curves in the paper's metric end at the given values."""
    windows = panel.last - panel.window + 1
    return np.column_stack(
        [panel.target + np.asarray(regret) / windows, panel.threshold + np.asarray(violation) / windows]
    )


def grid(agents, name=SMALL_GRID, last=None):
    """Return an experiment from the final (regret, violation) of every run of an agent."""
    env = name.partition(" ")[0]
    panel = PANELS.get(env, PANELS[SMALL_GRID])
    rounds = np.arange(panel.step, (last or panel.last) + 1, panel.step)
    played = {
        label: curves(label, excess(*np.asarray(ends, dtype=float).T, panel), rounds, thresholds=panel.threshold)
        for label, ends in agents.items()
    }
    optimum = 0.845 if env == BOX else panel.target
    facts = {"optimum": [optimum, panel.threshold], "safest": optimum + 0.1, "cost_names": ["loss", "risk"], "env": env}
    return Experiment(name, facts, None, played)


def around(regret, violation, runs=50, spread=5.0):
    noise = spread * np.linspace(-1, 1, runs)
    return np.column_stack([regret + noise, violation + noise])


def verdicts(experiments, figures=("figure1", "figure2", "figure3")):
    rows = [row for table in claims_table(experiments, figures) for row in table["rows"]]
    return {claim: verdict for _, claim, _, _, verdict in rows}


# The rules.


def test_an_interval_of_one_mean_is_students():
    low, high = welch_interval(MeanOfRuns(10.0, 3.0, 9), None, 0.1)
    half = student.isf(0.05, 8) * 3.0 / 3
    assert (low, high) == pytest.approx((10 - half, 10 + half))


def test_an_interval_of_a_difference_is_welchs():
    first, second = np.array([1.0, 2.0, 4.0, 9.0, 3.0]), np.array([5.0, 5.5, 6.0, 7.0, 5.2, 6.1, 6.3])
    expected = ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    found = welch_interval(mean_of_runs(first), mean_of_runs(second), 0.05)
    assert tuple(found) == pytest.approx((expected.low, expected.high))


def test_runs_that_do_not_vary_have_an_interval_of_one_point():
    assert welch_interval(MeanOfRuns(3.0, 0.0, 5), MeanOfRuns(1.0, 0.0, 7), 0.01) == Ends(2.0, 2.0)
    found = welch_interval(MeanOfRuns(3.0, 0.0, 5), MeanOfRuns(1.0, 2.0, 4), 0.05)
    assert tuple(found) == pytest.approx((2 - student.isf(0.025, 3), 2 + student.isf(0.025, 3)))


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ((0.0, 1.0), AGREES),
        ((-0.1, 0.5), UNDECIDED),
        ((0.5, 1.1), UNDECIDED),
        ((-1.0, 2.0), UNDECIDED),
        ((1.1, 2.0), DIFFERS),
        ((-2.0, -0.1), DIFFERS),
    ],
)
def test_a_comparison_agrees_if_the_interval_is_inside_and_differs_if_it_is_outside(ends, verdict):
    assert judge_range(Ends(*ends), 0.0, 1.0) == verdict


def test_a_value_may_be_away_by_the_error_of_reading_and_the_interval_of_the_difference():
    value = FigureValue(50.0, 8.0, 25, 2.0 * math.sqrt(24))  # standard error 2
    half = student.isf(0.025, 24) * 2.0
    assert judge_value(MeanOfRuns(58.0 + half - 1e-6, 0.0, 30), value) == AGREES
    assert judge_value(MeanOfRuns(58.0 + half + 1e-6, 0.0, 30), value) == DIFFERS
    assert judge_value(MeanOfRuns(42.0 - half - 1e-6, 0.0, 30), value) == DIFFERS


def test_a_figure_without_a_band_has_the_deviation_of_the_runs_here():
    assert FigureValue(50.0, 8.0, 25).as_runs(MeanOfRuns(60.0, 7.0, 30)) == MeanOfRuns(50.0, 7.0, 25)
    assert FigureValue(50.0, 8.0, 25, 0.0).as_runs(MeanOfRuns(60.0, 7.0, 30)) == MeanOfRuns(50.0, 0.0, 25)


def test_the_deviation_of_a_figure_divides_by_the_number_of_runs():
    """Two runs at 1 and 3 have a root mean squared deviation of 1, and a standard deviation of the root of 2."""
    found = FigureValue(2.0, 0.1, 2, 1.0).as_runs(MeanOfRuns(9.0, 7.0, 30))
    assert tuple(found) == pytest.approx(tuple(mean_of_runs(np.array([1.0, 3.0]))))


def test_a_single_run_may_be_anything():
    everything = Ends(-math.inf, math.inf)
    assert welch_interval(MeanOfRuns(1.0, math.nan, 1), None, 0.05) == everything
    assert welch_interval(MeanOfRuns(1.0, 2.0, 10), MeanOfRuns(1.0, 0.5, 1), 0.05) == everything
    assert judge_value(MeanOfRuns(9.0, 2.0, 10), FigureValue(1.0, 0.1, 1, 0.5)) == AGREES


@pytest.mark.parametrize("unit", [1e-170, 1e-100, 1e90, 1e200])
def test_intervals_scale_with_the_unit(unit):
    low, high = welch_interval(MeanOfRuns(0.0, 2.0 * unit, 16), MeanOfRuns(0.0, 3.0 * unit, 9), 0.05)
    ends = welch_interval(MeanOfRuns(0.0, 2.0, 16), MeanOfRuns(0.0, 3.0, 9), 0.05)
    assert (low / unit, high / unit) == pytest.approx(tuple(ends))


def test_a_mean_is_shown_with_its_standard_error():
    assert measured_text(MeanOfRuns(10.0, 6.0, 9)) == "10 ± 2 (9 runs)"
    assert measured_text(MeanOfRuns(10.0, math.nan, 1)) == "10 (1 run)"


def test_the_metric_counts_full_windows_and_positive_parts_of_every_run():
    """A run that pays x too much in every round has x for each full window; one that pays too little has 0."""
    e = grid({"a": [(80.01, -30.0), (-5.0, 8.001)]})
    regret, violation = (e.curves["a"].paper_curve(i, 500) for i in (0, 1))
    at = {int(t): k for k, t in enumerate(e.curves["a"].rounds)}
    assert regret[:, at[450]].tolist() == [0.0, 0.0]
    assert regret[:, at[500]] == pytest.approx([0.01, 0.0])
    assert regret[:, at[8_500]] == pytest.approx([80.01, 0.0])
    assert violation[:, at[8_500]] == pytest.approx([0.0, 8.001])


# The table.


def test_claims_of_runs_as_in_the_paper_agree():
    agents = {"psconrl-paper": around(50, 65), "c-ucrl": around(700, 29), "fha": around(500, 278, 10)}
    found = verdicts([grid(agents)], ["figure2"])
    assert found[f"{SMALL_GRID}: PSCONRL-PAPER has less regret than C-UCRL"] == AGREES
    assert found[f"{SMALL_GRID}: PSCONRL-PAPER has less regret than FHA"] == AGREES
    assert found[f"{SMALL_GRID}: violation of PSCONRL-PAPER is comparable with that of C-UCRL"] == AGREES
    assert found[f"{SMALL_GRID}, regret at the end: PSCONRL-PAPER"] == AGREES
    assert found[f"{SMALL_GRID}, violation at the end: C-UCRL"] == AGREES
    assert found[f"{SMALL_GRID}, regret at the end: FHA"] == AGREES


def test_claims_of_other_runs_differ():
    agents = {"psconrl-paper": around(494, 115), "c-ucrl": around(410, 29)}
    found = verdicts([grid(agents)], ["figure2"])
    assert found[f"{SMALL_GRID}: PSCONRL-PAPER has less regret than C-UCRL"] == DIFFERS
    assert found[f"{SMALL_GRID}: violation of PSCONRL-PAPER is comparable with that of C-UCRL"] == DIFFERS
    assert found[f"{SMALL_GRID}, regret at the end: PSCONRL-PAPER"] == DIFFERS
    assert found[f"{SMALL_GRID}, regret at the end: C-UCRL"] == DIFFERS


def test_there_is_no_verdict_on_few_runs_on_missing_agents_and_on_short_runs():
    few = verdicts([grid({"psconrl-paper": around(50, 65, LEAST_RUNS - 1), "c-ucrl": around(700, 29)})], ["figure2"])
    assert few[f"{SMALL_GRID}: PSCONRL-PAPER has less regret than C-UCRL"] == UNDECIDED
    assert few[f"{SMALL_GRID}, regret at the end: PSCONRL-PAPER"] == UNDECIDED
    assert few[f"{SMALL_GRID}: PSCONRL-PAPER has less regret than UCRL-CMDP"] == UNDECIDED
    enough = verdicts([grid({"psconrl-paper": around(50, 65, LEAST_RUNS), "c-ucrl": around(700, 29)})], ["figure2"])
    assert enough[f"{SMALL_GRID}: PSCONRL-PAPER has less regret than C-UCRL"] == AGREES
    short = grid({"psconrl-paper": around(50, 65), "c-ucrl": around(700, 29)}, last=8_000)
    assert set(verdicts([short]).values()) == {UNDECIDED}
    assert claims_table([short])[0]["rows"][0][3] == "runs end at round 8,000 of 8,500"


def test_undecided_claims_are_left_out_and_counted():
    agents = {"psconrl-paper": around(50, 65), "c-ucrl": around(700, 29, LEAST_RUNS - 1)}
    (whole,) = claims_table([grid(agents)], ["figure2"])
    shown = decided_claims(whole)
    assert shown["rows"] == [row for row in whole["rows"] if row[-1] in (AGREES, DIFFERS)] != []
    left_out = len(whole["rows"]) - len(shown["rows"])
    assert shown["note"].endswith(f" {left_out} of {len(whole['rows'])} claims are undecided and not shown.")
    assert decided_claims(shown)["note"] == shown["note"]


def test_runs_that_cannot_tell_are_undecided():
    agents = {"psconrl-paper": around(50, 65, 6, 40), "c-ucrl": around(60, 65, 6, 40)}
    assert verdicts([grid(agents)])[f"{SMALL_GRID}: PSCONRL-PAPER has less regret than C-UCRL"] == UNDECIDED


def test_experiments_in_which_agents_learn_the_costs_come_first():
    known, learned = {"c-ucrl": around(1, 1)}, {"c-ucrl": around(700, 29)}
    (table,) = claims_table([grid(known), grid(learned, f"{SMALL_GRID} (costs learned)")])
    assert ["figure 2", f"{SMALL_GRID}, regret at the end: C-UCRL", "about 700"] in [row[:3] for row in table["rows"]]
    assert verdicts([grid(known)])[f"{SMALL_GRID}, regret at the end: C-UCRL"] == DIFFERS
    both = verdicts([grid(known), grid(learned, f"{SMALL_GRID} (costs learned)")])
    assert both[f"{SMALL_GRID}, regret at the end: C-UCRL"] == AGREES
    assert "here they know" not in table["note"]
    assert f"here they know them on {SMALL_GRID}." in claims_table([grid(known)])[0]["note"]


def test_versions_of_the_authors_code_are_judged_if_they_have_runs():
    ours = {"psconrl-paper": around(50, 65)}
    assert not any("PUBLISHED" in claim for claim in verdicts([grid(ours)]))
    both = verdicts([grid(ours | {"psconrl-published": around(41, 60)})])
    assert both[f"{SMALL_GRID}, regret at the end: PSCONRL-PUBLISHED"] == AGREES


def test_convergence_is_measured_against_the_safe_policy():
    """The safe policy is .1 above the optimum, so that .01 a round is a tenth of the distance."""
    windows = 8_001
    close, far = around(0.009 * windows, 0, spread=0.1), around(0.02 * windows, 0.02 * windows, spread=0.1)
    found = verdicts([grid({"psconrl-paper": close, "c-ucrl": far})], ["figure3"])
    converges = f"{SMALL_GRID}: {{}} converges to the optimum (distance, of which the safe policy has 1)"
    kept = f"{SMALL_GRID}: {{}} satisfies the constraint in the long run (relative excess)"
    assert [found[converges.format(x)] for x in ("PSCONRL-PAPER", "C-UCRL")] == [AGREES, DIFFERS]
    assert [found[kept.format(x)] for x in ("PSCONRL-PAPER", "C-UCRL")] == [AGREES, DIFFERS]


def example_runs(ours, theirs, thetas):
    """Return runs of Example 1 from the average cost and the sampled theta of every run of both agents."""
    model, rounds = psconrl.load("counterexample"), np.arange(5, 1_501, 5)
    played = {
        label: curves(label, np.column_stack([costs, costs]), rounds, probe, 0.5275)
        for label, costs, probe in zip(
            ("resampling-psconrl", "resampling-cmdp-psrl"), (ours, theirs), thetas, strict=True
        )
    }
    return Experiment("counterexample", {"cost_names": ["reward", "cost"]}, model, played)


def test_figure_1_has_the_averages_and_the_samples_of_both_agents():
    noise = 0.002 * np.linspace(-1, 1, 20)
    as_in_paper = example_runs(0.533 + noise, 0.866 + noise, (0.9 + noise, 0.824 + noise))
    assert set(verdicts([as_in_paper]).values()) == {AGREES}
    swapped = example_runs(0.866 + noise, 0.533 + noise, (0.824 + noise, 0.9 + noise))
    assert set(verdicts([swapped]).values()) == {DIFFERS}


def test_other_experiments_have_no_claims():
    assert claims_table([grid({"psconrl": around(1, 1)}, "queue")]) == []
    assert claims_table([grid({"psconrl-paper": around(1, 1)})], ["theory"]) == []


def test_results_without_an_optimum_or_samples_have_no_verdict():
    e = grid({"psconrl-paper": around(50, 65)})
    e.facts.pop("safest")
    assert set(verdicts([e]).values()) == {UNDECIDED}
    few = example_runs(np.full(5, 0.5), np.full(5, 0.5), (None, None))
    assert set(verdicts([few]).values()) == {UNDECIDED}


def test_the_table_is_written_as_markdown():
    (table,) = claims_table([grid({"psconrl-paper": around(50, 65)})])
    text = claims_markdown(table, "Remark.")
    assert text.startswith("## The paper's claims\n")
    assert "Remark.\n\n| figure | claim | in the paper | here | verdict |\n" in text
    assert text.count("\n| figure ") == 1 + len(table["rows"])


def test_every_claim_names_its_agents_and_an_environment_of_the_paper():
    assert len({(c.figure, c.text, c.players) for c in CLAIMS}) == len(CLAIMS)
    assert sum(isinstance(c.rule, RangeRule) for c in CLAIMS) == COMPARISONS
    for claim in CLAIMS:
        assert {p.environment for p in claim.players} <= set(ENDS)
        assert len(claim.players) == 1 or isinstance(claim.rule, RangeRule)
        assert all(f"{{{k}}}" in claim.text for k in range(len({p.label for p in claim.players})))
    assert {p.environment for c in CLAIMS if c.figure == "figure2" for p in c.players} == {SMALL_GRID, LARGE_GRID, BOX}


# The figures' values, and the constants of the claims, with runs on either side.


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        (SMALL_GRID, {"psconrl-paper": (50, 65), "c-ucrl": (700, 29), "ucrl-cmdp": (485, 358), "fha": (500, 278)}),
        (LARGE_GRID, {"psconrl-paper": (62, 250), "c-ucrl": (365, 212)}),
        (BOX, {"psconrl-paper": (7_300, 4_300), "c-ucrl": (16_500, 0)}),
    ],
)
def test_runs_that_are_the_curves_of_figure_2_agree_with_them(name, ends):
    """On Box, the target is .8479 as in the authors' script, although the optimum is .845."""
    played = grid({label: around(*value, 30, 0.001) for label, value in ends.items()}, name)
    found = verdicts([played], ["figure2"])
    shown = [f"{name}, {what} at the end: {label.upper()}" for label in ends for what in ("regret", "violation")]
    assert [found[claim] for claim in shown] == [AGREES] * 2 * len(ends)
    best = f"{name}: PSCONRL-PAPER has less regret than C-UCRL"
    assert found[best] == AGREES
    assert (".8479" in claims_table([played])[0]["note"]) == (name == BOX)


@pytest.mark.parametrize(
    ("name", "averages"),
    [
        (SMALL_GRID, {"psconrl-paper": (0.775, 0.201), "c-ucrl": (0.83, 0.16), "ucrl-cmdp": (0.807, 0.212)}),
        (SMALL_GRID, {"fha": (0.804, 0.223)}),
        (LARGE_GRID, {"psconrl-paper": (0.938, 0.102), "c-ucrl": (0.943, 0.093)}),
        (BOX, {"psconrl-paper": (0.846, 0.604)}),
    ],
)
def test_runs_that_are_the_curves_of_figure_3_agree_with_them(name, averages):
    played = grid({label: around(0, 0, 30) for label in averages}, name)
    for label, costs in averages.items():
        played.curves[label].cumulative[:] = played.curves[label].rounds[:, None] * np.array(costs)
    found = verdicts([played], ["figure3"])
    for label in averages:
        for what in ("main cost", "constrained cost"):
            assert found[f"{name}, average {what} at the end: {label.upper()}"] == AGREES


def test_all_versions_of_the_authors_code_are_judged_on_all_grids():
    for name in PANELS:
        found = verdicts([grid({version: around(50, 65) for version in VERSIONS} | {"c-ucrl": around(9, 9)}, name)])
        for version in VERSIONS:
            assert f"{name}, regret at the end: {version.upper()}" in found
            assert f"{name}: {version.upper()} has less regret than C-UCRL" in found


def test_comparisons_share_the_probability_of_a_wrong_verdict():
    """A difference that would be significant alone at level .05 is not, among all comparisons."""
    runs, spread = 30, 20.0
    ours, theirs = around(50, 0, runs, spread), around(58, 0, runs, spread)
    alone = ttest_ind(ours[:, 0], theirs[:, 0], equal_var=False).pvalue
    assert 0.05 / COMPARISONS < alone < 0.05
    found = verdicts([grid({"psconrl-paper": ours, "c-ucrl": theirs})], ["figure2"])
    assert found[f"{SMALL_GRID}: PSCONRL-PAPER has less regret than C-UCRL"] == UNDECIDED


def test_runs_must_reach_the_end_of_a_figure():
    assert ENDS == {SMALL_GRID: 8_500, LARGE_GRID: 20_000, BOX: 500_000, "counterexample": 1_500}
    claim = f"{LARGE_GRID}, regret at the end: PSCONRL-PAPER"
    for last, verdict in ((19_900, UNDECIDED), (20_000, AGREES)):
        assert verdicts([grid({"psconrl-paper": around(62, 250)}, LARGE_GRID, last)])[claim] == verdict


@pytest.mark.parametrize(("more", "verdict"), [(75, AGREES), (77, DIFFERS)])
def test_violations_are_comparable_up_to_76_more(more, verdict):
    agents = {"psconrl-paper": around(50, 29 + more, spread=0.01), "c-ucrl": around(700, 29, spread=0.01)}
    claim = f"{SMALL_GRID}: violation of PSCONRL-PAPER is comparable with that of C-UCRL"
    assert verdicts([grid(agents)])[claim] == verdict


@pytest.mark.parametrize(("share", "verdict"), [(0.049, AGREES), (0.051, DIFFERS)])
def test_a_constraint_is_satisfied_up_to_5_percent(share, verdict):
    e = grid({"psconrl-paper": around(0, share * 0.2 * 8_001, spread=0.01)})
    kept = f"{SMALL_GRID}: PSCONRL-PAPER satisfies the constraint in the long run (relative excess)"
    assert verdicts([e])[kept] == verdict


@pytest.mark.parametrize(("share", "verdict"), [(0.099, AGREES), (0.101, DIFFERS), (-0.101, DIFFERS)])
def test_convergence_is_within_a_tenth_of_the_distance(share, verdict):
    e = grid({"psconrl-paper": around(share * 0.1 * 8_001, 0, spread=0.001)})
    claim = f"{SMALL_GRID}: PSCONRL-PAPER converges to the optimum (distance, of which the safe policy has 1)"
    assert verdicts([e])[claim] == verdict


EXAMPLE_CLAIMS = {
    "fluctuates": "RESAMPLING-PSCONRL fluctuates around the threshold (relative excess)",
    "violates": "RESAMPLING-CMDP-PSRL severely violates the constraint (relative excess)",
    "learns": "RESAMPLING-PSCONRL learns theta (error of the mean sample)",
    "fails": "RESAMPLING-CMDP-PSRL fails to learn theta (error of the mean sample)",
}


@pytest.mark.parametrize(
    ("excesses", "errors", "expected"),
    [
        ((0.049, 0.101), (0.019, -0.021), (AGREES, AGREES, AGREES, AGREES)),
        ((0.051, 0.099), (0.021, -0.019), (DIFFERS, DIFFERS, DIFFERS, DIFFERS)),
        ((-0.049, 0.101), (-0.019, -0.021), (AGREES, AGREES, AGREES, AGREES)),
        ((-0.051, -0.2), (-0.021, 0.021), (DIFFERS, DIFFERS, DIFFERS, DIFFERS)),
    ],
)
def test_the_words_about_example_1_are_numbers(excesses, errors, expected):
    noise = 1e-6 * np.linspace(-1, 1, 20)
    costs = [0.5275 * (1 + x) + noise for x in excesses]
    found = verdicts([example_runs(*costs, [0.9 + x + noise for x in errors])])
    assert tuple(found[claim] for claim in EXAMPLE_CLAIMS.values()) == expected


def test_figure_1_is_judged_on_its_last_500_rounds():
    noise = 1e-6 * np.linspace(-1, 1, 20)
    e = example_runs(0.533 + noise, 0.866 + noise, (0.9 + noise, 0.824 + noise))
    for one in e.curves.values():
        late = one.cumulative[:, one.rounds > 1_000] - one.cumulative[:, one.rounds == 1_000]
        one.cumulative[:, one.rounds <= 1_000] = 0.0
        one.cumulative[:, one.rounds > 1_000] = np.minimum(2 * late, late[:, -1:])  # all in the first half of the 500
        one.probe[:, one.rounds <= 1_000] = 0.0
    assert set(verdicts([e]).values()) == {AGREES}


def box_runs(label, late, begin, early=0.03):
    """Return runs on Box that pay ``early`` more than .8479 in each round up to ``begin``, then ``late`` more."""
    e = grid({label: around(early * 491_001, 0, 6, 0.01)}, BOX)
    one = e.curves[label]
    after = one.rounds > begin
    one.cumulative[:, after, 0] = one.cumulative[:, [np.searchsorted(one.rounds, begin)], 0] + (0.8479 + late) * (
        one.rounds[after] - begin
    )
    return e


@pytest.mark.parametrize(("late", "verdict"), [(0.03, AGREES), (0.022, AGREES), (0.021, DIFFERS), (0.0, DIFFERS)])
def test_near_linear_regret_adds_three_quarters_in_the_second_half(late, verdict):
    """The first half has 241,001 full windows, the second 250,000, a few of which include both."""
    claim = f"{BOX}: C-UCRL has near-linear regret (second half relative to the first)"
    assert 250 * 0.0216 / (241 * 0.03) > 2**0.8 - 1 > 250 * 0.0212 / (241 * 0.03)
    assert verdicts([box_runs("c-ucrl", late, 250_000)])[claim] == verdict


@pytest.mark.parametrize(("begin", "verdict"), [(100_000, AGREES), (150_000, DIFFERS)])
def test_box_is_learned_in_a_quarter_of_the_run(begin, verdict):
    claim = f"{BOX}: PSCONRL-PAPER converges in a quarter of the run (distance, of which the safe policy has 1)"
    assert verdicts([box_runs("psconrl-paper", -0.0029, begin)])[claim] == verdict


@pytest.mark.parametrize(("distance", "verdict"), [(0.011, AGREES), (0.009, DIFFERS)])
def test_c_ucrl_is_stuck_a_tenth_of_the_distance_from_the_optimum(distance, verdict):
    claim = f"{BOX}: C-UCRL is stuck with a suboptimal policy (distance, of which the safe policy has 1)"
    assert verdicts([box_runs("c-ucrl", 0.845 + distance - 0.8479, 100_000)])[claim] == verdict


@pytest.mark.parametrize(("on_box", "verdict"), [(90, AGREES), (50, DIFFERS)])
def test_exploration_is_costlier_with_more_regret_where_the_figure_ends(on_box, verdict):
    small = grid({"psconrl-paper": around(70, 0, spread=0.1)}, last=11_000)  # ends at 92
    box = grid({"psconrl-paper": around(on_box, 0, spread=0.1)}, BOX)
    claim = f"exploration is costlier on {BOX} than on {SMALL_GRID} (regret on {SMALL_GRID} minus on {BOX}): "
    assert verdicts([small, box])[claim + "PSCONRL-PAPER"] == verdict


@pytest.mark.parametrize(("ours", "theirs", "verdict"), [(1.0, 9.0, AGREES), (9.0, 1.0, DIFFERS)])
def test_planning_times_are_compared(ours, theirs, verdict):
    e = grid({label: around(50, 65) for label in ("psconrl-published", "ucrl-cmdp")})
    for label, seconds in (("psconrl-published", ours), ("ucrl-cmdp", theirs)):
        e.curves[label].planning_seconds[:] = seconds + 0.01 * np.arange(50)
    claim = f"{SMALL_GRID}: PSCONRL-PUBLISHED plans for a shorter time than UCRL-CMDP (seconds per run)"
    assert verdicts([e])[claim] == verdict


def test_long_curves_are_drawn_at_evenly_spread_checkpoints():
    e = grid({"psconrl-paper": around(7_300, 4_300)}, BOX, last=1_000_000)
    lines = figure2([e], "paper").axes[0].lines[0].get_xdata()
    assert (len(lines), lines[0], lines[-1]) == (DRAWN_POINTS, 1_000, 1_000_000)
    assert np.ptp(np.diff(lines)) <= 1_000
    assert e.curves["psconrl-paper"].spread_over(2_000).tolist() == list(range(1_000))


# The diagram of Example 1.


def texts(cmdp=None):
    axes = Figure().subplots()
    draw_example(axes, cmdp)
    return [text.get_text() for text in axes.texts], axes


def test_the_diagram_has_the_probabilities_and_costs_of_the_model():
    found, axes = texts()
    assert found == [
        "stay: 1", r"go: $1 - \theta$ = 0.1", r"go: $\theta$ = 0.9", "stay or go: 1",
        "s0", "reward 1\ncost 1", "s1", "reward 0\ncost 0",
    ]  # fmt: skip
    assert len(axes.patches) == 4 + 2


def test_the_diagram_follows_the_model():
    found, _ = texts(psconrl.load("counterexample", theta=0.25))
    assert {r"go: $1 - \theta$ = 0.75", r"go: $\theta$ = 0.25"} <= set(found)
    certain = psconrl.load("counterexample", theta=1.0, threshold=0.6)
    assert [(m.state, m.actions, m.target) for m in moves_of(certain)] == [(0, (0,), 0), (0, (1,), 1), (1, (0, 1), 0)]
