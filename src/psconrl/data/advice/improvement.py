r"""The best policy found that keeps the limits and is no worse than today's, with a stated probability.

Given a log, let :math:`\theta` be distributed as the posterior of the model and :math:`\pi_b` as that of the policy
that wrote the log. A policy is recommended only if

.. math:: \Pr\big( J_i(\pi;\theta) \le \tau_i \text{ for all } i,\;
          J_0(\pi;\theta) \le J_0(\pi_b;\theta) \big) \ge 1 - \alpha.

Policies are planned with margins that suit one set of draws (``proposals``). The best of many looks better in these
draws than it is, so that the probability is computed again from fresh draws, in which the policy and that of the log
are evaluated exactly.

Without a system, fresh draws are not enough. Of several actions that do the same, the one with the luckiest rounds is
planned, and a posterior of independent rows takes its luck for a merit, however many draws there are. So policies are
planned with one half of the rounds, every other visit of each pair, and verified with the other half, under three
beliefs: the default one, the prior of the paper, and one for which an action may do what others do in the same state
(``posterior.neighbours``). Policies are verified in an order that the first half determines, from the safest to the
boldest, up to the first that fails. With a system, all states share a few parameters, and all rounds serve both
purposes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.data.advice.comparison import Compared, Verification
from psconrl.data.advice.evidence import Need, margin_of, needed, needed_of_noise
from psconrl.data.advice.proposals import Planner, Proposal, proposals
from psconrl.data.advice.within_reach import least_in_reach
from psconrl.data.posterior.limits import limited, system_with
from psconrl.data.posterior.mean_model import MeanModel, mean_model
from psconrl.data.posterior.noise_posterior import NoisePosterior
from psconrl.data.posterior.row_posterior import (
    FEW_DRAWS_STATES,
    Models,
    Posterior,
    RowPosterior,
    halves,
    neighbours,
)
from psconrl.data.rounds.recorded import Recorded
from psconrl.errors import LogError, SolverError
from psconrl.learning.posterior.transition_beliefs import Dirichlet
from psconrl.model.cmdp import CMDP
from psconrl.planning.drafts import Drafts
from psconrl.systems.system import System

CHOOSING_DRAWS, VERIFYING_DRAWS = 400, 2000
FEW_CHOOSING_DRAWS, FEW_VERIFYING_DRAWS = 150, 500  # where chains are large, and a draw takes long
POTENTIAL_DRAWS = 40  # models that are planned to learn what could be gained at most
WORTHWHILE_GAIN = 0.01  # share of the range of the objective below which a gain is none


class Verdict(Enum):
    """What a log supports."""

    IMPROVE = "improve"  # the policy keeps the limits, and is no worse than today's
    PAY = "pay"  # the policy keeps limits that today's breaks, at a price
    KEEP = "keep"  # today's policy keeps the limits, and hardly anything can be gained
    NOT_ENOUGH = "not enough data"


Candidate = tuple[Proposal, tuple[Compared, ...]]


@dataclass(frozen=True, eq=False)
class Improvement:
    """What to do instead, and how sure that is."""

    verdict: Verdict
    policy: Floats  # (S, A) to play: the proposal, or the expected policy of the log
    confidence: float
    compared: tuple[
        Compared, ...
    ]  # under every belief, in draws that played no part in its choice; of the best proposal
    target: Floats | None  # (S, A) what more data might allow; None if the verdict is to improve
    needed: Need | None = None  # what more data would settle, if there are not enough

    @property
    def probability(self) -> float:
        """Probability that the proposal keeps all limits and is no worse than today's: the least of all beliefs."""
        return min(one.both for one in self.compared)

    @property
    def gain(self) -> tuple[float, float, float]:
        """Mean and credible interval of the gain of the best proposal: of the belief with the lowest mean."""
        return min((one.gain(self.confidence) for one in self.compared), key=lambda gain: gain[0])

    def __str__(self) -> str:
        mean, low, high = self.gain
        shown = f"{self.probability:.1%} sure that limits hold and the objective is no worse"
        gain = f"gain {mean:.4g} ({self.confidence:.0%}: {low:.4g} to {high:.4g})"
        return f"{self.verdict.value}: {gain}; {shown}"


