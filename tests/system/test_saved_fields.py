"""The kinds of fields of a saved agent or run: what they accept, and what they say."""

import math

import numpy as np
import pytest

from psconrl.base.saved_fields import (
    FieldError,
    distributions,
    flag,
    flags,
    in_field,
    integer,
    integers,
    listed,
    listing,
    maybe,
    read_fields,
    real,
    reals,
    table_of,
    text,
)
from psconrl.errors import AgentError, ModelError

ACCEPTED = [
    (integer(0, 3), 0), (integer(0, 3), 3), (integer(), np.int64(7)), (integer(0, 2**128), 2**128),
    (real(0.0), 0.0), (real(0.0, 1.0), 1), (real(infinite=True), math.inf), (real(), -1e300),
    (flag, True), (flag, np.bool_(False)), (text(), ""), (text("a", "b"), "b"), (maybe(text()), None),
    (listed(integer(), 2), [1, 2]), (listed(text()), ("a",)), (table_of(integer()), {"a": 1}),
]  # fmt: skip
REFUSED = [
    (integer(0, 3), -1, "must be a whole number from 0 to 3; is -1"),
    (integer(0, 3), 4, "must be a whole number from 0 to 3; is 4"),
    (integer(), 1.0, r"is 1\.0$"),
    (integer(), True, "is True$"),
    (integer(), 10**30, r"is 2\^99 or more$"),
    (integer(), None, "is None$"),
    (real(0.0), -1e-300, "must be a finite number from 0; is -1e-300"),
    (real(0.0, 1.0), 1.0000001, "must be a finite number from 0 up to 1"),
    (real(), math.nan, "must be a finite number; is nan"),
    (real(), math.inf, "is inf"),
    (real(infinite=True), math.nan, "must be a number; is nan"),
    (real(), 10**400, r"is 2\^1328 or more"),
    (real(), "1", "is '1'"),
    (flag, 1, "must be true or false; is 1"),
    (text("a", "b"), "c", "must be one of a, b; is 'c'"),
    (text(), 1, "must be a text"),
    (maybe(text()), 1, "must be a text"),
    (listed(integer(), 2), [1], "must be a list of 2; is a list of 1"),
    (listed(integer()), [1, -1], "^1: must be a whole number"),
    (listed(integer()), "12", "must be a list; is '12'"),
    (table_of(integer()), [1], "must be a table; is a list of 1"),
    (table_of(integer()), {"a": -1}, "^a: must be"),
    (reals((2,)), [1.0], r"shape \(2,\); is a list of 1"),
    (reals((2,)), [1.0, math.nan], "must hold finite numbers; has nan"),
    (reals((2,), 0.0), [0.0, -1.0], r"must hold finite numbers from 0; has -1\.0"),
    (reals((None, 2)), np.zeros((3, 1)), r"shape \(any, 2\); is an array of float64, shape \(3, 1\)"),
    (reals((1,)), [1j], "must be an array of numbers"),
    (reals((1,)), np.array(["1"]), "must be an array of numbers"),
    (reals((2, 2)), [[1, 2], [3]], "must be an array of numbers"),
    (reals((1,)), [10**30], "must be an array of numbers"),
    (integers((1,), 0, 3), [4], "must hold whole numbers from 0 to 3; has 4"),
    (integers((1,)), [0.5], r"has 0\.5"),
    (integers((1,), 0, 2**63 - 1), [1e300], r"has 1e\+300"),
    (integers((1,)), [math.nan], "has nan"),
    (integers((1,)), np.array([2**64 - 1], dtype=np.uint64), "must hold whole numbers"),
    (flags((1,)), [2], "must hold whole numbers from 0 to 1; has 2"),
    (distributions((1, 2)), [[0.5, 0.6]], r"must hold probabilities that sum to 1; some sum to 1\.1"),
    (distributions((2,)), [0.5, 0.4], r"some sum to 0\.9"),
    (distributions((2,)), [1.5, -0.5], "must hold finite numbers from 0"),
    (listing(2), np.array(["a"]), "must be an array of 2 values"),
    (listing(), np.array([None]), "must be an array of values"),
]


@pytest.mark.parametrize(("kind", "value"), ACCEPTED)
def test_what_fits_is_returned(kind, value):
    found = kind(value)
    assert (found == list(value) if isinstance(value, tuple) else found == value) or value is None is found


@pytest.mark.parametrize(("kind", "value", "says"), REFUSED)
def test_what_does_not_fit_is_refused(kind, value, says):
    with pytest.raises(FieldError, match=says) as raised:
        kind(value)
    assert len(str(raised.value)) < 300


def test_arrays_are_copied_in_the_form_that_kernels_take():
    given = np.arange(6, dtype=np.float32).reshape(2, 3).T
    for kind, dtype in ((reals((3, 2)), np.float64), (integers((3, 2)), np.int64)):
        found = kind(given)
        assert found.dtype == dtype
        assert found.flags.c_contiguous
        assert found.tolist() == given.tolist()
    kept = np.zeros(2)
    assert reals((2,))(kept) is not kept
    assert flags((2,))(np.array([True, False])).tolist() == [True, False]
    assert reals((1,), unknown=True)([math.nan]).size == 1
    assert integers((None,), 0, 2**63 - 1)([2**63 - 1]).tolist() == [2**63 - 1]


def test_an_error_has_the_path_of_the_field():
    inner = {"c": listed(integer())}
    with pytest.raises(AgentError, match=r"^a/b/c/1: must be a whole number"):
        read_fields(
            {"a": {"b": {"c": [0, -1]}}}, {"a": lambda a: read_fields(a, {"b": lambda b: read_fields(b, inner)})}
        )
    with pytest.raises(AgentError, match=r"^a: is missing$"):
        read_fields({}, {"a": integer()})
    assert read_fields({"b": 1}, {"a": integer(), "b": integer()}, may_be_missing=["a"]) == {"b": 1}
    with pytest.raises(AgentError, match=r"^must be a table; is None$"):
        read_fields(None, {})


@pytest.mark.parametrize(
    ("error", "says"), [(ModelError("too much\nof it"), "x: too much"), (KeyError("k"), "x: damaged (KeyError)")]
)
def test_other_errors_are_named_too(error, says):
    with pytest.raises(FieldError) as raised, in_field("x"):
        raise error
    assert str(raised.value) == says
