"""The results file: complete runs only, clear errors, readers concurrent with a writer."""

import dataclasses
import json
import math
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from psconrl.errors import StoreError
from psconrl.experiment.columns import ColumnReader
from psconrl.experiment.job import execute, failure
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import Store
from sweeps import AtOnce, content

SMALL = """
replicates = 2
[experiments.small]
env = "marsrover-4x4"
horizon = 400
checkpoints = 4
agents = ["psconrl", "uniform"]
"""


@pytest.fixture(scope="module")
def results():
    return [execute(job) for job in parse_spec(SMALL).jobs()]


def fill(path, results):
    with Store.writer(path) as store:
        store.add_experiment("small", 0, {}, None)
        for result in results:
            store.add(result)
    return path


def test_runs_come_back_as_they_went_in(tmp_path, results):
    path = fill(tmp_path / "r.db", results)
    with Store(path) as store:
        assert store.finished() == {result.job.hash for result in results}
        totals = store.query("SELECT total FROM checkpoints WHERE run = 1 ORDER BY round, cost")
        np.testing.assert_array_equal(np.array(totals).ravel(), results[0].cumulative.ravel())


def test_adding_a_run_again_replaces_it_and_failed_ones_are_not_finished(tmp_path, results):
    job = results[0].job
    path = fill(tmp_path / "r.db", [failure(job, "Traceback\nValueError: no")])
    with Store(path) as store:
        assert store.finished() == set()
        assert store.query("SELECT status, error FROM runs") == [("failed", "Traceback\nValueError: no")]
    fill(path, [results[0], results[0]])
    with Store(path) as store:
        assert store.query("SELECT count(*), min(status) FROM runs") == [(1, "done")]
        assert store.query("SELECT count(*) FROM checkpoints") == [(results[0].cumulative.size,)]


def test_readers_query_while_it_is_written(tmp_path, results):
    path = tmp_path / "r.db"
    with Store.writer(path) as writer:
        writer.add(results[0])
        with Store(path) as reader:
            assert reader.query("SELECT count(*) FROM runs") == [(1,)]
            writer.add(results[1])
            assert reader.query("SELECT count(*) FROM runs") == [(2,)]


def test_two_writers_at_once_is_an_error_and_nothing_is_lost(tmp_path, results):
    path = tmp_path / "r.db"
    with Store.writer(path) as writer:
        writer.add(results[0])
        with pytest.raises(StoreError, match="another sweep is writing"), Store.writer(path):
            pass
        writer.add(results[1])
    with Store(path) as store:
        assert len(store.finished()) == 2


def test_foreign_missing_and_newer_files_are_refused(tmp_path, results):
    (tmp_path / "text.db").write_text("this is not a database, but long enough to be looked at as one" * 40)
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE songs (title TEXT)")
    other.commit()
    other.close()
    newer = fill(tmp_path / "newer.db", results[:1])
    with sqlite3.connect(newer) as db:
        db.execute("UPDATE meta SET value = '99' WHERE key = 'schema'")
    db.close()
    for name, message in (("text.db", "not a results file"), ("other.db", "not a results file of psconrl"),
                          ("newer.db", r"newer psconrl \(schema 99\)")):  # fmt: skip
        before = (tmp_path / name).read_bytes()
        with pytest.raises(StoreError, match=message):
            Store(tmp_path / name)
        with pytest.raises(StoreError, match=message), Store.writer(tmp_path / name):
            pass
        if name != "newer.db":
            assert (tmp_path / name).read_bytes() == before
    with pytest.raises(StoreError, match="no such file"):
        Store(tmp_path / "none.db")
    with pytest.raises(StoreError, match="is a folder"):
        Store(tmp_path)
    with pytest.raises(StoreError, match=r"folder .* does not exist"), Store.writer(tmp_path / "none" / "r.db"):
        pass


def add_until_full(writer, results):
    for k in range(100):
        job = dataclasses.replace(results[0].job, seed=100 + k)
        writer.add(dataclasses.replace(results[0], job=job))


def test_a_full_disk_keeps_what_was_there(tmp_path, results):
    path = tmp_path / "r.db"
    with Store.writer(path) as writer:
        writer.add_experiment("small", 0, {}, None)
        writer.add(results[0])
        pages = writer.query("PRAGMA page_count")[0][0]
        writer.connection.execute(f"PRAGMA max_page_count = {pages}")  # the same error as a full disk
        with pytest.raises(StoreError, match="the disk is full; all earlier finished runs are kept"):
            add_until_full(writer, results)
    with Store(path) as store:
        assert len(store.finished()) >= 1
        assert store.query("PRAGMA integrity_check") == [("ok",)]
        assert store.changed_parts(with_series=True) == []


