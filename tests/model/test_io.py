"""Models in files: exact round trips, one clear message for every broken file, and no partial files."""

import contextlib
import errno
import json
import os
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

from models import random_cmdp
from psconrl import CMDP, load, plan, save
from psconrl.base.files import write_atomically
from psconrl.errors import ModelError
from psconrl.model import io
from psconrl.model.layout import GridLayout

SUFFIXES = pytest.mark.parametrize("suffix", [".npz", ".json"])
FIELDS = ("transition", "costs", "thresholds", "initial", "available")


def everything(form=np.array):
    """A model that uses every field a file can hold, with numbers that have no short decimal form."""
    rng = np.random.default_rng(7)
    P = rng.dirichlet(np.full(3, 0.3), size=6)
    return CMDP.from_rewards(
        form(P),
        rng.normal(size=(3, 2)) / 3,
        costs=[rng.random((3, 2, 3)), form(rng.random((6, 3)) * (P > 0.1)), rng.random((3, 2))],
        thresholds=[0.1, 1 / 3, 1e-300],
        initial=rng.dirichlet(np.ones(3)),
        available=[[1, 0], [1, 1], [0, 1]],
        state_names=["é", "two words", "$x_2$"],
        action_names=["left", "right"],
        cost_names=["gain", "a", "b", "c"],
        layout=GridLayout(("S.", "#G"), ((0, 0), (0, 1), (1, 1)), ("day", "day", "night")),
    )


MODELS = {
    "everything dense": everything,
    "everything sparse": lambda: everything(csr_array),
    "smallest": lambda: CMDP([[[1.0]]], [[[0.5]]]),
    "box": lambda: load("box", slip=0.1),
    "counterexample": lambda: load("counterexample"),
    "random sparse": lambda: random_cmdp("sparse", 9, 3, 2, 1),
    "random masked": lambda: random_cmdp("masked", 9, 3, 2, 1),
    "rare": lambda: random_cmdp("near_deterministic", 9, 3, 2, 1),
}


def bits(matrix):
    if matrix is None:
        return None
    matrix = getattr(matrix, "matrix", matrix)
    parts = [matrix] if isinstance(matrix, np.ndarray) else [matrix.data, matrix.indices, matrix.indptr]
    return type(matrix), matrix.shape, [part.tobytes() for part in parts]


def assert_same(one, two):
    for name in FIELDS:
        assert bits(getattr(one, name)) == bits(getattr(two, name)), name
    assert [bits(c) for c in one.outcome_costs] == [bits(c) for c in two.outcome_costs]
    for name in ("state_names", "action_names", "cost_names", "maximise", "layout"):
        assert getattr(one, name) == getattr(two, name), name


@SUFFIXES
@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_bit_for_bit(tmp_path, name, suffix):
    cmdp = MODELS[name]()
    save(cmdp, tmp_path / f"model{suffix}")
    assert_same(load(tmp_path / f"model{suffix}"), cmdp)
    assert_same(load(str(tmp_path / f"model{suffix}")), cmdp)


@SUFFIXES
def test_saving_again_replaces_the_file(tmp_path, suffix):
    path = tmp_path / f"model{suffix}"
    save(load("box"), path)
    save(load("counterexample"), path)
    assert_same(load(path), load("counterexample"))
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@SUFFIXES
def test_a_saved_file_is_as_readable_as_any_other(tmp_path, suffix):
    save(load("counterexample"), tmp_path / f"model{suffix}")
    (tmp_path / "plain").write_text("")
    assert (tmp_path / f"model{suffix}").stat().st_mode == (tmp_path / "plain").stat().st_mode


def write_json(tmp_path, **record):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(record))
    return path


SMALL = {"transition": [[[0.5, 0.5]], [[1, 0]]], "costs": [[[0], [1]]]}


def test_the_least_that_must_be_written_by_hand(tmp_path):
    cmdp = load(write_json(tmp_path, **SMALL))
    assert repr(cmdp) == "CMDP(2 states, 1 actions, 0 constraints, dense)"
    assert plan(cmdp).value == pytest.approx(1 / 3)


def test_a_hand_written_file_may_use_every_short_form(tmp_path):
    cmdp = load(
        write_json(
            tmp_path,
            transition={"shape": [2, 2], "entries": [[0, 0, 0.5], [0, 1, 0.5], [1, 0, 1]]},
            costs=[[[0], [1]], [[[1, 2]], [[3, 4]]]],
            thresholds={"limit": 2},
            initial="there",
            state_names=["here", "there"],
            cost_names=["goal", "limit"],
            available=None,
        )
    )
    assert cmdp.is_sparse
    assert cmdp.costs.tolist() == [[[0], [1]], [[1.5], [3]]]
    assert (cmdp.thresholds.tolist(), cmdp.initial.tolist()) == ([2], [0, 1])


