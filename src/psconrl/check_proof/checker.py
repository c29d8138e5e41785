"""The checks of one proof against one model."""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any

from .errors import BadInputError, RefusedError, shown
from .exact import ExactRow, Potentials, Vector, Workload, bound, common_multiple, read_doubles, read_vector
from .plain_model import PlainModel, as_float, rounded_down, rounded_up

OPTIMAL, INFEASIBLE, STOPPED, NOT_ATTAINED = "optimal", "infeasible", "stopped", "not attained"
STATUSES = (OPTIMAL, INFEASIBLE, STOPPED, NOT_ATTAINED)
# Tolerances, in the units of ``Scale.unit``.
GAP_TOL = Fraction(1, 10**9)  # between the objective and the bound, if the status is optimal
LIMIT_TOL = Fraction(2, 10**9)  # over a threshold
AVERAGE_TOL = Fraction(2, 10**9)  # between a stated average and the proven one
ROUGHER = 5  # times the tolerance of an average: that of the same average by the long-run shares
OFF_ONE = Fraction(1, 10**9)  # largest deviation of a sum of probabilities from one, and of shares from stationarity
LARGEST_SCALE = 2**900  # of a double, with room below its largest
MOST_BIAS_PARTS = 64  # of a bias, each of which adds digits

Mix = list[tuple[int, Fraction]]  # actions of a state with their probabilities
Interval = tuple[Fraction, Fraction]
CostOf = Callable[[int], int]  # of a pair, as a whole number


def is_distribution(values: Sequence[Fraction]) -> bool:
    """Whether values are not negative and sum to one, up to rounding."""
    return min(values, default=Fraction(-1)) >= 0 and abs(sum(values, Fraction(0)) - 1) <= OFF_ONE


