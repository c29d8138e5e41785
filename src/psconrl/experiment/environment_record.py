"""What a report must know of an environment: its optimum, its limits, the safe and the fast policy, and the model.

In a results file these are the columns ``facts`` and ``model`` of an experiment.
"""

import io
from typing import Any

from psconrl.envs.continuing import ContinuingEnv
from psconrl.errors import PsconrlError
from psconrl.model import io as model_io
from psconrl.model.cmdp import CMDP
from psconrl.planning.analysis.pareto import cost_ranges
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan
from psconrl.planning.proof import Status

MODEL_BYTES = 2_000_000


def environment_record(environment: CMDP | ContinuingEnv) -> dict[str, Any]:
    """The exact values that the runs are compared with, as plain data; what can only be played has none."""
    if isinstance(environment, CMDP):
        return _record_of_model(environment, plan(environment))
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
        "prices": best.multipliers.tolist(),
        "gap": float(best.gap),
        "certified": bool(best.certificate.holds),
    }
    if cmdp.n_constraints == 1:
        low = cost_ranges(cmdp)[:, 0]
        safest = plan(cmdp.with_thresholds([low[1]]))
        record["fastest"] = float(low[0])
        if safest.status is Status.OPTIMAL:
            record["safest"] = float(safest.costs[0])
    return record


def model_bytes(cmdp: CMDP) -> bytes | None:
    """The model as a file, unless it is too large to be carried along."""
    buffer = io.BytesIO()
    model_io.write_npz(cmdp, buffer)
    return buffer.getvalue() if buffer.tell() <= MODEL_BYTES else None


def model_from(data: object, n_states: object) -> CMDP | None:
    """The model that was carried along, unless it is damaged or another one than it should be."""
    if not isinstance(data, bytes):
        return None
    try:
        cmdp = model_io.read_npz(io.BytesIO(data))
    except PsconrlError:
        return None
    return cmdp if cmdp.n_states == n_states else None
