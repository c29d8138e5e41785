"""The library and the checker of proofs read the same model from every file, or both refuse it."""

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import psconrl
from plain_models import damaged_model, drawn_file
from psconrl import CMDP, ModelError, check_proof
from psconrl.check_proof import exact
from psconrl.check_proof.__main__ import check_files
from psconrl.check_proof.model_files import read_model
from psconrl.model.fingerprint import fingerprint
from psconrl.planning.proof.proof_files import plain_model

P = [[[0.5, 0.5], [0.25, 0.75]], [[1.0, 0.0], [0.0, 1.0]]]
COST = [[0.0, 1.0], [2.0, 0.5]]
BY_NEXT = [[[0.0, 1.0], [2.0, 3.0]], [[1.0, 5.0], [0.1, -0.3]]]
EXPECTED = [[0.5, 2.75], [1.0, -0.3]]
INFINITY = float("inf")
SPARSE = {"shape": [2, 2], "entries": [[0, 1, 1.0], [1, 0, 1.0]]}


def comparable(value):
    """A field of a plain model as something that compares by its items."""
    if isinstance(value, bytes | str | int | frozenset) or value is None:
        return value
    return [comparable(x) if not isinstance(x, float) else x for x in value]


def both(path):
    """Return the model of a file as both readers found it, or None if both refuse."""
    try:
        model = psconrl.load(path)
    except ModelError as refused:
        try:
            read_model(path)
        except check_proof.BadInputError:
            return None
        raise AssertionError(f"the checker reads what the library refuses: {refused}") from refused
    library, checker = plain_model(model), read_model(path)
    for field in fields(library):
        ours, theirs = getattr(library, field.name), getattr(checker, field.name)
        assert comparable(ours) == comparable(theirs), field.name
    assert fingerprint(model) == library.digest() == checker.digest()
    return library


def written(folder, content):
    path = folder / ("model.json" if isinstance(content, dict) else "model.npz")
    path.write_bytes(json.dumps(content).encode() if isinstance(content, dict) else content)
    return path


