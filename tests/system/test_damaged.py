"""Damaged files of every kind: each reader ends in one clear message or in a result, never in a traceback.

``make test-files`` tries thousands of other files, and keeps those on which a reader fails: they are replayed here.
"""

import json
import sys
import tomllib

import numpy as np
import pytest

pytest.importorskip("resource", reason="limits the memory of a process as Linux does")

import explore_files
from damage import faulty_readers
from damage.cases import cases, expected_to_fail, shrunk, write_case
from damage.formats import FORMATS, Damage, damaged, drawn_damage
from damage.judging import ACCEPTED, FAILED, REFUSED, Judge, digest
from damage.readers import READERS
from damage.trees import json_text, toml_text, tree_changed
from explore_files import SILENT, Explorer, main, sample, sealed
from psconrl.errors import PsconrlError

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does"),
]
FAULTY, CARELESS = (faulty_readers.READERS[name] for name in ("faulty", "careless"))
FAULTY_MODULE = faulty_readers.__name__


@pytest.fixture(scope="session")
def explorer():
    with Explorer(1, list(READERS.values())) as made:
        yield made


@pytest.fixture(scope="module")
def faulty():
    with Judge(FAULTY_MODULE, seconds=1) as judge:
        yield lambda content: judge.outcome(FAULTY, content, b"whole")


def kept():
    failing = expected_to_fail()
    for path, (reader, must_be_refused) in cases().items():
        marks = [pytest.mark.xfail(strict=True, reason=failing[path.name])] if path.name in failing else []
        yield pytest.param(path, reader, must_be_refused, marks=marks, id=path.name)


@pytest.mark.parametrize(("path", "reader", "must_be_refused"), list(kept()))
def test_a_file_on_which_a_reader_once_failed(path, reader, must_be_refused, explorer):
    outcome = explorer.judge.outcome(READERS[reader], path.read_bytes(), sample(READERS[reader], 0))
    assert outcome.kind == REFUSED or (outcome.kind == ACCEPTED and not must_be_refused), outcome


def test_the_files_that_are_expected_to_fail_exist():
    assert set(expected_to_fail()) <= {path.name for path in cases()}


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_one_line_or_a_result(name, explorer, full):
    """The same files at every run."""
    place = list(READERS).index(name)
    found = [explorer.explored(place + len(READERS) * k) for k in range(200 if full else 10)]
    assert {one.reader for one in found} == {name}
    failures = {f"{name}: {one.outcome.reason}": one for one in found if one.outcome.is_failure}
    assert {reason: one for reason, one in failures.items() if reason not in expected_to_fail().values()} == {}
    is_log = READERS[name].ending == ".csv"  # of which every line is shown that can be read
    assert is_log or any(one.outcome.kind == REFUSED for one in found)  # some damage is noticed


@pytest.mark.parametrize(
    ("way", "kind", "reason"),
    [
        ("fine", ACCEPTED, ""),
        ("refused", REFUSED, ""),
        ("raw", FAILED, "KeyError in fail (faulty_readers.py)"),
        ("memory", FAILED, "MemoryError in fail (faulty_readers.py)"),
        ("time", FAILED, "takes more than 1 seconds"),
        ("crash", FAILED, "the process ends (SIGSEGV)"),
        ("end", FAILED, "the process ends (3)"),
        ("lines", FAILED, "ModelError of several lines in fail (faulty_readers.py)"),
        ("long", FAILED, "RefusedError of thousands of characters in fail (faulty_readers.py)"),
    ],
)
def test_every_failure_is_seen(faulty, way, kind, reason):
    outcome = faulty(way.encode())
    assert (outcome.kind, outcome.reason) == (kind, reason)


def test_a_whole_file_has_to_be_accepted():
    with Judge(FAULTY_MODULE) as judge, pytest.raises(ValueError, match="a whole file is not accepted"):
        judge.outcome(FAULTY, b"fine", b"refused")


def test_numbers_that_change_under_a_checksum_are_seen():
    whole, one_bit = sample(CARELESS, 0), Damage((), sealed=False)
    with Explorer(1, [CARELESS], FAULTY_MODULE) as explorer:
        assert explorer.outcome(CARELESS, b"[1, 2, 3, 4] ", whole, one_bit).kind == ACCEPTED
        assert explorer.outcome(CARELESS, b"[1, 2, 3, 5]", whole, one_bit).reason == SILENT
        assert explorer.outcome(CARELESS, b"[1, 2, 3, 5]", whole, one_bit._replace(sealed=True)).kind == ACCEPTED
        assert explorer.outcome(CARELESS, b"[1, 2, 3", whole, one_bit).kind == REFUSED


def test_no_bit_of_an_archive_changes_a_number_in_silence(tmp_path, full):
    """Arrays have the CRC of the zip format, and their names are in it twice, so that none is left out."""
    path, reader = tmp_path / "plan.npz", READERS["plan"]
    whole = sample(reader, 1)
    path.write_bytes(whole)
    before = digest(reader.numbers(path))
    rng, noticed = np.random.default_rng(3), 0
    for k in range(0, len(whole), 1 if full else 9):
        path.write_bytes(whole[:k] + bytes([whole[k] ^ (1 << int(rng.integers(8)))]) + whole[k + 1 :])
        try:
            assert digest(reader.numbers(path)) == before, k
        except PsconrlError:
            noticed += 1
    assert noticed > len(whole) / 30


