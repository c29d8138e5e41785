"""The algorithms, one per file. Import them from ``psconrl.agents``."""

from psconrl.learning.agents.c_ucrl import CUCRL
from psconrl.learning.agents.fha import FHA
from psconrl.learning.agents.fixed import FixedPolicy
from psconrl.learning.agents.lagrangian import LagrangianPSRL
from psconrl.learning.agents.psconrl import PSConRL
from psconrl.learning.agents.sa_cvi_ucb import SACVIUCB
from psconrl.learning.agents.safe import SafeStart
from psconrl.learning.agents.span_fha import SpanFHA
from psconrl.learning.agents.triple_qa import TripleQA
from psconrl.learning.agents.uc_curl import UCCURL
from psconrl.learning.agents.ucrl_cmdp import UCRLCMDP
from psconrl.learning.agents.uniform import Uniform

__all__ = [
    "CUCRL",
    "FHA",
    "SACVIUCB",
    "UCCURL",
    "UCRLCMDP",
    "FixedPolicy",
    "LagrangianPSRL",
    "PSConRL",
    "SafeStart",
    "SpanFHA",
    "TripleQA",
    "Uniform",
]
