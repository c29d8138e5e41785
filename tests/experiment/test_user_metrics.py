"""Metrics of one's own in a spec: computed from what is stored, and shown like any other."""

import json
import sys

import numpy as np
import pytest

from psconrl.cli import main
from psconrl.errors import ConfigError
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec, read_spec
from psconrl.experiment.store import Store
from psconrl.report.curves import read_experiments
from psconrl.report.metrics import measures, metrics_of
from psconrl.report.page_tables import user_metrics_table
from psconrl.report.panel_contents import rows_of
from psconrl.report.panels import panel_figure
from psconrl.report.print_table import print_table
from sweeps import AtOnce, changed_unnoticed, content

CODE = """
import numpy as np

def charged(run):
    return run.regret + 3 * np.maximum(run.violation, 0).sum(axis=1)

def priced(run):
    return run.costs[:, 1:] @ run.prices + 0 * run.optimum[0]

def only_uniform(run):
    return run.rounds * (1.0 if run.label == "uniform" else np.nan)

def short(run):
    return run.costs[0]

def broken(run):
    return run.hosts
"""
SPEC = """
replicates = 2
[metrics.charged]
code = "{module}.py:charged"
title = "Regret with a charge of 3"
{more}
[experiments.queue]
agents = ["uniform", "psconrl-paper"]
horizon = 200
checkpoints = 4
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Run the spec with more tables, and return what was done."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    module = f"metrics_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{module}.py").write_text(CODE)

    def run(more="", change=lambda text: text):
        text = change(SPEC.format(module=module, more=more.replace("HERE", module)))
        (tmp_path / "spec.toml").write_text(text)
        return run_sweep(read_spec(tmp_path / "spec.toml").jobs(), tmp_path / "r.db", executor=AtOnce())

    run.code, run.db = tmp_path / f"{module}.py", tmp_path / "r.db"
    yield run
    sys.modules.pop(module, None)


def experiments_of(path):
    with Store(path) as store, store.snapshot(with_series=True):  # which checks the checksums
        return read_experiments(store)


def test_a_metric_is_computed_at_every_checkpoint_of_every_run(sweep):
    sweep()
    (queue,) = experiments_of(sweep.db)
    for curves in queue.curves.values():
        assert curves.own["charged"].values.shape == (2, 4)
        over = sum(np.maximum(curves.violation(i), 0.0) for i in (1, 2))
        np.testing.assert_allclose(curves.own["charged"].values, curves.regret + 3 * over, rtol=1e-12)


def test_it_is_shown_in_tables_and_figures(sweep, capsys):
    sweep()
    shown = experiments_of(sweep.db)
    (measure,) = measures(shown, ["charged"])
    table = print_table(shown, [measure], "csv").splitlines()
    assert table[1].startswith("queue,uniform,2,Regret with a charge of 3,")
    assert float(table[1].split(",")[4]) == pytest.approx(
        shown[0].curves["uniform"].own["charged"].values[:, -1].mean()
    )
    (axes,) = panel_figure(shown, rows_of([measure])).axes
    assert axes.get_ylabel().replace("\n", " ") == "Regret with a charge of 3"
    with pytest.raises(SystemExit) as left:
        main(["table", str(sweep.db), "--metric", "regret,charged"])
    assert not left.value.code
    assert user_metrics_table(shown[0])["header"] == ["agent", "runs", "Regret with a charge of 3"]
    assert [row[0] for row in user_metrics_table(shown[0])["rows"]] == ["uniform", "PSConRL (paper)"]
    assert "Regret with a charge of 3" in capsys.readouterr().out


def test_a_metric_that_is_added_changed_or_removed_repeats_no_run(sweep):
    assert (sweep().done, sweep().done) == (4, 0)
    before = content(sweep.db)
    added = sweep('[metrics.weighted]\ncode = "HERE.py:priced"')
    assert (added.done, added.known, added.hidden) == (0, 4, 0)
    (queue,) = experiments_of(sweep.db)
    curves = queue.curves["uniform"]
    np.testing.assert_allclose(curves.own["weighted"].values, curves.cumulative[:, :, 1:] @ queue.facts["prices"])
    assert curves.own["weighted"].title == "weighted"
    sweep.code.write_text(CODE.replace("3 *", "5 *"))
    sweep()
    (queue,) = experiments_of(sweep.db)
    over = sum(np.maximum(queue.curves["uniform"].violation(i), 0.0) for i in (1, 2))
    np.testing.assert_allclose(
        queue.curves["uniform"].own["charged"].values, queue.curves["uniform"].regret + 5 * over, rtol=1e-12
    )
    sweep.code.write_text(CODE)
    sweep()
    assert content(sweep.db) == before
    sweep(change=lambda text: text[text.index("[experiments") :])
    assert list(metrics_of(experiments_of(sweep.db))) == list(metrics_of([]))


def test_an_agent_without_numbers_has_a_dash(sweep):
    sweep('[metrics.mine]\ncode = "HERE.py:only_uniform"')
    shown = experiments_of(sweep.db)
    lines = print_table(shown, measures(shown, ["mine"]), "markdown").splitlines()
    assert "| 200 " in lines[2]
    assert lines[3].endswith("| - |")


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("short", r"metric 'mine', queue, uniform: must return 4 numbers, one for each checkpoint; got shape \(3,\)"),
        ("broken", "metric 'mine', queue, uniform: AttributeError: .*; the runs are kept: mend the function"),
    ],
)
def test_a_function_that_fails_keeps_the_runs(sweep, code, complaint):
    with pytest.raises(ConfigError, match=complaint):
        sweep(f'[metrics.mine]\ncode = "HERE.py:{code}"')
    assert sweep().known == 4


def test_a_known_name_is_refused(sweep):
    sweep('[metrics.regret]\ncode = "HERE.py:priced"')
    with pytest.raises(ConfigError, match=r"metric 'regret' of the spec has the name of a known one"):
        measures(experiments_of(sweep.db), ["charged"])


def test_an_unknown_metric_names_the_own_ones(sweep):
    sweep()
    with pytest.raises(ConfigError, match="unknown metric 'charge'; did you mean 'charged'"):
        measures(experiments_of(sweep.db), ["charge"])


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ("[metrics.m]", 'must have code = "file.py:function"'),
        ('[metrics.m]\ncode = "one"', r'code must be "file.py:function" or "module:function"; got .one'),
        ('[metrics.m]\ncode = "numpy:pi"', r"\[metrics.m\] numpy:pi: must be a class or a function; got float"),
        ('[metrics.m]\ncode = "numpy:sum"\ntitle = 3', "title must be text; got 3"),
        ('[metrics."a,b"]\ncode = "numpy:sum"', "must not be empty, nor have a comma"),
        ('[metrics.m]\ncode = "numpy:sum"\nunit = "s"', 'must have code = "file.py:function"'),
    ],
)
def test_tables_that_are_refused(table, complaint):
    with pytest.raises(ConfigError, match=complaint):
        parse_spec(f'{table}\n[experiments.queue]\nagents = ["uniform"]')


@pytest.mark.parametrize("damage", [3, {"m": 3}, {"m": {"title": "m", "values": [1.0]}}, {"m": {"values": [1.0] * 4}}])
def test_a_damaged_file_is_noticed(sweep, damage):
    sweep()
    text = json.dumps({"metrics": damage})
    changed_unnoticed(sweep.db, f"UPDATE runs SET summary = json_patch(json_remove(summary, '$.metrics'), '{text}')")
    with pytest.raises(OSError, match="damaged"):
        experiments_of(sweep.db)
