r"""Check a saved proof against a model in exact arithmetic, without this library.

Copy this file anywhere and run ``python check_proof.py model.npz proof.json``. It needs nothing but Python, which is
why it is one file. A proof is what ``plan.save_proof`` writes; a model, what ``psconrl.save`` writes. Exit code 0:
proven; 1: refused, with the reason; 2: a file cannot be read.

Doubles are rationals, and every comparison below is made in whole numbers over a common denominator, without rounding.
The rows of a model sum to one up to rounding: the probability of staying in a state is one minus those of leaving it.
Numbers that doubles cannot hold are written as text, such as ``"31/40"``.

**Bound.** For every h and every :math:`\lambda \ge 0` no policy within the thresholds costs less than the least
:math:`v = c_0 + \sum_i \lambda_i (c_i - \tau_i) + P h - h` of the reachable pairs. Without :math:`c_0`, a positive
least value shows that no policy meets the thresholds.

**Several end components.** The proof then has gains g and a function :math:`U \ge 0` with :math:`P U \le U` everywhere.
Pairs with :math:`P U < U` are visited finitely often in the mean, whatever the policy; all others must have
:math:`P g \ge g`. If gains fall by at most :math:`\rho (U - P U)` at the former and :math:`v \ge g + \epsilon` at the
latter, no policy costs less than :math:`\beta g + \epsilon - \rho\, \beta U` from the initial distribution
:math:`\beta`.

**Averages.** The same inequality for the pairs that a policy plays, with its bias as h, encloses its averages, from
below and, with signs changed, from above. So no linear system is solved, and the time is linear in the entries.
"""

import argparse
import ast
import hashlib
import json
import math
import sys
import zipfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import mul
from pathlib import Path
from typing import Any, NamedTuple

FORMAT, VERSION = "psconrl-proof", 1
OPTIMAL, INFEASIBLE = "optimal", "infeasible"
STATUSES = (OPTIMAL, INFEASIBLE, "stopped", "not attained")
OFF_ONE = Fraction(1, 10**9)  # largest deviation of the sum of a distribution from one, and of shares from stationarity
# Largest tolerances that a proof may state, as shares of the range of a cost: a larger one would prove nothing.
LARGEST_GAP, LARGEST_EXCESS = Fraction(1001, 10**12), Fraction(2001, 10**12)
NEARLY_CONSTANT = Fraction(1, 10**6)  # of the size of a cost, below which its range is rounding
ROUGHER = 5  # times the tolerance of an average: that of the same average by the long-run shares
KINDS = {"<f8": "d", "<i8": "q", "<i4": "i", "|b1": "B"}


class RefusedError(Exception):
    """The proof does not hold; the message says where and by how much."""


class BadInputError(Exception):
    """A file cannot be read, or is not what it should be."""


@dataclass(frozen=True)
class Model:
    """A model as plain sequences; row ``s * A + a`` of the transitions has entries ``start[row]:start[row + 1]``."""

    n_states: int
    n_actions: int
    start: Sequence[int]
    columns: Sequence[int]
    probabilities: Sequence[float]
    costs: Sequence[Sequence[float]]  # the objective first, each of length S * A
    thresholds: Sequence[float]
    initial: Sequence[float]
    available: Sequence[int]  # 0 or 1, of length S * A
    cost_names: Sequence[str]
    state_names: Sequence[str] | None = None
    action_names: Sequence[str] | None = None
    negated: frozenset[str] = field(default_factory=frozenset)  # costs that are shown with the opposite sign

    def pair(self, row: int) -> str:
        """Return the names of a state and an action."""
        s, a = divmod(row, self.n_actions)
        return f"state {self.state(s)}, action {self.action_names[a] if self.action_names else a}"

    def state(self, s: int) -> str:
        """Return the name of a state."""
        return self.state_names[s] if self.state_names else str(s)

    def actions(self, s: int) -> Iterator[int]:
        """Yield the rows of the available actions of a state."""
        return (row for row in range(s * self.n_actions, (s + 1) * self.n_actions) if self.available[row])

    def shown(self, i: int, value: float | Fraction) -> str:
        """Return a number of cost i with the sign that users see."""
        return f"{float(-value if self.cost_names[i] in self.negated else value) + 0.0:.10g}"

    def digest(self) -> str:
        """Return the digest of transitions, available actions and costs, as ``psconrl`` computes it."""
        S, entries = self.n_states, range(len(self.columns))
        rows = (row for row in range(len(self.start) - 1) for _ in range(self.start[row + 1] - self.start[row]))
        kept = [p != 0.0 for p in self.probabilities]
        places = array("q", (row * S + self.columns[k] for row, k in zip(rows, entries, strict=True) if kept[k]))
        values = array("d", (self.probabilities[k] for k in entries if kept[k]))
        whole = hashlib.sha256(array("q", (len(self.costs), S, self.n_actions)).tobytes())
        whole.update(hashlib.sha256(places.tobytes()).digest())
        whole.update(hashlib.sha256(values.tobytes()).digest())
        whole.update(bytes(self.available))
        for cost in self.costs:
            whole.update(array("d", (c + 0.0 for c in cost)).tobytes())
        return whole.hexdigest()


