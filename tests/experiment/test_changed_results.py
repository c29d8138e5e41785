"""Results files that were changed since they were written: every reader says so, and a sweep makes it good."""

import dataclasses
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from psconrl.cli import main
from psconrl.errors import PsconrlError, StoreError
from psconrl.experiment.checksum import checksum, difference_of, sum_of
from psconrl.experiment.job import execute
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import Store
from psconrl.report.curves import read_experiments
from psconrl.report.export import export_tables
from psconrl.report.monitor.source import Source
from psconrl.report.page_contents import build
from sweeps import AtOnce, changed, content

SPEC = """
replicates = 2
[experiments.small]
env = "marsrover-4x4"
horizon = 200
checkpoints = 4
agents = ["psconrl", "uniform"]
probe = [0, 0, 1]

[experiments.other]
env = "counterexample"
horizon = 100
checkpoints = 3
agents = ["uniform"]
"""


@pytest.fixture(scope="module")
def jobs():
    return parse_spec(SPEC).jobs()


@pytest.fixture(scope="module")
def whole(tmp_path_factory, jobs):
    path = tmp_path_factory.mktemp("whole") / "r.db"
    run_sweep(jobs, path, executor=AtOnce())
    return path


@pytest.fixture
def results(tmp_path, whole):
    path = tmp_path / "r.db"
    path.write_bytes(whole.read_bytes())
    return path


def report(path):
    with Store(path) as store:
        build(store)


def experiments(path):
    with Store(path) as store:
        read_experiments(store)


def export(path):
    with Store(path) as store:
        export_tables(store, path.parent / "tables", "csv")


RUN = "(SELECT id FROM runs WHERE experiment = 'small' AND label = 'psconrl' AND replicate = 1)"
ONE = "small, psconrl, run 1"
LIST = "the list of runs of small"
# What is done to the file; what readers name; how many runs are made again.
CHANGES = {
    "a total": ([f"UPDATE checkpoints SET total = total + 1e-9 WHERE run = {RUN} AND round = 200"], ONE, 1),
    "a strong regret": ([f"UPDATE checkpoints SET strong = NULL WHERE run = {RUN} AND round = 50"], ONE, 1),
    "a largest excess": ([f"UPDATE checkpoints SET largest = largest + 1 WHERE run = {RUN} AND cost = 1"], ONE, 1),
    "a round": ([f"UPDATE checkpoints SET round = 199 WHERE run = {RUN} AND round = 200"], ONE, 1),
    "checkpoints lost": ([f"DELETE FROM checkpoints WHERE run = {RUN} AND round = 200"], ONE, 1),
    "a checkpoint more": ([f"INSERT INTO checkpoints VALUES ({RUN}, 201, 0, 1, 1, 1)"], ONE, 1),
    "a probability": ([f"UPDATE probes SET value = value / 2 WHERE run = {RUN} AND round = 200"], ONE, 1),
    "probes lost": ([f"DELETE FROM probes WHERE run = {RUN}"], ONE, 1),
    "a threshold": ([f"UPDATE runs SET thresholds = '[0.21]' WHERE id = {RUN}"], ONE, 1),
    "an optimum": ([f"UPDATE runs SET optimum = replace(optimum, '0.7', '0.8') WHERE id = {RUN}"], ONE, 1),
    "seconds": ([f"UPDATE runs SET seconds = seconds * 2 WHERE id = {RUN}"], ONE, 1),
    "a provenance": ([f"UPDATE runs SET provenance = replace(provenance, '0', '1') WHERE id = {RUN}"], ONE, 1),
    "no text": ([f"UPDATE runs SET job = CAST(x'7bff7d' AS TEXT) WHERE id = {RUN}"], ONE, 1),
    "a checksum": ([f"UPDATE runs SET checksum = 'x' || substr(checksum, 2) WHERE id = {RUN}"], f"{ONE}; {LIST}", 1),
    "a checksum of the series": ([f"UPDATE runs SET series = '' WHERE id = {RUN}"], ONE, 1),
    "a number of a run": (
        [f"UPDATE runs SET replicate = 7 WHERE id = {RUN}"], "small, psconrl, run 7", 1,
    ),
    "a status": ([f"UPDATE runs SET status = 'failed' WHERE id = {RUN}"], ONE, 1),
    "a hash": ([f"UPDATE runs SET hash = '00' WHERE id = {RUN}"], f"{ONE}; {LIST}", 1),
    "a name of an experiment": (
        [f"UPDATE runs SET experiment = 'smalm' WHERE id = {RUN}"],
        "smalm, psconrl, run 1; the list of runs of small; the list of runs of smalm", 1,
    ),
    "all runs, by the same": (
        ["UPDATE runs SET seconds = 1"],
        "small, psconrl, run 0; small, psconrl, run 1; small, uniform, run 0; and 3 more", 6,
    ),
    "a run hidden": ([f"UPDATE runs SET current = 0 WHERE id = {RUN}"], LIST, 0),
    "a run lost": ([f"DELETE FROM runs WHERE id = {RUN}"], LIST, 1),
    "a run and its series lost": (
        [f"DELETE FROM checkpoints WHERE run = {RUN}", f"DELETE FROM runs WHERE id = {RUN}"], LIST, 1,
    ),
    "all runs lost": (["DELETE FROM runs"], f"the list of runs of other; {LIST}", 6),
    "facts": (
        ["UPDATE experiments SET facts = replace(facts, '0.775', '0.785') WHERE name = 'small'"],
        "facts and model of small", 0,
    ),
    "a model": (["UPDATE experiments SET model = NULL WHERE name = 'small'"], "facts and model of small", 0),
    "an experiment lost": (["DELETE FROM experiments WHERE name = 'small'"], "facts and model of small", 0),
    "an experiment renamed": (
        ["UPDATE experiments SET name = 'smalm' WHERE name = 'small'"],
        "facts and model of smalm; facts and model of small", 0,
    ),
    "an order of agents": (["UPDATE meta SET value = '[]' WHERE key = 'order small'"], "the table meta", 0),
    "a title lost": (["DELETE FROM meta WHERE key = 'title'"], "the table meta", 0),
    "the sum of runs": (["DELETE FROM meta WHERE key = 'runs small'"], f"the table meta; {LIST}", 0),
    "the sum of meta": (["UPDATE meta SET value = 'x' WHERE key = 'checksum'"], "the table meta", 0),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_every_reader_names_what_was_changed_and_the_sweep_makes_it_again(results, whole, jobs, case):
    statements, parts, made = CHANGES[case]
    changed(results, *statements)
    for use in (experiments, report, export, lambda path: Source(path).contents()):
        with pytest.raises(StoreError) as raised:
            use(results)
        assert f"r.db: was changed since it was written: {parts}. Repeat its sweep" in str(raised.value)
    assert list((results.parent / "tables").glob("*")) == []
    outcome = run_sweep(jobs, results, executor=AtOnce())
    assert (outcome.mended, outcome.done) == (parts, made)
    assert content(results) == content(whole)
    assert run_sweep(jobs, results, executor=AtOnce()).mended == ""


@pytest.mark.usefixtures("no_processes")
def test_commands_say_so_and_exit_with_2(results, tmp_path, capsys):
    (tmp_path / "spec.toml").write_text(SPEC)
    changed(results, *CHANGES["a total"][0])
    for command in (["table"], ["report", "-o", str(tmp_path / "page.html")], ["export"]):
        with pytest.raises(SystemExit) as ended:
            main([command[0], str(results), *command[1:]])
        assert ended.value.code == 2
        assert f"was changed since it was written: {ONE}. Repeat" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "page.html").exists()
    with pytest.raises(SystemExit) as ended:
        main(["sweep", str(tmp_path / "spec.toml"), "--out", str(results)])
    assert not ended.value.code
    said = " ".join(capsys.readouterr().out.split())
    assert f"Changed in the file since it was written, and made again or removed: {ONE}." in said
    assert "1 runs done in" in said
    with pytest.raises(SystemExit) as ended:
        main(["table", str(results)])
    assert not ended.value.code


