"""Agents, their parts, and functions to build them.

>>> import psconrl
>>> agent = psconrl.agents.PSConRL(16, 4, [0.2], schedule=psconrl.agents.Doubling(), seed=0)
>>> psconrl.agents.make("cmdp-psrl", 16, 4, [0.2], seed=0).fallback
Unconstrained()
"""

# The public names: each is stated here, once.
from psconrl.learning import registry as _registry
from psconrl.learning.agent import Agent as Agent
from psconrl.learning.agents.fixed_policy import FixedPolicy as FixedPolicy
from psconrl.learning.agents.psconrl import PSConRL as PSConRL
from psconrl.learning.agents.psconrl_2023 import PSConRL2023 as PSConRL2023
from psconrl.learning.agents.psconrl_account import PSConRLAccount as PSConRLAccount
from psconrl.learning.agents.tilted import TiltedOptimism as TiltedOptimism
from psconrl.learning.agents.uniform import Uniform as Uniform
from psconrl.learning.parts.commitment import Commitment as Commitment
from psconrl.learning.parts.commitment import RandomisedPlan as RandomisedPlan
from psconrl.learning.parts.commitment import WhenSlow as WhenSlow
from psconrl.learning.parts.doubt import Budget as Budget
from psconrl.learning.parts.doubt import Doubt as Doubt
from psconrl.learning.parts.fallbacks import Explore as Explore
from psconrl.learning.parts.fallbacks import Fallback as Fallback
from psconrl.learning.parts.fallbacks import LeastExcess as LeastExcess
from psconrl.learning.parts.fallbacks import RarelyExplore as RarelyExplore
from psconrl.learning.parts.fallbacks import Unconstrained as Unconstrained
from psconrl.learning.parts.fallbacks import Uniformly as Uniformly
from psconrl.learning.parts.ledger import Balance as Balance
from psconrl.learning.parts.ledger import Gradual as Gradual
from psconrl.learning.parts.ledger import Ledger as Ledger
from psconrl.learning.parts.ledger import Repay as Repay
from psconrl.learning.parts.planning_horizons import Endless as Endless
from psconrl.learning.parts.planning_horizons import PlanningHorizon as PlanningHorizon
from psconrl.learning.parts.planning_horizons import Proportional as Proportional
from psconrl.learning.parts.radii import Bernstein as Bernstein
from psconrl.learning.parts.radii import Hoeffding as Hoeffding
from psconrl.learning.parts.radii import Radius as Radius
from psconrl.learning.parts.radii import Scaled as Scaled
from psconrl.learning.parts.schedules import CubeRoot as CubeRoot
from psconrl.learning.parts.schedules import Doubling as Doubling
from psconrl.learning.parts.schedules import EveryRound as EveryRound
from psconrl.learning.parts.schedules import Growing as Growing
from psconrl.learning.parts.schedules import LengthOnly as LengthOnly
from psconrl.learning.parts.schedules import Ouyang as Ouyang
from psconrl.learning.parts.schedules import Published as Published
from psconrl.learning.parts.schedules import Schedule as Schedule
from psconrl.learning.parts.schedules import SquareRoot as SquareRoot
from psconrl.learning.parts.schedules import Steady as Steady
from psconrl.learning.parts.tightened import Tightened as Tightened
from psconrl.learning.posterior.candidates import Candidates as Candidates
from psconrl.learning.posterior.candidates import Draws as Draws
from psconrl.learning.posterior.cost_beliefs import CostBelief as CostBelief
from psconrl.learning.posterior.cost_beliefs import EmpiricalMeans as EmpiricalMeans
from psconrl.learning.posterior.cost_beliefs import PublishedMeans as PublishedMeans
from psconrl.learning.posterior.cost_beliefs import SampledCosts as SampledCosts
from psconrl.learning.posterior.learned_mass import LearnedMass as LearnedMass
from psconrl.learning.posterior.noise_posterior import Structured as Structured
from psconrl.learning.posterior.tied import Tied as Tied
from psconrl.learning.posterior.transition_beliefs import Belief as Belief
from psconrl.learning.posterior.transition_beliefs import Dirichlet as Dirichlet
from psconrl.learning.posterior.transition_beliefs import Doubted as Doubted
from psconrl.learning.posterior.transition_beliefs import FlooredCounts as FlooredCounts
from psconrl.learning.rivals.c_ucrl import CUCRL as CUCRL
from psconrl.learning.rivals.fha import FHA as FHA
from psconrl.learning.rivals.lagrangian import LagrangianPSRL as LagrangianPSRL
from psconrl.learning.rivals.lagrangian_published import PublishedLagrangian as PublishedLagrangian
from psconrl.learning.rivals.lagrangian_theorem import TheoremLagrangian as TheoremLagrangian
from psconrl.learning.rivals.pd_lscvi_ucb import PDLSCVIUCB as PDLSCVIUCB
from psconrl.learning.rivals.pd_lsvi_ucb import PDLSVIUCB as PDLSVIUCB
from psconrl.learning.rivals.pdnac import PDNAC as PDNAC
from psconrl.learning.rivals.pmevi_dt import PMEVIDT as PMEVIDT
from psconrl.learning.rivals.po_cmdp import POCMDP as POCMDP
from psconrl.learning.rivals.sa_cvi_ucb import SACVIUCB as SACVIUCB
from psconrl.learning.rivals.span_fha import SpanFHA as SpanFHA
from psconrl.learning.rivals.triple_qa import TripleQA as TripleQA
from psconrl.learning.rivals.tsde import TSDE as TSDE
from psconrl.learning.rivals.uc_curl import UCCURL as UCCURL
from psconrl.learning.rivals.ucrl2 import UCRL2 as UCRL2
from psconrl.learning.rivals.ucrl_cmdp import UCRLCMDP as UCRLCMDP
from psconrl.learning.runtime.adapter import adapt as adapt
from psconrl.learning.runtime.episode_plan import EpisodePlan as EpisodePlan
from psconrl.learning.safe.baseline import known_baseline as known_baseline
from psconrl.learning.safe.observed_baseline import observed_baseline as observed_baseline
from psconrl.learning.safe.safe_start import SafeStart as SafeStart

make = _registry.make_agent
__all__ = sorted(name for name in globals() if not name.startswith("_"))
