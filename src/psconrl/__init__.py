"""Planning and learning in constrained Markov decision processes under the long-run average criterion.

>>> import psconrl
>>> model = psconrl.load("marsrover-4x4")
>>> plan = psconrl.plan(model)
>>> round(plan.value, 6), plan.status
(0.775, <Status.OPTIMAL: 'optimal'>)
"""

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psconrl._version import __version__
from psconrl.base.escaping import quoted
from psconrl.envs.registration import register_with_gymnasium as _register

# The public names. They are loaded on first use, so that `import psconrl` and `psconrl --help` stay fast: type checkers
# read these lines as code, and `_HOME` is read from them as text.
if TYPE_CHECKING:
    from psconrl import agents as agents
    from psconrl.answers.answer import Answer as Answer
    from psconrl.answers.asking import linear as linear
    from psconrl.answers.asking import plan as plan
    from psconrl.answers.deterministic import best_deterministic as best_deterministic
    from psconrl.answers.explanation import explain as explain
    from psconrl.answers.heat_map import heat_map as heat_map
    from psconrl.answers.pareto import pareto as pareto
    from psconrl.answers.pareto import pareto_surface as pareto_surface
    from psconrl.answers.short_rule import rule as rule
    from psconrl.answers.threshold_rule import threshold_rule as threshold_rule
    from psconrl.answers.windows import plan_windows as plan_windows
    from psconrl.data.log import Log as Log
    from psconrl.envs.continuing import continuing as continuing
    from psconrl.envs.gridworld import gridworld as gridworld
    from psconrl.envs.gym_env import CMDPEnv as CMDPEnv
    from psconrl.envs.registry import load as load
    from psconrl.envs.registry import load_system as load_system
    from psconrl.errors import AdviceWarning as AdviceWarning
    from psconrl.errors import AgentError as AgentError
    from psconrl.errors import BaselineWarning as BaselineWarning
    from psconrl.errors import ConfigError as ConfigError
    from psconrl.errors import ConstraintWarning as ConstraintWarning
    from psconrl.errors import CostsWarning as CostsWarning
    from psconrl.errors import InfeasibleError as InfeasibleError
    from psconrl.errors import LogError as LogError
    from psconrl.errors import ModelError as ModelError
    from psconrl.errors import PolicyError as PolicyError
    from psconrl.errors import PsconrlError as PsconrlError
    from psconrl.errors import SlowWarning as SlowWarning
    from psconrl.errors import SolverError as SolverError
    from psconrl.errors import StoreError as StoreError
    from psconrl.errors import StructureWarning as StructureWarning
    from psconrl.learning.agents.psconrl import PSConRL as PSConRL
    from psconrl.learning.registry import load_agent as load_agent
    from psconrl.learning.runtime.contract import Episode as Episode
    from psconrl.learning.runtime.labels import LabelledAgent as LabelledAgent
    from psconrl.learning.runtime.labels import Labels as Labels
    from psconrl.learning.runtime.logs import CSVLog as CSVLog
    from psconrl.learning.runtime.logs import TensorBoardLog as TensorBoardLog
    from psconrl.learning.watchdog import Watchdog as Watchdog
    from psconrl.markov.evaluation import evaluate as evaluate
    from psconrl.markov.hitting_times import diameter as diameter
    from psconrl.model.cmdp import CMDP as CMDP
    from psconrl.model.io import save as save
    from psconrl.model.units import Units as Units
    from psconrl.planning.plan import Plan as Plan
    from psconrl.planning.proof.certificate import Certificate as Certificate
    from psconrl.planning.proof.certificate import Status as Status
    from psconrl.planning.proof.certify import certify as certify
    from psconrl.simulation.model_estimation import estimate as estimate
    from psconrl.simulation.model_run import Simulation as Simulation
    from psconrl.simulation.regret import regret as regret
    from psconrl.simulation.simulate import simulate as simulate
    from psconrl.simulation.trace import Trace as Trace
    from psconrl.systems.system import System as System

_LINES = re.compile(r"^    from (psconrl\.[\w.]+) import (\w+) as \w+$", re.MULTILINE)
_HOME = {name: home for home, name in _LINES.findall(Path(__file__).read_text(encoding="utf-8"))}
__all__ = [*sorted(_HOME), "__version__"]

_register()  # gymnasium.make("psconrl/Box-v0") works once both are imported


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