ACCEPTED = {
    "nested lists": {"transition": P, "costs": [COST, COST], "thresholds": [1]},
    "flat rows": {"transition": [P[0][0], P[0][1], P[1][0], P[1][1]], "costs": [COST]},
    "entries": {"transition": SPARSE, "costs": [[[1], [2]]]},
    "entries in any order": {"transition": SPARSE | {"entries": SPARSE["entries"][::-1]}, "costs": [[[1], [2]]]},
    "costs by next state": {"transition": P, "costs": [BY_NEXT]},
    "outcome costs": {"transition": P, "costs": [EXPECTED], "outcome_costs": [BY_NEXT]},
    "outcome costs alone": {"transition": P, "costs": [None], "outcome_costs": [BY_NEXT]},
    "outcome costs of one": {"transition": P, "costs": [COST, None], "outcome_costs": [None, BY_NEXT]}
    | {"thresholds": [1]},
    "one threshold": {"transition": P, "costs": [COST, COST], "thresholds": 1},
    "thresholds by name": {"transition": P, "costs": [COST, COST], "thresholds": {"cost 1": 1}},
    "a quantity": {"transition": P, "costs": [COST, COST], "cost_names": ["a", "b"], "at_least": ["b"]}
    | {"thresholds": {"b": -1}},
    "a start by name": {"transition": P, "costs": [COST], "state_names": ["s", "t"], "initial": "t"},
    "sums with rounding": {"transition": [[[0.1] * 10]] * 10, "costs": [[[0.1]] * 10]},
    "sums that are off": {"transition": [[[0.5, 0.5000000003]]] * 2, "costs": [[[0], [1]]]},
    "a start that is off": {"transition": P, "costs": [COST], "initial": [0.5, 0.5000000003]},
    "a pair without entries": {"transition": {"shape": [4, 2], "entries": [[0, 1, 1.0], [2, 0, 1.0]]}}
    | {"costs": [COST], "available": [[1, 0], [1, 0]]},
}  # fmt: skip
REFUSED = {
    "other format": {"format": "psconrl-plan", "transition": P, "costs": [COST]},
    "no format": {"format": None, "transition": P, "costs": [COST]},
    "other version": {"version": 2, "transition": P, "costs": [COST]},
    "unknown field": {"transition": P, "costs": [COST], "discount": 0.9},
    "column beyond S": {"transition": SPARSE | {"entries": [[0, 2, 1.0], [1, 0, 1.0]]}, "costs": [[[1], [2]]]},
    "negative column": {"transition": SPARSE | {"entries": [[0, -1, 1.0], [1, 0, 1.0]]}, "costs": [[[1], [2]]]},
    "row beyond": {"transition": SPARSE | {"entries": [[0, 1, 1.0], [2, 0, 1.0]]}, "costs": [[[1], [2]]]},
    "half a column": {"transition": SPARSE | {"entries": [[0, 0.5, 1.0], [1, 0, 1.0]]}, "costs": [[[1], [2]]]},
    "infinite column": {"transition": SPARSE | {"entries": [[0, INFINITY, 1.0], [1, 0, 1.0]]}, "costs": [[[1], [2]]]},
    "entry twice": {"transition": SPARSE | {"entries": [[0, 1, 0.5], [0, 1, 0.5], [1, 0, 1]]}, "costs": [[[1], [2]]]},
    "other expectation": {"transition": P, "costs": [COST], "outcome_costs": [BY_NEXT]},
    "both forms": {"transition": P, "costs": [BY_NEXT], "outcome_costs": [BY_NEXT]},
    "no costs": {"transition": P, "costs": [None]},
    "fewer outcome costs": {"transition": P, "costs": [COST, COST], "outcome_costs": [BY_NEXT]},
    "huge cost": {"transition": P, "costs": [[[0, 1e101], [0, 0]]]},
    "not a number": {"transition": P, "costs": [[[0, float("nan")], [0, 0]]]},
    "a text in a row": {"transition": P, "costs": [[["0", 1], [0, 0]]]},
    "null in a row": {"transition": P, "costs": [[[None, 1], [0, 0]]]},
    "unequal rows": {"transition": P, "costs": [[[0, 1], [0]]]},
    "a sum that is off": {"transition": [[[0.5, 0.6]]] * 2, "costs": [[[0], [1]]]},
    "a long integer": {"transition": P, "costs": [[[10**400, 1], [0, 0]]]},
    "names twice": {"transition": P, "costs": [COST], "state_names": ["s", "s"]},
    "half an action": {"transition": P, "costs": [COST], "available": [[0.5, 1], [1, 1]]},
    "no action": {"transition": P, "costs": [COST], "available": [[0, 0], [1, 1]]},
    "half a character": {"transition": P, "costs": [COST], "cost_names": ["\ud800"]},
    "unknown start": {"transition": P, "costs": [COST], "initial": "t"},
    "unknown limit": {"transition": P, "costs": [COST, COST], "thresholds": {"cost 2": 1}},
}  # fmt: skip


@pytest.mark.parametrize("record", ACCEPTED.values(), ids=ACCEPTED)
def test_both_read_the_same_model(tmp_path, record):
    assert both(written(tmp_path, record)) is not None


@pytest.mark.parametrize("record", REFUSED.values(), ids=REFUSED)
def test_both_refuse(tmp_path, record):
    assert both(written(tmp_path, record)) is None


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_costs_by_next_state_are_expected_alike_in_npz(tmp_path, kind):
    """An earlier checker ignored them, and proved an average of 0 where the library planned 5."""
    by_next = np.array(BY_NEXT)
    model = CMDP(P, [by_next]) if kind == "dense" else CMDP(csr_array(np.reshape(P, (4, 2))), [by_next])
    psconrl.save(model, tmp_path / "model.npz")
    found = both(tmp_path / "model.npz")
    assert list(found.costs[0]) == pytest.approx(np.ravel(EXPECTED))


@pytest.mark.parametrize("stated", ["'f8'", "'=f8'", "'<d'", "'>f8'", "[('a', '<f8')]", "'<f8', 'more': 1"])
def test_both_refuse_what_numpy_does_not_write(tmp_path, stated):
    psconrl.save(CMDP(P, [COST]), tmp_path / "model.npz")
    rewritten(tmp_path / "model.npz", "thresholds.npy", lambda member: member.replace(b"'<f8'", stated.encode(), 1))
    assert both(tmp_path / "model.npz") is None


@pytest.mark.parametrize("shape", ["(0L,)", "(True,)", "[0]", "(0.0,)", "0"])
def test_both_refuse_shapes_that_are_none(tmp_path, shape):
    psconrl.save(CMDP(P, [COST]), tmp_path / "model.npz")
    rewritten(tmp_path / "model.npz", "thresholds.npy", lambda member: member.replace(b"(0,)", shape.encode(), 1))
    assert both(tmp_path / "model.npz") is None


