"""Independent reference values: those of Storm's own tests, on models that go through files."""

from fractions import Fraction

import pytest

import psconrl
from known_models import client_server, philosophers, resource_gathering, simple_lra
from psconrl.model.exchange.drn_writer import write_drn
from psconrl.model.exchange.umb import write_umb

WRITERS = {".umb": write_umb, ".drn": write_drn}


def through_a_file(model, path, **goal):
    path.write_bytes(WRITERS[path.suffix](model))
    return psconrl.load(path, **goal)


def best(model, path, **goal):
    plan = psconrl.plan(through_a_file(model, path, **goal))
    assert plan.status is psconrl.Status.OPTIMAL
    return plan.value


@pytest.fixture(params=WRITERS)
def path(request, tmp_path):
    return tmp_path / f"model{request.param}"


def test_the_corners_of_simple_lra(path):
    model = simple_lra()
    assert best(model, path, maximise="first") == pytest.approx(5, rel=1e-9)
    assert best(model, path, maximise="second", limits="first >= 5") == pytest.approx(80 / 11, rel=1e-9)
    assert best(model, path, maximise="second") == pytest.approx(16, rel=1e-9)
    assert best(model, path, maximise="first", limits="second >= 16") == pytest.approx(0, abs=1e-9)
    # Half way between two corners, on the line through them.
    assert best(model, path, maximise="second", limits="first >= 2.5") == pytest.approx((80 / 11 + 16) / 2, rel=1e-9)


CORNERS = [
    (
        "gold",
        "gem",
        ">=",
        [(Fraction(27, 241), Fraction(0)), (Fraction(27, 349), Fraction(27, 349)), (Fraction(0), Fraction(1, 10))],
    ),
    (
        "gold",
        "attacks",
        "<=",
        [(Fraction(27, 241), Fraction(19, 723)), (Fraction(3, 31), Fraction(1, 93)), (Fraction(1, 12), Fraction(0))],
    ),
]


@pytest.mark.parametrize(("objective", "limited", "relation", "corners"), CORNERS)
def test_the_corners_of_resource_gathering(objective, limited, relation, corners, path):
    model = resource_gathering()
    assert model.n_states == 94
    for value, level in corners:
        found = best(model, path, maximise=objective, limits=f"{limited} {relation} {float(level)!r}")
        assert found == pytest.approx(float(value), rel=1e-9, abs=1e-9)
    if relation == ">=":
        assert best(model, path, maximise=limited) == pytest.approx(0.1, rel=1e-9)


def test_a_server_grants_a_third_at_most(path):
    model = client_server()
    assert model.n_states == 184
    stuck = (model.first_choice[1:] == model.first_choice[:-1]).sum()  # all three have cancelled
    assert (stuck, model.targets.size + stuck) == (1, 541)
    assert best(model, path, maximise="grants") == pytest.approx(0.333, rel=1e-9)
    assert best(model, path, minimise="grants") == pytest.approx(0.0, abs=1e-12)


def test_philosophers_eat(tmp_path):
    model = philosophers(3)
    assert model.n_states == 956
    psconrl.save(model, tmp_path / "philosophers.umb")
    read = psconrl.load(tmp_path / "philosophers.umb", maximise="eat")
    assert psconrl.plan(read).value == pytest.approx(10 / 11, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("n", [4])
def test_more_philosophers_eat_all_the_time(n, tmp_path):
    psconrl.save(philosophers(n), tmp_path / "philosophers.umb")
    assert psconrl.plan(psconrl.load(tmp_path / "philosophers.umb", maximise="eat")).value == pytest.approx(1, rel=1e-9)