def test_a_read_only_file_is_an_error_at_once(tmp_path, results, monkeypatch):
    path = fill(tmp_path / "r.db", results[:1])
    plain = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda p, **kw: plain(f"file:{p}?mode=ro", uri=True, **kw))
    with pytest.raises(StoreError, match="cannot be written"), Store.writer(path):
        pass
    monkeypatch.undo()
    with Store(path) as store:
        assert len(store.finished()) == 1


def test_older_code_or_settings_stay_but_are_not_shown(tmp_path):
    path = tmp_path / "r.db"
    run_sweep(parse_spec(SMALL).jobs(), path, executor=AtOnce())
    run_sweep(parse_spec(SMALL.replace("400", "300")).jobs(), path, executor=AtOnce())
    with Store(path) as store, store.snapshot():  # an error if a sum over runs does not hold
        rows = store.query("SELECT horizon, current, count(*) FROM runs GROUP BY horizon ORDER BY horizon")
    assert rows == [(300, 1, 4), (400, 0, 4)]


def test_content_tells_results_apart(tmp_path, results):
    one, two = fill(tmp_path / "a.db", results), fill(tmp_path / "b.db", results[::-1])
    assert content(one) == content(two)
    assert content(one) != content(fill(tmp_path / "c.db", results[1:]))


@pytest.mark.parametrize(
    "statements",
    [
        ["DROP TABLE probes"],
        ["CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM checkpoints; END"],
        [
            "DROP TABLE probes",
            "CREATE VIEW probes AS WITH RECURSIVE n(run) AS (SELECT 1 UNION ALL SELECT run FROM n) SELECT run FROM n",
        ],
        [
            "DROP TABLE IF EXISTS trajectories",
            "CREATE VIEW trajectories AS WITH RECURSIVE n(run) AS (SELECT 1 UNION ALL SELECT run FROM n)"
            " SELECT run, run AS rounds, run AS content FROM n",
        ],
    ],
    ids=["a table is missing", "a trigger", "a view without an end", "trajectories without an end"],
)
def test_a_file_that_would_do_something_of_its_own_is_refused(tmp_path, results, statements):
    path = fill(tmp_path / "r.db", results)
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()
    with pytest.raises(StoreError, match=r"damaged: it must have the tables meta, .*, and no triggers"):
        Store(path)


def test_a_users_own_views_do_no_harm(tmp_path, results):
    path = fill(tmp_path / "r.db", results)
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE VIEW good AS SELECT * FROM runs WHERE status = 'done'")
        db.commit()
    with Store(path) as store:
        assert len(store.query("SELECT * FROM good")) == len(results)


@pytest.mark.parametrize(
    ("name", "wrong"), [("states", None), ("actions", math.nan), ("most_episodes", "x"), ("diameter", [])]
)
def test_a_summary_with_bounds_has_the_numbers_of_their_formulas(name, wrong):
    summary = {"episodes": 3, "rounds": {"optimal": 60}, "states": 2, "actions": 2, "most_episodes": 9.5, "diameter": 4}
    columns = ColumnReader(Path("r.db"))
    assert columns.summary(json.dumps(summary), "summary") == summary
    assert columns.summary(json.dumps(summary | {"diameter": math.inf}), "summary")["diameter"] == math.inf
    without = {key: summary[key] for key in ("episodes", "rounds")}
    assert columns.summary(json.dumps(without), "summary") == without
    with pytest.raises(StoreError, match=rf"^r\.db: .*{name} in summary"):
        columns.summary(json.dumps(summary | {name: wrong}), "summary")


@pytest.mark.parametrize("name", ["states", "actions"])
def test_a_summary_without_sizes_has_no_bounds(name):
    summary = {"episodes": 3, "rounds": {}, "states": 2, "actions": 2, "most_episodes": 9.5, "diameter": 4.0}
    del summary[name]
    with pytest.raises(StoreError, match=rf"^r\.db: .*{name} in summary"):
        ColumnReader(Path("r.db")).summary(json.dumps(summary), "summary")
