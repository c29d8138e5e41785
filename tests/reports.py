"""Reports for the tests of the page, with hostile names."""

import numpy as np

from psconrl.report.submission import Submission, SubmittedRun

EVIL = "</script><img src=x onerror=alert(1)>"
QUOTED = """a "quoted" & 'odd' <b>name</b> {{css}} \u2028"""
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><text>é</text><script>alert(2)</script></svg>'


def curve(agent, x, mean, half=0.5, runs=5):
    mean = np.asarray(mean, dtype=float)
    return {"agent": agent, "runs": runs, "x": x, "mean": mean, "low": mean - half, "high": mean + half}


def experiment(name, agents=("ps", "ucrl", EVIL), points=40, panels=2, seed=0):
    rng = np.random.default_rng(seed)
    x = np.unique(np.geomspace(1, 100_000, points).astype(int))
    grow = [
        [curve(a, x, rng.uniform(1, 3) * x**0.5 + i, np.sqrt(x) / 3) for i, a in enumerate(agents)]
        for _ in range(panels)
    ]
    slopes = np.linspace(-1, 1, len(agents))  # the last panel has both signs
    grow[-1] = [curve(a, x, slope * x**0.5, np.sqrt(x) / 3) for a, slope in zip(agents, slopes, strict=True)]
    rows = [["ps", 10.5], ["ucrl", 9.25], [EVIL, None]]
    return {
        "name": name,
        "description": "A walk.",
        "facts": [["optimum", "0.775"], ["threshold on risk", 0.2]],
        "panels": [
            {"title": f"Panel {k}", "x": "round", "y": "regret", "lines": [["threshold", 20.0]], "series": series}
            for k, series in enumerate(grow)
        ],
        "tables": [{"title": "End", "note": "", "header": ["agent", "regret"], "rows": rows}],
        "maps": [{"title": "Map", "svg": SVG}],
    }


def report(**changes):
    return {
        "title": f"Report {EVIL}",
        "subtitle": "two walks",
        "created": "2025-01-01",
        "summary": ["First.", QUOTED],
        "caveats": ["Intervals are pointwise."],
        "experiments": [experiment("walk"), experiment(QUOTED, seed=1)],
        "tables": [{"title": "Timing", "note": "seconds", "header": ["agent", "s"], "rows": [["ps", 1.5]]}],
        "provenance": [["seed", 2**70], ["version", "0.1"]],
    } | changes


def one_panel(*series):
    return {
        "name": "odd",
        "panels": [{"title": "p", "x": "round", "y": "y", "lines": [["l", np.nan]], "series": series}],
    }


NOTHING = {"agent": "n", "runs": 0, "x": [1, 2], "mean": [None, None], "low": [None, None], "high": [None, None]}
ODD = {
    "no experiments": {"title": "none", "experiments": []},
    "nothing at all": {},
    "no panels": {"experiments": [{"name": "bare"}]},
    "one point": {"experiments": [one_panel(curve("a", [5], [2.0]))]},
    "one point at zero": {"experiments": [one_panel(curve("a", [0], [0.0], 0.0))]},
    "all unknown": {"experiments": [one_panel(NOTHING)]},
    "constant": {"experiments": [one_panel(curve("a", [1, 2, 3], [0.3] * 3, 0.0))]},
    "no series": {"experiments": [one_panel()]},
    "tiny and huge": {
        "experiments": [one_panel(curve("a", [1, 2], [1e-12, 1e15], 0.0), curve("__proto__", [1], [-1e-9]))]
    },
    "a gap": {"experiments": [one_panel(curve("a", [1, 2, 3, 4, 5], [1, 2, np.nan, 4, 5]))]},
}


def made_up_submission(outcomes, title="Mine"):
    """A submission with two runs of 160 rounds in every environment, whose final regret and violation are given."""

    def runs(regret, violation):
        totals = [[5.0 + regret / 4, 2.0 + violation / 4], [80.0 + regret, 32.0 + violation]]
        made = {"rounds": [10, 160], "totals": totals, "largest_excess": [0.0], "strong": None, "seconds": 1.0}
        return [SubmittedRun(replicate=k, digest="", **made) for k in range(2)]

    facts = {"cost_names": ["c", "d"], "thresholds": [0.2], "optimum": [0.5, 0.2], "prices": [1.0]}
    facts["range_prices"] = [0.5]
    return Submission(
        name="mine:Mine", title=title, setting="as given", options={}, files={"mine.py": "class Mine: ..."}, code="",
        tuning=None, protocol={"digest": "", "seed": 0, "quick": False}, versions={"psconrl": "0"}, platform={},
        environments=dict.fromkeys(outcomes, facts), left_out={},
        runs={name: runs(*outcome) for name, outcome in outcomes.items() if outcome},
        reference={name: runs(90.0, 9.0) for name in outcomes},
    )  # fmt: skip
