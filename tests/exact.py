"""Reference solver in rational arithmetic: evaluates every deterministic policy of a tiny model without rounding.

For every weighting of the costs some deterministic stationary policy is optimal from all states, among all policies
with memory (Puterman 1994, section 9.1). So the closed convex hull of what all policies can attain from an initial
distribution has the same support function as the averages of the deterministic ones, and is their convex hull: what
mixtures of deterministic policies, drawn at the start, attain (Derman 1970, chapter 7; Hordijk and Kallenberg 1984).
The numbers of a model are taken as the doubles they are; the diagonal entry of a row is one minus the rest.
"""

from fractions import Fraction

import numpy as np

from exact_simplex import ONE, ZERO, least, least_within
from psconrl import CMDP
from psconrl.planning.exact.judgement import BEYOND_DOUBLES

_last_points = {}  # thresholds are chosen from the averages of the policies, which are needed again for the optimum


def rationals(values):
    return [Fraction(float(x)) for x in values]


def exact_rows(cmdp: CMDP):
    """The transitions of every pair: staying is what moving leaves; moves that exceed one are divided by their sum."""
    found = []
    for pair, values in enumerate(np.asarray(cmdp.transition)):
        row, s = rationals(values), pair // cmdp.n_actions
        row[s] = ZERO
        moving = max(sum(row, ZERO), ONE)
        row = [x / moving for x in row]
        row[s] = ONE - sum(row, ZERO)
        found.append(row)
    return found


def closed_classes(rows):
    """The closed classes of a chain given as rows of Fractions."""
    n = len(rows)
    reach = [{s} for s in range(n)]
    after = [[j for j, p in enumerate(row) if p.numerator > 0] for row in rows]
    for s in range(n):
        stack = [s]
        while stack:
            for j in after[stack.pop()]:
                if j not in reach[s]:
                    reach[s].add(j)
                    stack.append(j)
    return {frozenset(reach[s]) for s in range(n) if all(reach[j] == reach[s] for j in reach[s])}


def stationary(rows, states):
    """The stationary distribution of a closed class, by censoring one state after the other."""
    states = sorted(states)
    W = [[rows[i][j] for j in states] for i in states]
    n = len(states)
    for k in range(n - 1, 0, -1):
        out = sum(W[k][:k], ZERO)
        for i in range(k):
            if W[i][k]:
                W[i][k] /= out
                for j in range(k):
                    if W[k][j]:
                        W[i][j] += W[i][k] * W[k][j]
    mass = [ONE]
    for k in range(1, n):
        mass.append(sum((mass[i] * W[i][k] for i in range(k)), ZERO))
    total = sum(mass, ZERO)
    return {s: x / total for s, x in zip(states, mass, strict=True)}


def chain_of(P, policy):
    """The chain (S, S) of a policy (S, A) of Fractions; the diagonal is what is left."""
    S, A = len(policy), len(policy[0])
    rows = []
    for s in range(S):
        row = [sum((policy[s][a] * P[s * A + a][j] for a in range(A)), ZERO) for j in range(S)]
        row[s] = ONE - sum((x for j, x in enumerate(row) if j != s), ZERO)
        rows.append(row)
    return rows


def reached_policies(cmdp: CMDP, P):
    """The deterministic policies, each on the states that it reaches from the initial distribution: {state: action}."""
    A = cmdp.n_actions
    successors = [{j for j, p in enumerate(row) if p > 0} for row in P]
    actions = [np.flatnonzero(mask).tolist() for mask in cmdp.available]

    def extended(policy, reached):
        s = min(reached - policy.keys(), default=None)
        if s is None:
            yield policy
            return
        for a in actions[s]:
            yield from extended({**policy, s: a}, reached | successors[s * A + a])

    return extended({}, set(np.flatnonzero(cmdp.initial > 0).tolist()))


def number_of_policies(cmdp: CMDP, most):
    """The number of ``reached_policies``, counted up to ``most`` + 1."""
    found = 0
    for _ in reached_policies(cmdp, np.asarray(cmdp.transition).tolist()):
        found += 1
        if found > most:
            break
    return found