def posteriors(
    log: Recorded, system: System | None, costs: Floats | None = None, today: Recorded | None = None
) -> tuple[tuple[Posterior, ...], tuple[Posterior, ...]]:
    """Return the posteriors with which policies are planned, and those with which they are verified."""
    if system is not None:
        own = (NoisePosterior(log, system, today),)
        return own, own
    first, second = halves(log)
    if min(first.n_rounds, second.n_rounds) == 0:
        raise LogError(
            f"{log.n_rounds:,} round{'' if log.n_rounds == 1 else 's'} cannot be split into one half for planning and "
            "another for verifying: no pair of state and action was visited twice. Record more rounds, or describe the "
            "system"
        )
    # The plan may not know what the other half saw; what is believed possible when it is verified may include both.
    planning, verifying = (
        tuple(RowPosterior(log, belief, costs, half, today) for belief in (near, None, Dirichlet()))
        for half, near in ((first, neighbours(first)), (second, neighbours(log)))
    )
    return planning, verifying


def improve(
    log: Recorded,
    system: System | None = None,
    *,
    confidence: float = 0.95,
    limits: Mapping[str, float] | None = None,
    costs: Floats | None = None,
    today: Recorded | None = None,
    draws: int = VERIFYING_DRAWS,
    seed: int = 0,
) -> Improvement:
    """Return the best policy found that keeps the limits, and is no worse than that of the log, with a probability.

    ``limits``: of costs by name, as they are in the table; by default those of the system. ``costs`` (m+1, S, A): as in
    a model, if they are known. ``today``: the rounds that today's policy wrote, if the log has others, such as those of
    an experiment. ``draws``: in which the policy is verified. See the module docstring.
    """
    rng = np.random.default_rng(seed)
    if system is None:
        log, thresholds = limited(log, limits)
    else:
        system = system_with(system, limits)
        thresholds = np.asarray(system.thresholds)
    own, others = posteriors(log, system, costs, today)
    large = log.n_states > FEW_DRAWS_STATES
    drawn = tuple(posterior.draw(FEW_CHOOSING_DRAWS if large else CHOOSING_DRAWS, rng) for posterior in own)
    mean = mean_model(own[0], drawn[0])
    planner = Planner(mean)
    now = tuple(models.today() for models in drawn)
    alpha = (1.0 - confidence) / (thresholds.size + 1)
    found = [
        (proposal, _in_draws(proposal, own, now, thresholds))
        for proposal in proposals(planner, drawn, thresholds, alpha)
    ]
    verification = Verification(others, thresholds, min(draws, FEW_VERIFYING_DRAWS) if large else draws, rng)
    steps = _steps(found, lambda one: one.safety)
    improving = _last_verified(steps, verification, lambda one: one.both >= confidence)
    if improving is not None and min(one.gain(confidence)[0] for one in improving[1]) > 0.0:
        return Improvement(Verdict.IMPROVE, improving[0], confidence, improving[1], None)
    kept = all(
        Compared("", one, one, thresholds).keeps_all >= confidence for one in now
    )  # today's policy keeps the limits
    broken = not kept and all(Compared("", one, one, thresholds).keeps_all <= 1.0 - confidence for one in now)
    if broken:
        steps = _steps(found, lambda one: one.safety_of_limits)
        paying = _last_verified(steps, verification, lambda one: one.keeps_all >= confidence)
        if paying is not None:
            return Improvement(Verdict.PAY, paying[0], confidence, paying[1], None)
    # Where today's policy breaks a limit, the question is whether another one keeps them all, at whatever price.
    target = max(found, key=lambda one: _promise(one[1], broken)) if found else None
    goal = mean.today if target is None else target[0].policy
    compared = verification.of(goal)
    if kept and _potential(mean, drawn, now, thresholds, confidence) <= WORTHWHILE_GAIN:
        return Improvement(Verdict.KEEP, mean.today, confidence, compared, goal)
    margins = [margin_of(one.averages, one.today, thresholds, confidence, limits_only=broken) for one in compared]
    margin = min(margins, key=lambda one: one.mean / max(one.deviation, 1e-300))
    first = others[0]
    if isinstance(first, NoisePosterior):
        need = needed_of_noise(first, goal, margin, thresholds, rng)
    else:
        need = needed(mean_model(first, verification.models), goal, margin, parts=2)
    if margin.cost > 0 and margin.mean <= 0.0:
        least, limit = least_in_reach(mean, margin.cost), float(thresholds[margin.cost - 1])
        need = replace(need, least=least, limit=limit)
    return Improvement(Verdict.NOT_ENOUGH, mean.today, confidence, compared, goal, need)


