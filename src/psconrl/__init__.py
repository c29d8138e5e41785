"""Planning and learning in constrained Markov decision processes under the long-run average criterion.

>>> import psconrl
>>> model = psconrl.load("marsrover-4x4")
>>> plan = psconrl.plan(model)
>>> round(plan.value, 6), plan.status
(0.775, <Status.OPTIMAL: 'optimal'>)
"""

import importlib
from typing import TYPE_CHECKING, Any

from psconrl._version import __version__

if TYPE_CHECKING:
    from psconrl.envs.registry import load
    from psconrl.learning.psconrl import PSConRL
    from psconrl.model.chain import evaluate
    from psconrl.model.cmdp import CMDP
    from psconrl.model.distance import diameter
    from psconrl.model.io import save
    from psconrl.planning.certify import certify
    from psconrl.planning.pareto import pareto
    from psconrl.planning.plan import Plan, Status
    from psconrl.planning.planner import plan
    from psconrl.simulation.regret import regret
    from psconrl.simulation.simulate import simulate

# Loaded on first use, so that `import psconrl` and `psconrl --help` stay fast.
_HOME = {
    "CMDP": "psconrl.model.cmdp",
    "PSConRL": "psconrl.learning.psconrl",
    "Plan": "psconrl.planning.plan",
    "Status": "psconrl.planning.plan",
    "certify": "psconrl.planning.certify",
    "diameter": "psconrl.model.distance",
    "evaluate": "psconrl.model.chain",
    "load": "psconrl.envs.registry",
    "pareto": "psconrl.planning.pareto",
    "plan": "psconrl.planning.planner",
    "regret": "psconrl.simulation.regret",
    "save": "psconrl.model.io",
    "simulate": "psconrl.simulation.simulate",
}

__all__ = [
    "CMDP",
    "PSConRL",
    "Plan",
    "Status",
    "__version__",
    "certify",
    "diameter",
    "evaluate",
    "load",
    "pareto",
    "plan",
    "regret",
    "save",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'psconrl' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