class ExactRow(NamedTuple):
    """What a state, or a pair, leads to; whole numbers, of which ``total`` stands for one."""

    state: int
    label: str
    cost: int  # times the total
    total: int
    columns: Sequence[int]
    weights: Sequence[int]

    def drift(self, h: Sequence[int]) -> int:
        """Return the expected change of h, times the total."""
        return sum(map(mul, self.weights, map(h.__getitem__, self.columns))) - self.total * h[self.state]


def common_denominator(*values: Sequence[float | Fraction]) -> int:
    """Return the least common denominator of all values."""
    return math.lcm(*{x.as_integer_ratio()[1] for some in values for x in some})


def scaled_up(x: float | Fraction, denominator: int) -> int:
    """Return a number times a multiple of its denominator, which is a whole number."""
    n, d = x.as_integer_ratio()
    return n * (denominator // d)


def read_fraction(text: str) -> Fraction:
    """Return a fraction of whole numbers, each decimal or, with the prefix 0x, hexadecimal."""
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator, 0), int(denominator or "1", 0))


def is_distribution(values: Sequence[Fraction]) -> bool:
    """Whether values are not negative and sum to one, up to rounding."""
    return min(values, default=Fraction(-1)) >= 0 and abs(sum(values, Fraction(0)) - 1) <= OFF_ONE


def bound(
    rows: Iterator[ExactRow],
    beta: Sequence[float],
    h: Sequence[int],
    g: Sequence[int] | None,
    U: Sequence[int],
    sign: int,
) -> tuple[Fraction, str]:
    """Return the bound that is proven by h, gains g and U (see above), in units of h, and the pair that decides it.

    With ``sign`` -1, costs, h and g are negated.
    """
    least: tuple[int, int] | None = None
    where = ""
    fall, fallen = 0, 1  # the largest ratio of a decrease of g to one of U
    for row in rows:
        value = sign * (row.cost + row.drift(h))
        if g is not None:
            onward, gained = row.drift(U), sign * row.drift(g)
            if onward > 0:
                raise RefusedError(f"the bound on moves increases at {row.label}")
            if onward < 0:
                if -gained * fallen > fall * -onward:
                    fall, fallen = -gained, -onward
                continue
            if gained < 0:
                raise RefusedError(f"gains fall at {row.label}, which may be played forever")
            value -= sign * g[row.state] * row.total
        if least is None or value * least[1] < least[0] * row.total:
            least, where = (value, row.total), row.label
    if least is None:
        raise RefusedError("no action can be played forever")
    result = Fraction(*least)
    if g is not None:
        result += sign * weighted(beta, g) - Fraction(fall, fallen) * weighted(beta, U)
    return result, where


def weighted(beta: Sequence[float], values: Sequence[int]) -> Fraction:
    """Return the mean of values under a distribution."""
    exact = [Fraction(x) for x in beta]
    return sum((x * y for x, y in zip(exact, values, strict=True)), Fraction(0)) / sum(exact, Fraction(0))


