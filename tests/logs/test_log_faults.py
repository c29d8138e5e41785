"""Faults of tables: each is counted and located, and rows at fault are left out on request."""

import numpy as np
import pytest

from log_samples import shop, shop_rows
from psconrl import Log, LogError

PLAIN = {"state": "s", "action": "a"}


def faults(table, **given):
    """The kinds of faults with their lines, as the error says and as the log without them has them."""
    with pytest.raises(LogError) as error:
        Log(table, **given)
    log = Log(table, skip_bad=True, **given)
    assert "\n" not in str(error.value)
    for fault in log.faults:
        assert str(fault) in str(error.value)
        assert fault.count >= len(fault.lines)
    return {fault.kind: fault.lines for fault in log.faults}, log


def test_rows_around_a_missing_state_are_no_rounds():
    found, log = faults({"s": [0, 1, None, 3, 4, 5], "a": [0] * 6}, **PLAIN)
    assert found == {"missing": (4,)}
    assert log.lines.tolist() == [2, 5, 6]
    assert log.follows.tolist() == [False, False, True]


def test_the_last_row_of_a_run_needs_a_state_only():
    table = {"s": [0, 1, 2, 3], "a": [0, None, 1, None], "c": [5, None, 6, None], "r": [1, 1, 2, 2]}
    log = Log(table, costs="c", run="r", **PLAIN)
    assert log.lines.tolist() == [2, 4]


def test_costs_that_are_no_finite_numbers():
    table = {"s": [0] * 6, "a": [0] * 6, "c": ["1", "inf", "x", "1e400", "2", "3"]}
    found, log = faults(table, costs="c", **PLAIN)
    assert found == {"wrong": (3, 4, 5)}
    assert log.costs.tolist() == [[1.0], [2.0]]


def test_unknown_labels():
    found, log = faults({"s": [0, 1, 7, 1, 0], "a": [0, 9, 0, 0, 0]}, state={"s": 2}, action={"a": 2})
    assert set(found) == {"unknown"}
    assert [(fault.count, fault.lines) for fault in log.faults] == [(1, (4,)), (1, (3,))]
    assert log.lines.tolist() == [2, 5]


def test_duplicates_and_unsorted_times():
    times = [0, 1, 1, 2, 4, 3, 5]
    found, log = faults({"s": range(7), "a": [0] * 7, "t": times}, time="t", **PLAIN)
    assert found == {"unsorted": (7,), "duplicate": (4,)}
    assert log.times.tolist() == [0, 1, 2, 3, 4]
    assert log.states.tolist() == [0, 1, 3, 5, 4]


def test_times_that_begin_again_are_another_run():
    times = [*range(50), *range(50)]
    found, log = faults({"s": [0] * 100, "a": [0] * 100, "t": times}, time="t", **PLAIN)
    assert found == {"glued": (52,)}
    assert log.run.max() == 1
    assert log.n_rounds == 98