class Checker:
    """Checks of one proof against one model."""

    def __init__(self, model: PlainModel, proof: dict[str, Any]) -> None:
        self.model, self.proof = model, proof
        self.m = len(model.thresholds)
        self.workload = Workload()
        self.thresholds = [Fraction(x) for x in model.thresholds]

    @cached_property
    def one(self) -> int:
        """The common denominator of all probabilities."""
        return common_multiple({p.as_integer_ratio()[1] for p in self.model.probabilities})

    def times_one(self, probabilities: Sequence[float]) -> list[int]:
        """Return probabilities as whole numbers over their common denominator."""
        one = self.one
        if one < LARGEST_SCALE:  # a product with a power of two is exact
            return [*map(int, map(float(one).__mul__, probabilities))]
        return [n * (one // d) for n, d in map(float.as_integer_ratio, probabilities)]

    @cached_property
    def costs(self) -> list[Vector]:
        """The costs of all pairs."""
        return [Vector.of(c) for c in self.model.costs]

    @cached_property
    def beta(self) -> Vector:
        """The initial distribution, up to its sum."""
        return Vector.of(self.model.initial)

    def row(self, row: int, cost: int = 0, label: str = "") -> ExactRow:
        """Return what a pair leads to: the probability of staying is what those of moving leave.

        If rounding makes those of moving exceed one, they are divided by their sum.
        """
        low, high = self.model.start[row], self.model.start[row + 1]
        s, one = row // self.model.n_actions, self.one
        columns = list(self.model.columns[low:high])
        weights = self.times_one(self.model.probabilities[low:high])
        if s in columns:
            at = columns.index(s)
            del columns[at], weights[at]
        moving = sum(weights)
        total = max(one, moving)
        if total > moving:
            columns.append(s)
            weights.append(total - moving)
        return ExactRow(s, label, cost * total, total, columns, weights)

    # Averages.

    def played(self, policy: dict[str, Any]) -> list[Mix]:
        """Return the actions of every state with their probabilities."""
        model, given = self.model, policy.get("actions")
        if not isinstance(given, list) or len(given) != model.n_states:
            raise BadInputError(f"'actions' of a policy must list {model.n_states} states")
        return [self.mix(s, entry) for s, entry in enumerate(given)]

    def mix(self, s: int, entry: Any) -> Mix:
        """Return the actions of a state with their probabilities."""
        model = self.model
        pairs = [[entry, 1.0]] if type(entry) is int else entry
        if not isinstance(pairs, list) or not all(isinstance(x, list) and len(x) == 2 for x in pairs):
            raise BadInputError(f"'actions' of state {s} must be a number or a list of [action, probability]")
        if not all(type(a) is int and 0 <= a < model.n_actions and type(p) is float and p <= 2.0 for a, p in pairs):
            raise BadInputError(f"'actions' of state {s} must be from 0 to {model.n_actions - 1}, with probabilities")
        found = [(a, Fraction(p)) for a, p in pairs]
        if not is_distribution([p for _, p in found]):
            raise RefusedError(f"state {model.state(s)}: the policy is not a distribution over actions")
        for a, _ in found:
            row = s * model.n_actions + a
            if not model.available[row]:
                raise RefusedError(f"{model.pair(row)}: the policy plays it, but it is unavailable")
        return found

    def mixed(self, s: int, actions: Mix, cost_of: CostOf) -> ExactRow:
        """Return the row of a state under the actions that a policy plays there."""
        first, label = s * self.model.n_actions, f"state {self.model.state(s)}"
        if len(actions) == 1:
            row = first + actions[0][0]
            return self.row(row, cost_of(row), label)
        several = [(p, self.row(first + a, cost_of(first + a))) for a, p in actions]
        denominator = math.lcm(*(p.denominator for p, _ in several))
        totals = math.lcm(*(each.total for _, each in several))
        weights: dict[int, int] = {}
        cost, everything = 0, 0
        for p, each in several:
            share = p.numerator * (denominator // p.denominator) * (totals // each.total)
            for j, x in zip(each.columns, each.weights, strict=True):
                weights[j] = weights.get(j, 0) + share * x
            cost += share * each.cost
            everything += share * each.total
        return ExactRow(s, label, cost, everything, list(weights), list(weights.values()))

    def averages(self, policy: dict[str, Any]) -> list[Interval]:
        """Return bounds on the averages of every cost under one policy."""
        model = self.model
        played = self.played(policy)
        U = self.moves(policy, "the bound on moves of a policy")
        states = model.reached(lambda s: (s * model.n_actions + a for a, p in played[s] if p))
        result = []
        for i in range(len(model.costs)):
            whole, costs, h, g = self.bias(policy, i)
            low, high = (
                sign * bound((self.mixed(s, played[s], costs) for s in states), self.beta, Potentials(h, g, U), sign)[0]
                for sign in (1, -1)
            )
            result.append((low / whole, high / whole))
        return result

    def moves(self, record: dict[str, Any], what: str) -> list[int]:
        """Return the function U of a record with gains, in any unit."""
        if record.get("gains") is None:
            return [0] * self.model.n_states
        found = read_vector(record, "moves", self.model.n_states).numbers
        if min(found) < 0:
            raise RefusedError(f"{what} is negative")
        self.workload.spend(1, [Vector(1, found)], len(self.model.columns))
        return found

    def bias(self, policy: dict[str, Any], i: int) -> tuple[int, CostOf, list[int], list[int] | None]:
        """Return a common denominator, and the costs, the bias and the gains of cost i, times this number."""
        S, q = self.model.n_states, self.m + 1
        biases, gains = policy.get("biases"), policy.get("gains")
        if not isinstance(biases, list) or len(biases) > MOST_BIAS_PARTS:
            raise BadInputError(f"'biases' of a policy must be at most {MOST_BIAS_PARTS} tables")
        for table in (*biases, *(() if gains is None else (gains,))):
            if not isinstance(table, list) or len(table) != q:
                raise BadInputError(f"'biases' and 'gains' of a policy must be tables of {q} rows")
        parts = [read_vector({"biases": table[i]}, "biases", S) for table in biases]
        g = None if gains is None else read_vector({"gains": gains[i]}, "gains", S)
        costs, given = self.costs[i], [*parts, *(() if g is None else (g,))]
        whole = common_multiple({costs.over, *(part.over for part in given)})
        self.workload.spend(whole * self.one, given, len(self.model.columns), g is not None)
        h = [sum(values) for values in zip(*(part.times(whole) for part in parts), strict=True)] or [0] * S
        factor, numbers = whole // costs.over, costs.numbers
        return whole, lambda row: factor * numbers[row], h, None if g is None else g.times(whole)

    def left_over(self, policy: dict[str, Any], i: int, states: Sequence[int], gains: Sequence[float]) -> list[float]:
        """Return what is left of c - g + P h - h of a policy in the given states: zero for the exact bias."""
        (whole, costs, h, _), played = self.bias(policy, i), self.played(policy)
        rows = (self.mixed(s, played[s], costs) for s in states)
        return [
            as_float(Fraction(row.cost + row.drift(h), row.total * whole) - Fraction(gains[row.state])) for row in rows
        ]

    def mixture(self) -> list[Interval]:
        """Return bounds on the averages of what is played: one policy, or a mixture of several."""
        policies = self.proof.get("policies")
        if not isinstance(policies, list) or not policies or not all(isinstance(x, dict) for x in policies):
            raise BadInputError("'policies' must be a list of tables")
        given = read_doubles({"share": [x.get("share") for x in policies]}, "share", len(policies))
        shares = [Fraction(x) for x in given]
        if not is_distribution(shares):
            raise RefusedError("the shares of the policies are not a distribution")
        found, total = [self.averages(policy) for policy in policies], sum(shares, Fraction(0))

        def mean(i: int, end: int) -> Fraction:
            return sum((x * one[i][end] for x, one in zip(shares, found, strict=True)), Fraction(0)) / total

        return [(mean(i, 0), mean(i, 1)) for i in range(self.m + 1)]

    # The bound.

    def prices(self) -> Vector:
        """Return the multipliers."""
        found = read_vector(self.proof, "multipliers", self.m)
        for i, price in enumerate(found.numbers):
            if price < 0:
                raise RefusedError(f"the multiplier of {self.model.cost_names[1 + i]!r} is negative")
        return found

    def lower_bound(self) -> tuple[Fraction, str]:
        """Return the proven bound on the objective or, of an infeasible model, on the weighted excess."""
        model, S, proof = self.model, self.model.n_states, self.proof
        prices = self.prices()
        high, low = read_vector(proof, "potential", S), read_vector(proof, "low_potential", S)
        gains = None if proof.get("gains") is None else read_vector(proof, "gains", S)
        thresholds = Vector.of(model.thresholds)
        of_costs = common_multiple({thresholds.over, *(c.over for c in self.costs)})
        weighted = prices.over * of_costs
        given = [prices, high, low, *(() if gains is None else (gains,))]
        whole = common_multiple({weighted, *(part.over for part in given)})
        self.workload.spend(whole * self.one, given, len(model.columns), gains is not None)
        factor = whole // weighted
        factors = [0 if proof["status"] == INFEASIBLE else prices.over * factor, *(factor * x for x in prices.numbers)]
        needed = [(w * (of_costs // c.over), c.numbers) for w, c in zip(factors, self.costs, strict=True) if w]
        offset = sum(map(mul, factors[1:], thresholds.times(of_costs)))

        def rows() -> Iterator[ExactRow]:
            for s in model.reached(model.actions):
                for row in model.actions(s):
                    cost = sum(w * numbers[row] for w, numbers in needed) - offset
                    yield self.row(row, cost, model.pair(row))

        h = [x + y for x, y in zip(high.times(whole), low.times(whole), strict=True)]
        U = self.moves(proof, "the bound on moves")
        found, where = bound(rows(), self.beta, Potentials(h, None if gains is None else gains.times(whole), U))
        return found / whole, where

    # Comparisons.

    def check_identity(self) -> None:
        """Check that the proof is about this model."""
        model, proof = self.model, self.proof
        if proof.get("status") not in STATUSES:
            raise RefusedError(f"status {shown(proof.get('status'))} is none that can be proven: {', '.join(STATUSES)}")
        if proof.get("model") != model.digest():
            raise RefusedError("the proof is of another model: transitions, available actions or costs differ")
        for i, tau in enumerate(read_doubles(proof, "thresholds", self.m)):
            if tau != model.thresholds[i]:
                differ = model.shown(i + 1, tau), model.shown(i + 1, model.thresholds[i])
                raise RefusedError(
                    f"the proof is for a threshold of {differ[0]} on {model.cost_names[i + 1]!r}, not {differ[1]}"
                )

    def tolerances(self, averages: Sequence[Fraction]) -> list[Fraction]:
        """Return the least tolerance that applies to each of some averages: as stated, and of its limit."""
        found = [AVERAGE_TOL * scale.unit(x) for scale, x in zip(self.model.scales, averages, strict=True)]
        limits = [LIMIT_TOL * scale.unit(x) for scale, x in zip(self.model.scales[1:], self.thresholds, strict=True)]
        return [found[0], *map(min, found[1:], limits)]

    def check_averages(self, found: Sequence[Interval]) -> None:
        """Check that the stated averages are the proven ones, by the policy and by the long-run shares."""
        model = self.model
        stated = [Fraction(x) for x in read_doubles(self.proof, "averages", self.m + 1)]
        within = [AVERAGE_TOL * model.scales[i].unit(high) for i, (_, high) in enumerate(found)]
        for i, (low, high) in enumerate(found):
            off = max(high - stated[i], stated[i] - low)
            if off > within[i]:
                ends = " to ".join(sorted({model.shown(i, x) for x in (low, high)}))
                raise RefusedError(
                    f"the average of {model.cost_names[i]!r} is {ends}, not {model.shown(i, stated[i])}: "
                    f"off by up to {as_float(off):.3g}, tolerance {as_float(within[i]):.3g}"
                )
        self.check_shares(stated, within)

    def check_shares(self, averages: Sequence[Fraction], within: Sequence[Fraction]) -> None:
        """Check that the long-run shares of the pairs, if stated, are stationary and have the stated averages."""
        model, given = self.model, self.proof.get("occupancy")
        if given is None:
            return
        if not isinstance(given, list) or not all(isinstance(x, list) and len(x) == 2 for x in given):
            raise BadInputError("'occupancy' must be a list of [pair, share]")
        pairs = [x for x, _ in given]
        if not all(type(x) is int and 0 <= x < len(model.available) for x in pairs) or len(set(pairs)) < len(pairs):
            raise BadInputError("'occupancy' must name distinct pairs")
        shares = Vector.of(read_doubles({"share": [x for _, x in given]}, "share", len(given)))
        exact = shares.fractions()
        if not is_distribution(exact):
            raise RefusedError("the long-run shares are not a distribution")
        arrived = [0] * model.n_states
        for pair, x in zip(pairs, shares.numbers, strict=True):
            if not model.available[pair]:
                raise RefusedError(f"{model.pair(pair)}: it has a long-run share, but is unavailable")
            row = self.row(pair)
            arrived[row.state] -= x * self.one
            for j, p in zip(row.columns, row.weights, strict=True):
                arrived[j] += x * p * self.one // row.total
        residual = Fraction(sum(map(abs, arrived)), self.one * shares.over)
        if residual > 2 * OFF_ONE:
            raise RefusedError(f"the long-run shares are not stationary: they are off by {as_float(residual):.3g}")
        for i, cost in enumerate(model.costs):
            differences = (Fraction(cost[pair]) - averages[i] for pair in pairs)
            off = sum(map(mul, exact, differences), Fraction(0))
            if abs(off) > ROUGHER * within[i]:
                raise RefusedError(f"by the long-run shares, {model.cost_names[i]!r} differs by {as_float(off):.3g}")

    def check_bound(self) -> Fraction:
        """Return the bound, after checking that it is the stated one."""
        proven, where = self.lower_bound()
        stated = read_doubles({"bound": [self.proof.get("bound")]}, "bound", 1)[0]
        if as_float(proven) != stated:
            raise RefusedError(f"the bound is {as_float(proven):.17g}, not {stated:.17g}, as {where} shows")
        if self.proof["status"] == INFEASIBLE and proven <= 0:
            raise RefusedError(
                f"the weighted excess is only bounded by {as_float(proven):.3g}, not above 0, at {where}"
            )
        return proven

    def check(self) -> list[str]:
        """Return the lines of the verdict, or raise ``RefusedError``."""
        self.check_identity()
        found = self.mixture()
        self.check_averages(found)
        proven = self.check_bound()
        if self.proof["status"] == INFEASIBLE:
            return ["PROVEN: infeasible", *self.unavoidable(proven)]
        # No average is below the least cost, so that is a bound, too.
        gap = max(found[0][1] - max(proven, self.model.scales[0].low), Fraction(0))
        kept = self.kept_limits(found)
        if self.proof["status"] != OPTIMAL:
            return ["PROVEN: the limits are kept", self.objective(found[0][1], gap), *kept]
        within = GAP_TOL * self.model.scales[0].unit(found[0][1])
        if gap > within:
            raise RefusedError(f"the gap of {as_float(gap):.3g} is open; tolerance {as_float(within):.3g}")
        return ["PROVEN: optimal", self.objective(found[0][1], gap), *kept]

    # Lines of the verdict.

    def objective(self, value: Fraction, gap: Fraction) -> str:
        """Return the line about the objective."""
        model = self.model
        return (
            f"{model.cost_names[0]}: {model.with_unit(0, model.shown(0, value))}; "
            f"no policy within the limits is better by more than {model.with_unit(0, rounded_up(gap, 2))}"
        )

    def kept_limits(self, found: Sequence[Interval]) -> list[str]:
        """Return the lines about the limits, after checking that they are kept."""
        model, lines = self.model, []
        for i, (_, high) in enumerate(found[1:], start=1):
            name, tau = model.cost_names[i], self.thresholds[i - 1]
            excess, within = high - tau, LIMIT_TOL * model.scales[i].unit(tau)
            if excess > within:
                raise RefusedError(
                    f"the limit on {name!r} is missed by {as_float(excess):.3g}, tolerance {as_float(within):.3g}: "
                    f"{model.shown(i, high)} against {model.shown(i, tau)}"
                )
            kept = "kept" if excess <= 0 else "kept within " + model.with_unit(i, rounded_up(excess, 2))
            lines.append(f"limit on {name}, {model.limit(i)}: {kept}, at {model.with_unit(i, model.shown(i, high))}")
        return lines

    def unavoidable(self, proven: Fraction) -> list[str]:
        r"""Return the lines about the limits that no policy keeps together.

        The excesses e_i of every policy have :math:`\sum \lambda_i e_i \ge B`, so one of the k with a positive
        weight has :math:`e_i \ge B / (k \lambda_i)`.
        """
        model, prices = self.model, self.prices().fractions()
        involved = [i for i, price in enumerate(prices, start=1) if price > 0]
        least = {i: proven / (len(involved) * prices[i - 1]) for i in involved}
        if len(involved) == 1:
            (i,) = involved
            lowest = self.thresholds[i - 1] + least[i]
            negated = model.cost_names[i] in model.negated
            text = f"at most {rounded_up(-lowest, 10)}" if negated else f"at least {rounded_down(lowest, 10)}"
            return [
                f"{model.cost_names[i]}: {model.with_unit(i, text)} under every policy; the limit is {model.limit(i)}, "
                f"which every policy misses by {model.with_unit(i, rounded_down(least[i], 3))} or more"
            ]
        ways = (f"{model.cost_names[i]} by {model.with_unit(i, rounded_down(least[i], 3))}" for i in involved)
        return [f"every policy misses one of these limits at least by so much: {', '.join(ways)}"]