def rewritten(path, name, change):
    """Change the header of an empty array in a file, and keep its length."""
    with zipfile.ZipFile(path) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    changed = change(members[name])
    assert changed != members[name]
    members[name] = changed[:10] + changed[10:].rstrip(b" \n").ljust(117) + b"\n"
    assert len(members[name]) == 128
    with zipfile.ZipFile(path, "w") as archive:
        for each, content in members.items():
            archive.writestr(each, content)


def test_both_refuse_a_header_in_another_order_of_bytes(tmp_path):
    psconrl.save(CMDP(P, [COST]), tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as given:
        arrays = dict(given)
    np.savez(
        tmp_path / "model.npz", **arrays | {"header": arrays["header"].astype(arrays["header"].dtype.newbyteorder())}
    )
    assert both(tmp_path / "model.npz") is None


def test_both_refuse_an_array_that_has_another_name_in_its_place(tmp_path):
    psconrl.save(CMDP(P, [COST]), tmp_path / "model.npz")
    with zipfile.ZipFile(tmp_path / "model.npz", "a") as archive:
        archive.writestr("extra.npy", b"")
    content = (tmp_path / "model.npz").read_bytes()
    (tmp_path / "model.npz").write_bytes(content.replace(b"extra.npy", b"other.npy", 1))
    assert both(tmp_path / "model.npz") is None


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(8))
def test_both_agree_on_every_changed_file(tmp_path, part, full):
    accepted, tried = 0, 600 if full else 60
    for seed in range(tried):
        rng = np.random.default_rng([part, seed])
        ending, content = drawn_file(rng)
        path = tmp_path / f"model{ending}"
        path.write_bytes(damaged_model(ending, content, rng))
        accepted += both(path) is not None
    assert 0.1 * tried < accepted < 0.9 * tried


def proof_text(**changes):
    return json.dumps({"format": check_proof.PROOF_FORMAT, "version": check_proof.PROOF_VERSION} | changes)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1" * 4400, "not valid JSON"),
        ('{"format": ' + "9" * 4400 + "}", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "this is no psconrl-proof file"),
        (proof_text(version=10**30), "version"),
        (proof_text(status={"a": [1] * 1000}), "refused"),
        (proof_text(status="optimal", model="0"), "another model"),
    ],
)  # fmt: skip
def test_a_proof_that_is_none_ends_in_one_line(tmp_path, capsys, text, reason):
    psconrl.save(CMDP(P, [COST]), tmp_path / "model.npz")
    (tmp_path / "proof.json").write_text(text)
    code = check_files([str(tmp_path / "model.npz"), str(tmp_path / "proof.json")])
    said = capsys.readouterr()
    refused = reason in ("refused", "another model")
    assert code == (1 if refused else 2)
    line = said.out if refused else said.err
    assert len(line.splitlines()) == 1
    assert len(line) < 400
    assert "REFUSED" in line if refused else reason in line


def test_fractions_too_long_for_the_model_are_refused_before_they_are_used(tmp_path, capsys):
    """A megabyte of digits: read in linear time, and refused by the length of the common denominator."""
    model = CMDP(P, [COST])
    psconrl.save(model, tmp_path / "model.npz")
    plan = psconrl.plan(model)
    plan.save_proof(tmp_path / "proof.json", model)
    record = json.loads((tmp_path / "proof.json").read_text())
    record["potential"] = {"over": "0x" + "f" * 1_000_000, "numbers": ["0x1", "0x2"]}
    (tmp_path / "proof.json").write_text(json.dumps(record))
    assert check_files([str(tmp_path / "model.npz"), str(tmp_path / "proof.json")]) == 2
    assert "a denominator of more than 524288 bits is not read" in capsys.readouterr().err.replace(",", "")


def accepted_proof(folder):
    """A model of one state, its files, and the record of a proof that holds."""
    model = CMDP([[[1.0], [1.0]]], [[[0.0, 1.0]], [[1.0, 0.0]]], [0.5], cost_names=["pay", "d\u00e9bit\u2192"])
    psconrl.save(model, folder / "model.npz")
    psconrl.plan(model).save_proof(folder / "proof.json", model)
    return json.loads((folder / "proof.json").read_text())


def verdict(folder, record):
    (folder / "proof.json").write_text(json.dumps(record))
    return check_files([str(folder / "model.npz"), str(folder / "proof.json")])