def refused(path):
    with pytest.raises(ModelError) as refusal:
        load(path)
    message = str(refusal.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


BAD_JSON = {
    "misspelt field": (SMALL | {"treshold": 1}, "unknown field 'treshold'; did you mean 'thresholds'?"),
    "no transition": ({"costs": [[[0]]]}, "field 'transition' is missing"),
    "no costs": ({"transition": [[[1]]], "costs": None}, "field 'costs' is missing"),
    "other format": (SMALL | {"format": "gym"}, "not a psconrl-cmdp file"),
    "newer version": (SMALL | {"version": 2}, "format version 2 is not known here (newest: 1); update psconrl"),
    "row sum": (SMALL | {"transition": [[[0.5, 0.4]], [[1, 0]]]}, "transition[0, 0] must sum to 1"),
    "text": (SMALL | {"transition": "P"}, "transition must be an array of numbers"),
    "number": (SMALL | {"costs": 5}, "costs must be a list of tables"),
    "costs by name": (SMALL | {"costs": {"a": 1}}, "costs must be a list of tables"),
    "ragged": (SMALL | {"costs": [[[0], [1, 2]]]}, "costs[0] must be an array of numbers with equal rows"),
    "unknown cost": (SMALL | {"thresholds": {"a": 1}}, "unknown constrained cost 'a'"),
    "outcome of no cost": (
        SMALL | {"outcome_costs": [None, [[[0]]]]},
        "costs must be a list of tables, the objective first, and outcome_costs as many",
    ),
    "sparse without shape": (
        SMALL | {"transition": {"entries": []}},
        "transition must be nested lists, or have the fields 'shape' and 'entries'",
    ),
    "sparse pairs": (
        SMALL | {"transition": {"shape": [2, 2], "entries": [[0, 1]]}},
        "entries of transition must be [row, column, value]",
    ),
    "sparse off": (
        SMALL | {"transition": {"shape": [2, 2], "entries": [[0, 0, 1], [5, 0, 1]]}},
        "entries of transition must be [row, column, value], whole numbers within the shape [2, 2]",
    ),
    "sparse half": (
        SMALL | {"transition": {"shape": [2, 2], "entries": [[0.5, 0, 1], [1, 0, 1]]}},
        "entries of transition must be [row, column",
    ),
    "sparse huge": (
        SMALL | {"transition": {"shape": [10**15, 10**3], "entries": [[0, 0, 1]]}},
        "shape claims 1000000000000000 rows",
    ),
    "layout list": (SMALL | {"layout": [1]}, "layout must have the fields"),
    "layout off": (SMALL | {"layout": {"rows": ["S"], "cells": [[0, 0], [0, 1]]}}, "layout cell (0, 1) must lie on"),
    "maximise text": (SMALL | {"maximise": "no"}, "maximise must be True or False; got 'no'"),
    "names text": (SMALL | {"state_names": "ab"}, "state_names must be a list of texts"),
    "start unnamed": (SMALL | {"initial": "a"}, "initial must be an index, as the states have no names"),
}


@pytest.mark.parametrize(("record", "message"), BAD_JSON.values(), ids=BAD_JSON)
def test_bad_json_models_are_refused_in_one_clear_line(tmp_path, record, message):
    assert refused(write_json(tmp_path, **record)).startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON"),
        (b"[1, 2]", "a model must be a JSON object"),
        (b"null", "a model must be a JSON object"),
        (b"transition: 1", "not valid JSON"),
        (b"\xff\xfe\x00", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"transition": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"transition": [[[NaN]]], "costs": [[[0]]]}', "transition[0, 0, 0] must be a probability; got nan"),
        (b'{"transition": [[[1]]], "costs": [[[1e999]]]}', "costs[0, 0, 0] must be finite; got inf"),
        (b'{"transition": [[[' + b"9" * 400 + b']]], "costs": [[[0]]]}', "transition must be an array of numbers"),
    ],
    ids=["empty", "list", "null", "yaml", "bytes", "nested", "digits", "nan", "inf", "huge"],
)
def test_files_that_are_not_json_models(tmp_path, content, message):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    assert refused(path).startswith(message)


def write_npz(tmp_path, **arrays):
    path = tmp_path / "model.npz"
    np.savez(path, **arrays)
    return path


def header(**fields):
    return np.array(json.dumps({"format": io.FORMAT, "version": io.VERSION} | fields))


NOT_OURS = "truncated, or not a psconrl-cmdp file"


def test_text_in_an_npz(tmp_path):
    path = tmp_path / "model.npz"
    for content in (b"", b"just text", json.dumps(SMALL).encode(), b"PK\x03\x04 not a zip"):
        path.write_bytes(content)
        assert refused(path).startswith(NOT_OURS)


