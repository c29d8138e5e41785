"""Certificates that a policy satisfies the constraints in every model of a confidence set, for the safe agent."""

import math
from dataclasses import dataclass, replace

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.kernels.arithmetic import special
from psconrl.learning.safe.confidence_sets import View
from psconrl.planning.robust.pessimism import BOUND_SWEEPS, WorstCase, worst_average

SELDOM = 1 / 3  # in a known state, the exploration probability is at most visits to the power of minus this
HALVINGS = 6  # bisection steps for the share of the safe policy in a mixture
TIGHT_SWEEPS = 1000  # of value iteration, if the bound is not compared with a threshold
WITHIN = 1.0 - 1e-9  # share of the allowed exploration that is used, so that rounding does not exceed it


@dataclass(frozen=True, eq=False)
class Certified:
    """A policy with the certificate that it satisfies every constraint."""

    policy: Floats  # (S, A)
    relying: Bools  # (S,) where it plays the baseline, and relies on its given slack and span
    cases: tuple[WorstCase, ...]  # one for every constraint
    played: Floats | None = None  # (m, S) bounds of what a round costs in each state, with the change of h
    hope: float = math.inf  # the optimistic average objective, by which the policy is chosen
    value: float = math.nan  # the expected average objective
    kind: str = "certified"
    often: bool = False  # whether it explores as often as its certificate allows


