"""Validation of models: every accepted form of input, and one clear message for every refused form."""

from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_array, csr_matrix

from psconrl import CMDP, Status, evaluate, load, plan
from psconrl.errors import ModelError
from psconrl.model.layout import GridLayout

P = np.array([[[1.0, 0.0], [0.1, 0.9]], [[1.0, 0.0], [0.5, 0.5]]])
FLAT = P.reshape(4, 2)
C = np.array([[[0.0, 0.0], [1.0, 2.0]], [[1.0, 1.0], [0.0, 3.0]]])
BY_OUTCOME = np.arange(16.0).reshape(2, 2, 2, 2)
EMPTY = np.array([])


def model(**changes):
    return CMDP(**{"transition": P, "costs": C, "thresholds": [0.6]} | changes)


def replaced(array, index, value):
    changed = np.array(array, dtype=float)
    changed[index] = value
    return changed


def dense(matrix):
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


@pytest.mark.parametrize(
    "transition",
    [P, P.tolist(), FLAT, csr_array(FLAT), csr_matrix(FLAT), csc_matrix(FLAT), coo_array(FLAT), np.asfortranarray(P)],
    ids=["S,A,S", "lists", "SA,S", "csr_array", "csr_matrix", "csc_matrix", "coo_array", "fortran"],
)
def test_every_form_of_transition_gives_the_same_matrix(transition):
    cmdp = model(transition=transition)
    assert (cmdp.n_states, cmdp.n_actions, cmdp.n_constraints) == (2, 2, 1)
    np.testing.assert_array_equal(dense(cmdp.transition), FLAT)


def test_sparse_stays_sparse_and_dense_stays_dense():
    sparse = model(transition=coo_array(FLAT))
    assert sparse.is_sparse
    assert sparse.transition.is_sparse
    assert sparse.with_thresholds(1.0).with_initial(1).restricted([0, 1]).is_sparse
    assert not model().is_sparse
    assert (repr(model()), repr(sparse)) == (
        "CMDP(2 states, 2 actions, 1 constraint, dense)",
        "CMDP(2 states, 2 actions, 1 constraint, sparse)",
    )


def test_duplicate_and_zero_entries_of_a_sparse_matrix_are_merged():
    doubled = coo_array(([0.5, 0.5, 1.0, 0.0], ([0, 0, 1, 1], [0, 0, 1, 0])), shape=(2, 2))
    cmdp = CMDP(doubled, np.zeros((1, 2, 1)))
    assert cmdp.transition.n_possible == 2
    np.testing.assert_array_equal(dense(cmdp.transition), np.eye(2))


@pytest.mark.parametrize("transition", [P, csr_array(FLAT)], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "costs",
    [
        BY_OUTCOME,
        BY_OUTCOME.reshape(2, 4, 2),
        [csr_array(c.reshape(4, 2)) for c in BY_OUTCOME],
        [csc_matrix(BY_OUTCOME[0].reshape(4, 2)), BY_OUTCOME[1]],
    ],
    ids=["m+1,S,A,S", "m+1,SA,S", "sparse", "mixed"],
)
def test_costs_by_outcome_become_expected_costs(transition, costs):
    cmdp = model(transition=transition, costs=costs)
    np.testing.assert_allclose(cmdp.costs, (P * BY_OUTCOME).sum(axis=-1), rtol=1e-15)
    for outcome, given in zip(cmdp.outcome_costs, BY_OUTCOME, strict=True):
        np.testing.assert_array_equal(dense(outcome), given.reshape(4, 2))


def test_expected_costs_have_no_outcome_costs():
    assert model().outcome_costs == (None, None)


def test_numbers_of_other_types_are_welcome():
    exact = CMDP([[[Fraction(1, 4), Fraction(3, 4)]], [[1, 0]]], [[[True], [2]]])
    np.testing.assert_array_equal(exact.transition, [[0.25, 0.75], [1.0, 0.0]])
    np.testing.assert_array_equal(exact.costs, [[[1.0], [2.0]]])


