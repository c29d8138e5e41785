"""The quantitative claims of the paper about its figures 1 to 3, each with the rule that decides it.

Sources: the text of section 3.2 (figure 1), section 5 (figure 2) and the appendix (figure 3), the captions, and values
read off the pictures that the authors' repository contains. The error of reading is two pixels of these pictures.
Deviations are half the height of the shaded bands. The abstract, the introduction and the conclusion repeat these
claims.

Regret is measured as in the figures: against the optimum that the authors' scripts state. On Box they state .8479, and
the optimum is .845. Distances from the optimum are those from .845.

Words of the paper become numbers as follows.

- *Satisfies the constraint*: the average is at most 5% above the threshold. *Severely violates*: it is at least 10%
  above.
- *Learns theta*: the samples of the last 500 rounds average to the true value within .02.
- *Comparable violation*: at most 76 above that of the other agent, which is twice the larger of the two differences
  that the paper calls comparable (65 and 29 on 4x4, 250 and 212 on 8x8). The paper's other agents are 200 to 2,000
  above.
- *Near-linear regret*: the second half of the run adds at least .74 times what the first half does, as a regret that
  grows like T to the power of .8 would.
- *Costlier exploration*: more regret at the end.
- *Converges to the optimum*: the average over the last window is within a tenth of the distance between the optimal
  and the safe policy. *Relatively quickly*: it is so after a quarter of the run.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.report.claim_rules import FigureValue
from psconrl.report.curves import Curves, Experiment
from psconrl.report.metrics import window_of
from psconrl.simulation.regret import paper_curve

SMALL_GRID, LARGE_GRID, BOX, EXAMPLE = "marsrover-4x4", "marsrover-8x8", "box", "counterexample"
# The round at which the figures end. Figures 2 and 3 count from the first full window: 8,000 on 4x4 is round 8,500.
ENDS = {SMALL_GRID: 8_500, LARGE_GRID: 20_000, BOX: 500_000, EXAMPLE: 1_500}
# The least average cost that the authors' plot_performance.py subtracts. On the two grids it is the optimum.
AUTHORS_OPTIMUM = {SMALL_GRID: 0.775, LARGE_GRID: 0.93809524, BOX: 0.8479}
LATE = 500  # the last rounds of figure 1, over which its curves are level
# The agent of the paper's text; the two versions of the authors' code that may have made its figures.
VERSIONS = ("psconrl-paper", "psconrl-published", "psconrl-published-2023")
OVER_THRESHOLD, SEVERELY_OVER = 0.05, 0.10  # relative excess
LEARNED_THETA = 0.02
COMPARABLE = 76.0
NEAR_LINEAR = 2**0.8 - 1
CLOSE_TO_OPTIMUM = 0.1  # of the distance between the optimal and the safe policy

Measured = Callable[[Experiment, Curves], Floats]  # a value for each run


class AgentRuns(NamedTuple):
    """The runs of an agent in an environment."""

    environment: str
    label: str


class RangeRule(NamedTuple):
    """The claim that a mean is between two numbers; if there are two agents, the first mean minus the second."""

    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True)
class Claim:
    """A claim of the paper."""

    figure: str  # as in psconrl reproduce
    text: str  # {0} and {1} stand for the agents
    in_paper: str
    players: tuple[AgentRuns, ...]  # one, or two to compare
    measured: Measured
    rule: RangeRule | FigureValue


# Measured values, one for each run.


def _at(last: int, curves: Curves) -> int:
    """Return the last checkpoint up to a round, or the first of all."""
    return max(int(np.searchsorted(curves.rounds, last, side="right")) - 1, 0)


def _figure2_curve(i: int, e: Experiment, c: Curves) -> Floats:
    """Return the curves of figure 2, (runs, n): of the regret against the authors' optimum, or of a violation."""
    aims = c.thresholds[:, i - 1] if i else AUTHORS_OPTIMUM[e.facts["env"]]
    return paper_curve(c.cumulative[:, :, i], c.rounds, window_of(e, c), aims)


def _figure2(i: int) -> Measured:
    return lambda e, c: _figure2_curve(i, e, c)[:, _at(ENDS[e.facts["env"]], c)]


