"""Plans with an initial randomisation: if no stationary policy is optimal, a certified mixture of policies."""

from dataclasses import replace

import numpy as np

from psconrl.kernels.chains.occupancy import one_hot
from psconrl.markov.evaluation import evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.planning.candidate import Candidate, Dual
from psconrl.planning.mixture_policy import PolicyMixture, evaluate_mixture
from psconrl.planning.plan import Plan
from psconrl.planning.proof.certificate import Status
from psconrl.planning.proof.certify import certificate_of
from psconrl.planning.settling import rounds_to_settle


def initially_randomised(part: CMDP, candidate: Candidate, found: Plan) -> Plan:
    """Return the plan with the mixture of its candidate if that mixture is certified, else the plan unchanged.

    The stationary policy of the plan is kept. The note says what it costs and by how much it exceeds the thresholds.
    """
    if candidate.shares is None or len(candidate.columns) < 2:
        return found
    status = Status.INFEASIBLE if found.status is Status.INFEASIBLE else Status.OPTIMAL
    policies = np.array(candidate.columns)
    dual = Dual(found.multipliers, found.potential, found.low_potential, found.gains)
    exact, distributions = evaluate_mixture(part, policies, candidate.shares)
    proof = certificate_of(part, status, exact.occupancy, dual, exact)
    if not proof.holds:
        return found
    return replace(
        found,
        status=status,
        value=exact.value,
        costs=exact.costs,
        occupancy=exact.occupancy,
        certificate=proof,
        note=f"each run draws one of {len(policies)} policies; plan.policy is stationary: {found.note}",
        settles=max(rounds_to_settle(part, evaluate_policy(part, one_hot(each, part.n_actions))) for each in policies),
        mixture=PolicyMixture(policies, candidate.shares, distributions, found.certificate),
    )
