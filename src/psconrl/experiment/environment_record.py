"""What a report needs of an environment: optimum, thresholds, prices, the safest and fastest policies, the model.

A results file has them in the columns ``facts`` and ``model`` of an experiment.
"""

import io
from typing import Any

from psconrl.answers.pareto import cost_ranges
from psconrl.envs.continuing import ContinuingEnv
from psconrl.errors import PsconrlError
from psconrl.experiment.charged_prices import range_prices, without_copies
from psconrl.model import io as model_io
from psconrl.model.cmdp import CMDP
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan_model
from psconrl.planning.proof.certificate import Status
from psconrl.systems.system import System

MODEL_BYTES = 2_000_000


def environment_record(environment: CMDP | System | ContinuingEnv) -> dict[str, Any]:
    """Return the exact values that runs are compared with, as plain data.

    An environment without a model has none.
    """
    if isinstance(environment, System):
        environment = environment.model_for_learning()
    if isinstance(environment, CMDP):
        return _record_of_model(environment, plan_model(environment))
    return {
        "states": environment.states.size,
        "actions": environment.actions.size,
        "cost_names": list(environment.cost_names),
        "thresholds": environment.thresholds.tolist(),
        "maximise": True,
        "status": "unknown",
    }


def _record_of_model(cmdp: CMDP, best: Plan) -> dict[str, Any]:
    record: dict[str, Any] = {
        "states": cmdp.n_states,
        "actions": cmdp.n_actions,
        "cost_names": list(cmdp.cost_names),
        "thresholds": cmdp.thresholds.tolist(),
        "maximise": cmdp.maximise,
        "units": cmdp.units.record(),
        "status": best.status.value,
    }
    if best.status is Status.INFEASIBLE:
        return record | {"infeasibility": str(best.infeasibility)}
    record |= {
        "optimum": best.costs.tolist(),
        "prices": [],
        "range_prices": [],
        "gap": float(best.gap),
        "certified": bool(best.certificate.holds),
    }
    if not cmdp.n_constraints:
        return record
    ranges = cost_ranges(cmdp)
    costs = cmdp.costs[:, cmdp.available]
    prices = without_copies(best.multipliers, range_prices(ranges, costs), costs[1:] - cmdp.thresholds[:, None])
    record["prices"], record["range_prices"] = (each.tolist() for each in prices)
    if cmdp.n_constraints == 1:
        safest = plan_model(cmdp.with_thresholds([ranges[1, 0]]))
        record["fastest"] = float(ranges[0, 0])
        if safest.status is Status.OPTIMAL:
            record["safest"] = float(safest.costs[0])
    return record


def is_complete(record: dict[str, Any]) -> bool:
    """Return False for a record that an earlier version wrote, without range prices."""
    return "prices" not in record or "range_prices" in record


def model_bytes(cmdp: CMDP) -> bytes | None:
    """Return the model as the bytes of a file, or None if it is too large to store with the results."""
    buffer = io.BytesIO()
    model_io.write_npz(cmdp, buffer)
    return buffer.getvalue() if buffer.tell() <= MODEL_BYTES else None


def model_from(data: object, n_states: object) -> CMDP | None:
    """Return the model stored with the results, or None if it is missing, damaged or of another size."""
    if not isinstance(data, bytes):
        return None
    try:
        cmdp = model_io.read_npz(io.BytesIO(data))
    except PsconrlError:
        return None
    return cmdp if cmdp.n_states == n_states else None
