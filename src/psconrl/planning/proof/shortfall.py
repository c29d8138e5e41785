"""What the proof of an uncertified plan lacks: the constraint or the state, and by how much."""

import numpy as np

from psconrl.kernels.search.certificates import reduced_costs
from psconrl.model.cmdp import CMDP
from psconrl.planning.plan import Plan
from psconrl.planning.proof.certificate_units import excess_units, units
from psconrl.planning.tolerances import PROVEN_EXCESS


def shortfall(part: CMDP, found: Plan) -> str:
    """Return a sentence on what is not proven of an uncertified plan of a model whose states are all reachable."""
    if not np.isfinite(found.costs).all():
        return "not proven: the policy could not be evaluated"
    unit = units(part, found.occupancy)
    excess = found.certificate.excess
    beyond = excess > PROVEN_EXCESS * excess_units(part, found.occupancy, unit)
    if beyond.any():
        exceeded = [f"'{part.cost_names[i + 1]}' by {excess[i]:.3g}" for i in np.flatnonzero(beyond)]
        return f"not proven: the policy exceeds {', '.join(exceeded)}"
    if not np.isfinite(found.certificate.lower):
        return "not proven: there is no bound on other policies"
    missing = f"not proven: other policies may cost {abs(found.gap):.3g} less"
    return missing if found.gains is not None else f"{missing}, by {_weakest_pair(part, found)}"


def _weakest_pair(part: CMDP, found: Plan) -> str:
    """Name the pair whose reduced cost determines the bound."""
    moved = part.transition.drift(found.potential, found.low_potential)
    weights = np.append(1.0, found.multipliers)
    reduced, _ = reduced_costs(part.costs, weights, float(found.costs[0]), part.thresholds, moved, part.available)
    s, a = divmod(int(reduced.argmin()), part.n_actions)
    return f"action {part.names.action(a)} in state {part.names.state(s)}"