def ends(cmdp: CMDP):
    """For every deterministic policy: its actions, and probability and distribution of the classes where it ends."""
    S, A = cmdp.n_states, cmdp.n_actions
    P = exact_rows(cmdp)
    start = distribution(cmdp.initial)
    for policy in reached_policies(cmdp, P):
        rows = [P[s * A + policy[s]] if s in policy else [ZERO] * S for s in range(S)]
        classes = [states for states in closed_classes(rows) if states <= policy.keys()]
        recurrent = set().union(*classes) | (set(range(S)) - policy.keys())
        shares = [shares_of(rows, recurrent, states, start) for states in classes]
        yield policy, [(x, stationary(rows, states)) for x, states in zip(shares, classes, strict=True)]


def distribution(values):
    exact = rationals(values)
    return [x / sum(exact, ZERO) for x in exact]


def shares_of(rows, recurrent, states, start):
    """The probability of ending in a class."""
    return sum((start[s] for s in states), ZERO) + absorbed(rows, recurrent, set(states), start)


def points(cmdp: CMDP):
    """The averages (m+1,) of every deterministic policy from the initial distribution; those of the last model stay."""
    parts = np.asarray(cmdp.transition), cmdp.costs, cmdp.initial, cmdp.available
    key = tuple((x.shape, x.tobytes()) for x in parts)
    if key not in _last_points:
        _last_points.clear()
        _last_points[key] = _points(cmdp)
    return _last_points[key]


def _points(cmdp: CMDP):
    C = [[rationals(row) for row in table] for table in cmdp.costs]
    found = set()
    for policy, classes in ends(cmdp):
        found.add(
            tuple(sum((share * x * c[s][policy[s]] for share, mu in classes for s, x in mu.items()), ZERO) for c in C)
        )
    return sorted(found)


def optimum(cmdp: CMDP, reached=None):
    """The exact optimal value, as a cost, or None if infeasible; and the least that the largest excess can be."""
    reached = points(cmdp) if reached is None else reached
    tau = rationals(cmdp.thresholds)
    if not tau:
        return min(p[0] for p in reached), ZERO
    excess = least_excess(reached, tau)
    return (None if excess > 0 else least_cost(reached, tau)), excess


def least_cost(reached, tau):
    """The least cost of a mixture of points (m+1,) within the limits; None if there is none."""
    return least_within([p[0] for p in reached], [[p[i + 1] for p in reached] for i in range(len(tau))], tau)


def least_excess(reached, tau):
    """The least of the largest excess of a mixture of points over the limits; zero if it can meet them."""
    m, n = len(tau), len(reached)
    rows = [[-ONE, *(p[i + 1] - tau[i] for p in reached), *(Fraction(int(i == k)) for k in range(m))] for i in range(m)]
    return least([ONE, *([ZERO] * (n + m))], [*rows, [ZERO, *([ONE] * n), *([ZERO] * m)]], [*([ZERO] * m), ONE])


def averages(cmdp: CMDP, policy):
    """The exact averages (m+1,) of a stationary policy from the initial distribution."""
    P = exact_rows(cmdp)
    pi = []
    for row in policy:
        pi.append(distribution(row))
    rows = chain_of(P, pi)
    classes = [sorted(states) for states in closed_classes(rows)]
    recurrent = {s for states in classes for s in states}
    result = [ZERO] * len(cmdp.costs)
    start = distribution(cmdp.initial)
    for states in classes:
        share = shares_of(rows, recurrent, states, start)
        mu = stationary(rows, states)
        for i, table in enumerate(cmdp.costs):
            cost = [sum((p * Fraction(float(c)) for p, c in zip(pi[s], table[s], strict=True)), ZERO) for s in states]
            result[i] += share * sum((mu[s] * c for s, c in zip(states, cost, strict=True)), ZERO)
    return result


def absorbed(rows, recurrent, states, start):
    """The probability of being absorbed in a class from the transient part of the initial distribution."""
    transient = [s for s in range(len(rows)) if s not in recurrent]
    W = [[rows[i][j] for j in transient] for i in transient]
    x = [sum((rows[i][j] for j in states), ZERO) for i in transient]
    n = len(transient)
    for k in range(n - 1, -1, -1):
        stay = ONE - W[k][k]
        for i in range(n):
            if i != k and W[i][k]:
                factor = W[i][k] / stay
                x[i] += factor * x[k]
                for j in range(n):
                    W[i][j] += factor * W[k][j] if j != k else ZERO
                W[i][k] = ZERO
    x = [x[k] / (ONE - W[k][k]) for k in range(n)]
    return sum((start[s] * p for s, p in zip(transient, x, strict=True)), ZERO)