def test_a_repeated_header_is_where_another_run_begins(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("s,a\n0,0\n1,0\ns,a\n2,0\n3,0\n")
    found, log = faults(path, **PLAIN)
    assert found == {"glued": (4,)}
    assert log.lines.tolist() == [2, 5]
    assert log.state_labels == ("0", "1", "2", "3")


def test_rows_of_another_width(tmp_path):
    path = tmp_path / "ragged.csv"
    path.write_text("n,s,a\nx,0,0\nx,1,1\n2,0\nso, so,9,1\nx,3,0\nx,4,0\n")
    found, log = faults(path, **PLAIN)
    assert found == {"wrong": (4, 5)}
    assert log.lines.tolist() == [2, 6]  # no round leads to such a row, whose cells may stand in other columns
    assert log.state_labels == ("0", "1", "3", "4")


def test_times_that_are_none():
    table = {"s": [0] * 5, "a": [0] * 5, "t": ["2024-01-01", "soon", None, "2024-01-02", "2024-01-03"]}
    found, log = faults(table, time="t", **PLAIN)
    assert found == {"missing": (4,), "wrong": (3,)}
    assert log.lines.tolist() == [2, 5]


@pytest.mark.parametrize("hole", ["t", "r"])
def test_no_round_leads_over_a_row_whose_place_is_not_known(hole):
    """Times are irregular, so they do not say whether a row is missing; runs are mixed."""
    table = {"s": [*range(8)], "a": [0] * 8, "t": [0, 1, 3, 7, 8, 20, 33, 34], "r": [0, 1, 0, 1, 0, 0, 1, 0]}
    table[hole][4] = None
    found, log = faults(table, time="t", run="r", **PLAIN)
    assert found == {"missing": (6,)}
    runs = {(a, b) for a, b in zip(log.states.tolist(), log.next_states.tolist(), strict=True)}
    every = {(0, 2), (5, 7), (1, 3), (3, 6)}
    assert runs == (every if hole == "t" else every - {(3, 6)})  # a row of an unknown run may be of either


def test_wall_clocks_that_are_put_back():
    """Without a zone an hour occurs twice: by duplicates if rows are hourly, by a backward step if there are more."""
    hours = [f"2024-10-27T{h:02}:00" for h in (0, 1, 2, 2, 3, 4, 5, 6)]
    quarters = [f"2024-10-27T0{h}:{m:02}" for h in (1, 2, 2, 3) for m in (0, 15, 30, 45)]
    for times in (hours, quarters):
        with pytest.raises(LogError, match="if the clocks were put back an hour there, write times with a zone"):
            Log({"s": [0] * len(times), "a": [0] * len(times), "t": times}, time="t", **PLAIN)


def test_months_are_regular():
    months = [f"2024-{m:02}-01" for m in (1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12)] + [
        f"2025-{m:02}-01" for m in range(1, 7)
    ]
    log = Log({"s": [0] * 17, "a": [0] * 17, "t": months}, time="t", **PLAIN)
    assert (log.gaps, log.n_rounds) == (1, 15)
    assert 7 not in log.lines  # June, after which July is missing


def test_times_of_two_kinds_are_an_error():
    with pytest.raises(LogError, match="mixes times with a zone and times without a zone"):
        Log({"s": [0, 0], "a": [0, 0], "t": ["2024-01-01", "2024-01-01T10:00Z"]}, time="t", **PLAIN)


def test_the_log_of_a_system_has_its_costs_and_no_fault():
    rows = shop_rows(300)
    log = Log(rows, system=shop())
    assert log.faults == ()
    assert log.cost_names == ("holding + 2 * buy", "lost")
    assert log.costs[:, 0].tolist() == (rows["shelf"] + 2 * rows["order"])[:-1].tolist()
    assert log.costs[:, 1].tolist() == rows["lost"][:-1].tolist()


def test_a_cost_that_contradicts_its_formula():
    rows = shop_rows(300)
    rows["lost"][7] = 5
    found, log = faults(rows, system=shop())
    assert found == {"cost": (9,)}
    assert "lost=5" in log.faults[0].message
    assert log.n_rounds == 298


def test_an_action_that_is_not_the_one_taken():
    rows = shop_rows(300)
    at = int(np.flatnonzero((rows["shelf"] == 0) & (rows["order"] == 3))[0])  # nothing is sold, so the order is seen
    rows["order"][at] = 1
    found, log = faults({name: rows[name] for name in ("shelf", "order")}, system=shop())
    assert found == {"action": (at + 2,)}
    assert "is the action recorded that was taken?" in log.faults[0].message


def test_an_impossible_jump_is_where_runs_are_glued():
    one, two = shop_rows(200, 1), shop_rows(200, 2)
    cut = int(np.flatnonzero(one["shelf"] == 0)[-1])
    start = int(np.flatnonzero(two["shelf"][1:] == 5)[0]) + 1
    rows = {name: np.append(one[name][: cut + 1], two[name][start:]) for name in ("shelf", "order")}
    found, _ = faults(rows, system=shop())
    assert found == {"glued": (cut + 2,)}  # from an empty shelf to a full one, whatever is ordered


def test_impossible_next_states_in_the_row():
    rows = shop_rows(300)
    at = int(np.flatnonzero(rows["shelf"][:-1] == 0)[0])
    table = {name: rows[name][:-1].copy() for name in ("shelf", "order")} | {"next_shelf": rows["shelf"][1:].copy()}
    table["next_shelf"][at] = 5
    found, _ = faults(table, system=shop())
    assert found == {"impossible": (at + 2,)}


def test_noise_that_does_not_lead_there():
    rows = shop_rows(300)
    at = int(np.flatnonzero((rows["shelf"] >= 3) & (rows["demand"] == 1) & (rows["order"] == 0))[0])
    rows["demand"][at] = 2
    found, _ = faults({name: rows[name] for name in ("shelf", "order", "demand")}, system=shop())
    assert found == {"impossible": (at + 2,)}


def test_sales_recorded_as_demand():
    rows = shop_rows(600)
    sales = {"shelf": rows["shelf"], "order": rows["order"], "demand": np.minimum(rows["demand"], rows["shelf"])}
    found, log = faults(sales, system=shop())
    sold_out = rows["demand"][:-1] >= rows["shelf"][:-1]
    assert set(found) == {"censored"}
    assert log.faults[0].count == sold_out.sum()
    assert log.n_rounds == 599
    assert np.isnan(log.records["demand"]).sum() == log.faults[0].count


@pytest.mark.statistical
def test_demand_itself_is_not_taken_for_sales():
    """A false alarm has a probability of at most 1e-6 in each of these logs."""
    for seed in range(20):
        assert Log(shop_rows(300, seed), system=shop()).faults == ()


def test_a_model_as_support():
    model = shop().model(demand=1.7)
    rows = shop_rows(300)
    labels = {"state": [f"shelf={x}" for x in rows["shelf"]], "action": [f"order={x}" for x in rows["order"]]}
    log = Log(labels, state="state", action="action", support=model)
    assert log.state_labels == tuple(model.state_names)
    assert log.faults == ()
    at = int(np.flatnonzero((rows["shelf"] == 0) & (rows["order"] == 3))[0])
    labels["action"][at] = "order=1"
    found, _ = faults(labels, state="state", action="action", support=model)
    assert found == {"action": (at + 2,)}