def test_a_sweep_leaves_what_belongs_to_others(results, jobs):
    """The sweep of one experiment does not remove the runs of another: its own sweep makes them again."""
    changed(results, "UPDATE runs SET seconds = 1 WHERE experiment = 'other'", *CHANGES["a total"][0])
    small = [job for job in jobs if job.experiment == "small"]
    outcome = run_sweep(small, results, executor=AtOnce())
    assert (outcome.mended, outcome.known, outcome.done) == (ONE, 3, 1)
    with pytest.raises(StoreError, match=r"written: other, uniform, run 0; other, uniform, run 1\. Repeat"):
        experiments(results)
    outcome = run_sweep([job for job in jobs if job.experiment == "other"], results, executor=AtOnce())
    assert (outcome.mended, outcome.done) == ("other, uniform, run 0; other, uniform, run 1", 2)
    experiments(results)


def test_an_index_that_leads_to_fewer_runs_is_noticed(results, jobs, whole):
    """SQLite reads runs through the index: a run whose entry there is wrong would be left out."""
    with closing(sqlite3.connect(results)) as db:
        ((page,),) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs_by_experiment'")
        ((size,),) = db.execute("PRAGMA page_size")
    bytes_ = results.read_bytes()
    place = bytes_.index(b"smallpsconrl", (page - 1) * size)
    assert place < page * size
    results.write_bytes(bytes_[:place] + b"smalm" + bytes_[place + 5 :])
    with pytest.raises(StoreError, match="the index of the table runs"):
        experiments(results)
    assert "the index of the table runs" in run_sweep(jobs, results, executor=AtOnce()).mended
    assert content(results) == content(whole)


def test_a_schema_whose_name_was_changed_is_not_found_by_the_index(results):
    """Otherwise a sweep, which repairs indexes, would leave a file without a schema."""
    content_ = results.read_bytes()
    place = content_.index(b"schema2")
    results.write_bytes(content_[:place] + b"schemb" + content_[place + 6 :])
    with pytest.raises(StoreError, match="damaged"), Store.writer(results):
        pass


