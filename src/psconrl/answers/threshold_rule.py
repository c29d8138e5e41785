"""Threshold rules, which are easy to remember: one action up to some level, another beyond it.

If the states have an order, a policy that plays every action in one interval is a threshold rule; at a switch it may
randomise. For some queues a threshold rule is optimal; elsewhere it may cost little. If the plan is no such rule, all
rules are tried. If there are too many, a local search starts from every pair of the actions that the plan plays, and
from all of them. It moves one switch at a time to its best position, once for the thresholds and once for the plan's
shadow prices. The best mixture of two rules that differ in one state is known in closed form, since averages are linear
in it (Beutler and Ross 1985).
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb, perm
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psconrl.answers.deterministic import is_within
from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError
from psconrl.kernels.chains.occupancy import one_hot, policy_from_occupancy
from psconrl.markov.evaluation import evaluate_policy
from psconrl.model.cmdp import CMDP, need_model
from psconrl.model.coordinates import coordinates, why_unlike
from psconrl.model.matrix_product import product
from psconrl.model.names import Names
from psconrl.planning.deployable import Deployable
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan_model
from psconrl.planning.tolerances import PLAYED

TRIED_ACTIONS = 6  # of a plan, whose pairs are tried
MOST_GRIDS = 48  # positions tried for one switch; then every position around the current one
MOST_RULES = 2000  # up to which all rules are tried

Rule = tuple[tuple[int, ...], tuple[int, ...]]  # actions, and the position in the order where each begins


@dataclass(frozen=True, eq=False)
class ThresholdRule(Deployable):
    """A feasible policy that plays every action in one interval of the states; ``str`` gives it in words."""

    value: float  # average objective in the user's sense
    costs: Floats  # (m+1,)
    price: float  # by how much the objective is worse than the optimum over all policies
    order: Ints  # (S,) states from first to last
    policy: Floats  # (S, A)
    occupancy: Floats  # (S, A)
    names: Names

    def intervals(self) -> Iterator[tuple[str, float, str]]:
        """Yield every interval of visited states in words, its long-run share, and its actions in words."""
        visited = [int(s) for s in self.order if self.occupancy[s].sum() > PLAYED]
        for _, group in itertools.groupby(visited, key=lambda s: self.policy[s].tobytes()):
            states = list(group)
            first, last = self.names.state(states[0]), self.names.state(states[-1])
            where = first if len(states) == 1 else f"{first} to {last}"
            yield where, float(self.occupancy[states].sum()), self.names.shares(self.policy[states[0]])

    def __str__(self) -> str:
        return "; ".join(f"{where}: {actions}" for where, _, actions in self.intervals())


def threshold_rule(
    cmdp: CMDP,
    order: ArrayLike | None = None,
    best: Plan | None = None,
    *,
    progress: Callable[[str], object] | None = None,
) -> ThresholdRule | None:
    """Return the best feasible threshold rule found, with its price; None if none is found or there is no order.

    ``order``: the states from first to last. By default they are sorted by the numbers in their names ("3 waiting"),
    or, if they have no names, by index. ``best``: the plan of the model, if it is known. ``progress``: called with a
    line of text after every rule evaluated, for example ``print``. Ctrl-C then returns the best rule so far.

    >>> import psconrl
    >>> print(threshold_rule(psconrl.load("riverswim")))
    position 0: float 99.99%, swim 0.0119%; position 1 to position 5: swim
    """
    need_model(cmdp, "threshold_rule")
    states = state_order(cmdp) if order is None else _read_order(order, cmdp.n_states)
    if states is None:
        return None
    root = (plan_model(cmdp) if best is None else best).required()
    if root.mixture is None and is_threshold_rule(root, states) and is_within(cmdp, evaluate_policy(cmdp, root.policy)):
        return _as_rule(cmdp, root, states, root.policy)
    search = _Search(cmdp, states, root, progress)
    try:
        search.try_all()
        for actions in _sequences(root, states):
            search.move_switches(actions)
    except KeyboardInterrupt:
        if progress is None or not search.costs:
            raise
    policy = search.best_mixture()
    return None if policy is None else _as_rule(cmdp, root, states, policy)


def state_order(cmdp: CMDP) -> Ints | None:
    """Return the states by the one number in their names, or by index without names; None if there is no order."""
    places = coordinates(cmdp)
    if places is None or len(places.names) != 1:
        return None
    return np.argsort(places.values[:, 0], kind="stable")


def why_unordered(cmdp: CMDP) -> str:
    """Say why the states have no order, for a model for which ``state_order`` is None."""
    names, places = cmdp.state_names, coordinates(cmdp)
    assert names is not None
    if places is not None and places.names:
        return f"the states have no order: names such as {quoted(names[0])} differ in {len(places.names)} numbers"
    return f"the states have no order: {why_unlike(cmdp)}"


def is_threshold_rule(played: Deployable, order: Ints) -> bool:
    """Whether the policy plays every action in one interval of its visited states and randomises only at the ends."""
    used: Bools = played.occupancy[order] > PLAYED
    used = used[used.any(axis=1)]
    for a in np.flatnonzero(used.any(axis=0)):
        where = np.flatnonzero(used[:, a])
        inside = used[where[0] + 1 : where[-1]]
        if where.size != where[-1] - where[0] + 1 or (inside.sum(axis=1) > 1).any():
            return False
    return True


def _as_rule(cmdp: CMDP, best: Plan, order: Ints, policy: Floats) -> ThresholdRule:
    exact = evaluate_policy(cmdp, policy)
    price = float(exact.costs[0] - best.certificate.lower)
    return ThresholdRule(exact.value, exact.costs, price, order, policy, exact.occupancy, cmdp.names)


def _read_order(order: ArrayLike, n_states: int) -> Ints:
    states = np.asarray(order)
    if states.dtype.kind not in "iu" or not np.array_equal(np.sort(states), np.arange(n_states)):
        raise ConfigError(f"order must hold every state from 0 to {n_states - 1} once")
    return states.astype(np.int64)


def _sequences(best: Plan, order: Ints) -> list[tuple[int, ...]]:
    """Return the sequences of actions to try: every ordered pair, and all actions by their mean position."""
    share = best.occupancy.sum(axis=0)
    played = [int(a) for a in np.argsort(-share, kind="stable") if share[a] > PLAYED][:TRIED_ACTIONS]
    position = np.argsort(order)
    mean = {a: float(product(position, best.occupancy[:, a]) / share[a]) for a in played}
    everything = tuple(sorted(played, key=lambda a: mean[a]))
    return [*itertools.permutations(played, 2), *([everything] if len(everything) > 2 else [])]


class _Search:
    """Local search over rules, which moves one switch at a time; stores the averages of all rules evaluated."""

    def __init__(self, cmdp: CMDP, order: Ints, root: Plan, progress: Callable[[str], object] | None) -> None:
        self.cmdp, self.order, self.progress = cmdp, order, progress
        self.weights = np.concatenate([[1.0], root.multipliers])
        self.otherwise = root.policy.argmax(axis=1)  # where the action of the rule is not available
        self.size = np.maximum(np.abs(cmdp.thresholds), np.ptp(cmdp.costs[1:], axis=(1, 2)))
        self.costs: dict[Rule, Floats] = {}

    def policy(self, rule: Rule) -> Ints:
        """Return the policy (S,) of a rule."""
        actions, starts = rule
        S = self.order.size
        chosen = np.empty(S, dtype=np.int64)
        chosen[self.order] = np.repeat(np.asarray(actions, dtype=np.int64), np.diff([*starts, S]))
        return np.where(self.cmdp.available[np.arange(S), chosen], chosen, self.otherwise)

    def averages(self, rule: Rule) -> Floats:
        """Return the averages (m+1,) of a rule."""
        if rule not in self.costs:
            self.costs[rule] = evaluate_policy(self.cmdp, one_hot(self.policy(rule), self.cmdp.n_actions)).costs
            if self.progress is not None:
                self.progress(f"{len(self.costs)} threshold rules evaluated")
        return self.costs[rule]

    def try_all(self) -> None:
        """Evaluate all rules with K actions, for the largest K with at most ``MOST_RULES`` rules."""
        S, A = self.cmdp.n_states, self.cmdp.n_actions
        for K in range(A, 1, -1):
            if perm(A, K) * comb(S + K - 1, K - 1) <= MOST_RULES:
                for actions in itertools.permutations(range(A), K):
                    for starts in itertools.combinations_with_replacement(range(S + 1), K - 1):
                        self.averages((actions, (0, *starts)))
                return

    def move_switches(self, actions: tuple[int, ...]) -> None:
        """Find the best switches of these actions, for the thresholds and for the prices; evaluate neighbours too."""
        S, K = self.order.size, len(actions)
        scores: tuple[Callable[[Rule], Any], ...] = (self._within_limits, self._at_prices)
        for score in scores:
            rule = (actions, tuple(round(k * S / K) for k in range(K)))
            moved = True
            while moved:
                moved = False
                for k in range(1, K):
                    best = min((self._with_start(rule, k, x) for x in self._levels(rule, k)), key=score)
                    if score(best) < score(rule):
                        rule, moved = best, True
            for k in range(1, K):
                for beside in (rule[1][k] - 1, rule[1][k] + 1):
                    if rule[1][k - 1] <= beside <= (*rule[1], S)[k + 1]:
                        self.averages(self._with_start(rule, k, beside))

    def _within_limits(self, rule: Rule) -> tuple[float, float]:
        costs = self.averages(rule)
        excess = ((costs[1:] - self.cmdp.thresholds) / self.size).max(initial=0.0)
        return float(excess), float(costs[0])

    def _at_prices(self, rule: Rule) -> float:
        return product(self.weights, self.averages(rule))

    @staticmethod
    def _with_start(rule: Rule, k: int, start: int) -> Rule:
        actions, starts = rule
        return actions, (*starts[:k], start, *starts[k + 1 :])

    def _levels(self, rule: Rule, k: int) -> Iterator[int]:
        """Yield positions of switch k to try: an even grid between its neighbours, and all around the current one."""
        starts = (*rule[1], self.order.size)
        low, high = starts[k - 1], starts[k + 1]  # an interval may be empty
        yield from np.unique(np.linspace(low, high, MOST_GRIDS).round().astype(int)).tolist()
        step = max((high - low) // (MOST_GRIDS - 1), 1)
        yield from range(max(low, starts[k] - step), min(high, starts[k] + step) + 1)

    def best_mixture(self) -> Floats | None:
        """Return the policy (S, A) of the best feasible rule, or mixture of two rules that differ in one state."""
        pairs: list[tuple[float, Rule, Rule, float]] = []
        for rule, costs in self.costs.items():
            for k in range(len(rule[0])):
                # k = 0 stands for the rule itself.
                other = self._with_start(rule, k, rule[1][k] + 1) if k else rule
                if other in self.costs:
                    share = best_share(costs, self.costs[other], self.cmdp.thresholds)
                    if share is not None:
                        mean = (1 - share) * costs[0] + share * self.costs[other][0]
                        pairs.append((float(mean), rule, other, share))
        for _, rule, other, share in sorted(pairs, key=lambda pair: pair[0]):
            one, two = (one_hot(self.policy(r), self.cmdp.n_actions) for r in (rule, other))
            visits, more = (evaluate_policy(self.cmdp, policy).occupancy for policy in (one, two))
            mixed = policy_from_occupancy((1 - share) * visits + share * more, one, 0.0)
            # In a chain with several classes averages are not linear, so evaluate the mixture.
            if is_within(self.cmdp, evaluate_policy(self.cmdp, mixed)):
                return mixed
        return None


def best_share(first: Floats, second: Floats, thresholds: Floats) -> float | None:
    """Return the cheapest feasible share of the second of two policies, given their averages (m+1,).

    >>> best_share(np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([0.25]))
    0.25
    >>> best_share(np.array([1.0, 1.0]), np.array([0.0, 1.0]), np.array([0.25])) is None
    True
    """
    low, high = 0.0, 1.0
    for over, change in zip(first[1:] - thresholds, second[1:] - first[1:], strict=True):
        if change > 0:
            high = min(high, -over / change)
        elif change < 0:
            low = max(low, -over / change)
        elif over > 0:
            return None
    if low > high:
        return None
    return float(high if second[0] < first[0] else low)