def _in_draws(
    proposal: Proposal, own: tuple[Posterior, ...], today: tuple[Floats, ...], thresholds: Floats
) -> tuple[Compared, ...]:
    return tuple(
        Compared(posterior.name, averages, now, thresholds)
        for posterior, averages, now in zip(own, proposal.averages, today, strict=True)
    )


def _steps(found: Sequence[Candidate], safety: Callable[[Compared], float]) -> list[Floats]:
    """Return policies from the safest to the boldest, of which each has a better objective than those before it."""
    order = sorted(found, key=lambda one: -min(safety(compared) for compared in one[1]))
    steps, best = [], np.inf
    for proposal, compared in order:
        objective = max(float(own[:, 0].mean()) for own in proposal.averages)
        if objective < best and min(safety(one) for one in compared) > 0.0:
            best = objective
            steps.append(proposal.policy)
    return steps


def _last_verified(
    steps: Sequence[Floats], verification: Verification, passes: Callable[[Compared], bool]
) -> tuple[Floats, tuple[Compared, ...]] | None:
    """Return the last of some policies before the first that fails, and its comparison; None if the first one fails.

    Policies tested in an order that is fixed in advance, up to the first failure, need no correction for their number
    (Maurer, Hothorn and Lehmacher 1995).
    """
    last = None
    for policy in steps:
        compared = verification.of(policy)
        if not all(passes(one) for one in compared):
            break
        last = policy, compared
    return last


def _promise(compared: tuple[Compared, ...], broken: bool) -> float:
    """Return how near a proposal is to being recommended; of several that are as near, more for the larger gain.

    ``broken``: today's policy breaks a limit, so that the objective may become worse.
    """
    gain = min(one.gain(0.9)[0] for one in compared)
    scale = max(float(np.abs(one.today[:, 0]).max()) for one in compared) or 1.0
    if broken:
        slack = min(one.safety_of_limits for one in compared)
        return min(one.keeps_all for one in compared) + 0.01 * float(np.tanh(gain / scale) + np.tanh(slack))
    return min(one.both for one in compared) + 0.1 * float(np.tanh(gain / scale)) - (1.0 if gain <= 0.0 else 0.0)


def _potential(
    mean: MeanModel, drawn: tuple[Models, ...], today: tuple[Floats, ...], thresholds: Floats, confidence: float
) -> float:
    """Return what could be gained at most with a probability, as a share of the range of the objective.

    Models drawn are planned, with the pairs that may be proposed.
    """
    available = mean.allowed | ~mean.allowed.any(axis=1, keepdims=True)
    q, shape = len(mean.costs), available.shape
    most = 0.0
    for models, now in zip(drawn, today, strict=True):
        gains = []
        for k in range(POTENTIAL_DRAWS):
            costs = models.costs[k if len(models.costs) > 1 else 0].reshape(q, *shape)
            reached = np.ptp(costs[0][available]) or 1.0
            try:
                model = CMDP(models.transition(k).toarray(), costs, thresholds, initial=mean.start, available=available)
                policy = Drafts(model).plan(costs, thresholds).policy
                own = models.one(k).averages(policy)
                gains.append((now[k, 0] - own[0, 0]) / reached)
            except SolverError:
                gains.append(np.inf)
        most = max(most, float(np.quantile(gains, confidence)))
    return most