def read_all(path, folder):
    """Everything that reports show, and the exported tables."""
    with Store(path) as store:
        found = read_experiments(store)
        tables = [file.read_bytes() for file in export_tables(store, folder, "csv")]
        page = repr(build(store))  # nan is not equal to itself
    return tables, page, [(e.name, repr(e.facts), sorted(e.curves)) for e in found]


def flips(content, rng, number, old):
    """Yield the content with one bit flipped, where it is not zero: elsewhere pages are mostly empty."""
    for k in rng.choice(np.flatnonzero(np.frombuffer(content, dtype=np.uint8)), number, replace=False):
        flipped = bytearray(content)
        flipped[k] ^= 1 << int(rng.integers(8))
        for file in old.parent.glob(f"{old.name}*"):
            file.unlink()
        old.write_bytes(flipped)
        yield k


@pytest.mark.usefixtures("no_maps")
def test_no_bit_of_the_file_changes_a_result_in_silence(results, tmp_path, full):
    """A flipped bit leads to an error, or to exactly what was read before."""
    before = read_all(results, tmp_path / "tables")
    messages = []
    for k in flips(results.read_bytes(), np.random.default_rng(1), 2000 if full else 150, results):
        try:
            assert read_all(results, tmp_path / "tables") == before, k
        except PsconrlError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert all(len(message.splitlines()) == 1 for message in messages)


def test_a_sweep_makes_everything_good_after_any_flipped_bit_or_refuses(results, jobs, full):
    before = content(results)
    mended = 0
    for k in flips(results.read_bytes(), np.random.default_rng(2), 500 if full else 30, results):
        try:
            mended += run_sweep(jobs, results, executor=AtOnce()).mended != ""
        except PsconrlError:
            continue
        assert content(results) == before, k
    assert mended > 15


def test_numbers_that_sqlite_stores_otherwise_have_checksums_that_hold(tmp_path, jobs):
    """It stores -0.0 as 0.0, nan as NULL, and whole floats as integers."""
    result = execute(jobs[0])
    numbers = np.resize([-0.0, 0.0, 1.0, 1e300, -1e-300, 3.5, 2.0**60], result.cumulative.shape)
    odd = dataclasses.replace(
        result,
        cumulative=numbers,
        strong=np.where(numbers == 1.0, np.nan, -numbers),
        probe=np.resize([np.inf, np.nan, -0.0], result.rounds.shape),
        provenance=result.provenance | {"seconds": 3},
    )
    with Store.writer(tmp_path / "r.db") as store:
        store.add_experiment("small", 0, {}, None)
        store.add(odd)
        store.add(odd)
        store.add(dataclasses.replace(result, job=jobs[1]))
        assert store.changed_parts(with_series=True) == []


def test_a_reader_checks_one_state_of_the_file_while_a_sweep_writes(tmp_path, jobs):
    first, second = map(execute, jobs[:2])
    with Store.writer(tmp_path / "r.db") as writer, Store(tmp_path / "r.db") as reader:
        writer.add_experiment("small", 0, {}, None)
        writer.add(first)
        with reader.snapshot(with_series=True):
            writer.add(second)
            writer.add(first)
            assert reader.changed_parts(with_series=True) == []
            assert reader.query("SELECT count(*) FROM runs") == [(1,)]
        with reader.snapshot(with_series=True):
            assert reader.query("SELECT count(*) FROM runs") == [(2,)]


def test_a_file_without_checksums_is_refused(results):
    changed(results, "UPDATE meta SET value = '1' WHERE key = 'schema'")
    message = r"older psconrl \(schema 1\), without checksums; run its spec into a new file"
    with pytest.raises(StoreError, match=message):
        Store(results)
    with pytest.raises(StoreError, match=message), Store.writer(results):
        pass


def test_values_that_look_alike_have_other_checksums():
    values = [
        [], [None], [0], [0.0], [-0.0], ["0"], [b"0"], ["", "0"], ["0", ""], ["none 0 "], ["a", "b"], ["atext b"],
        [[]], [[], []], [[(0,)]], [[(0.0,)]], [[(None,)]], [[("0",)]], [[(b"0",)]], [[(1, 2)]], [[(1,)], [(2,)]],
        [2**63 - 1], [float(2**63)], ["é"], ["\udce9"], [[(2**53 + 1,)]], [[(float(2**53),)]],
    ]  # fmt: skip
    assert len({checksum(value) for value in values}) == len(values)


def test_a_sum_does_not_depend_on_the_order_and_may_be_undone():
    rows = [("a", 1), ("b", 2), ("c", 3)]
    assert sum_of(rows) == sum_of(rows[::-1]) != sum_of(rows[1:])
    assert difference_of(rows[:1], sum_of(rows)) == sum_of(rows[1:])
    assert sum_of(rows, difference_of(rows)) == sum_of([]) == "0" * 64
    assert sum_of(rows, "damaged") == sum_of(rows)