class Checker:
    """Checks of one proof against one model."""

    def __init__(self, model: Model, proof: dict[str, Any]) -> None:
        self.model, self.proof = model, proof
        self.one = common_denominator(model.probabilities)
        self.m = len(model.thresholds)

    def exact_numbers(self, record: dict[str, Any], name: str, n: int) -> list[float | Fraction]:
        """Return n numbers of a record, of which those written as text are fractions."""
        given = record.get(name)
        if not isinstance(given, list) or not any(isinstance(x, str) for x in given):
            return [*self.numbers(record, name, n)]
        plain = self.numbers({name: [0.0 if isinstance(x, str) else x for x in given]}, name, n)
        return [read_fraction(x) if isinstance(x, str) else y for x, y in zip(given, plain, strict=True)]

    def numbers(self, record: dict[str, Any], name: str, n: int) -> list[float]:
        """Return n finite numbers of a record."""
        given = record.get(name)
        if not isinstance(given, list) or len(given) != n or not all(type(x) in (int, float) for x in given):
            raise BadInputError(f"{name!r} must be a list of {n} numbers")
        values = [float(x) for x in given]
        if not all(abs(x) <= sys.float_info.max for x in values):
            raise BadInputError(f"{name!r} must hold finite numbers")
        return values

    def weights(self, row: int) -> tuple[Sequence[int], list[int]]:
        """Return the columns and the entries of a row of the transitions as whole numbers, whose sum is ``one``."""
        low, high = self.model.start[row], self.model.start[row + 1]
        entries = [scaled_up(p, self.one) for p in self.model.probabilities[low:high]]
        columns, total = self.model.columns[low:high], sum(entries)
        if min(entries, default=0) < 0 or abs(total - self.one) > OFF_ONE * self.one:
            raise RefusedError(f"{self.model.pair(row)}: the probabilities sum to {total / self.one:.12g}")
        if total == self.one:
            return columns, entries
        return [*columns, row // self.model.n_actions], [*entries, self.one - total]

    def reached(self, rows_of: Callable[[int], Iterator[int]]) -> list[int]:
        """Return the states that are reached from the initial distribution by the given rows of each state."""
        model, todo = self.model, [s for s, x in enumerate(self.model.initial) if x > 0]
        seen = bytearray(model.n_states)
        for s in todo:
            seen[s] = 1
        for s in todo:
            for row in rows_of(s):
                for k in range(model.start[row], model.start[row + 1]):
                    if model.probabilities[k] > 0 and not seen[model.columns[k]]:
                        seen[model.columns[k]] = 1
                        todo.append(model.columns[k])
        return todo

    def lower_bound(self) -> tuple[Fraction, str]:
        """Return the proven bound on the objective or, of an infeasible model, on the weighted excess."""
        model, S, proof = self.model, self.model.n_states, self.proof
        lam = self.exact_numbers(proof, "multipliers", self.m)
        if min(lam, default=0.0) < 0:
            raise RefusedError(f"the multiplier of {model.cost_names[1 + lam.index(min(lam))]!r} is negative")
        high, low = self.exact_numbers(proof, "potential", S), self.exact_numbers(proof, "low_potential", S)
        gains = None if proof.get("gains") is None else self.exact_numbers(proof, "gains", S)
        moves = [0.0] * S if gains is None else self.numbers(proof, "moves", S)
        if min(moves) < 0:
            raise RefusedError("the bound on moves is negative")
        weights = [0.0 if proof["status"] == INFEASIBLE else 1.0, *lam]
        of_costs, of_moves = common_denominator(model.thresholds, *model.costs), common_denominator(moves)
        whole = math.lcm(common_denominator(weights) * of_costs, common_denominator(high, low, gains or ()))
        factors = [scaled_up(w, whole // of_costs) for w in weights]
        offset = sum(w * scaled_up(t, of_costs) for w, t in zip(factors[1:], model.thresholds, strict=True))

        def rows() -> Iterator[ExactRow]:
            for s in self.reached(model.actions):
                for row in model.actions(s):
                    cost = sum(w * scaled_up(c[row], of_costs) for w, c in zip(factors, model.costs, strict=True))
                    yield ExactRow(s, model.pair(row), (cost - offset) * self.one, self.one, *self.weights(row))

        h = [scaled_up(x, whole) + scaled_up(y, whole) for x, y in zip(high, low, strict=True)]
        g = None if gains is None else [scaled_up(x, whole) for x in gains]
        # U is scaled apart from h and g; the ratio in ``bound`` and its product with U cancel the scale.
        found, where = bound(rows(), model.initial, h, g, [scaled_up(x, of_moves) for x in moves], 1)
        return found / whole, where

    def averages(self, policy: dict[str, Any]) -> list[tuple[Fraction, Fraction]]:
        """Return bounds on the averages of every cost under one policy."""
        model = self.model
        played = self.played(policy)
        moves = [0.0] * model.n_states if policy.get("gains") is None else self.numbers(policy, "moves", model.n_states)
        if min(moves) < 0:
            raise RefusedError("the bound on moves of a policy is negative")
        of_moves = common_denominator(moves)
        U = [scaled_up(x, of_moves) for x in moves]
        states = self.reached(lambda s: (s * model.n_actions + a for a, _ in played[s]))
        result = []
        for i, costs in enumerate(model.costs):
            whole, h, g = self.bias(policy, i)
            ends = [
                sign * bound((self.mixed(s, played[s], costs, whole) for s in states), model.initial, h, g, U, sign)[0]
                for sign in (1, -1)
            ]
            result.append((ends[0] / whole, ends[1] / whole))
        return result

    def bias(self, policy: dict[str, Any], i: int) -> tuple[int, list[int], list[int] | None]:
        """Return a common denominator, and the bias and the gains of cost i under a policy, times this number."""
        S, q = self.model.n_states, self.m + 1
        biases, gains = policy.get("biases"), policy.get("gains")
        for table in (*(biases if isinstance(biases, list) else (None,)), *(() if gains is None else (gains,))):
            if not isinstance(table, list) or len(table) != q:
                raise BadInputError(f"'biases' and 'gains' of a policy must be tables of {q} rows")
        parts = [self.exact_numbers({"biases": table[i]}, "biases", S) for table in policy["biases"]]
        g = None if gains is None else self.exact_numbers({"gains": gains[i]}, "gains", S)
        whole = common_denominator(self.model.costs[i], g or (), *parts)
        h = [sum(scaled_up(x, whole) for x in values) for values in zip(*parts, strict=True)] or [0] * S
        return whole, h, None if g is None else [scaled_up(x, whole) for x in g]

    def left_over(self, policy: dict[str, Any], i: int, states: Sequence[int], gains: Sequence[float]) -> list[float]:
        """Return what is left of c - g + P h - h of a policy in the given states: zero for the exact bias."""
        (whole, h, _), played = self.bias(policy, i), self.played(policy)
        rows = (self.mixed(s, played[s], self.model.costs[i], whole) for s in states)
        return [
            float(Fraction(row.cost + row.drift(h), row.total * whole) - Fraction(gains[row.state])) for row in rows
        ]

    def played(self, policy: dict[str, Any]) -> list[list[tuple[int, Fraction]]]:
        """Return the actions of every state with their probabilities."""
        model, given = self.model, policy.get("actions")
        if not isinstance(given, list) or len(given) != model.n_states:
            raise BadInputError(f"'actions' of a policy must list {model.n_states} states")
        result = []
        for s, entry in enumerate(given):
            pairs = [[entry, 1.0]] if type(entry) is int else entry
            if not isinstance(pairs, list) or not all(isinstance(x, list) and len(x) == 2 for x in pairs):
                raise BadInputError(f"'actions' of state {s} must be a number or a list of [action, probability]")
            if not all(type(a) is int and 0 <= a < model.n_actions and type(p) is float for a, p in pairs):
                raise BadInputError(
                    f"'actions' of state {s} must be from 0 to {model.n_actions - 1}, with probabilities"
                )
            row = [(a, Fraction(p)) for a, p in pairs]
            if not is_distribution([p for _, p in row]):
                raise RefusedError(f"state {model.state(s)}: the policy is not a distribution over actions")
            for a, _ in row:
                if not model.available[s * model.n_actions + a]:
                    raise RefusedError(
                        f"{model.pair(s * model.n_actions + a)}: the policy plays it, but it is unavailable"
                    )
            result.append(row)
        return result

    def mixed(self, s: int, actions: list[tuple[int, Fraction]], costs: Sequence[float], whole: int) -> ExactRow:
        """Return the row of a state under the actions that a policy plays there."""
        first, label = s * self.model.n_actions, f"state {self.model.state(s)}"
        if len(actions) == 1:
            row = first + actions[0][0]
            return ExactRow(s, label, scaled_up(costs[row], whole) * self.one, self.one, *self.weights(row))
        common = max(p.denominator for _, p in actions)  # powers of two
        weights: dict[int, int] = {}
        cost, everything = 0, 0
        for a, p in actions:
            share = int(p * common)
            for j, x in zip(*self.weights(first + a), strict=True):
                weights[j] = weights.get(j, 0) + share * x
            cost += share * self.one * scaled_up(costs[first + a], whole)
            everything += share * self.one
        return ExactRow(s, label, cost, everything, list(weights), list(weights.values()))

    def check_shares(self, averages: Sequence[float], tolerances: Sequence[float]) -> None:
        """Check that the long-run shares of the pairs are stationary and have the stated averages."""
        model, arrived = self.model, [0] * self.model.n_states
        given = self.proof.get("occupancy")
        if given is None:
            return
        if not isinstance(given, list) or not all(isinstance(x, list) and len(x) == 2 for x in given):
            raise BadInputError("'occupancy' must be a list of [pair, share]")
        pairs = [x for x, _ in given]
        if not all(type(x) is int and 0 <= x < len(model.available) for x in pairs) or len(set(pairs)) < len(pairs):
            raise BadInputError("'occupancy' must name distinct pairs")
        shares = self.numbers({"share": [x for _, x in given]}, "share", len(given))
        whole = common_denominator(shares)
        mass = [scaled_up(x, whole) for x in shares]
        if not is_distribution([Fraction(x) for x in shares]):
            raise RefusedError("the long-run shares are not a distribution")
        for row, x in zip(pairs, mass, strict=True):
            arrived[row // model.n_actions] -= x * self.one
            for j, p in zip(*self.weights(row), strict=True):
                arrived[j] += x * p
        residual = Fraction(sum(map(abs, arrived)), self.one * whole)
        if residual > 2 * OFF_ONE:
            raise RefusedError(f"the long-run shares are not stationary: they are off by {float(residual):.3g}")
        for i, cost in enumerate(model.costs):
            differences = (Fraction(cost[row]) - Fraction(averages[i]) for row in pairs)
            mean = sum((Fraction(x) * c for x, c in zip(shares, differences, strict=True)), Fraction(0))
            if abs(mean) > ROUGHER * Fraction(tolerances[i]):
                raise RefusedError(f"by the long-run shares, {model.cost_names[i]!r} differs by {float(mean):.3g}")

    def ranges(self) -> list[Fraction]:
        """Return the range of every cost over the reachable pairs; of a constant cost its size, or 1.

        It is at least ``NEARLY_CONSTANT`` of the size: with the tolerances below, that is the precision of doubles.
        """
        model, result = self.model, []
        pairs = [row for s in self.reached(model.actions) for row in model.actions(s)]
        for cost, threshold in zip(model.costs, (0.0, *model.thresholds), strict=True):
            values = [cost[row] for row in pairs]
            low, high = Fraction(min(values)), Fraction(max(values))
            size = max(abs(low), abs(high), abs(Fraction(threshold)))
            result.append(max(high - low or abs(low) or Fraction(1), NEARLY_CONSTANT * size))
        return result

    def tolerances(self) -> tuple[Fraction, list[Fraction], list[Fraction]]:
        """Return the stated tolerances of the bound, the averages and the limits; refuse large ones."""
        stated = self.proof.get("tolerances")
        if not isinstance(stated, dict):
            raise BadInputError("'tolerances' must be a table")
        given = [
            *self.numbers({"bound": [stated.get("bound")]}, "bound", 1),
            *self.numbers(stated, "averages", self.m + 1),
            *self.numbers(stated, "limits", self.m),
        ]
        ranges = self.ranges()
        prices = self.exact_numbers(self.proof, "multipliers", self.m)
        weights = [0.0 if self.proof["status"] == INFEASIBLE else 1.0, *prices]
        size = sum(Fraction(w) * x for w, x in zip(weights, ranges, strict=True))
        largest = [LARGEST_GAP * size, *(LARGEST_EXCESS * x for x in (*ranges, *ranges[1:]))]
        for tolerance, most in zip(given, largest, strict=True):
            if not 0 <= Fraction(tolerance) <= most:
                raise RefusedError(
                    f"a tolerance of {tolerance:.3g} is too large to prove anything; at most {float(most):.3g}"
                )
        exact = [Fraction(x) for x in given]
        return exact[0], exact[1 : self.m + 2], exact[self.m + 2 :]

    def mixture(self) -> list[tuple[Fraction, Fraction]]:
        """Return bounds on the averages of what is played: one policy, or a mixture of several."""
        policies = self.proof.get("policies")
        if not isinstance(policies, list) or not policies or not all(isinstance(x, dict) for x in policies):
            raise BadInputError("'policies' must be a list of tables")
        shares = [
            Fraction(x) for x in self.numbers({"share": [x.get("share") for x in policies]}, "share", len(policies))
        ]
        if not is_distribution(shares):
            raise RefusedError("the shares of the policies are not a distribution")
        found, total = [self.averages(policy) for policy in policies], sum(shares, Fraction(0))

        def mean(i: int, end: int) -> Fraction:
            return sum((x * one[i][end] for x, one in zip(shares, found, strict=True)), Fraction(0)) / total

        return [(mean(i, 0), mean(i, 1)) for i in range(self.m + 1)]

    def check_identity(self) -> None:
        """Check that the proof is about this model."""
        model, proof = self.model, self.proof
        if proof.get("status") not in STATUSES:
            raise RefusedError(f"status {proof.get('status')!r} is none that can be proven: {', '.join(STATUSES)}")
        if proof.get("model") != model.digest():
            raise RefusedError("the proof is of another model: transitions, available actions or costs differ")
        for i, tau in enumerate(self.numbers(proof, "thresholds", self.m)):
            if tau != model.thresholds[i]:
                shown = model.shown(i + 1, tau), model.shown(i + 1, model.thresholds[i])
                raise RefusedError(
                    f"the proof is for a threshold of {shown[0]} on {model.cost_names[i + 1]!r}, not {shown[1]}"
                )
        if not is_distribution([Fraction(x) for x in model.initial]):
            raise RefusedError("the initial distribution of the model is none")

    def check(self) -> list[str]:
        """Return the lines of the verdict, or raise ``RefusedError``."""
        self.check_identity()
        model, status, names = self.model, self.proof["status"], self.model.cost_names
        slack, within, over = self.tolerances()
        stated = self.numbers(self.proof, "averages", self.m + 1)
        found = self.mixture()
        for i, (low, high) in enumerate(found):
            off = max(high - Fraction(stated[i]), Fraction(stated[i]) - low)
            if off > within[i]:
                ends = " to ".join(sorted(model.shown(i, x) for x in (low, high)))
                raise RefusedError(
                    f"the average of {names[i]!r} is {ends}, not {model.shown(i, stated[i])}: "
                    f"off by up to {float(off):.3g}, tolerance {float(within[i]):.3g}"
                )
        self.check_shares(stated, [float(x) for x in within])
        lower, where = self.lower_bound()
        claimed = Fraction(self.numbers({"bound": [self.proof.get("bound")]}, "bound", 1)[0])
        if abs(lower - claimed) > max(slack, Fraction(math.ulp(claimed))):
            raise RefusedError(
                f"the bound is {float(lower):.10g}, not {float(claimed):.10g}, as {where} shows; "
                f"off by {float(abs(lower - claimed)):.3g}, tolerance {float(slack):.3g}"
            )
        if status == INFEASIBLE:
            if lower <= 0:
                raise RefusedError(
                    f"the weighted excess is only bounded by {float(lower):.3g}, not above 0, at {where}"
                )
            return [f"every policy exceeds the thresholds: their weighted excess is at least {float(lower):.10g}"]
        return self.check_limits(found, lower, slack, over)

    def check_limits(
        self, found: list[tuple[Fraction, Fraction]], lower: Fraction, slack: Fraction, over: list[Fraction]
    ) -> list[str]:
        """Check that every limit is kept and, if the status is optimal, that the gap is closed."""
        model, names = self.model, self.model.cost_names
        given = self.proof.get("units")
        units: dict[str, str] = given if isinstance(given, dict) else {}
        gap = found[0][1] - lower
        lines = [
            f"{names[0]}: {model.shown(0, found[0][1])} {units.get(names[0], '')}".rstrip()
            + f"; no policy within the limits is better by more than {max(float(gap), 0.0):.2g}"
        ]
        for i, (_, high) in enumerate(found[1:]):
            name, excess = names[i + 1], high - Fraction(model.thresholds[i])
            if excess > over[i]:
                raise RefusedError(
                    f"the limit on {name!r} is exceeded by {float(excess):.3g}, tolerance {float(over[i]):.3g}: "
                    f"{model.shown(i + 1, high)} against {model.shown(i + 1, model.thresholds[i])}"
                )
            kept = "kept" if excess <= 0 else f"kept within {float(excess):.2g}"
            unit = f" {units.get(name, '')}".rstrip()
            lines.append(f"limit on {name}: {kept}{unit if excess > 0 else ''}, at {model.shown(i + 1, high)}{unit}")
        if self.proof["status"] == OPTIMAL and gap > slack:
            raise RefusedError(f"the gap of {float(gap):.3g} is open; tolerance {float(slack):.3g}")
        return lines


def npz_model(path: Path) -> Model:
    """Read a model from the ``.npz`` format of psconrl, without NumPy."""
    with zipfile.ZipFile(path) as archive:
        names = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        if sum(member.file_size for member in names.values()) > 1100 * path.stat().st_size + 10**6:
            raise BadInputError("the directory claims more than its members can unpack to")

        def member(name: str) -> tuple[tuple[int, ...], str, bytes]:
            content = archive.read(names[name])
            wide = 2 if content[6] == 1 else 4
            start = 8 + wide + int.from_bytes(content[8 : 8 + wide], "little")
            header = ast.literal_eval(content[8 + wide : start].decode("latin1"))
            if header["fortran_order"] and len(header["shape"]) > 1:
                raise BadInputError(f"{name}: arrays must be stored row by row")
            return header["shape"], header["descr"], content[start:]

        def values(name: str) -> tuple[tuple[int, ...], Any]:
            shape, kind, content = member(name)
            if kind not in KINDS:
                raise BadInputError(f"{name}: numbers of type {kind} are not known")
            found = array(KINDS[kind], content).tolist()
            if min(shape, default=0) < 0 or math.prod(shape) != len(found):
                raise BadInputError(f"{name}: claims to have shape {shape}")
            return shape, found

        header = json.loads(member("header")[2].decode("utf-32-le"))
        if header.get("format") != "psconrl-cmdp":
            raise BadInputError("this is no model file of psconrl")
        (q, S, A), costs = values("costs")
        if not costs:
            raise BadInputError("the model has no costs")
        if "transition" in names:
            start, columns, probabilities = _sparse(values("transition")[1], S)
        else:
            start, columns, probabilities = (values(f"transition_{part}")[1] for part in ("indptr", "indices", "data"))
        tables = [costs[i * S * A : (i + 1) * S * A] for i in range(q)]
        fields = {name: values(name)[1] for name in ("thresholds", "initial", "available")}
    return _model(header, S, A, start, columns, probabilities, tables, **fields)


def _sparse(entries: Sequence[float], S: int) -> tuple[list[int], list[int], list[float]]:
    places = [k for k, p in enumerate(entries) if p != 0.0]
    start, done = [0], 0
    for row in range(1, len(entries) // S + 1):
        while done < len(places) and places[done] < row * S:
            done += 1
        start.append(done)
    return start, [k % S for k in places], [entries[k] for k in places]


def json_model(path: Path) -> Model:
    """Read a model from the ``.json`` format of psconrl."""
    record = json.loads(path.read_text(encoding="utf-8"))
    tables = record["costs"]
    S, A = len(tables[0]), len(tables[0][0])
    P = record["transition"]
    if isinstance(P, dict):
        entries = sorted((int(row) * S + int(column), float(p)) for row, column, p in P["entries"])
        counts = [0] * (S * A + 1)
        for place, _ in entries:
            counts[place // S + 1] += 1
        for row in range(S * A):
            counts[row + 1] += counts[row]
        start, columns, data = counts, [place % S for place, _ in entries], [p for _, p in entries]
    else:
        start, columns, data = _sparse([float(p) for rows in P for row in rows for p in row], S)
    available = [int(x) for row in record.get("available", [[1] * A] * S) for x in row]
    flat = [[float(c) for row in table for c in row] for table in tables]
    thresholds, initial = [[float(x) for x in record[name]] for name in ("thresholds", "initial")]
    return _model(record, S, A, start, columns, data, flat, thresholds, initial, available)


def _model(
    header: dict[str, Any], S: int, A: int, start: Any, columns: Any, data: Any, costs: Any,
    thresholds: Any, initial: Any, available: Any,
) -> Model:  # fmt: skip
    names = [str(name) for name in header.get("cost_names") or (f"cost {i}" for i in range(len(costs)))]
    negated = set(header.get("at_least", ())) | ({names[0]} if header.get("maximise") else set())
    sizes = len(start) - 1, len(available), len(initial), len(thresholds) + 1, len(names), len(data), start[-1]
    if sizes != (S * A, S * A, S, len(costs), len(costs), len(columns), len(columns)):
        raise BadInputError("the sizes of its arrays do not fit together")
    for row in range(S * A):
        here = columns[start[row] : start[row + 1]]
        if start[row] > start[row + 1] or any(not 0 <= j < S for j in here) or any(map(int.__ge__, here, here[1:])):
            raise BadInputError(f"row {row} of the transitions is not sorted, or names a state that does not exist")
    return Model(
        S, A, start, columns, data, costs, thresholds, initial, available, names,
        header.get("state_names"), header.get("action_names"), frozenset(negated),
    )  # fmt: skip


def read_proof(path: Path) -> dict[str, Any]:
    """Read a proof."""
    proof = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(proof, dict) or proof.get("format") != FORMAT:
        raise BadInputError(f"this is no {FORMAT} file")
    if proof.get("version") != VERSION:
        raise BadInputError(f"version {proof.get('version')!r} of the format is not known here (newest: {VERSION})")
    return proof


def with_thresholds(model: Model, given: Sequence[str]) -> Model:
    """Return a model with other thresholds, each given as NAME=VALUE."""
    thresholds = list(model.thresholds)
    for text in given:
        name, _, value = text.rpartition("=")
        if name not in model.cost_names[1:]:
            raise BadInputError(f"--threshold {text}: the constrained costs are {', '.join(model.cost_names[1:])}")
        thresholds[list(model.cost_names).index(name) - 1] = -float(value) if name in model.negated else float(value)
    return replace(model, thresholds=thresholds)


def check(model: Model, proof: dict[str, Any]) -> list[str]:
    """Return what is proven, in lines; raise ``RefusedError``, or ``BadInputError`` if the proof is damaged."""
    try:
        return Checker(model, proof).check()
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise BadInputError(f"damaged ({type(error).__name__}: {error})") from None


def _clean(text: str) -> str:
    """Replace control characters, which names in a file may hold."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def _main(arguments: Sequence[str] | None = None) -> int:
    """Check a proof from the command line, and return the exit code."""
    parser = argparse.ArgumentParser(description="Check a proof against a model, in exact arithmetic.")
    parser.add_argument("model", type=Path, help="a .npz or .json file, as psconrl.save writes it")
    parser.add_argument("proof", type=Path, help="a .json file, as plan.save_proof writes it")
    parser.add_argument("--threshold", action="append", default=[], metavar="NAME=VALUE", help="change a limit")
    given = parser.parse_args(arguments)
    reading = given.model
    try:
        model = with_thresholds(
            json_model(reading) if reading.suffix == ".json" else npz_model(reading), given.threshold
        )
        reading = given.proof
        proof = read_proof(reading)
        lines = check(model, proof)
    except RefusedError as refused:
        print(_clean(f"REFUSED: {refused}"))
        return 1
    except Exception as error:  # zip, zlib, JSON and the parser of headers each raise their own errors
        print(
            f"{reading}: {error if isinstance(error, BadInputError | OSError) else type(error).__name__}",
            file=sys.stderr,
        )
        return 2
    print(*map(_clean, (f"PROVEN: {proof['status']}", *lines)), sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