def test_foreign_npz_files(tmp_path):
    assert refused(write_npz(tmp_path, P=np.eye(2))) == "not a psconrl-cmdp file"
    assert refused(write_npz(tmp_path, header=header())).startswith(NOT_OURS)
    assert refused(write_npz(tmp_path, header=np.array("[]"), costs=np.zeros(1))).startswith(NOT_OURS)
    assert refused(write_npz(tmp_path, header=np.eye(2))) == "'header' must be one text"
    with (tmp_path / "model.npz").open("wb") as f:
        np.save(f, np.eye(2))  # an .npy in disguise
    assert refused(tmp_path / "model.npz").startswith(NOT_OURS)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": "gym"}, "not a psconrl-cmdp file but a gym one"),
        ({"format": "g" * 40}, f"not a psconrl-cmdp file but a {'g' * 40} one"),
        ({"format": "g" * 41}, "not a psconrl-cmdp file"),
        ({"format": "psconrl-cmdp\n"}, "not a psconrl-cmdp file"),
        ({"format": ["gym"]}, "not a psconrl-cmdp file"),
        ({"version": 9}, "format version 9 is not known here (newest: 1); update psconrl"),
        ({"state_name": ["a"]}, "unknown field 'state_name'; did you mean 'state_names'?"),
        ({"state_names": ["a", "b"]}, "state_names must have length 1; got 2"),
    ],
)
def test_bad_headers_of_npz_files(tmp_path, fields, message):
    one = np.ones((1, 1))
    arrays = {"transition": one, "costs": one[None], "thresholds": [], "initial": [1.0], "available": one > 0}
    assert refused(write_npz(tmp_path, header=header(**fields), **arrays)) == message


class Trap:
    sprung = False

    def __reduce__(self):
        return setattr, (Trap, "sprung", True)


def test_pickled_objects_are_never_unpickled(tmp_path):
    for content in (header(), np.array([Trap()], dtype=object)):
        message = refused(write_npz(tmp_path, header=content, costs=np.array([Trap()], dtype=object)))
        assert message.endswith("must hold numbers or text; objects are pickled, and never read")
    (tmp_path / "model.npz").write_bytes(pickle.dumps(Trap()))
    assert refused(tmp_path / "model.npz").startswith(NOT_OURS)
    assert not Trap.sprung


@SUFFIXES
@pytest.mark.parametrize("form", [np.array, csr_array], ids=["dense", "sparse"])
def test_a_file_cut_anywhere_is_refused(tmp_path, suffix, form):
    whole, cut = tmp_path / f"whole{suffix}", tmp_path / f"cut{suffix}"
    save(everything(form), whole)
    content = whole.read_bytes()
    for end in range(0, len(content) - 1, max(1, len(content) // 150)):
        cut.write_bytes(content[:end])
        assert refused(cut)  # with a reason


def test_an_npz_with_one_wrong_byte_is_refused_or_still_the_same_model(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "model.npz"
    cmdp = everything()
    save(cmdp, path)
    content = np.frombuffer(path.read_bytes(), np.uint8)
    harmless = 0
    for place in rng.integers(content.size, size=300):
        damaged = content.copy()
        damaged[place] ^= rng.integers(1, 256, dtype=np.uint8)
        path.write_bytes(damaged.tobytes())
        with contextlib.suppress(ModelError):
            assert_same(load(path), cmdp)
            harmless += 1  # a date or the like
    assert harmless < 150


def test_missing_files_and_unknown_names(tmp_path):
    assert refused(tmp_path / "none.npz") == "no such file"
    assert refused(tmp_path / "none.json") == "no such file"
    assert refused(tmp_path / "model.txt") == "a model file must end in .npz, .json, .umb, .drn"
    (tmp_path / "folder.json").mkdir()
    assert refused(tmp_path / "folder.json") == "no such file"
    assert refused(tmp_path / "file.json" / "none.json") == "no such file"


def unwritable(path):
    with pytest.raises(ModelError) as refusal:
        save(load("counterexample"), path)
    assert "\n" not in str(refusal.value)
    return str(refusal.value).removeprefix(f"{path}: ")


@SUFFIXES
def test_where_nothing_can_be_written(tmp_path, suffix):
    (tmp_path / "file").write_text("")
    (tmp_path / f"folder{suffix}").mkdir()
    assert unwritable(tmp_path / "missing" / f"model{suffix}") == "cannot be written (No such file or directory)"
    assert unwritable(tmp_path / "file" / f"model{suffix}") == "cannot be written (Not a directory)"
    assert unwritable(tmp_path / f"folder{suffix}") == "cannot be written (Is a directory)"
    assert unwritable(tmp_path / ("x" * 300 + suffix)) == "cannot be written (File name too long)"
    assert unwritable(tmp_path / "model.txt") == "a model file must end in .npz, .json, .umb, .drn"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", f"folder{suffix}"]


@SUFFIXES
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failing_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, suffix, call):
    path = tmp_path / f"model{suffix}"
    save(load("box"), path)
    before = path.read_bytes()

    def disk_full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, disk_full)
    assert unwritable(path) == "cannot be written (No space left on device)"
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "model.npz"
    path.write_bytes(b"old")

    def interrupted(f):
        f.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, interrupted, ModelError)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]