def test_checksums_are_made_right_for_damage_that_is_to_be_met_behind_them():
    """The code of a submission has a checksum, which other code does not have."""
    met, noticed = Damage((), sealed=True), Damage((), sealed=False)
    reader = READERS["submission"]
    record = json.loads(sample(reader, 0))
    other = json_text(record | {"files": {"mine.py": "class Mine: pass"}})
    with Explorer(1, [reader]) as explorer:
        for damage, kind in ((met, ACCEPTED), (noticed, REFUSED)):
            assert explorer.outcome(reader, sealed(reader, other, damage), sample(reader, 0), damage).kind == kind
    assert sealed(reader, b"no JSON", met) == b"no JSON"
    assert sealed(READERS["spec"], b"x", met) == b"x"


@pytest.mark.parametrize("ending", FORMATS)
def test_damage_of_every_sort_changes_a_file_and_can_be_repeated(ending):
    reader = next(each for each in READERS.values() if each.ending == ending)
    whole, other = sample(reader, 0), sample(reader, 1)
    for change in FORMATS[ending].changes:
        damage = [Damage(((change.__name__, seed),), sealed=True) for seed in range(8)]
        files = [damaged(whole, other, ending, each) for each in damage]
        assert sum(each != whole for each in files) >= 4, change.__name__
        assert files[3] == damaged(whole, other, ending, damage[3])
    sorts = {drawn_damage(ending, np.random.default_rng(seed)).sealed for seed in range(20)}
    assert sorts == {True, False}


def test_a_file_that_is_too_bad_for_a_change_stays_as_it_is():
    assert damaged(b"no zip", b"", ".npz", Damage((("header_changed", 0),), sealed=True)) == b"no zip"


def test_damaged_tables_are_written_as_valid_toml():
    tree = {"a b": [1, 2.5, True, 'x"\n'], "c": {"d": {}, "e": [[]]}}
    assert tomllib.loads(toml_text(tree).decode()) == json.loads(json_text(tree)) == tree


def test_a_table_may_hold_a_key_twice():
    seen = [tree_changed({"a": 1}, np.random.default_rng(seed)) for seed in range(100)]
    assert any(json_text(tree).count(b'"a"') == 2 for tree in seen)


def test_only_damage_that_a_failure_needs_remains():
    """A file that ends in the end of another needs only the change that took it from there."""
    whole, other, tried = b"1" * 50, b"r", []

    def ends_in_other(content):
        tried.append(content)
        return content.endswith(other)

    def spliced(seed):
        return Damage((("spliced", seed),), sealed=False)

    seed = next(k for k in range(100) if damaged(whole, other, ".csv", spliced(k)).endswith(other))
    alone = damaged(whole, other, ".csv", spliced(seed))
    several = Damage((("bytes_flipped", 1), ("block_moved", 1), ("spliced", seed)), sealed=False)
    assert shrunk(".csv", whole, other, several, ends_in_other, seconds=60) == other
    assert alone in tried


def test_a_failing_file_is_made_simpler_and_kept(monkeypatch, tmp_path):
    """First parts of the data go, which keeps it valid, and then bytes."""
    monkeypatch.setattr("damage.cases.FOLDER", tmp_path)
    whole, tried = json_text({"a": [1, 2, 3], "bad": {"c": "text", "d": 1.5}, "e": None}), []

    def fails(content):
        tried.append(content)
        return b'"bad"' in content

    small = shrunk(".json", whole, b"", Damage((), sealed=True), fails, seconds=60)
    assert small == b'"bad"'
    assert b'{"bad": {}}' in tried
    names = [write_case(READERS["model-text"], small, must_be_refused) for must_be_refused in (False, True)]
    assert cases() == {tmp_path / names[0]: ("model-text", False), tmp_path / names[1]: ("model-text", True)}
    assert {path.read_bytes() for path in cases()} == {small}
    late = shrunk(".json", whole, b"", Damage((), sealed=True), fails, seconds=0)
    assert late == whole


@pytest.mark.parametrize("ending", FORMATS)
def test_files_of_every_format_can_be_made_simpler(ending):
    whole = sample(next(each for each in READERS.values() if each.ending == ending), 0)
    assert any(len(candidate) < len(whole) for candidate in FORMATS[ending].simpler(whole))


def test_the_same_seed_damages_the_same_files(capsys):
    counts = []
    for _ in range(2):
        assert main(["--seed", "5", "--cases", "4", "--reader", "spec"]) == 0
        counts.append([line.split("|")[:5] for line in capsys.readouterr().out.splitlines()])  # without the times
    assert counts[0] == counts[1]
    assert any(" spec " in cells for cells in counts[0])


def test_a_failure_is_reported_with_what_repeats_it(capsys, monkeypatch):
    monkeypatch.setattr(explore_files, "READERS", {"faulty": FAULTY})
    monkeypatch.setattr(explore_files, "Explorer", lambda base, readers: Explorer(base, readers, FAULTY_MODULE))
    monkeypatch.setattr(explore_files, "damaged", lambda *_: b"raw")
    assert main(["--seed", "5", "--case", "3", "--shrink-seconds", "0"]) == 1
    printed = capsys.readouterr().out
    assert "--seed 5 --case 3 (faulty) KeyError in fail (faulty_readers.py): 'no such key'" in printed
    assert "| all |  |  | 1 |" in printed
