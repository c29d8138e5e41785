"""Flat tables of a results file: current runs alone unless asked, with settings, metrics and machine."""

import csv
import json
import sys
from itertools import pairwise

import numpy as np
import pytest

from psconrl.cli import main
from psconrl.errors import ConfigError
from psconrl.experiment.provenance import PROVENANCE, this_machine
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import Store
from psconrl.experiment.versions import code_digest
from psconrl.report.curves import read_experiments
from psconrl.report.export import export_tables
from psconrl.report.metrics import METRICS
from sweeps import AtOnce, changed_unnoticed

SPEC = """
replicates = 2
seed = 3
[agents.mine]
agent = "psconrl"
grid = { prior = [0.05, 0.5] }
options = { ledger = { name = "repay", share = 0.2 } }
[agents.helped]
agent = "psconrl"
support = true
[agents.uniform]
[experiments.rover]
env = "marsrover-4x4"
options = { slip = 0.1 }
horizon = 400
checkpoints = 4
probe = [0, 1, 4]
[experiments.example]
env = "counterexample"
agents = ["uniform"]
horizon = 40
checkpoints = 2
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Results with stale runs: those of a longer horizon were replaced."""
    path = tmp_path_factory.mktemp("exported") / "r.db"
    run_sweep(parse_spec(SPEC.replace("horizon = 400", "horizon = 600")).jobs(), path, executor=AtOnce())
    run_sweep(parse_spec(SPEC).jobs(), path, executor=AtOnce())
    return path


def exported(path, folder, form="csv", stale=False):
    with Store(path) as store:
        files = export_tables(store, folder, form, stale)
    assert [file.name for file in files] == [f"{name}.{form}" for name in ("runs", "checkpoints", "probes")]
    if form == "csv":
        return [list(csv.DictReader(file.read_text(encoding="utf-8").splitlines())) for file in files]
    from pyarrow import parquet

    return [parquet.read_table(file).to_pylist() for file in files]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_current_runs_alone_unless_stale_ones_are_asked_for(path, tmp_path, form):
    runs, checkpoints, probes = exported(path, tmp_path, form)
    assert len(runs) == 4 * 2 + 2
    assert {int(run["horizon"]) for run in runs} == {400, 40}
    every, points, probed = exported(path, tmp_path, form, stale=True)
    assert len(every) == len(runs) + 4 * 2
    for fewer, more in ((runs, every), (checkpoints, points), (probes, probed)):
        assert {int(row["current"]) for row in fewer} == {1}
        assert [row for row in more if int(row["current"])] != more
        assert {int(row["current"]) for row in more} == {0, 1}
        kept = [row["run"] for row in more if int(row["current"])]
        assert kept == [row["run"] for row in fewer]
    assert len(checkpoints) == 2 * (4 * 2 * 4 + 2 * 2)  # two costs
    assert all(row["final_regret"] in ("", None) for row in every if not int(row["current"]))


def test_a_run_has_its_settings_and_what_made_it(path, tmp_path):
    runs, _, _ = exported(path, tmp_path)
    helped, first, uniform = runs[2], runs[4], runs[-1]
    assert (first["experiment"], first["label"], first["title"]) == ("rover", "mine prior=0.05", "mine prior=0.05")
    assert first | {
        "agent": "psconrl", "env": "marsrover-4x4", "seed": "3", "known_costs": "True", "emission": "deterministic",
        "option.prior": "0.05", "option.ledger.name": "repay", "option.ledger.share": "0.2", "env.slip": "0.1",
        "knowledge.support": "", "cost_0": "steps", "cost_1": "risk", "threshold_1": "0.2",
        "code": code_digest(), **this_machine(),
    } == first  # fmt: skip
    assert {name for name in PROVENANCE if name != "commit"} <= first.keys()
    assert uniform["title"] == "uniform"
    assert uniform["option.prior"] == uniform["knowledge.support"] == ""
    assert (helped["label"], helped["knowledge.support"]) == ("helped", "True")
    assert float(first["price_1"]) > 0
    assert float(first["range_price_1"]) > 0
    assert float(first["final_score"]) >= float(first["final_regret"])
    assert not [key for key in first if key.startswith("_")]


OWN = """
import numpy as np
import psconrl


class Patient:
    def __init__(self, n_states, n_actions, thresholds, margin=1.5, depth=None, seed=None):
        self.policy = np.full((n_states, n_actions), 1 / n_actions)

    def begin(self, state):
        return psconrl.Episode(self.policy, max_steps=50)

    def end(self, record):
        pass
"""