def in_rationals(plan) -> bool:
    """Whether the proof of a plan is the one of ``plan.exact``, since doubles cannot hold it."""
    return plan.exact is not None and BEYOND_DOUBLES in plan.note


def multipliers(plan) -> list[Fraction]:
    """The multipliers of the proof of a plan."""
    return list(plan.exact.multipliers) if in_rationals(plan) else rationals(plan.multipliers)


def potential(plan) -> list[Fraction]:
    """The potential of the proof of a plan."""
    if in_rationals(plan):
        return list(plan.exact.potential)
    return [x + y for x, y in zip(rationals(plan.potential), rationals(plan.low_potential), strict=True)]


def reduced_costs(cmdp: CMDP, plan, weights):
    """The weighted costs w0 c0 + sum_i wi (ci - tau_i) + P h - h of every available pair, {state: {action: value}}."""
    h = potential(plan)
    base = [ZERO, *rationals(cmdp.thresholds)]
    A = cmdp.n_actions
    P = np.asarray(cmdp.transition)
    found = {s: {} for s in range(cmdp.n_states)}
    for s, a in np.argwhere(cmdp.available).tolist():
        value = sum(
            (w * (Fraction(float(c)) - b) for w, c, b in zip(weights, cmdp.costs[:, s, a], base, strict=True)), ZERO
        )
        for j in np.flatnonzero(P[s * A + a]).tolist():
            if j != s:
                value += Fraction(float(P[s * A + a, j])) * (h[j] - h[s])
        found[s][a] = value
    return found


def reachable(cmdp: CMDP):
    """The states that some policy reaches from the initial distribution."""
    P = np.asarray(cmdp.transition).reshape(cmdp.n_states, cmdp.n_actions, -1)
    reached = set(np.flatnonzero(cmdp.initial > 0).tolist())
    stack = list(reached)
    while stack:
        new = set(np.flatnonzero((P[stack.pop()] > 0).any(axis=0)).tolist()) - reached
        reached |= new
        stack += new
    return reached


def rational_bound(cmdp: CMDP, plan, objective=1):
    """The lower bound of a plan's certificate, min of c0 + lam (c - tau) + P h - h, without rounding.

    With an ``objective`` of zero it is the margin by which the multipliers prove infeasibility.
    """
    reduced = reduced_costs(cmdp, plan, [Fraction(objective), *multipliers(plan)])
    return min(min(reduced[s].values()) for s in reachable(cmdp))


def rational_bound_by_components(cmdp: CMDP, plan, objective=1):
    """The bound of a multichain certificate: a path ends in a component, and costs the least reduced cost there."""
    reduced = reduced_costs(cmdp, plan, [Fraction(objective), *multipliers(plan)])
    paid = {}
    for pairs in end_components(cmdp):
        lowest = min(reduced[s][a] for s, a in pairs)
        paid |= {s: lowest for s, _ in pairs}
    return min(sum((share * paid[next(iter(mu))] for share, mu in classes), ZERO) for _, classes in ends(cmdp))


def end_components(cmdp: CMDP):
    """The maximal end components, each as a set of pairs (s, a)."""
    P = np.asarray(cmdp.transition).reshape(cmdp.n_states, cmdp.n_actions, -1) > 0
    pairs = {(int(s), int(a)) for s, a in np.argwhere(cmdp.available)}
    while True:
        reach = np.eye(cmdp.n_states, dtype=bool)
        for s, a in pairs:
            reach[s] |= P[s, a]
        for k in range(cmdp.n_states):
            reach |= reach[:, k : k + 1] & reach[k]
        together = reach & reach.T
        kept = {(s, a) for s, a in pairs if not (P[s, a] & ~together[s]).any()}
        if kept == pairs:
            break
        pairs = kept
    found = {}
    for s, a in pairs:
        found.setdefault(together[s].tobytes(), set()).add((s, a))
    return list(found.values())