@pytest.mark.parametrize("transition", [P, csr_array(FLAT)], ids=["dense", "sparse"])
def test_rows_a_little_off_are_normalised_and_exact_ones_left_alone(transition):
    off = transition * (1 + 5e-10)
    np.testing.assert_allclose(dense(model(transition=off).transition).sum(axis=1), 1.0, atol=1e-15)
    np.testing.assert_array_equal(dense(model(transition=transition).transition), FLAT)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_what_is_said_about_unavailable_actions_does_not_matter(sparse):
    junk = replaced(FLAT, 1, [np.nan, -7.0])
    outcomes = replaced(BY_OUTCOME[0].reshape(4, 2), 1, np.nan)
    cmdp = model(
        transition=csr_array(junk) if sparse else junk,
        costs=[csr_array(outcomes) if sparse else outcomes, replaced(C[1], (0, 1), np.inf)],
        available=[[1, 0], [True, True]],
    )
    np.testing.assert_array_equal(dense(cmdp.transition)[1], 0.0)
    np.testing.assert_array_equal(cmdp.costs[:, 0, 1], 0.0)
    assert cmdp.available.tolist() == [[True, False], [True, True]]
    assert plan(cmdp.with_thresholds(3.0)).policy[0].tolist() == [1.0, 0.0]


def test_arrays_may_lie_in_memory_in_any_order():
    rover = load("marsrover-4x4")
    S, A = rover.n_states, rover.n_actions
    P = np.asfortranarray(dense(rover.transition).reshape(S, A, S))
    limits, distribution = np.repeat(rover.thresholds, 2)[::2], np.repeat(rover.initial, 2)[::2]
    mask = np.ones((S, A), order="F")
    turned = CMDP(P, np.asfortranarray(rover.costs), limits, initial=distribution, available=mask)
    assert plan(turned).value == plan(rover).value


@pytest.mark.parametrize(
    ("initial", "distribution"),
    [(0, [1, 0]), (1, [0, 1]), (np.int64(1), [0, 1]), ("end", [0, 1]), ([0.25, 0.75], [0.25, 0.75]), ([0, 1], [0, 1])],
)
def test_the_start_is_an_index_a_name_or_a_distribution(initial, distribution):
    assert model(initial=initial, state_names=["start", "end"]).initial.tolist() == distribution


@pytest.mark.parametrize("limits", [0.6, [0.6], np.array([0.6]), {"cost 1": 0.6}, MappingProxyType({"cost 1": 0.6})])
def test_thresholds_are_a_number_a_list_or_a_mapping(limits):
    assert model(thresholds=limits).thresholds.tolist() == [0.6]


def test_a_mapping_of_thresholds_goes_by_name_not_by_order():
    three = np.concatenate([C, C[:1]])
    cmdp = model(costs=three, thresholds={"b": 2, "a": 1}, cost_names=["goal", "a", "b"])
    assert cmdp.thresholds.tolist() == [1.0, 2.0]
    assert cmdp.with_thresholds({"b": 5}).thresholds.tolist() == [1.0, 5.0]


def test_names_given_and_default():
    named = model(state_names=("a", "b"), action_names=np.array(["x", "y"]), cost_names=["goal", "limit"])
    assert (named.state_name(1), named.action_name(0), named.cost_names) == ("b", "x", ("goal", "limit"))
    plain = model()
    assert (plain.state_name(1), plain.action_name(0), plain.cost_names) == ("1", "0", ("objective", "cost 1"))
    assert model(maximise=True).cost_names[0] == "reward"


def test_from_counts_are_the_observed_frequencies():
    counts = [[[3, 1], [0, 2]], [[1, 0], [4, 4]]]
    np.testing.assert_array_equal(
        CMDP.from_counts(counts, C, 1.0).transition, [[0.75, 0.25], [0, 1], [1, 0], [0.5, 0.5]]
    )
    with_prior = CMDP.from_counts(counts, C, 1.0, prior=0.5).transition
    np.testing.assert_allclose(with_prior, (np.reshape(counts, (4, 2)) + 0.5) / np.array([[5], [3], [2], [9]]))


def test_from_counts_may_leave_out_what_was_never_tried():
    cmdp = CMDP.from_counts([[[1, 0], [0, 0]], [[1, 0], [0, 1]]], C, 1.0, available=[[1, 0], [1, 1]], initial=1)
    assert (cmdp.transition.toarray()[1] == 0).all()
    assert cmdp.initial.tolist() == [0, 1]


@pytest.mark.parametrize("rewards", [[[1.0, 0.0], [2.0, 5.0]], np.ones((2, 2, 2))])
def test_from_rewards_reports_rewards(rewards):
    cmdp = CMDP.from_rewards(P, rewards, costs=C[1:], thresholds=0.6)
    assert cmdp.maximise
    best = plan(cmdp)
    assert best.value == pytest.approx(-best.costs[0]) == evaluate(cmdp, best.policy).value
    assert best.value > 0


