"""Certificates that a policy satisfies the constraints in every model of a confidence set, for the safe agent."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from psconrl.arrays import Bools, Floats, Ints
from psconrl.kernels import special
from psconrl.learning.posterior.confidence_intervals import Intervals
from psconrl.model.cmdp import CMDP
from psconrl.planning.pessimism import WorstCase, worst_average

SELDOM = 1 / 3  # in a known state, the exploration probability is at most visits to the power of minus this
HALVINGS = 6  # bisection steps for the share of the safe policy in a mixture
WITHIN = 1.0 - 1e-9  # share of the allowed exploration that is used, so that rounding does not exceed it


@dataclass(frozen=True, eq=False)
class Certified:
    """A policy with the certificate that it satisfies every constraint."""

    policy: Floats  # (S, A)
    relying: Bools  # (S,) where it plays the baseline, and relies on its given slack and span
    cases: tuple[WorstCase, ...]  # one for every constraint
    hope: float = math.inf  # the optimistic average objective, by which the policy is chosen
    value: float = math.nan  # the expected average objective
    kind: str = "certified"


class View(NamedTuple):
    """The agent's knowledge when an episode is planned."""

    distributions: Intervals
    costs: Floats  # (m, S, A) upper bounds of the constrained costs
    known: Bools  # (S,) where plans do not need the baseline
    own: Bools  # (S,) where the transitions of the baseline are known, too
    model: CMDP  # the empirical model


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

    def certify(self, policy: Floats, relying: Bools, view: View, biases: Floats) -> Certified:
        """Bound the averages of a policy from above; ``biases`` (m, S) is a warm start."""
        cases = [
            worst_average(policy, view.costs[i], view.distributions, tau, relying, self.spans[i], biases[i])
            for i, tau in enumerate(self.thresholds)
        ]
        return Certified(policy, relying, tuple(cases))

    def holds(self, tried: Certified) -> bool:
        """True if every constraint is certified."""
        return all(case.bound <= tau for case, tau in zip(tried.cases, self.thresholds, strict=True))

    def mixed(self, policy: Floats, view: View, biases: Floats) -> Certified | None:
        """Mix a policy with just enough of the baseline to certify it, where the baseline is known."""
        safe = np.where(view.own[:, None], self.baseline, policy)
        least, most, found = 0.0, 1.0, None
        for _ in range(HALVINGS):
            share = 0.5 * (least + most)
            tried = self.certify((1.0 - share) * policy + share * safe, ~view.known, view, biases)
            if self.holds(tried):
                most, found = share, tried
            else:
                least = share
        return found

    def spans_of(self, chosen: Certified) -> Floats:
        """Return the spans of a policy's proof, (m,): what the beginning of an episode can cost."""
        if not chosen.relying.all():
            return np.array([case.span for case in chosen.cases])
        return self.spans.copy()

    def exploring_share(self, found: Certified, view: View, visits: Ints) -> Floats:
        """Return the probability with which the least tried action may be taken in every state, (S,).

        ``visits``: rounds in every pair, (S, A).
        """
        S = len(visits)
        everywhere, tried = np.arange(S), visits.argmin(axis=1)
        share = np.ones(S)
        for i, case in enumerate(found.cases):
            tau, span = self.thresholds[i], self.spans[i]
            if found.relying.all():
                played = np.full(S, self.promised[i])
                trying = view.costs[i][everywhere, tried] + span
            else:
                # Where the policy relies on the baseline, h is at least that of any other state.
                level = np.where(found.relying, case.bias[~found.relying].max(), case.bias)
                trying = case.values[everywhere, tried] - level
                played = np.where(found.relying, self.promised[i], (found.policy * case.values).sum(axis=1) - level)
            left, more = np.maximum(tau - played, 0.0), trying - played
            share = np.minimum(share, np.where(trying <= tau, 1.0, WITHIN * left / np.where(more > 0, more, 1.0)))
        seldom = special.exp_array(-SELDOM * special.log_array(1.0 + visits.sum(axis=1)))
        return np.where(found.relying, share, np.minimum(share, seldom))