def test_options_at_their_defaults_have_their_values(tmp_path, monkeypatch):
    module = f"exported_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{module}.py").write_text(OWN)
    monkeypatch.setattr("sys.path", [*sys.path, str(tmp_path)])
    agents = {
        "own": ({"agent": f"{module}:Patient"}, "1.5", "", ""),
        "mine": ({"agent": f"{module}:Patient", "options": {"margin": 3.0, "depth": 2}}, "3.0", "2", ""),
        "psconrl-paper": ({}, "", "", "0.1"),
        "broad": ({"agent": "psconrl-paper", "options": {"prior": 0.5}}, "", "", "0.5"),
        "other": ({"agent": "psconrl-paper", "options": {"schedule": "doubling"}}, "", "", ""),  # names a part
        "helped": ({"agent": "psconrl-paper", "support": True}, "", "", ""),  # prior knowledge chooses parts
    }
    lines = ["replicates = 1", "[experiments.counterexample]", "horizon = 20", "checkpoints = 2"]
    for name, (table, *_) in agents.items():
        options = ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.pop("options", {}).items())
        lines += [f"[agents.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
        lines += [f"options = {{ {options} }}"] if options else []
    outcome = run_sweep(parse_spec("\n".join(lines)).jobs(), tmp_path / "d.db", executor=AtOnce())
    assert outcome.failed == 0
    runs, _, _ = exported(tmp_path / "d.db", tmp_path / "out")
    columns = ("option.margin", "option.depth", "option.prior")
    assert {run["label"]: tuple(run[name] for name in columns) for run in runs} == {
        name: tuple(values) for name, (_, *values) in agents.items()
    }
    schedules = {run["label"]: run["option.schedule"] for run in runs}
    assert (schedules["psconrl-paper"], schedules["other"], schedules["broad"]) == ("ouyang", "doubling", "")
    assert "option.cost_weight" not in runs[0]  # which no run sets
    sys.modules.pop(module)


def test_final_values_are_those_of_the_metrics(path, tmp_path):
    runs, checkpoints, _ = exported(path, tmp_path)
    with Store(path) as store:
        experiments = read_experiments(store)
    for experiment in experiments:
        for label, curves in experiment.curves.items():
            own = [run for run in runs if (run["experiment"], run["label"]) == (experiment.name, label)]
            for name, metric in METRICS.items():
                column = "final_" + name.replace("-", "_") + ("_1" if metric.of_limits else "")
                if metric.deviation:
                    assert column not in own[0]
                    continue
                values = metric.values(experiment, curves, int(metric.of_limits))[:, -1]
                shown = [float(run[column] or "nan") for run in own]
                np.testing.assert_array_equal(shown, np.where(np.isfinite(values), values, np.nan))
    for run in runs:
        ends = [p for p in checkpoints if p["run"] == run["run"] and p["round"] == run["horizon"]]
        signed = [float(p["total"]) - float(p["target"]) for p in ends]
        assert signed == pytest.approx([float(run["final_regret"]), float(run["final_violation_1"])])
        assert [p["cost_name"] for p in ends] == [run["cost_0"], run["cost_1"]]


def test_probes_have_their_entry(path, tmp_path):
    _, _, probes = exported(path, tmp_path)
    assert {(row["experiment"], row["state"], row["action"], row["next_state"]) for row in probes} == {
        ("rover", "0", "1", "4")
    }
    sampled = [row for row in probes if row["label"] == "mine prior=0.5"]
    assert len(sampled) == 2 * 4
    assert all(0 <= float(row["value"]) <= 1 for row in sampled)
    rounds = [int(row["round"]) for row in sampled[:4]]
    assert all(a < b for a, b in pairwise(rounds))


def test_a_failed_run_has_its_error_and_no_values(path, tmp_path):
    copy = tmp_path / "r.db"
    copy.write_bytes(path.read_bytes())
    run = "SELECT min(id) FROM runs WHERE current AND experiment = 'example'"
    changed_unnoticed(
        copy,
        f"DELETE FROM checkpoints WHERE run = ({run})",
        f"UPDATE runs SET status = 'failed', error = 'ValueError: no', optimum = '[]' WHERE id = ({run})",
    )
    runs, checkpoints, _ = exported(copy, tmp_path)
    failed = runs[0]
    assert (failed["status"], failed["error"], failed["final_regret"]) == ("failed", "ValueError: no", "")
    assert failed["run"] not in {row["run"] for row in checkpoints}


def test_a_column_of_several_types_is_text_in_parquet(path, tmp_path):
    copy = tmp_path / "r.db"
    copy.write_bytes(path.read_bytes())
    for number, value in enumerate((1, 0.5, "none", True, [1, 2], None)):
        job = f"json_set(job, '$.agent_options', json('{json.dumps({'mixed': value, 'whole': number + 0.5})}'))"
        place = f"SELECT id FROM runs WHERE current ORDER BY id LIMIT 1 OFFSET {number}"
        changed_unnoticed(copy, f"UPDATE runs SET job = {job} WHERE id = ({place})")
    runs, _, _ = exported(copy, tmp_path, "parquet")
    by_number = {run["option.whole"]: run["option.mixed"] for run in runs if run["option.whole"] is not None}
    assert by_number == {0.5: "1", 1.5: "0.5", 2.5: "none", 3.5: "true", 4.5: "[1, 2]", 5.5: None}


def test_another_format_is_refused(path, tmp_path):
    with Store(path) as store, pytest.raises(ConfigError, match="format must be one of csv, parquet; got 'xlsx'"):
        export_tables(store, tmp_path, "xlsx")


def test_a_file_without_runs_has_tables_without_rows(tmp_path):
    path = tmp_path / "empty.db"
    with Store.writer(path):
        pass
    assert exported(path, tmp_path) == [[], [], []]


def test_the_command_leaves_out_stale_runs_unless_asked(path, tmp_path, capsys):
    for option, number in (((), 10), (("--stale",), 18)):
        with pytest.raises(SystemExit) as end:
            main(["export", str(path), "-o", str(tmp_path), *option])
        assert end.value.code in (0, None)
        assert capsys.readouterr().out.count("Table: ") == 3
        with (tmp_path / "runs.csv").open(encoding="utf-8") as f:
            assert len(list(csv.DictReader(f))) == number