def test_with_thresholds_and_with_initial_change_nothing_else():
    cmdp = model(state_names=["a", "b"], available=[[1, 1], [1, 0]])
    other = cmdp.with_thresholds([0.9]).with_initial("b")
    assert (other.thresholds.tolist(), other.initial.tolist()) == ([0.9], [0.0, 1.0])
    assert (cmdp.thresholds.tolist(), cmdp.initial.tolist()) == ([0.6], [1.0, 0.0])
    assert other.transition is cmdp.transition
    assert other.state_names == cmdp.state_names


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_restricted_keeps_the_part_as_it_was(sparse):
    rng = np.random.default_rng(1)
    transition = np.zeros((4, 2, 4))
    transition[:2, :, :2] = rng.dirichlet([1, 1], size=(2, 2))
    transition[2:] = rng.dirichlet(np.ones(4), size=(2, 2))
    costs = [rng.random((4, 2)), rng.random((4, 2, 4))]
    whole = CMDP(
        csr_array(transition.reshape(8, 4)) if sparse else transition,
        costs,
        [0.5],
        initial=[0.5, 0.5, 0, 0],
        available=[[1, 1], [0, 1], [1, 1], [1, 1]],
        state_names=list("abcd"),
        action_names=["x", "y"],
        cost_names=["goal", "limit"],
        maximise=True,
        layout=GridLayout(("....",), ((0, 0), (0, 1), (0, 2), (0, 3)), ("p", "q", "r", "s")),
    )
    part = whole.restricted([1, 0])
    assert (part.n_states, part.state_names, part.action_names) == (2, ("b", "a"), ("x", "y"))
    assert (part.cost_names, part.maximise, part.is_sparse) == (("goal", "limit"), True, sparse)
    assert part.layout == GridLayout(("....",), ((0, 1), (0, 0)), ("q", "p"))
    np.testing.assert_array_equal(part.costs, whole.costs[:, [1, 0]])
    np.testing.assert_array_equal(part.available, whole.available[[1, 0]])
    np.testing.assert_array_equal(dense(part.transition)[2:], transition[0][:, [1, 0]])


def test_restricted_needs_a_closed_part_that_holds_the_start():
    with pytest.raises(
        ModelError, match=r"no transition leaves; action '1' leaves it from state '0' \(1 pairs leave\)"
    ):
        model().restricted([0])
    with pytest.raises(ModelError, match="no transition leaves"):
        CMDP([[[1 - 1e-12, 1e-12]], [[0, 1]]], np.zeros((1, 2, 1))).restricted([0])
    trap = CMDP([[[0, 1]], [[0, 1]]], np.zeros((1, 2, 1)))
    with pytest.raises(ModelError, match="initial must be a distribution; its entries sum to 0"):
        trap.restricted([1])
    with pytest.raises(ModelError, match=r"states must be indices from 0 to 1; got \[2\]"):
        trap.restricted([2])


ARRAYS = ("transition", "costs", "thresholds", "initial", "available")


def test_arrays_of_a_model_cannot_be_written():
    cmdp = model(costs=BY_OUTCOME)
    for array in [np.asarray(getattr(cmdp, name)) for name in ARRAYS] + list(cmdp.outcome_costs):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        cmdp.thresholds = [1.0]
    sparse = model(transition=csr_array(FLAT))
    matrix = sparse.transition.matrix
    for part in (matrix.data, matrix.indices, matrix.indptr):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 0


@pytest.mark.parametrize("form", [np.array, csr_array], ids=["dense", "sparse"])
def test_a_model_does_not_share_memory_with_what_it_was_made_from(form):
    transition, outcome = form(FLAT), form(np.ones((4, 2)))
    costs, limits, distribution, mask = C[1].copy(), np.array([0.6]), np.array([0.5, 0.5]), np.ones((2, 2), bool)
    cmdp = CMDP(transition, [outcome, costs], limits, initial=distribution, available=mask)
    before = [dense(getattr(cmdp, name)).copy() for name in ARRAYS]
    for given in (transition, outcome):
        (given if isinstance(given, np.ndarray) else given.data)[:] = 7
    for given in (costs, limits, distribution, mask):
        given[:] = 0
    for name, kept in zip(ARRAYS, before, strict=True):
        np.testing.assert_array_equal(dense(getattr(cmdp, name)), kept)
    assert (dense(cmdp.outcome_costs[0]) == 1).all()


