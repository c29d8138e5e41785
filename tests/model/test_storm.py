"""Sources built by Storm, if stormpy is installed; benchmarks/storm_models.py checks that Storm reads our files."""

import pytest

import psconrl
from psconrl.errors import ModelError
from psconrl.model.exchange.files import read_explicit

pytest.importorskip("stormpy")

SOURCE = """
mdp
const int TOP;
module worker
  tired : [0..TOP];
  [work] tired < TOP -> 1/3 : (tired' = tired) + 2/3 : (tired' = tired + 1);
  [rest] tired > 0 -> (tired' = tired - 1);
endmodule
label "worn" = tired = TOP;
rewards "done" [work] true : 2; endrewards
rewards tired = 0 : 1; endrewards
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "worker.nm"
    path.write_text(SOURCE)
    return path


def test_a_source_is_built_and_read(source):
    model = read_explicit(source, "TOP=3")
    assert (model.n_states, model.n_choices, model.targets.size) == (4, 6, 9)
    assert model.quantities["done"] == "reward"
    assert model.quantities["worn"] == "label"
    assert model.state_names[0].endswith("tired=0")
    # Between two neighbours: a round of work that tires, one and a half on average, and one of rest.
    plan = psconrl.plan(psconrl.load(source, maximise="done", constants="TOP=3"))
    assert plan.value == pytest.approx(2 * 1.5 / 2.5, rel=1e-9)
    assert set(psconrl.load(source, maximise="done", constants=["TOP=3"]).action_names) == {"work", "rest"}


@pytest.mark.parametrize("constants", ["", "TOP", "BOTTOM=3"])
def test_what_storm_cannot_build_is_one_line(source, constants):
    with pytest.raises(ModelError, match="Storm cannot build it") as caught:
        psconrl.load(source, maximise="done", constants=constants)
    assert "\n" not in str(caught.value)
    if not constants:
        assert "constants='N=3'" in str(caught.value)
