"""The policies among which the safe agent chooses: planned, certified, and mixed with exploration.

With confidence sets over rows, plans are made for costs that include the effect of uncertainty, and those that are
certified are played. If a plan mixes policies with classes of their own, policies that move between these in few rounds
are tried as well (``rare_moves``). With a system and the span of the baseline by state, every certificate also bounds
what each state costs, and the best policy within these bounds is the solution of a linear program
(``planning.robust.lyapunov``). The certificates are those of the baseline, of the last policy, and of plans for
thresholds that are lower by a margin. Each plan corrects the margins by the distance of its certified bounds from the
thresholds, so that they settle where the bounds meet the thresholds; they are kept from episode to episode.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.saved_fields import distributions, read_fields, reals
from psconrl.errors import SolverError
from psconrl.kernels.arithmetic import special
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.learning.safe.certificates import Certified, Certifier
from psconrl.learning.safe.confidence_sets import View, feared_costs
from psconrl.learning.safe.rare_moves import LOWER, RAISE, RareMoves, coming_back, towards_untried
from psconrl.markov.evaluation import evaluate_policy
from psconrl.markov.policy_chains import PolicyChains
from psconrl.model.matrix_product import product
from psconrl.planning.drafts import Drafts
from psconrl.planning.robust.lyapunov import best_within
from psconrl.planning.robust.pessimism import largest_means

PLANS = 4  # plans in one episode, each for the uncertainty of the last
CONDONED = 0.9  # share of the priced effect of uncertainty that is subtracted; the rest decides ties for what is known
OPTIMISM = 0.1  # share of the confidence set's optimism about the objective that is used
MARGIN_PLANS = 2  # plans for lower thresholds in one episode of a system, at most
FAR = 5.0  # excess of the last policy's bound, relative to what thresholds can be lowered by, without such plans
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
        self.moves = RareMoves(n_constraints)
        self._hoped: tuple[tuple[object, ...], Floats] | None = None  # the last optimistic objective, and of what
        self._priced: tuple[tuple[object, ...], Floats, Floats] | None = None  # the last hopes and fears, and of what

    def choose(self, certifier: Certifier, view: View, recovery: Floats | None) -> Certified:
        """Return the certified policy of best optimistic objective, which spends its slack on exploration.

        ``recovery`` (m, S): the span of the baseline by state, if it is known which states may follow.
        """
        if recovery is None:
            certified = [certifier.alone(), *self._of_rows(certifier, view)]
        else:
            certified = list(self._within_certificates(recovery, certifier, view))
        # Their objectives are comparable only at the same prices, those of the last plan.
        explored = [one if one.hope < math.inf else self._exploring(certifier, one, view) for one in certified]
        best = min(range(len(explored)), key=lambda k: explored[k].hope)
        self.moves.settle(view.rounds)
        exploring = int(len(certified) > 1 and certified[1].often)  # the baseline, with a certificate from data or not
        if self.moves.split and best > exploring and not view.pairs.all() and self.moves.returns(view.rounds):
            best = exploring
        chosen = explored[best]
        if recovery is not None:
            self.last, self.biases = certified[best].policy, _biases(chosen)
        self._priced = self._hoped = None
        return chosen

    def _exploring(self, certifier: Certifier, found: Certified, view: View) -> Certified:
        """Mix a policy with the least tried actions, as far as safe, and compute its optimistic objective."""
        directed = found.often or (self.moves.split and found.relying.all())
        everywhere, tried = np.arange(self.baseline.shape[0]), view.tries.argmin(axis=1)
        tried = towards_untried(view) if directed else tried
        if found.played is None:
            share = certifier.exploring_share(found, view, tried)
            policy = found.policy * (1.0 - share[:, None])
            policy[everywhere, tried] += share
        else:
            share = special.exp_array(-EXPLORE * special.log_array(1.0 + view.tries[everywhere, tried]))
            policy = certifier.towards(found, one_hot(tried, self.baseline.shape[1]), share).policy
        hoped = self._hopes(view)
        kind = "certified" if not found.relying.all() else "mixed" if share.max() > 0.0 else "baseline"
        hope, value = math.inf, math.nan
        try:
            distribution = self._occupancy(view, policy)
            hope, value = float((distribution * hoped).sum()), float((distribution * view.whole.costs[0]).sum())
        except SolverError:  # nearly absorbing states: the policy keeps an infinite optimistic objective
            pass
        return replace(found, policy=policy, hope=hope, value=value, kind=kind)

    def _occupancy(self, view: View, policy: Floats) -> Floats:
        """Return how often a policy is in every pair in the model, (S, A). Raise ``SolverError`` if that is unknown."""
        if view.order is not None and not view.whole.transition.eliminates:
            chain = PolicyChains(view.whole.transition, view.order).solved(policy, np.zeros(len(policy)))
            if chain is not None:
                return chain.stationary[:, None] * policy
        return evaluate_policy(view.whole, policy).occupancy

    def _hopes(self, view: View) -> Floats:
        """Return the objective (S, A) to plan for; without prices, fears play no part."""
        unpriced = self.moves.split or not self.prices.any()
        return self._optimistic(view) if unpriced else self._hopes_and_fears(view)[0]

    def _hopes_and_fears(self, view: View) -> tuple[Floats, Floats]:
        """Return the costs to plan for, computed once for a view, biases, prices and a potential.

        The hopes are the optimistic objective (S, A), less the priced effect of uncertainty on the constrained costs;
        the fears are these costs (m, S, A) with that effect.
        """
        key = (view, self.biases, self.prices, self.potential)  # replaced, never changed in place
        if self._priced is None or any(a is not b for a, b in zip(key, self._priced[0], strict=True)):
            fears = feared_costs(view, self.biases)
            self._priced = key, self._hopes_given(fears, view), fears
        return self._priced[1:]

    def _hopes_given(self, fears: Floats, view: View) -> Floats:
        S, A = self.baseline.shape
        added = (fears - view.means).reshape(len(self.prices), S * A)
        return np.asarray(self._optimistic(view) - CONDONED * product(self.prices, added).reshape(S, A))

    def _optimistic(self, view: View) -> Floats:
        """Return the objective (S, A), less a share of what optimism about the transitions would subtract."""
        if not self.potential.any():
            return view.whole.costs[0]
        key = (view, self.potential)  # replaced, never changed in place
        if self._hoped is None or any(a is not b for a, b in zip(key, self._hoped[0], strict=True)):
            least = -largest_means(view.distributions, -self.potential)
            gained = np.maximum(view.whole.transition @ self.potential - least, 0.0).reshape(self.baseline.shape)
            self._hoped = key, view.whole.costs[0] - OPTIMISM * gained
        return self._hoped[1]

    def _of_rows(self, certifier: Certifier, view: View) -> Iterator[Certified]:
        """Yield certified policies; where an optimal plan mixes classes, those that move between them in few rounds."""
        drafts = Drafts(view.model)
        plain = None
        if self.moves.split and view.known.any():
            try:
                plain = drafts.plan(view.model.costs, certifier.thresholds)
            except SolverError:
                return
            self.moves.split = plain.split
        if plain is None or not plain.split:
            yield from self._widened(certifier, view, drafts)
            return
        if plain.prices is not None:
            self.prices, self.potential = plain.prices, plain.potential
        kept, steady = (self.prices, self.potential), coming_back(certifier, view)
        if steady is not None:
            yield steady
        moving = list(self.moves.policies(certifier, view, drafts, self._optimistic(view)))
        yield from moving
        if plain.tied or not moving:
            yield from self._widened(certifier, view, drafts)
            self.prices, self.potential = kept  # with which the objectives of the others were computed

    def _widened(self, certifier: Certifier, view: View, drafts: Drafts) -> Iterator[Certified]:
        """Yield certified policies, each planned for the uncertainty of the last."""
        if view.own.any():
            steady = certifier.certify(self.baseline, ~view.own, view, self.biases)
            if certifier.holds(steady):
                yield steady
        targets = certifier.thresholds.copy()
        planned, over = None, np.zeros(targets.size)
        for _ in range(PLANS if view.known.any() else 0):
            hopes, fears = self._hopes_and_fears(view)
            try:
                found = drafts.plan(np.concatenate([hopes[None], fears]), targets)
            except SolverError:
                return
            self.moves.split |= found.split
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

    def _within_certificates(self, recovery: Floats, certifier: Certifier, view: View) -> Iterator[Certified]:
        """Yield certified policies, each the best that the certificate of another one allows.

        The other one is the baseline, the last policy, or a plan for lower thresholds.
        """
        anchor = None
        if self.last is not None:
            tried = certifier.bound_tightly(self.last, view, self.biases)
            self.biases = _biases(tried)
            anchor = tried if certifier.holds(tried) else None
        yield self._improved(certifier, anchor or certifier.recovering(recovery, view), view)
        if self.last is None or _excess(tried, certifier, view) <= FAR:
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
                if _excess(tried, certifier, view) > 1.0:
                    break  # no thresholds that any policy meets are lower by as much: more data are needed
                failed = margins
                margins = np.maximum(margins + np.where(over > 0.0, RAISE, LOWER) * over, 0.0)
                margins = margins if certified is None else 0.5 * (failed + certified)
                continue
            yield self._improved(certifier, tried, view)
            certified = margins
            margins = np.maximum(margins + LOWER * over, 0.5 * (margins + failed))
        self.margins = margins if certified is None else certified

    def _improved(self, certifier: Certifier, found: Certified, view: View) -> Certified:
        """Return the best policy that the certificate of another one allows."""
        assert found.played is not None
        bounds = np.array([case.values - case.bias[:, None] for case in found.cases])
        try:
            best = best_within(
                view.model.transition,
                self._hopes(view),
                bounds,
                certifier.thresholds,
                found.policy,
                found.played,
                view.order,
            )
        except SolverError:
            return found
        return certifier.towards(found, best.other, best.share)

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        kept = {"biases": self.biases, "prices": self.prices, "potential": self.potential} | self.moves.state()
        return kept if self.last is None else kept | {"last": self.last, "margins": self.margins}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        tables = ("biases", "prices", "potential")
        described = {name: reals(getattr(self, name).shape, infinite=True) for name in tables}
        if "last" in state:
            described |= {"last": distributions(self.baseline.shape), "margins": reals(self.margins.shape)}
        saved = read_fields(state, described)
        self.biases, self.prices, self.potential = (saved[name] for name in tables)
        self.last, self.margins = saved.get("last"), saved.get("margins", self.margins)
        if "split" in state:  # files of earlier versions have no moves
            self.moves.restore(state)


def _biases(found: Certified) -> Floats:
    """Return the functions h (m, S) of a certificate."""
    return np.array([case.bias for case in found.cases]).reshape(-1, len(found.policy))


def _excess(tried: Certified, certifier: Certifier, view: View) -> float:
    """Return by how much bounds exceed thresholds, relative to the distance of these from the least cost of a round."""
    over = np.array([case.bound for case in tried.cases]) - certifier.thresholds
    within = certifier.thresholds - view.model.costs[1:].min(axis=(1, 2))
    return float(np.where(over > 0.0, over / np.where(within > 0.0, within, 1.0), 0.0).max(initial=0.0))