@pytest.mark.parametrize("S", [1, 3])
@pytest.mark.parametrize("A", [1, 2])
@pytest.mark.parametrize("m", [0, 1])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_smallest_models_simply_work(S, A, m, sparse):
    ring = np.roll(np.eye(S), 1, axis=1).repeat(A, axis=0)
    best = plan(CMDP(csr_array(ring) if sparse else ring, np.full((m + 1, S, A), 2.0), np.full(m, 2.0)))
    assert best.status is Status.OPTIMAL
    assert best.value == pytest.approx(2.0)
    np.testing.assert_allclose(best.occupancy.sum(axis=1), 1 / S)
    assert best.multipliers.shape == (m,)


BAD = {
    "row sum": ({"transition": replaced(P, (1, 0, 0), 0.97)}, r"transition\[1, 0\] must sum to 1.*got 0.97 \(1 of 4"),
    "sparse row sum": ({"transition": csr_array(FLAT * 0.9)}, r"transition\[0, 0\] must sum to 1.*got 0.9 \(4 of 4"),
    "rows of counts": ({"transition": P * 8}, "got 8 .*For counts use CMDP.from_counts"),
    "empty sparse row": ({"transition": csr_array((4, 2))}, r"transition\[0, 0\] must sum to 1.*got 0 "),
    "negative": ({"transition": replaced(P, (0, 1), [1.5, -0.5])}, r"transition\[0, 1, 1\] must be a prob.*got -0.5"),
    "sparse negative": ({"transition": csr_array(replaced(FLAT, 1, [1.5, -0.5]))}, r"\[0, 1, 1\] must.*got -0.5"),
    "nan": ({"transition": replaced(P, (1, 1, 0), np.nan)}, r"transition\[1, 1, 0\] must be a probability; got nan"),
    "sparse nan": ({"transition": csr_array(replaced(FLAT, (3, 0), np.nan))}, r"transition\[1, 1, 0\].*got nan"),
    "inf": ({"transition": replaced(P, (1, 1, 0), np.inf)}, r"transition\[1, 1, 0\] must be a probability; got inf"),
    "sparse inf": ({"transition": csr_array(replaced(FLAT, (3, 0), np.inf))}, r"transition\[1, 1, 0\].*got inf"),
    "none": ({"transition": None}, r"transition must have shape \(S, A, S\) or \(S\*A, S\); got \(\)"),
    "(S, A, S')": ({"transition": np.ones((2, 2, 3)) / 3}, r"transition must have shape.*got \(2, 2, 3\)"),
    "not S*A rows": ({"transition": np.ones((3, 2)) / 2}, r"transition must have shape.*got \(3, 2\)"),
    "four axes": ({"transition": P[None]}, r"transition must have shape.*got \(1, 2, 2, 2\)"),
    "one sparse axis": ({"transition": coo_array(np.ones(2))}, r"transition must have shape.*got \(2,\)"),
    "empty transition": ({"transition": EMPTY}, r"transition must have shape.*got \(0,\)"),
    "empty transition 3d": ({"transition": np.zeros((0, 0, 0))}, r"transition must have shape.*got \(0, 0, 0\)"),
    "no actions": ({"transition": np.zeros((2, 0, 2))}, r"transition must have shape.*got \(2, 0, 2\)"),
    "empty sparse": ({"transition": csr_array((0, 2))}, r"transition must have shape.*got \(0, 2\)"),
    "ragged": ({"transition": [[[1, 0], [1]], [[1, 0], [1, 0]]]}, "transition must be an array of numbers.*got list"),
    "word": ({"transition": "matrix"}, "transition must be an array of numbers.*got str"),
    "digits as text": ({"transition": P.astype(str)}, "transition must be an array of numbers.*got ndarray"),
    "complex": ({"transition": P.astype(complex)}, "transition must be an array of numbers"),
    "sparse complex": ({"transition": csr_array(FLAT.astype(complex))}, "transition must hold real numbers"),
    "huge integer": ({"transition": [[[10**400]]]}, "transition must be an array of numbers"),
    "no costs": ({"costs": []}, "costs must have shape .*the objective first; got none"),
    "costs none": ({"costs": None}, "costs must have shape .*got none"),
    "costs without layers": ({"costs": C[0]}, r"a list of tables, the objective first; got one table: write \[table\]"),
    "costs of other size": ({"costs": np.zeros((2, 3, 2))}, r"costs\[0\] must have shape \(2, 2\).*got \(3, 2\)"),
    "actions first": ({"transition": np.ones((3, 2, 2)) / 2}, r"if actions come first, give .*transpose\(1, 0, 2\)"),
    "costs ragged": ({"costs": [[[0, 0], [1]]]}, r"costs\[0\] must be an array of numbers with equal rows"),
    "costs text": ({"costs": "ab"}, r"costs\[0\] must be an array of numbers"),
    "costs nan": ({"costs": replaced(C, (1, 0, 1), np.nan)}, r"costs\[1, 0, 1\] must be finite; got nan"),
    "outcome inf": ({"costs": replaced(BY_OUTCOME, (1, 0, 0, 1), np.inf)}, r"costs\[1, 0, 0, 1\] must be finite"),
    "sparse cost shape": ({"costs": [csr_array(np.eye(2))]}, r"costs\[0\] must have shape \(4, 2\) if sparse"),
    "sparse cost alone": ({"costs": csr_array(FLAT)}, r"costs\[0\] must have shape \(4, 2\) if sparse"),
    "too many thresholds": ({"thresholds": [1, 2]}, "one entry per constrained cost, 1 here .*got 2"),
    "no thresholds": ({"thresholds": ()}, "one entry per constrained cost, 1 here .*got 0"),
    "thresholds 2d": ({"thresholds": [[1]]}, r"one entry per constrained cost, 1 here .*got \(1, 1\)"),
    "threshold text": ({"thresholds": "low"}, "thresholds must be an array of numbers"),
    "threshold nan": ({"thresholds": np.nan}, "thresholds must be finite; got nan"),
    "unknown cost": ({"thresholds": {"cots 1": 1}}, "unknown constrained cost 'cots 1'; did you mean 'cost 1'"),
    "objective limited": ({"thresholds": {"objective": 1}}, "unknown constrained cost 'objective'"),
    "threshold missing": ({"thresholds": {}}, "thresholds must cover every constrained cost; 'cost 1' is missing"),
    "stuck": ({"available": [[1, 1], [0, 0]]}, r"state 1 has no available action \(1 of 2 states\)"),
    "mask shape": ({"available": [1, 1]}, r"available must be a mask of shape \(S, A\) = \(2, 2\); got shape \(2,\)"),
    "mask values": ({"available": [[1, 2], [1, 1]]}, "available must hold only 0 and 1; got 2"),
    "mask ragged": ({"available": [[1, 1], [1]]}, "available must be an array of numbers with equal rows"),
    "start too far": ({"initial": 2}, "initial state must be an index from 0 to 1; got 2"),
    "start negative": ({"initial": -1}, "initial state must be an index from 0 to 1; got -1"),
    "start broken": ({"initial": 0.5}, "initial state must be an index from 0 to 1; got 0.5"),
    "start none": ({"initial": None}, "initial state must be an index from 0 to 1; got None"),
    "start unnamed": ({"initial": "a"}, "initial must be an index, as the states have no names; got 'a'"),
    "start misspelt": ({"initial": "strat", "state_names": ["start", "b"]}, "'strat'; did you mean 'start'"),
    "distribution of other size": ({"initial": [1, 0, 0]}, r"distribution over 2 states; got shape \(3,\)"),
    "distribution sum": ({"initial": [0.5, 0.4]}, "initial must be a distribution; its entries sum to 0.9"),
    "distribution negative": ({"initial": [2, -1]}, r"initial\[1\] must be a probability; got -1"),
    "distribution nan": ({"initial": [np.nan, 1]}, r"initial\[0\] must be a probability; got nan"),
    "names length": ({"state_names": ["a"]}, "state_names must have length 2; got 1"),
    "names twice": ({"action_names": ["a", "a"]}, "action_names must be distinct; 'a' repeats"),
    "names text": ({"cost_names": "ab"}, "cost_names must be a list of 2 names; got str"),
    "names number": ({"state_names": 5}, "state_names must be a list of 2 names; got int"),
    "names broken": ({"state_names": ["a\nb", "c"]}, r"state_names must be single lines; got 'a\\nb'"),
    "maximise text": ({"maximise": "no"}, "maximise must be True or False; got 'no'"),
    "layout size": ({"layout": GridLayout(("..",), ((0, 0),))}, "layout must place all 2 states; got 1 cells"),
}


