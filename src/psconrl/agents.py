"""Agents, their parts, and functions to build them.

>>> import psconrl
>>> agent = psconrl.agents.PSConRL(16, 4, [0.2], schedule=psconrl.agents.Doubling(), seed=0)
>>> psconrl.agents.make("cmdp-psrl", 16, 4, [0.2], seed=0).fallback
Unconstrained()
"""

from psconrl.learning.agent import Agent
from psconrl.learning.agents.fixed_policy import FixedPolicy
from psconrl.learning.agents.psconrl import PSConRL
from psconrl.learning.agents.psconrl_2023 import PSConRL2023
from psconrl.learning.agents.psconrl_account import PSConRLAccount
from psconrl.learning.agents.tilted import TiltedOptimism
from psconrl.learning.agents.uniform import Uniform
from psconrl.learning.parts.commitment import Commitment, RandomisedPlan, WhenSlow
from psconrl.learning.parts.doubt import Budget, Doubt
from psconrl.learning.parts.fallbacks import (
    Explore,
    Fallback,
    LeastExcess,
    RarelyExplore,
    Unconstrained,
    Uniformly,
)
from psconrl.learning.parts.ledger import Balance, Gradual, Ledger, Repay
from psconrl.learning.parts.planning_horizons import Endless, PlanningHorizon, Proportional
from psconrl.learning.parts.radii import Bernstein, Hoeffding, Radius, Scaled
from psconrl.learning.parts.schedules import (
    CubeRoot,
    Doubling,
    EveryRound,
    Growing,
    LengthOnly,
    Ouyang,
    Published,
    Schedule,
    SquareRoot,
    Steady,
)
from psconrl.learning.parts.tightened import Tightened
from psconrl.learning.posterior.candidates import Candidates, Draws
from psconrl.learning.posterior.cost_beliefs import CostBelief, EmpiricalMeans, PublishedMeans, SampledCosts
from psconrl.learning.posterior.learned_mass import LearnedMass
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.learning.posterior.tied import Tied
from psconrl.learning.posterior.transition_beliefs import Belief, Dirichlet, Doubted, FlooredCounts
from psconrl.learning.registry import make_agent as make
from psconrl.learning.rivals.c_ucrl import CUCRL
from psconrl.learning.rivals.fha import FHA
from psconrl.learning.rivals.lagrangian import LagrangianPSRL
from psconrl.learning.rivals.lagrangian_published import PublishedLagrangian
from psconrl.learning.rivals.lagrangian_theorem import TheoremLagrangian
from psconrl.learning.rivals.pd_lscvi_ucb import PDLSCVIUCB
from psconrl.learning.rivals.pd_lsvi_ucb import PDLSVIUCB
from psconrl.learning.rivals.pdnac import PDNAC
from psconrl.learning.rivals.pmevi_dt import PMEVIDT
from psconrl.learning.rivals.po_cmdp import POCMDP
from psconrl.learning.rivals.sa_cvi_ucb import SACVIUCB
from psconrl.learning.rivals.span_fha import SpanFHA
from psconrl.learning.rivals.triple_qa import TripleQA
from psconrl.learning.rivals.tsde import TSDE
from psconrl.learning.rivals.uc_curl import UCCURL
from psconrl.learning.rivals.ucrl2 import UCRL2
from psconrl.learning.rivals.ucrl_cmdp import UCRLCMDP
from psconrl.learning.runtime.adapter import adapt
from psconrl.learning.runtime.episode_plan import EpisodePlan
from psconrl.learning.safe.baseline import known_baseline
from psconrl.learning.safe.observed_baseline import observed_baseline
from psconrl.learning.safe.safe_start import SafeStart

__all__ = [
    "CUCRL",
    "FHA",
    "PDLSCVIUCB",
    "PDLSVIUCB",
    "PDNAC",
    "PMEVIDT",
    "POCMDP",
    "SACVIUCB",
    "TSDE",
    "UCCURL",
    "UCRL2",
    "UCRLCMDP",
    "Agent",
    "Balance",
    "Belief",
    "Bernstein",
    "Budget",
    "Candidates",
    "Commitment",
    "CostBelief",
    "CubeRoot",
    "Dirichlet",
    "Doubling",
    "Doubt",
    "Doubted",
    "Draws",
    "EmpiricalMeans",
    "Endless",
    "EpisodePlan",
    "EveryRound",
    "Explore",
    "Fallback",
    "FixedPolicy",
    "FlooredCounts",
    "Gradual",
    "Growing",
    "Hoeffding",
    "LagrangianPSRL",
    "LearnedMass",
    "LeastExcess",
    "Ledger",
    "LengthOnly",
    "Ouyang",
    "PSConRL",
    "PSConRL2023",
    "PSConRLAccount",
    "PlanningHorizon",
    "Proportional",
    "Published",
    "PublishedLagrangian",
    "PublishedMeans",
    "Radius",
    "RandomisedPlan",
    "RarelyExplore",
    "Repay",
    "SafeStart",
    "SampledCosts",
    "Scaled",
    "Schedule",
    "SpanFHA",
    "SquareRoot",
    "Steady",
    "Structured",
    "TheoremLagrangian",
    "Tied",
    "Tightened",
    "TiltedOptimism",
    "TripleQA",
    "Unconstrained",
    "Uniform",
    "Uniformly",
    "WhenSlow",
    "adapt",
    "known_baseline",
    "make",
    "observed_baseline",
]
