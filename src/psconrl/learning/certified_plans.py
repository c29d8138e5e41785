"""The policies among which the safe agent chooses: planned, certified, and mixed with exploration.

With confidence sets over rows, plans are made for costs that include the effect of uncertainty, and those that are
certified are played. With a system and the span of the baseline by state, every certificate also bounds what each state
costs, and the best policy within these bounds is the solution of a linear program (``planning.lyapunov``). The
certificates are those of the baseline, of the last policy, and of plans for thresholds that are lower by a margin. Each
plan corrects the margins by the distance of its certified bounds from the thresholds, so that they settle where the
bounds meet the thresholds; they are kept from episode to episode.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from psconrl.arrays import Floats
from psconrl.errors import SolverError
from psconrl.kernels import special
from psconrl.kernels.occupancy import one_hot
from psconrl.learning.checks import saved_floats
from psconrl.learning.safety_certificates import Certified, Certifier
from psconrl.learning.safety_views import View
from psconrl.markov.evaluation import evaluate_policy
from psconrl.planning.drafts import Drafts
from psconrl.planning.lyapunov import best_within
from psconrl.planning.pessimism import largest_means
from psconrl.products import product

PLANS = 4  # plans in one episode, each for the uncertainty of the last
CONDONED = 0.9  # share of the priced effect of uncertainty that is subtracted; the rest decides ties for what is known
OPTIMISM = 0.1  # share of the confidence set's optimism about the objective that is used
MARGIN_PLANS = 6  # plans for lower thresholds in one episode of a system, at most; two are certified at most
RAISE, LOWER = 1.05, 0.9  # shares of an excess, and of a distance below a threshold, that a margin is changed by
EXPLORE = 1 / 2  # in a system, the least tried action has at most the probability tries to the power of minus this


class CertifiedPlans:
    """What is kept from episode to episode, and the choice of a policy."""

    def __init__(self, baseline: Floats, n_constraints: int) -> None:
        S = len(baseline)
        self.baseline = baseline
        self.biases: Floats = np.zeros((n_constraints, S))  # of the last proof, a warm start for the next one
        self.prices: Floats = np.zeros(n_constraints)  # shadow prices of the constraints in the last plan
        self.potential: Floats = np.zeros(S)  # of the last plan
        self.last: Floats | None = None  # the last policy in a system, before exploration
        self.margins: Floats = np.zeros(n_constraints)  # by which plans in a system stay below the thresholds
        self._priced: tuple[tuple[object, ...], Floats, Floats] | None = None  # the last hopes and fears, and of what

    def choose(self, certifier: Certifier, view: View, recovery: Floats | None) -> Certified:
        """Return the certified policy of best optimistic objective, which spends its slack on exploration.

        ``recovery`` (m, S): the span of the baseline by state, if it is known which states may follow.
        """
        alone = certifier.alone() if recovery is None else certifier.recovering(recovery, view)
        others = self._widened if recovery is None else partial(self._within_certificates, alone)
        certified = [alone, *others(certifier, view)]
        # Their objectives are comparable only at the same prices, those of the last plan.
        explored = [self._exploring(certifier, found, view) for found in certified]
        best = min(range(len(explored)), key=lambda k: explored[k].hope)
        chosen = explored[best]
        if recovery is not None:
            self.last, self.biases = certified[best].policy, _biases(chosen)
        self._priced = None
        return chosen

    def _exploring(self, certifier: Certifier, found: Certified, view: View) -> Certified:
        """Mix a policy with the least tried actions, as far as safe, and compute its optimistic objective."""
        everywhere, tried = np.arange(self.baseline.shape[0]), view.tries.argmin(axis=1)
        if found.played is None:
            share = certifier.exploring_share(found, view)
            policy = found.policy * (1.0 - share[:, None])
            policy[everywhere, tried] += share
        else:
            share = special.exp_array(-EXPLORE * special.log_array(1.0 + view.tries[everywhere, tried]))
            policy = certifier.towards(found, one_hot(tried, self.baseline.shape[1]), share).policy
        hoped = self._hopes(view)
        kind = "certified" if not found.relying.all() else "mixed" if share.max() > 0.0 else "baseline"
        hope, value = math.inf, math.nan
        try:
            distribution = evaluate_policy(view.model, policy).occupancy
            hope, value = float((distribution * hoped).sum()), float((distribution * view.model.costs[0]).sum())
        except SolverError:  # nearly absorbing states: the policy keeps an infinite optimistic objective
            pass
        return replace(found, policy=policy, hope=hope, value=value, kind=kind)

    def _hopes(self, view: View) -> Floats:
        return self._hopes_and_fears(view)[0]

    def _hopes_and_fears(self, view: View) -> tuple[Floats, Floats]:
        """Return the costs to plan for, computed once for a view, biases, prices and a potential.

        The hopes are the optimistic objective (S, A), less the priced effect of uncertainty on the constrained costs;
        the fears are these costs (m, S, A) with that effect.
        """
        key = (view, self.biases, self.prices, self.potential)  # replaced, never changed in place
        if self._priced is None or any(a is not b for a, b in zip(key, self._priced[0], strict=True)):
            fears = self._fears(view)
            self._priced = key, self._hopes_given(fears, view), fears
        return self._priced[1:]

    def _hopes_given(self, fears: Floats, view: View) -> Floats:
        S, A = self.baseline.shape
        means = view.model.costs[0]
        if self.potential.any():
            least = -largest_means(view.distributions, -self.potential)
            means = means - OPTIMISM * np.maximum(view.model.transition @ self.potential - least, 0.0).reshape(S, A)
        added = (fears - view.means).reshape(len(self.prices), S * A)
        return np.asarray(means - CONDONED * product(self.prices, added).reshape(S, A))

    def _fears(self, view: View) -> Floats:
        """Return the constrained costs (m, S, A) with what uncertainty adds to them."""
        S, A = self.baseline.shape
        result = np.empty((len(self.prices), S, A))
        for i, h in enumerate(self.biases):
            result[i] = view.means[i] + np.maximum(view.largest(i, h) - view.expected(i, h), 0.0).reshape(S, A)
        return result

    def _widened(self, certifier: Certifier, view: View) -> Iterator[Certified]:
        """Yield certified policies, each planned for the uncertainty of the last."""
        if view.own.any():
            steady = certifier.certify(self.baseline, ~view.own, view, self.biases)
            if certifier.holds(steady):
                yield steady
        targets, drafts = certifier.thresholds.copy(), Drafts(view.model)
        planned, over = None, np.zeros(targets.size)
        for _ in range(PLANS if view.known.any() else 0):
            hopes, fears = self._hopes_and_fears(view)
            try:
                found = drafts.plan(np.concatenate([hopes[None], fears]), targets)
            except SolverError:
                return
            if found.prices is not None:
                self.prices, self.potential = found.prices, found.potential
            if planned is None or not np.array_equal(planned, found.policy):
                planned = found.policy
                policy = np.where(view.known[:, None], planned, self.baseline)
                tried = certifier.certify(policy / policy.sum(axis=1, keepdims=True), ~view.known, view, self.biases)
                self.biases = _biases(tried)
                over = np.array([case.bound for case in tried.cases]) - certifier.thresholds
                if certifier.holds(tried):
                    yield tried
                else:
                    mixed = certifier.mixed(tried.policy, view, self.biases)
                    if mixed is not None:
                        yield mixed
            elif not found.feasible:
                return  # nor is it for lower thresholds
            targets = np.minimum(certifier.thresholds, targets - over)

    def _within_certificates(self, alone: Certified, certifier: Certifier, view: View) -> Iterator[Certified]:
        """Yield certified policies, each the best that the certificate of another one allows.

        The other one is the baseline, the last policy, or a plan for lower thresholds.
        """
        yield self._improved(certifier, alone, view)
        if self.last is not None:
            anchor = certifier.bound_tightly(self.last, view, self.biases)
            self.biases = _biases(anchor)
            if certifier.holds(anchor):
                yield self._improved(certifier, anchor, view)
        yield from self._lowered(certifier, view)

    def _lowered(self, certifier: Certifier, view: View) -> Iterator[Certified]:
        """Yield plans for thresholds lower by margins, as far as they are certified, and correct the margins."""
        margins, certified, failed = self.margins, None, np.zeros(self.margins.size)
        drafts = Drafts(view.model)
        for _ in range(MARGIN_PLANS):
            try:
                found = drafts.plan(view.model.costs, certifier.thresholds - margins)
            except SolverError:
                break
            if not found.feasible:
                margins = 0.5 * (margins + failed)
                continue
            self.potential = self.potential if found.prices is None else found.potential
            tried = certifier.bound_tightly(found.policy, view, self.biases)
            self.biases = _biases(tried)
            over = np.array([case.bound for case in tried.cases]) - certifier.thresholds
            if not certifier.holds(tried):
                failed = margins
                margins = np.maximum(margins + np.where(over > 0.0, RAISE, LOWER) * over, 0.0)
                margins = margins if certified is None else 0.5 * (failed + certified)
                continue
            yield self._improved(certifier, tried, view)
            if certified is not None:
                certified = margins
                break
            certified = margins
            margins = np.maximum(margins + LOWER * over, 0.5 * (margins + failed))
        self.margins = margins if certified is None else certified

    def _improved(self, certifier: Certifier, found: Certified, view: View) -> Certified:
        """Return the best policy that the certificate of another one allows."""
        assert found.played is not None
        bounds = np.array([case.values - case.bias[:, None] for case in found.cases])
        try:
            best = best_within(
                view.model.transition, self._hopes(view), bounds, certifier.thresholds, found.policy, found.played
            )
        except SolverError:
            return found
        return certifier.towards(found, best.other, best.share)

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        kept = {"biases": self.biases, "prices": self.prices, "potential": self.potential}
        return kept if self.last is None else kept | {"last": self.last, "margins": self.margins}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        for name in ("biases", "prices", "potential"):
            setattr(self, name, saved_floats(state[name], getattr(self, name).shape, name, infinite=True))
        self.last = saved_floats(state["last"], self.baseline.shape, "last") if "last" in state else None
        if self.last is not None:
            self.margins = saved_floats(state["margins"], self.margins.shape, "margins")


def _biases(found: Certified) -> Floats:
    """Return the functions h (m, S) of a certificate."""
    return np.array([case.bias for case in found.cases]).reshape(-1, len(found.policy))