@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD)
def test_bad_models_are_refused_in_one_clear_line(changes, message):
    with pytest.raises(ModelError, match=message) as refusal:
        model(**changes)
    assert "\n" not in str(refusal.value)


BAD_BUILDS = {
    "counts zero": (lambda: CMDP.from_counts(np.zeros((2, 2, 2)), C, 1), r"counts\[0, 0\] are all zero \(4 pairs"),
    "counts negative": (lambda: CMDP.from_counts(-P, C, 1), "counts and prior must be finite and non-negative"),
    "counts nan": (lambda: CMDP.from_counts(P * np.nan, C, 1), "counts and prior must be finite"),
    "counts shape": (lambda: CMDP.from_counts(FLAT, C, 1), r"counts must have shape \(S, A, S\); got \(4, 2\)"),
    "counts ragged": (lambda: CMDP.from_counts([[[1, 0], [1]]], C, 1), "counts must be an array of numbers"),
    "counts empty": (lambda: CMDP.from_counts(np.zeros((0, 0, 0)), C, 1), "transition must have shape"),
    "prior negative": (lambda: CMDP.from_counts(P, C, 1, prior=-1), "counts and prior must be .*non-negative"),
    "prior infinite": (lambda: CMDP.from_counts(P, C, 1, prior=np.inf), "counts and prior must be finite"),
    "prior text": (lambda: CMDP.from_counts(P, C, 1, prior="flat"), "prior must be an array of numbers"),
    "rewards shape": (lambda: CMDP.from_rewards(P, [1, 2]), r"rewards must have shape \(S, A\) or \(S, A, S\)"),
    "rewards in a list": (
        lambda: CMDP.from_rewards(P, [C[0]]),
        r"^rewards must have shape \(2, 2\) or \(2, 2, 2\); got \(1, 2, 2\); give the table itself, not \[table\]$",
    ),
    "rewards infinite": (lambda: CMDP.from_rewards(P, C[0] + np.inf), r"^rewards\[0, 0\] must be finite; got inf$"),
    "rewards large": (
        lambda: CMDP.from_rewards(P, np.where(P > 0.6, 1e200, 0.0)),
        r"^rewards\[\d, \d, \d\] must be at most .*got 1e\+200$",
    ),
    "costs beside rewards": (
        lambda: CMDP.from_rewards(P, C[0], [C[1], C[1] * np.nan], [1, 1]),
        r"^costs\[1, 0, 0\] must be finite; got nan$",
    ),
    "rewards ragged": (lambda: CMDP.from_rewards(P, [[1, 2], [3]]), "rewards must be an array of numbers"),
    "reward costs": (lambda: CMDP.from_rewards(P, C[0], 5), r"costs must have shape \(m, S, A\).*got int"),
    "other limits": (lambda: model().with_thresholds([1, 2]), "one entry per constrained cost, 1 here .*got 2"),
    "other cost": (lambda: load("box").with_thresholds({"cornr": 1}), "'cornr'; did you mean 'corner'"),
    "other start": (lambda: model().with_initial(9), "initial state must be an index from 0 to 1; got 9"),
    "cell off the map": (lambda: GridLayout(("..",), ((0, 2),)), r"cell \(0, 2\) must lie on the map of 1 x 2"),
    "uneven map": (lambda: GridLayout(("..", "."), ()), "layout rows must be equally long"),
    "layers": (lambda: GridLayout(("..",), ((0, 0),), ("a", "b")), "one layer per cell, 1; got 2"),
}


@pytest.mark.parametrize(("build", "message"), BAD_BUILDS.values(), ids=BAD_BUILDS)
def test_bad_ways_to_build_are_refused_in_one_clear_line(build, message):
    with pytest.raises(ModelError, match=message) as refusal:
        build()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("part", "place", "value"), [("indices", 1, 2**40), ("indices", 0, -1), ("indptr", 1, 3), ("indptr", 1, 10**7)]
)
def test_a_sparse_matrix_that_leads_out_of_itself_is_refused(part, place, value):
    P = csr_array(np.full((2, 2), 0.5))
    P.indices, P.indptr = P.indices.astype(np.int64), P.indptr.astype(np.int64)
    getattr(P, part)[place] = value
    if (part, value) == ("indptr", 3):
        P.indptr[2] = 2
    with pytest.raises(ModelError, match="transition is no valid sparse matrix"):
        CMDP(P, np.zeros((1, 2, 1)), [])