PRIMES = (3, 5, 7, 11, 13, 17, 19, 23)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"low_potential": {"over": hex(2**500_000), "numbers": ["0x0"] * 3000}}, "computing with its fractions takes"),
        (
            {"potential": {"over": "0x1", "numbers": [hex(2**9_000_000)] + ["0x0"] * 2999}},
            "computing with its fractions",
        ),
        ({"potential": {"over": hex(2**500_000 + 1), "numbers": [hex(7**200_000)] + ["0x0"] * 2999}}, "are too long"),
        ({"biases": [[hex(p**100_000) for p in PRIMES]]}, "a common denominator of more than 524,288 bits"),
    ],
)
def test_fractions_that_ask_for_much_are_refused_before_they_are_multiplied(
    tmp_path, capsys, monkeypatch, changes, reason
):
    monkeypatch.setenv("PSCONRL_MEMORY_GB", "2" if reason == "are too long" else "0.5")
    S = 3000
    P = csr_array((np.ones(S), (np.arange(S), (np.arange(S) + 1) % S)), shape=(S, S))
    psconrl.save(CMDP(P, [np.zeros((S, 1))]), tmp_path / "model.npz")
    model = psconrl.load(tmp_path / "model.npz")
    psconrl.plan(model).save_proof(tmp_path / "proof.json", model)
    record = json.loads((tmp_path / "proof.json").read_text())
    if "biases" in changes:
        zeros = ["0x0"] * S
        (texts,) = changes["biases"]
        record["policies"][0]["biases"] = [[{"over": over, "numbers": zeros}] for over in texts]
    else:
        record |= changes
    assert verdict(tmp_path, record) == 2
    assert reason in capsys.readouterr().err


def test_fractions_of_many_policies_are_counted_together(tmp_path, capsys, monkeypatch):
    record = accepted_proof(tmp_path)
    first = record["policies"][0]
    record["policies"] = [first, *[first | {"share": 0.0}] * 500]
    assert verdict(tmp_path, record) == 0
    monkeypatch.setattr(exact, "MOST_BITS_IN_ALL", 1000)
    assert verdict(tmp_path, record) == 2
    assert "bits are too long for a model of 2 transitions" in capsys.readouterr().err


def test_names_that_a_terminal_cannot_show_are_escaped(tmp_path):
    accepted_proof(tmp_path)
    folder = Path(check_proof.__file__).parent
    command = [sys.executable, "-m", folder.name, str(tmp_path / "model.npz"), str(tmp_path / "proof.json")]
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(folder.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "limit on d\\xe9bit\\u2192, at most 0.5: kept, at 0.5" in done.stdout


@pytest.mark.parametrize("version", [2.0, True, "2", [0] * 10_000])
def test_another_version_is_named_in_short(tmp_path, capsys, version):
    assert verdict(tmp_path, accepted_proof(tmp_path) | {"version": version}) == 2
    said = capsys.readouterr().err
    assert "of the format is not known here" in said
    assert len(said) < 300 + len(str(tmp_path))


def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path, capsys, monkeypatch):
    """Zeros deflate to a thousandth; the sizes are compared with the allowed memory before they are unpacked."""
    monkeypatch.setenv("PSCONRL_MEMORY_GB", "0.01")
    np.savez_compressed(tmp_path / "model.npz", costs=np.zeros((1, 2000, 1000)))
    assert check_files([str(tmp_path / "model.npz"), str(tmp_path / "model.npz")]) == 2
    assert "what it unpacks to takes 0.016 GB, more than 0.01 GB" in capsys.readouterr().err


def test_numbers_whose_common_divisor_takes_long_are_refused(tmp_path, capsys):
    record = accepted_proof(tmp_path)
    record["potential"] = {"over": hex(2**262_144 + 1), "numbers": [hex(7**180_000)]}
    assert verdict(tmp_path, record) == 2
    assert "bits are too long" in capsys.readouterr().err


def test_both_count_what_a_model_takes_beside_its_arrays(tmp_path, monkeypatch):
    """Arrays of 1.7 MB, of which 2.5 times as much is needed."""
    A = 100_000
    psconrl.save(CMDP(np.ones((1, A, 1)), [np.zeros((1, A))]), tmp_path / "model.npz")
    monkeypatch.setenv("PSCONRL_MEMORY_GB", "0.003")
    assert both(tmp_path / "model.npz") is None
    monkeypatch.setenv("PSCONRL_MEMORY_GB", "0.005")
    assert both(tmp_path / "model.npz") is not None