@dataclass(frozen=True, eq=False)
class Certifier:
    """What is known of the baseline and the constraints, and what follows for a policy."""

    baseline: Floats  # (S, A)
    thresholds: Floats  # (m,)
    promised: Floats  # (m,) upper bounds of the baseline's average costs
    spans: Floats  # (m,) what the baseline may cost beyond these until it has recovered; infinite if unknown

    def alone(self) -> Certified:
        """Return the baseline in all states."""
        S, A = self.baseline.shape
        nothing = WorstCase(-np.inf, np.zeros(S), np.zeros((S, A)))
        return Certified(self.baseline, np.ones(S, dtype=np.bool_), (nothing,) * self.thresholds.size)

    def recovering(self, recovery: Floats, view: View) -> Certified:
        """Return the baseline in all states with its own certificate: h (m, S), what it may cost from each state."""
        S, A = self.baseline.shape
        cases = [
            WorstCase(bound, h, view.costs[i] + view.largest(i, h).reshape(S, A))
            for i, (bound, h) in enumerate(zip(self.promised, recovery, strict=True))
        ]
        played = np.repeat(self.promised[:, None], S, axis=1)
        return Certified(self.baseline, np.ones(S, dtype=np.bool_), tuple(cases), played)

    def certify(self, policy: Floats, relying: Bools, view: View, biases: Floats, *, within: bool = True) -> Certified:
        """Bound the averages of a policy from above; ``biases`` (m, S) is a warm start.

        ``within``: stop once it is known on which side of the thresholds the bounds lie.
        """
        limits = self.thresholds if within else np.full(self.thresholds.size, -np.inf)
        cases = [self._bounded(policy, relying, view, i, tau, biases[i]) for i, tau in enumerate(limits)]
        return Certified(policy, relying, tuple(cases))

    def certified_or_none(self, policy: Floats, relying: Bools, view: View, biases: Floats) -> Certified | None:
        """Return a policy with its certificate, or None as soon as a constraint cannot be certified."""
        cases = []
        for i, tau in enumerate(self.thresholds):
            cases.append(self._bounded(policy, relying, view, i, tau, biases[i]))
            if cases[-1].bound > tau:
                return None
        return Certified(policy, relying, tuple(cases))

    def _bounded(self, policy: Floats, relying: Bools, view: View, i: int, limit: float, bias: Floats) -> WorstCase:
        """Bound the average of constrained cost i; without a finite limit, with few sweeps."""
        sweeps = BOUND_SWEEPS if limit > -np.inf else TIGHT_SWEEPS
        return worst_average(
            policy, view.costs[i], view.distributions, limit, relying, self.spans[i], bias, sweeps, view.paid[i]
        )

    def holds(self, tried: Certified) -> bool:
        """True if every constraint is certified."""
        return all(case.bound <= tau for case, tau in zip(tried.cases, self.thresholds, strict=True))

    def mixed(self, policy: Floats, view: View, biases: Floats) -> Certified | None:
        """Mix a policy with just enough of the baseline to certify it, where the baseline is known.

        None if even the largest share of the baseline that would be tried is not enough.
        """
        safe = np.where(view.own[:, None], self.baseline, policy)

        def with_share(share: float) -> Certified | None:
            return self.certified_or_none((1.0 - share) * policy + share * safe, ~view.known, view, biases)

        least, most = 0.0, 1.0 - 0.5**HALVINGS
        found = with_share(most)
        for _ in range(HALVINGS if found is not None else 0):
            share = 0.5 * (least + most)
            tried = with_share(share)
            if tried is None:
                least = share
            else:
                most, found = share, tried
        return found

    def towards(self, found: Certified, other: Floats, most: Floats | float = 1.0) -> Certified:
        """Mix a policy with another one, (S, A), in every state as far as its certificate allows, at most ``most``."""
        assert found.played is not None
        share, costs = np.broadcast_to(most, (len(other),)).copy(), []
        for case, played, tau in zip(found.cases, found.played, self.thresholds, strict=True):
            costs.append((other * case.values).sum(axis=1) - case.bias)
            left, more = np.maximum(tau - played, 0.0), costs[-1] - played
            share = np.minimum(share, np.where(costs[-1] <= tau, 1.0, WITHIN * left / np.where(more > 0, more, 1.0)))
        policy = found.policy * (1.0 - share[:, None]) + share[:, None] * other
        after = (1.0 - share) * found.played + share * np.array(costs).reshape(found.played.shape)
        return replace(found, policy=policy, played=after)

    def spans_of(self, chosen: Certified) -> Floats:
        """Return the spans of a policy's proof, (m,): what the beginning of an episode can cost."""
        if chosen.played is not None or not chosen.relying.all():
            return np.array([case.span for case in chosen.cases])
        return self.spans.copy()

    def bound_tightly(self, policy: Floats, view: View, biases: Floats) -> Certified:
        """Return a policy with the least bounds that the iteration finds, which may exceed the thresholds.

        For sets of noise, which bound the transitions of every pair, so that no state relies on the baseline.
        """
        found = self.certify(policy, np.zeros(len(policy), dtype=np.bool_), view, biases, within=False)
        played = [(policy * case.values).sum(axis=1) - case.bias for case in found.cases]
        return replace(found, played=np.array(played).reshape(-1, len(policy)))

    def exploring_share(self, found: Certified, view: View, tried: Ints) -> Floats:
        """Return the probability with which an action may be tried in every state, (S,)."""
        S = len(view.tries)
        everywhere = np.arange(S)
        share = np.ones(S)
        for i, case in enumerate(found.cases):
            tau, span = self.thresholds[i], self.spans[i]
            if found.relying.all():
                played = np.full(S, self.promised[i])
                trying = view.worst[i][everywhere, tried] + span
            else:
                # Where the policy relies on the baseline, h is at least that of any other state.
                level = np.where(found.relying, case.bias[~found.relying].max(), case.bias)
                trying = case.values[everywhere, tried] - level
                played = np.where(found.relying, self.promised[i], (found.policy * case.values).sum(axis=1) - level)
            left, more = np.maximum(tau - played, 0.0), trying - played
            share = np.minimum(share, np.where(trying <= tau, 1.0, WITHIN * left / np.where(more > 0, more, 1.0)))
        seldom = special.exp_array(-SELDOM * special.log_array(1.0 + view.tries.sum(axis=1)))
        return np.where(found.relying | found.often, share, np.minimum(share, seldom))
