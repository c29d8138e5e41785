"""What made a results file: its spec, the user's code, versions and processors; titles of the user's agents."""

import contextlib
import io
import json
import sqlite3
import sys
from pathlib import Path

import pytest

from psconrl.cli import main
from psconrl.errors import ConfigError, StoreError
from psconrl.experiment.provenance import (
    PROVENANCE,
    kept_files,
    processor,
    provenance_rows,
    restore,
    this_machine,
)
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec, read_spec
from psconrl.experiment.store import Store
from psconrl.experiment.user_titles import grid_point, shown_titles, user_titles
from psconrl.experiment.versions import git_commit, versions
from psconrl.report.curves import read_experiments
from sweeps import AtOnce, changed_unnoticed

AGENT = '''
import numpy as np
import psconrl
from helper import SHARE  # beside it


class Mixed:
    """Plays at random."""

    title = "Mixed  play"

    def __init__(self, n_states, n_actions, thresholds, share=SHARE):
        self.policy = np.full((n_states, n_actions), (1 - share) / (n_actions - 1))
        self.policy[:, 0] = share

    def begin(self, state):
        return psconrl.Episode(self.policy, max_steps=50)

    def end(self, record):
        pass


class Plain(Mixed):
    title = None
'''
METRIC = """
from numbers_of_it import FACTOR


def twice(run):
    return FACTOR * run.regret
"""
SPEC = """
replicates = 1
[metrics.twice]
code = "measures/metric_of_{module}.py:twice"
[agents.mixed]
agent = "code/{module}.py:Mixed"
grid = {{ share = [0.2, 0.4] }}
[agents.alone]
agent = "code/{module}.py:Mixed"
[agents.plain]
agent = "code/{module}.py:Plain"
[agents.uniform]
[experiments.a]
env = "marsrover-4x4"
horizon = 40
checkpoints = 2
[experiments.b]
env = "shop.json"
agents = ["uniform"]
horizon = 40
checkpoints = 2
"""
MODEL = {"transition": [[[0.5, 0.5], [0.9, 0.1]], [[0.1, 0.9], [1, 0]]], "costs": [[[0, 2], [5, 7]]]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a spec, a model, and an agent in a folder of its own, with what it imports."""
    module = f"kept_{tmp_path.name}".replace("-", "_")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "helper.py").write_text("SHARE = 0.5\n")
    (tmp_path / "code" / f"{module}.py").write_text(AGENT)
    (tmp_path / "measures").mkdir()
    (tmp_path / "measures" / "numbers_of_it.py").write_text("FACTOR = 2\n")
    (tmp_path / "measures" / f"metric_of_{module}.py").write_text(METRIC)
    (tmp_path / "shop.json").write_text(json.dumps(MODEL))
    (tmp_path / "study.toml").write_text(SPEC.format(module=module))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for each in (module, "helper", f"metric_of_{module}", "numbers_of_it"):
        sys.modules.pop(each, None)


@pytest.fixture
def swept(folder):
    outcome = run_sweep(read_spec("study.toml").jobs(), folder / "r.db", executor=AtOnce())
    assert (outcome.done, outcome.failed) == (6, 0)
    return folder / "r.db"


def test_a_run_records_processor_kernels_and_libraries(swept):
    with Store(swept) as store:
        (text,) = {row for (row,) in store.query("SELECT json_remove(provenance, '$.seconds', '$.planning_seconds', "
                                                 "'$.finished') FROM runs")}  # fmt: skip
        rows = dict(provenance_rows(store))
    record = json.loads(text)
    assert record | this_machine() | versions() == record
    assert set(rows) <= set(PROVENANCE) == {*record, "commit"}
    assert rows["cpu"] == processor() != ""
    assert rows["kernels"] in ("baseline", "avx2", "avx512", "python")
    assert rows["blas"] != "unknown"


def test_the_machine_is_no_part_of_the_hash(folder, monkeypatch):
    before = [job.hash for job in read_spec("study.toml").jobs()]
    this_machine.cache_clear()
    monkeypatch.setattr("psconrl.experiment.provenance.processor", lambda: "another")
    assert this_machine()["cpu"] == "another"
    assert [job.hash for job in read_spec("study.toml").jobs()] == before
    this_machine.cache_clear()


def test_spec_code_and_model_are_written_back_and_make_the_same_runs(swept, folder, tmp_path_factory, monkeypatch):
    place = tmp_path_factory.mktemp("elsewhere") / "back"
    with Store(swept) as store:
        paths = {path.relative_to(place).as_posix() for path in restore(store, place)}
        hashes = store.finished()
    module = next((folder / "code").glob("kept_*.py")).name
    metrics = {f"measures/metric_of_{module}", "measures/numbers_of_it.py"}
    assert paths == {"study.toml", "shop.json", f"code/{module}", "code/helper.py", "constraints.txt"} | metrics
    for path in paths - {"constraints.txt"}:
        assert (place / path).read_bytes() == (folder / path).read_bytes()
    pinned = (place / "constraints.txt").read_text().splitlines()
    assert pinned[0] == f"# Python {'.'.join(map(str, sys.version_info[:3]))}"
    assert f"numpy=={versions()['numpy']}" in pinned
    assert pinned[1] == f"psconrl=={versions()['psconrl']}"
    assert pinned[2].startswith("# psconrl: ")
    assert pinned[2].endswith(f"hash of its code {versions()['code']}")
    assert git_commit().removesuffix("+") in pinned[2]
    for name in (module.removesuffix(".py"), "helper", f"metric_of_{module.removesuffix('.py')}", "numbers_of_it"):
        sys.modules.pop(name)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if not path.startswith(str(folder))])
    monkeypatch.chdir(place)
    jobs = read_spec("study.toml").jobs()
    assert {job.hash for job in jobs} == hashes
    assert run_sweep(jobs.of(["b"]), place / "again.db", executor=AtOnce()).done == 1  # with its metric


def test_a_file_in_the_way_is_kept(swept, folder):
    (folder / "back" / "code").mkdir(parents=True)
    (folder / "back" / "code" / "helper.py").write_text("SHARE = 0.7\n")
    with Store(swept) as store, pytest.raises(ConfigError, match=r"helper\.py: is there with other contents"):
        restore(store, folder / "back")
    assert [path.name for path in (folder / "back").iterdir()] == ["code"]  # nothing was written
    with Store(swept) as store:
        assert restore(store, folder) != []  # the same contents may be there


def test_two_versions_of_a_spec_are_both_kept(folder):
    text = '[experiments.{name}]\nenv = "counterexample"\nagents = ["uniform"]\nhorizon = 20\nreplicates = 1\n'
    for name in ("a", "b"):
        (folder / "small.toml").write_text(text.format(name=name))
        run_sweep(read_spec("small.toml").jobs(quick=name == "b"), folder / "two.db", executor=AtOnce())
    with Store(folder / "two.db") as store:
        files = {file.path: file.text for file in kept_files(store)}
        assert store.query("SELECT json_extract(value, '$.quick') FROM meta WHERE key = 'spec of b'") == [(1,)]
    assert files == {"small.toml": text.format(name="a"), "version-2/small.toml": text.format(name="b")}


def test_a_spec_with_other_agents_says_so(folder):
    spec = read_spec("study.toml").with_agents(["uniform", "psconrl-paper"])
    run_sweep(spec.jobs().of(["b"]), folder / "o.db", executor=AtOnce())
    with Store(folder / "o.db") as store:
        found = next(file.text for file in kept_files(store) if file.kind == "spec")
    assert found.startswith("# Run with other agents than below: uniform, psconrl-paper\n")
    assert parse_spec(found, folder=folder).experiments.keys() == {"a", "b"}


@pytest.mark.parametrize("path", ["../evil.py", "/evil.py", "a/../../evil.py", "C:evil.py", "a\\b.py", ".profile", ""])
def test_a_path_out_of_the_folder_is_refused(swept, folder, path):
    changed_unnoticed(
        swept, f"UPDATE meta SET value = '{json.dumps({path: 'x'})}' WHERE key LIKE 'code %'"
    )  # fmt: skip
    with (
        Store(swept) as store,
        pytest.raises(StoreError, match=r"damaged: the name of a file, .* must be a path within"),
    ):
        restore(store, folder / "back")
    assert not (folder / "back").exists()


def test_a_file_of_an_earlier_version_opens_and_has_no_spec(swept):
    changed_unnoticed(
        swept,
        "DELETE FROM meta WHERE key LIKE 'spec %' OR key LIKE 'code %' OR key LIKE 'file %' OR key LIKE 'titles %'",
        "UPDATE runs SET provenance = json_remove(provenance, '$.cpu', '$.blas', '$.kernels')",
    )
    code, out, err = said("provenance", str(swept))
    assert (code, err) == (0, "")
    assert "none kept" in out
    assert "cpu" not in out
    with Store(swept) as store:
        (a, _) = read_experiments(store)
    assert next(curves.title for curves in a.curves.values()) == "mixed share=0.2"


def test_provenance_on_the_command_line(swept):
    code, out, _ = said("provenance", str(swept))
    assert code == 0
    for text in ("study.toml", "helper.py", "shop.json", "numpy", "kernels"):
        assert text in out
    code, out, _ = said("provenance", str(swept), "--out", "back")
    assert code == 0
    assert "File: back/study.toml" in out.replace("\\", "/")
    assert Path("back/constraints.txt").is_file()


def said(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0), out.getvalue(), err.getvalue()


# Titles of the user's agents


def test_own_titles_are_shown_with_the_point_of_a_grid(swept):
    jobs = read_spec("study.toml").jobs()
    assert user_titles(jobs) == {
        "mixed share=0.2": "Mixed play share=0.2",
        "mixed share=0.4": "Mixed play share=0.4",
        "alone": "Mixed play",
    }  # none for an agent without a title, nor for one of the library
    with Store(swept) as store:
        (a, _) = read_experiments(store)
        titles = [curves.title for curves in a.curves.values()]
    assert titles == ["Mixed play share=0.2", "Mixed play share=0.4", "Mixed play", "plain", "uniform"]


@pytest.mark.parametrize(
    ("label", "options", "point"),
    [
        ("mine", {"a": 1}, ""),
        ("mine a=1", {"a": 1}, " a=1"),
        ("mine a=1 b=two", {"c": 0.5, "a": 1, "b": "two"}, " a=1 b=two"),
        ("mine a=1", {"a": 2}, ""),  # a name of the user's
    ],
)
def test_the_point_of_a_grid_is_read_off_a_label(label, options, point):
    assert grid_point(label, options) == point


def test_labels_that_would_share_a_title_keep_their_names(swept):
    with contextlib.closing(sqlite3.connect(swept)) as results:
        (text,) = results.execute("SELECT value FROM meta WHERE key = 'titles a'").fetchone()
    other = json.dumps(json.loads(text) | {"plain": "Mixed play", "mixed share=0.2": "uniform"})
    changed_unnoticed(swept, f"UPDATE meta SET value = '{other}' WHERE key = 'titles a'")
    labels = ["mixed share=0.2", "mixed share=0.4", "alone", "plain", "uniform"]
    with Store(swept) as store:
        assert list(shown_titles(store, labels).values()) == [
            "mixed share=0.2", "Mixed play share=0.4", "alone", "plain", "uniform",
        ]  # fmt: skip
    changed_unnoticed(swept, "UPDATE meta SET value = '{\"alone\": 3}' WHERE key = 'titles a'")
    with Store(swept) as store, pytest.raises(StoreError, match="damaged: a title in the titles a must be text"):
        shown_titles(store, labels)
