"""Verdicts on the paper's claims: the rules in closed form, and tables of synthetic runs; the diagram of Example 1."""

import math

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
from psconrl.report.paper_claims import BOX, CLAIMS, COMPARISONS, ENDS, LARGE_GRID, SMALL_GRID, RangeRule

THRESHOLD, OPTIMUM, SAFEST = 0.2, 0.775, 0.875


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


def excess(regret, violation, rounds=8_500, window=500):
    """Return costs per round whose curves in the paper's metric end at the given values on 4x4."""
    windows = rounds - window + 1
    return np.column_stack([OPTIMUM + np.asarray(regret) / windows, THRESHOLD + np.asarray(violation) / windows])


def grid(agents, name=SMALL_GRID, last=11_000):
    """Return an experiment from the final (regret, violation) of every run of an agent."""
    rounds = np.arange(50, last + 1, 50)
    played = {label: curves(label, excess(*np.asarray(ends, dtype=float).T), rounds) for label, ends in agents.items()}
    facts = {
        "optimum": [OPTIMUM, THRESHOLD],
        "safest": SAFEST,
        "cost_names": ["loss", "risk"],
        "env": name.partition(" ")[0],
    }
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
    value = FigureValue(50.0, 8.0, 25, 10.0)  # standard error 2
    half = student.isf(0.025, 24) * 2.0
    assert judge_value(MeanOfRuns(58.0 + half - 1e-6, 0.0, 30), value) == AGREES
    assert judge_value(MeanOfRuns(58.0 + half + 1e-6, 0.0, 30), value) == DIFFERS
    assert judge_value(MeanOfRuns(42.0 - half - 1e-6, 0.0, 30), value) == DIFFERS


def test_a_figure_without_a_band_has_the_deviation_of_the_runs_here():
    assert FigureValue(50.0, 8.0, 25).as_runs(MeanOfRuns(60.0, 7.0, 30)) == MeanOfRuns(50.0, 7.0, 25)
    assert FigureValue(50.0, 8.0, 25, 0.0).as_runs(MeanOfRuns(60.0, 7.0, 30)) == MeanOfRuns(50.0, 0.0, 25)


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


def test_near_linear_regret_is_told_from_a_regret_that_stops():
    rounds = np.arange(2_000, 500_001, 2_000)
    box = Experiment(BOX, {"env": BOX, "optimum": [OPTIMUM], "safest": SAFEST}, None, {})
    linear = curves("c-ucrl", np.full((5, 2), OPTIMUM + 0.03), rounds)
    claim = f"{BOX}: C-UCRL has near-linear regret (second half relative to the first)"
    box.curves["c-ucrl"] = linear
    assert verdicts([box])[claim] == AGREES
    linear.cumulative[:, rounds > 250_000] = linear.cumulative[:, [124]] + (
        OPTIMUM * (rounds[rounds > 250_000, None] - 250_000)
    )
    assert verdicts([box])[claim] == DIFFERS


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
