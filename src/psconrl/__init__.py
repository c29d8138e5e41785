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
from psconrl.envs.registration import register_with_gymnasium as _register
from psconrl.errors import (
    AdviceWarning,
    AgentError,
    BaselineWarning,
    ConfigError,
    ConstraintWarning,
    CostsWarning,
    InfeasibleError,
    LogError,
    ModelError,
    PolicyError,
    PsconrlError,
    SlowWarning,
    SolverError,
    StoreError,
    StructureWarning,
)
from psconrl.escaping import quoted

if TYPE_CHECKING:
    from psconrl import agents as agents
    from psconrl.data.log import Log
    from psconrl.envs.continuing import continuing
    from psconrl.envs.gridworld import gridworld
    from psconrl.envs.gym_env import CMDPEnv
    from psconrl.envs.registry import load, load_system
    from psconrl.learning.agents.psconrl import PSConRL
    from psconrl.learning.registry import load_agent
    from psconrl.learning.runtime.contract import Episode
    from psconrl.learning.runtime.labels import LabelledAgent, Labels
    from psconrl.learning.runtime.logs import CSVLog, TensorBoardLog
    from psconrl.learning.runtime.watchdog import Watchdog
    from psconrl.markov.evaluation import evaluate
    from psconrl.markov.hitting_times import diameter
    from psconrl.model.cmdp import CMDP
    from psconrl.model.io import save
    from psconrl.model.units import Units
    from psconrl.planning.analysis.deterministic import best_deterministic
    from psconrl.planning.analysis.explanation import explain
    from psconrl.planning.analysis.pareto import pareto, pareto_surface
    from psconrl.planning.analysis.threshold_rule import threshold_rule
    from psconrl.planning.analysis.windows import plan_windows
    from psconrl.planning.certificate import certify
    from psconrl.planning.plan import Plan
    from psconrl.planning.planner import plan
    from psconrl.planning.proof import Status
    from psconrl.simulation.model_estimation import estimate
    from psconrl.simulation.model_run import Simulation
    from psconrl.simulation.regret import regret
    from psconrl.simulation.simulate import simulate
    from psconrl.systems.system import System

_register()  # gymnasium.make("psconrl/Box-v0") works once both are imported

# Loaded on first use, so that `import psconrl` and `psconrl --help` stay fast.
_HOME = {
    "CMDP": "psconrl.model.cmdp",
    "CMDPEnv": "psconrl.envs.gym_env",
    "CSVLog": "psconrl.learning.runtime.logs",
    "Episode": "psconrl.learning.runtime.contract",
    "LabelledAgent": "psconrl.learning.runtime.labels",
    "Labels": "psconrl.learning.runtime.labels",
    "Log": "psconrl.data.log",
    "PSConRL": "psconrl.learning.agents.psconrl",
    "Plan": "psconrl.planning.plan",
    "Simulation": "psconrl.simulation.model_run",
    "Status": "psconrl.planning.proof",
    "System": "psconrl.systems.system",
    "TensorBoardLog": "psconrl.learning.runtime.logs",
    "Watchdog": "psconrl.learning.runtime.watchdog",
    "Units": "psconrl.model.units",
    "best_deterministic": "psconrl.planning.analysis.deterministic",
    "certify": "psconrl.planning.certificate",
    "continuing": "psconrl.envs.continuing",
    "diameter": "psconrl.markov.hitting_times",
    "estimate": "psconrl.simulation.model_estimation",
    "evaluate": "psconrl.markov.evaluation",
    "explain": "psconrl.planning.analysis.explanation",
    "gridworld": "psconrl.envs.gridworld",
    "load": "psconrl.envs.registry",
    "load_agent": "psconrl.learning.registry",
    "load_system": "psconrl.envs.registry",
    "pareto": "psconrl.planning.analysis.pareto",
    "pareto_surface": "psconrl.planning.analysis.pareto",
    "plan": "psconrl.planning.planner",
    "plan_windows": "psconrl.planning.analysis.windows",
    "regret": "psconrl.simulation.regret",
    "save": "psconrl.model.io",
    "simulate": "psconrl.simulation.simulate",
    "threshold_rule": "psconrl.planning.analysis.threshold_rule",
}

__all__ = [
    "CMDP",
    "AdviceWarning",
    "AgentError",
    "BaselineWarning",
    "CMDPEnv",
    "CSVLog",
    "ConfigError",
    "ConstraintWarning",
    "CostsWarning",
    "Episode",
    "InfeasibleError",
    "LabelledAgent",
    "Labels",
    "ModelError",
    "PSConRL",
    "Plan",
    "PolicyError",
    "PsconrlError",
    "Simulation",
    "SlowWarning",
    "SolverError",
    "Status",
    "StoreError",
    "StructureWarning",
    "System",
    "TensorBoardLog",
    "Units",
    "Watchdog",
    "__version__",
    "best_deterministic",
    "certify",
    "continuing",
    "diameter",
    "estimate",
    "evaluate",
    "explain",
    "gridworld",
    "load",
    "load_agent",
    "load_system",
    "pareto",
    "pareto_surface",
    "plan",
    "plan_windows",
    "regret",
    "save",
    "simulate",
    "threshold_rule",
]


def __getattr__(name: str) -> Any:
    if name == "agents":
        return importlib.import_module("psconrl.agents")  # which makes it an attribute of this module
    if name not in _HOME:
        raise AttributeError(f"module 'psconrl' has no attribute {quoted(name)}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "agents"])
