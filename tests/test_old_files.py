"""Files that earlier versions wrote are read and continued.

The files of format version 1 under ``data`` were written by the code before agents were made of parts, those of version
2 by the code before they had an outlook, those of version 3 by the code whose counts were tables: half of a run on the
counterexample. The other half draws other random numbers than that code did, since kernels make their own variates.
"""

import json
from pathlib import Path

import pytest

import psconrl
from psconrl.errors import AgentError
from psconrl.learning.registry import load_agent
from psconrl.simulation.model_run import Simulation

DATA = Path(__file__).parent / "data"
EXPECTED = {
    f"{version}-{name}": wanted
    for version in ("v1", "v2", "v3")
    for name, wanted in json.loads((DATA / f"{version}-expected.json").read_text()).items()
}
RECIPES = {"psconrl-published": "psconrl", "psconrl-repaying": "psconrl"}  # presets were not written down


@pytest.mark.parametrize("name", EXPECTED)
def test_an_old_file_is_read_and_continued(name, tmp_path):
    cmdp, wanted = psconrl.load("counterexample"), EXPECTED[name]
    run = Simulation.resume(cmdp, DATA / f"{name}.npz")
    recipes = RECIPES if name.startswith("v1") else {}
    assert run.agent.recipe == recipes.get(wanted["agent"], wanted["agent"])
    assert 2 * run.round == wanted["horizon"]
    run.save(tmp_path / "new.npz")
    again = Simulation.resume(cmdp, tmp_path / "new.npz")
    trace, same = (each.run(wanted["horizon"], checkpoints=[wanted["horizon"]]) for each in (run, again))
    assert trace.episodes.length == same.episodes.length
    assert trace.episodes.kind == same.episodes.kind
    assert trace.cumulative[-1].tolist() == same.cumulative[-1].tolist()
    assert run.agent.counts.visits.tolist() == again.agent.counts.visits.tolist()


def test_the_parts_of_an_old_file_are_those_of_today():
    repaying = load_agent(DATA / "v1-psconrl-repaying.npz")
    assert repaying.ledger.share == 0.1
    assert repaying.ledger.balance.any()
    options = load_agent(DATA / "v1-psconrl-options.npz")
    assert (options.schedule.name, options.fallback.action, options.belief.prior) == ("doubling", "least_tried", 0.2)
    assert load_agent(DATA / "v1-c-ucrl.npz").radius.delta == 0.1
    assert load_agent(DATA / "v1-ucrl-cmdp.npz").radius.coef == 0.3
    assert load_agent(DATA / "v1-cmdp-psrl.npz").fallback.name == "unconstrained"
    assert psconrl.PSConRL.load(DATA / "v1-cmdp-psrl.npz").recipe == "cmdp-psrl"


def test_a_version_that_is_newer_is_refused(tmp_path):
    import numpy as np

    with np.load(DATA / "v1-uniform.npz") as members:
        arrays = dict(members)
    header = json.loads(str(arrays["header"]))
    arrays["header"] = np.array(json.dumps(header | {"version": 5}))
    np.savez(tmp_path / "new.npz", **arrays)
    with pytest.raises(AgentError, match="format version 5 is newer than 4; update psconrl"):
        load_agent(tmp_path / "new.npz")