def _window_average(environment: str, i: int, share: float = 1.0) -> Measured:
    return lambda e, c: c.moving_average(i, window_of(e, c))[:, _at(int(share * ENDS[environment]), c)]


def _relative_loss(environment: str, share: float = 1.0) -> Measured:
    """Return the distance to the optimum, of which the safe policy has 1."""

    def measured(e: Experiment, c: Curves) -> Floats:
        best, safe = e.facts["optimum"][0], e.facts["safest"]
        return (_window_average(environment, 0, share)(e, c) - best) / (safe - best)

    return measured


def _relative_excess(environment: str) -> Measured:
    return lambda e, c: _window_average(environment, 1)(e, c) / c.thresholds[:, 0] - 1.0


def _second_half(e: Experiment, c: Curves) -> Floats:
    """Return what the second half of the run adds to the regret, relative to the first half."""
    curve, end = _figure2_curve(0, e, c), ENDS[e.facts["env"]]
    first = curve[:, _at(end // 2, c)]
    return np.asarray((curve[:, _at(end, c)] - first) / np.maximum(first, 1e-9))


def _late_cost(e: Experiment, c: Curves) -> Floats:
    total, last = c.cumulative[:, :, 1], _at(ENDS[EXAMPLE], c)
    first = _at(ENDS[EXAMPLE] - LATE, c)
    return np.asarray((total[:, last] - total[:, first]) / (c.rounds[last] - c.rounds[first]))


def _late_excess(e: Experiment, c: Curves) -> Floats:
    return np.asarray(_late_cost(e, c) / c.thresholds[:, 0] - 1.0)


def _late_theta(e: Experiment, c: Curves) -> Floats:
    late = (c.rounds > ENDS[EXAMPLE] - LATE) & (c.rounds <= ENDS[EXAMPLE])
    return np.asarray(c.probe[:, late].mean(axis=1))


def _late_theta_error(e: Experiment, c: Curves) -> Floats:
    if e.model is None or e.model.n_states != 2:
        return np.full(c.runs, math.nan)
    return np.asarray(_late_theta(e, c) - e.model.transition.toarray()[1, 1])


def _planning_seconds(e: Experiment, c: Curves) -> Floats:
    return c.planning_seconds


# The claims.


def _figure1_claims() -> list[Claim]:
    ours, theirs = (AgentRuns(EXAMPLE, label) for label in ("resampling-psconrl", "resampling-cmdp-psrl"))

    def claim(player: AgentRuns, text: str, in_paper: str, measured: Measured, rule: RangeRule | FigureValue) -> Claim:
        return Claim("figure1", text, in_paper, (player,), measured, rule)

    cost, theta = "average cost in rounds 1,001 to 1,500: {0}", "mean sampled theta in rounds 1,001 to 1,500: {0}"
    fluctuates = RangeRule(-OVER_THRESHOLD, OVER_THRESHOLD)
    learns = RangeRule(-LEARNED_THETA, LEARNED_THETA)
    return [
        claim(ours, "{0} fluctuates around the threshold (relative excess)", "within 5%", _late_excess, fluctuates),
        claim(
            theirs, "{0} severely violates the constraint (relative excess)", "10% or more", _late_excess,
            RangeRule(low=SEVERELY_OVER),
        ),
        claim(ours, "{0} learns theta (error of the mean sample)", "within 0.02", _late_theta_error, learns),
        claim(
            theirs, "{0} fails to learn theta (error of the mean sample)", "0.02 or more below", _late_theta_error,
            RangeRule(high=-LEARNED_THETA),
        ),
        claim(ours, cost, "about 0.533", _late_cost, FigureValue(0.533, 0.005, 5)),
        claim(theirs, cost, "about 0.866", _late_cost, FigureValue(0.866, 0.005, 5)),
        claim(ours, theta, "about 0.9", _late_theta, FigureValue(0.900, 0.003, 5)),
        claim(theirs, theta, "about 0.824", _late_theta, FigureValue(0.824, 0.003, 5)),
    ]  # fmt: skip


# Values read off figure 2 at its end: environment, cost (0 the regret), agent, value.
FIGURE2_VALUES: tuple[tuple[str, int, str, FigureValue], ...] = (
    (SMALL_GRID, 0, VERSIONS[0], FigureValue(50, 8, 50, 12)),
    (SMALL_GRID, 0, "c-ucrl", FigureValue(700, 8, 50, 160)),
    (SMALL_GRID, 0, "ucrl-cmdp", FigureValue(485, 8, 10, 132)),
    (SMALL_GRID, 0, "fha", FigureValue(500, 8, 10, 20)),
    (SMALL_GRID, 1, VERSIONS[0], FigureValue(65, 4, 50, 15)),
    (SMALL_GRID, 1, "c-ucrl", FigureValue(29, 4, 50, 42)),
    (SMALL_GRID, 1, "ucrl-cmdp", FigureValue(358, 4, 10, 96)),
    (SMALL_GRID, 1, "fha", FigureValue(278, 4, 10, 23)),
    (LARGE_GRID, 0, VERSIONS[0], FigureValue(62, 5, 30, 12)),
    (LARGE_GRID, 0, "c-ucrl", FigureValue(365, 5, 30, 192)),
    (LARGE_GRID, 1, VERSIONS[0], FigureValue(250, 24, 30, 58)),
    (LARGE_GRID, 1, "c-ucrl", FigureValue(212, 24, 30, 70)),
    (BOX, 0, VERSIONS[0], FigureValue(7_300, 150, 30, 450)),
    (BOX, 0, "c-ucrl", FigureValue(16_500, 150, 30, 190)),
    (BOX, 1, VERSIONS[0], FigureValue(4_300, 45, 30, 700)),
    (BOX, 1, "c-ucrl", FigureValue(0, 45, 30, 0)),
)
# Values read off figure 3 at its end: environment, cost, agent, value.
FIGURE3_VALUES: tuple[tuple[str, int, str, FigureValue], ...] = (
    (SMALL_GRID, 0, VERSIONS[0], FigureValue(0.775, 0.003, 100)),
    (SMALL_GRID, 0, "c-ucrl", FigureValue(0.830, 0.003, 100)),
    (SMALL_GRID, 0, "ucrl-cmdp", FigureValue(0.807, 0.003, 10)),
    (SMALL_GRID, 0, "fha", FigureValue(0.804, 0.003, 10)),
    (SMALL_GRID, 1, VERSIONS[0], FigureValue(0.201, 0.004, 100)),
    (SMALL_GRID, 1, "c-ucrl", FigureValue(0.160, 0.004, 100)),
    (SMALL_GRID, 1, "ucrl-cmdp", FigureValue(0.212, 0.004, 10)),
    (SMALL_GRID, 1, "fha", FigureValue(0.223, 0.004, 10)),
    (LARGE_GRID, 0, VERSIONS[0], FigureValue(0.938, 0.001, 30)),
    (LARGE_GRID, 0, "c-ucrl", FigureValue(0.943, 0.001, 30)),
    (LARGE_GRID, 1, VERSIONS[0], FigureValue(0.102, 0.005, 30)),
    (LARGE_GRID, 1, "c-ucrl", FigureValue(0.093, 0.005, 30)),
    (BOX, 0, VERSIONS[0], FigureValue(0.846, 0.002, 30)),
    (BOX, 1, VERSIONS[0], FigureValue(0.604, 0.006, 30)),
)


def _values(figure: str) -> list[Claim]:
    names = ("regret", "violation") if figure == "figure2" else ("average main cost", "average constrained cost")
    claims = []
    for environment, i, label, value in FIGURE2_VALUES if figure == "figure2" else FIGURE3_VALUES:
        measured = _figure2(i) if figure == "figure2" else _window_average(environment, i)
        for version in VERSIONS if label == VERSIONS[0] else (label,):
            player = (AgentRuns(environment, version),)
            text = f"{environment}, {names[i]} at the end: {{0}}"
            claims.append(Claim(figure, text, f"about {value.mean:,g}", player, measured, value))
    return claims


def _less(figure: str, text: str, players: tuple[AgentRuns, AgentRuns], measured: Measured, high: float = 0.0) -> Claim:
    in_paper = "yes" if high == 0 else f"at most {high:g} more"
    return Claim(figure, text, in_paper, players, measured, RangeRule(high=high))


def _figure2_claims() -> list[Claim]:
    claims = []
    for environment in (SMALL_GRID, LARGE_GRID, BOX):
        for version in VERSIONS:
            player = AgentRuns(environment, version)
            rivals = ("c-ucrl", "ucrl-cmdp", "fha") if environment != BOX else ("c-ucrl",)
            claims += [
                _less(
                    "figure2",
                    f"{environment}: {{0}} has less regret than {{1}}",
                    (player, AgentRuns(environment, rival)),
                    _figure2(0),
                )
                for rival in rivals
            ]
            if environment != BOX:
                text = f"{environment}: violation of {{0}} is comparable with that of {{1}}"
                pair = (player, AgentRuns(environment, "c-ucrl"))
                claims.append(_less("figure2", text, pair, _figure2(1), COMPARABLE))
    for version in VERSIONS:
        for grid in (SMALL_GRID, LARGE_GRID):
            costlier = f"exploration is costlier on {BOX} than on {grid} (regret on {grid} minus on {BOX}): {{0}}"
            claims.append(
                Claim(
                    "figure2",
                    costlier,
                    "less than 0",
                    (AgentRuns(grid, version), AgentRuns(BOX, version)),
                    _figure2(0),
                    RangeRule(high=0.0),
                )
            )
    claims.append(
        Claim(
            "figure2",
            f"{BOX}: {{0}} has near-linear regret (second half relative to the first)",
            "0.74 or more",
            (AgentRuns(BOX, "c-ucrl"),),
            _second_half,
            RangeRule(low=NEAR_LINEAR),
        )
    )
    claims += [
        _less(
            "figure2",
            f"{SMALL_GRID}: {{0}} plans for a shorter time than {{1}} (seconds per run)",
            (AgentRuns(SMALL_GRID, version), AgentRuns(SMALL_GRID, rival)),
            _planning_seconds,
        )
        for version in VERSIONS
        for rival in ("ucrl-cmdp", "fha")
    ]
    return claims  # fmt: skip


def _figure3_claims() -> list[Claim]:
    claims = []
    converged = RangeRule(-CLOSE_TO_OPTIMUM, CLOSE_TO_OPTIMUM)
    for environment in (SMALL_GRID, LARGE_GRID):
        for label in (*VERSIONS, "c-ucrl", "ucrl-cmdp", "fha"):
            player = (AgentRuns(environment, label),)
            text = f"{environment}: {{0}} converges to the optimum (distance, of which the safe policy has 1)"
            claims.append(Claim("figure3", text, "within 0.1", player, _relative_loss(environment), converged))
            kept = f"{environment}: {{0}} satisfies the constraint in the long run (relative excess)"
            rule = RangeRule(high=OVER_THRESHOLD)
            claims.append(Claim("figure3", kept, "at most 5%", player, _relative_excess(environment), rule))
    stuck = f"{BOX}: {{0}} is stuck with a suboptimal policy (distance, of which the safe policy has 1)"
    claims.append(
        Claim(
            "figure3",
            stuck,
            "0.1 or more",
            (AgentRuns(BOX, "c-ucrl"),),
            _relative_loss(BOX),
            RangeRule(low=CLOSE_TO_OPTIMUM),
        )
    )
    quick = f"{BOX}: {{0}} converges in a quarter of the run (distance, of which the safe policy has 1)"
    claims += [
        Claim("figure3", quick, "within 0.1", (AgentRuns(BOX, version),), _relative_loss(BOX, 0.25), converged)
        for version in VERSIONS
    ]
    return claims  # fmt: skip


CLAIMS = (
    *_figure1_claims(), *_figure2_claims(), *_values("figure2"), *_figure3_claims(), *_values("figure3"),
)  # fmt: skip
COMPARISONS = sum(isinstance(claim.rule, RangeRule) for claim in CLAIMS)
