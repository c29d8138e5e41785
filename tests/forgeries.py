"""Proofs that claim more than is true, and a referee for what the checker accepts.

The referee knows the exact optimum of a tiny model, by trial of all its deterministic policies (``exact``). Every
statement of an accepted proof is compared with it: as the theorem in ``docs/proofs.md`` has it, and as it is printed.
"""

import copy
import random
from collections import Counter
from contextlib import suppress
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from damage.trees import tree_changed
from exact import averages, number_of_policies, optimum, points, rationals, reachable
from exact_families import FAMILIES, MOST_POLICIES, drawn
from psconrl import CMDP, check_proof, plan
from psconrl.errors import PsconrlError
from psconrl.planning.exact.proof_records import vector_record
from psconrl.planning.exact.rational_model import RationalModel
from psconrl.planning.proof.proof_files import _policy, plain_model, proof_of

DUAL = ("potential", "low_potential", "gains", "moves")
PRICES = (1.0, 1e3, 1e9, 1e12, 1e15, 1e100)
SCALES = (1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e9, 1e15, 1e100)


# The referee.


def unit(cmdp: CMDP, i: int, average: Fraction) -> Fraction:
    """The unit of a deviation of cost i from an average, as ``docs/proofs.md`` defines it."""
    reached = sorted(reachable(cmdp))
    values = sorted({x for s in reached for x in rationals(cmdp.costs[i, s][cmdp.available[s]])})
    a, b = values[0], values[-1]
    if a == b:
        return abs(a) or Fraction(1)
    above = max(b - average, b - values[-2])
    met = 200 * max(Fraction(0), min(average - a, above))
    return max(Fraction(1, 10**6) * max(abs(average), values[1] - a), min(b - a, met))


def claimed_averages(cmdp: CMDP, proof):
    """The exact averages of what a proof plays."""
    total = sum(rationals(policy["share"] for policy in proof["policies"]))
    result = [Fraction(0)] * len(cmdp.costs)
    for policy in proof["policies"]:
        table = np.zeros((cmdp.n_states, cmdp.n_actions))
        for s, entry in enumerate(policy["actions"]):
            for a, p in [[entry, 1.0]] if isinstance(entry, int) else entry:
                table[s, a] += p
        share = Fraction(policy["share"]) / total
        result = [x + share * y for x, y in zip(result, averages(cmdp, table), strict=True)]
    return result


def false_claims(cmdp: CMDP, proof, lines):
    """Yield what the verdict on an accepted proof says and is not true; costs have no signs or units here."""
    best, excess = optimum(cmdp)
    found = claimed_averages(cmdp, proof)
    tau = rationals(cmdp.thresholds)
    for i, (x, stated) in enumerate(zip(found, proof["averages"], strict=True)):
        if abs(x - Fraction(stated)) > 2 * Fraction(2, 10**9) * unit(cmdp, i, x):
            yield f"average {i} is {float(x)}, not {stated}"
    if lines[0] == "PROVEN: infeasible":
        if best is not None:
            yield f"infeasible, but the least excess is {float(excess)}"
        elif "or more" in lines[1]:
            i = 1 + [f"cost {k}" for k in range(1, len(tau) + 1)].index(lines[1].partition(":")[0])
            if min(p[i] for p in points(cmdp)) - tau[i - 1] < Fraction(lines[1].split()[-3]):
                yield f"not exceeded by so much: {lines[1]}"
        return
    for i, (x, limit) in enumerate(zip(found[1:], tau, strict=True), start=1):
        if x - limit > Fraction(2, 10**9) * unit(cmdp, i, limit):
            yield f"limit {i} is exceeded by {float(x - limit)}"
        allowed = (
            Fraction(0) if "kept," in lines[1 + i] else Fraction(lines[1 + i].split("kept within ")[1].split(",")[0])
        )
        if x - limit > allowed:
            yield f"limit {i} is not kept as stated: {lines[1 + i]}"
    if best is None:
        return
    gap = Fraction(lines[1].rpartition(" ")[2])
    if found[0] - best > gap:
        yield f"a policy is better by {float(found[0] - best)}, more than {gap}"
    if lines[0] == "PROVEN: optimal":
        if found[0] - best > Fraction(1, 10**9) * unit(cmdp, 0, best) / (1 - Fraction(2, 10**7)):
            yield f"not optimal: {float(found[0])} against {float(best)}"
    elif lines[0] != "PROVEN: the limits are kept":
        yield f"unknown verdict {lines[0]}"


def verdict(plain, proof):
    """Return the lines of an accepted proof, or None; any other exception than the checker's escapes."""
    try:
        return check_proof.check(plain, proof)
    except (check_proof.RefusedError, check_proof.BadInputError):
        return None


# Degenerate models.

DRAWN = [family for family in FAMILIES if family != "larger"]


def degenerate(rng: random.Random) -> CMDP:
    """Return a model whose limits have free prices, or one of a family on which planners fail."""
    while rng.random() < 0.5:
        model = drawn(rng.choice(DRAWN), rng.randrange(10**9))
        if model is not None and number_of_policies(model, MOST_POLICIES) <= MOST_POLICIES:
            return model
    return free_prices(rng)


def free_prices(rng: random.Random):
    """Return a model in which some prices can be raised without changing the bound."""
    draw = np.random.default_rng(rng.randrange(2**32))
    S, A = draw.integers(1, 6), 2
    P = draw.dirichlet(np.full(S, 0.4), size=(S, A))
    if rng.random() < 0.4:  # only onwards: all states but the last ones are left for good
        P = np.triu(P.swapaxes(0, 1), k=1).swapaxes(0, 1)
        P[-rng.choice((1, 2)) :] = np.eye(S)[-1]
        P[P.sum(axis=2) == 0.0] = np.eye(S)[-1]
        P /= P.sum(axis=2, keepdims=True)
    objective = draw.random((S, A)).round(rng.choice((1, 3, 17)))
    risk = draw.random((S, A)).round(rng.choice((1, 17)))
    if rng.random() < 0.2:
        objective[draw.integers(S), draw.integers(A)] = rng.choice((1e6, 1e11, 1e15))
    least = float(optimum(CMDP(P, [risk], initial=0))[0])
    most = -float(optimum(CMDP(P, [-risk], initial=0))[0])
    inside = least + draw.random() * (most - least)
    flat = np.full((S, A), rng.choice((0.0, 0.5, 1.0, 1e6)))
    costs, limits = {
        "equality": ([risk, -risk], [inside, -inside]),
        "constant": ([flat], [flat[0, 0]]),
        "least": ([risk], [least]),
        "vacuous": ([risk], [most]),
        "copies": ([risk, risk], [inside, inside]),
        "multiples": ([risk, 2 * risk, -3 * risk], [inside, 2 * inside, -3 * inside]),
        "equal to the objective": ([objective], [inside]),
        "equality at an end": ([risk, -risk], [least, -least]),
        "constant and tight": ([flat, risk], [flat[0, 0], inside]),
    }[
        rng.choice(
            ["equality", "constant", "least", "vacuous", "copies", "multiples", "equal to the objective",
             "equality at an end", "constant and tight"]
        )
    ]  # fmt: skip
    return CMDP(P, [objective, *costs], limits, initial=0)


# Forgeries.


def policy_records(cmdp: CMDP, rng: random.Random, most=4):
    """Return exact records of some policies: deterministic ones, and mixtures within a state."""
    rationals_of_model = RationalModel.of(cmdp)
    result = []
    for _ in range(most):
        table = np.zeros((cmdp.n_states, cmdp.n_actions))
        for s in range(cmdp.n_states):
            actions = np.flatnonzero(cmdp.available[s]).tolist()
            a, b = rng.choice(actions), rng.choice(actions)
            p = rng.choice((1.0, 1.0, 0.5, 1e-3, 1e-7, 1e-9, 1e-10))
            table[s, a] += 1.0 - p
            table[s, b] += p
        result.append(_policy(cmdp, table, None, None, rationals_of_model))
    return result


def consistent(plain, proof):
    """Return a proof whose averages and bound are those that its other numbers prove, where they can be found."""
    proof = copy.deepcopy(proof)
    proof.pop("occupancy", None)
    try:
        checker = check_proof.Checker(plain, proof)
        proof["averages"] = [float(high) for _, high in checker.mixture()]
        proof["bound"] = float(checker.lower_bound()[0])
    except (check_proof.RefusedError, check_proof.BadInputError, ArithmeticError, KeyError, TypeError, ValueError):
        pass
    return proof


def numbers_of(vector, n):
    """Return a vector of a proof as doubles."""
    if not isinstance(vector, dict):
        return list(vector)
    return [float(Fraction(int(x, 16), int(vector["over"], 16))) for x in vector["numbers"]][:n]


class Forger:
    """Changes the proof of a model, so that it claims more than is true."""

    def __init__(self, cmdp: CMDP, plain, honest, rng: random.Random) -> None:
        self.cmdp, self.plain, self.honest, self.rng = cmdp, plain, honest, rng
        self.others = policy_records(cmdp, rng)

    def forged(self):
        """Return a proof with a few changes; most have the averages and the bound that suit them."""
        rng, proof = self.rng, copy.deepcopy(self.honest)
        if rng.random() < 0.6:
            self.play_another(proof)
        ways = [self.play_nonsense, self.claim, self.promise, self.promise, self.bend_potential, self.swap_biases]
        ways += [self.raise_prices, self.scale_prices, self.reprice] if self.cmdp.n_constraints else []
        for _ in range(rng.choice((1, 1, 2))):
            rng.choice(ways)(proof)
        if rng.random() < 0.1:
            proof = tree_changed(proof, np.random.default_rng(rng.getrandbits(64)))
        return consistent(self.plain, proof) if isinstance(proof, dict) and rng.random() < 0.8 else proof

    def play_another(self, proof):
        """Play another policy, or a mixture with one."""
        share = self.rng.choice((1.0, 1.0, 0.5, 1e-6, 1e-8, 1e-9, 2e-9, 4e-9, 1e-10))
        kept = [policy | {"share": policy["share"] * (1.0 - share)} for policy in proof["policies"]]
        other = copy.deepcopy(self.rng.choice(self.others)) | {"share": share}
        proof["policies"] = [other] if share == 1.0 else [*kept, other]

    def play_nonsense(self, proof):
        """Play with shares, or with probabilities, beyond one and below zero."""
        rng, beyond = self.rng, self.rng.choice((0.5, 1.0, 1e-6, 10.0))
        if rng.random() < 0.5:
            kept = [policy | {"share": policy["share"] * (1.0 + beyond)} for policy in proof["policies"]]
            proof["policies"] = [*kept, copy.deepcopy(rng.choice(self.others)) | {"share": -beyond}]
        else:
            policy, s = rng.choice(proof["policies"]), rng.randrange(self.cmdp.n_states)
            policy["actions"][s] = [[0, 1.0 + beyond], [self.cmdp.n_actions - 1, -beyond]]

    def claim(self, proof):
        """Claim another status."""
        proof["status"] = self.rng.choice(("optimal", "infeasible", "stopped", "not attained"))

    def promise(self, proof):
        """Promise other gains: in all states, or in those that are left."""
        rng, S = self.rng, self.cmdp.n_states
        size = rng.choice(SCALES)
        if rng.random() < 0.3:
            proof["gains"] = [rng.choice((0.0, 1.0, size, -size, rng.random())) for _ in range(S)]
            proof["moves"] = [rng.choice((0.0, 1.0, size, rng.random())) for _ in range(S)]
            return
        last = rng.randrange(S)
        gains = numbers_of(proof["gains"], S) if proof.get("gains") else [0.0] * S
        proof["gains"] = [g + (rng.choice((size, 1.0, 0.3)) if s <= last else 0.0) for s, g in enumerate(gains)]
        proof["moves"] = [rng.choice((1.0, 2.0, size)) if s <= last else 0.0 for s in range(S)]

    def bend_potential(self, proof):
        """Add something to the potential, or take one of the biases of a policy."""
        rng, S = self.rng, self.cmdp.n_states
        size, values = rng.choice(SCALES), numbers_of(proof["potential"], S)
        if rng.random() < 0.5:
            proof["potential"] = [x + size * rng.uniform(-1, 1) for x in values]
        else:
            proof["potential"] = numbers_of(rng.choice(rng.choice(self.others)["biases"][0]), S)

    def swap_biases(self, proof):
        """Take the biases of another policy."""
        self.rng.choice(proof["policies"])["biases"] = self.rng.choice(self.others)["biases"]

    def raise_prices(self, proof):
        """Raise one price, or all of them."""
        m, raised = self.cmdp.n_constraints, self.rng.choice(PRICES)
        which = self.rng.choice([range(m), [self.rng.randrange(m)]])
        values = numbers_of(proof["multipliers"], m)
        proof["multipliers"] = [x + raised * (i in which) for i, x in enumerate(values)]

    def scale_prices(self, proof):
        """Multiply every price by something."""
        values = numbers_of(proof["multipliers"], self.cmdp.n_constraints)
        proof["multipliers"] = [x * self.rng.choice((0.0, 0.5, 2.0, *SCALES)) for x in values]

    def reprice(self, proof):
        """Take any prices, negative ones too, with the potential that suits them."""
        rng, cmdp = self.rng, self.cmdp
        prices = [rng.choice((0.0, -1.0, 1.0, 10.0, rng.uniform(-3, 3))) for _ in range(cmdp.n_constraints)]
        parts = zip(prices, cmdp.costs[1:], cmdp.thresholds, strict=True)
        weighted = cmdp.costs[0] + sum(w * (cost - tau) for w, cost, tau in parts)
        with suppress(PsconrlError):  # the sums may be beyond what a cost may be, or their plan not certified
            free = CMDP(cmdp.transition.matrix, [weighted], initial=cmdp.initial, available=cmdp.available)
            honest = proof_of(free, plan(free), plain_model(free))
            proof |= {name: honest[name] for name in DUAL if name in honest} | {"multipliers": prices}


class Found(NamedTuple):
    """What a search for forgeries of one model found."""

    seed: int
    tried: int
    verdicts: Counter
    false: list


def searched(seed: int, tries: int) -> Found:
    """Forge proofs of the model of a seed, and judge what is accepted."""
    rng = random.Random(seed)
    found = Found(seed, tries, Counter(), [])
    cmdp = degenerate(rng)
    plain = plain_model(cmdp)
    try:
        honest = proof_of(cmdp, plan(cmdp), plain, in_rationals=rng.random() < 0.5)
    except (PsconrlError, check_proof.RefusedError, check_proof.BadInputError):
        return found._replace(tried=0)
    forger = Forger(cmdp, plain, honest, rng)
    for _ in range(tries):
        proof = forger.forged()
        lines = verdict(plain, proof)
        found.verdicts[lines[0] if lines else "not accepted"] += 1
        found.false.extend(false_claims(cmdp, proof, lines) if lines else ())
    return found


def six_states():
    """The forgery that an earlier checker believed: an equality of two limits, whose prices are free."""
    rng = np.random.default_rng(6)
    P = rng.dirichlet(np.ones(6), size=(6, 2))
    risk = rng.random((6, 2))
    costs = [rng.random((6, 2)), risk, -risk]
    return CMDP(P, costs, [0.5, -0.5], initial=0)


def worst_policy_called_optimal(raised: float):
    """Return a model and a proof that the policy of the largest cost is optimal, with raised prices."""
    cmdp = six_states()
    best, worst = plan(cmdp), plan(CMDP(cmdp.transition.matrix, [-cmdp.costs[0], *cmdp.costs[1:]], cmdp.thresholds))
    plain = plain_model(cmdp)
    proof = proof_of(cmdp, best, plain)
    proof["multipliers"] = vector_record([Fraction(x) + Fraction(raised) for x in best.multipliers])
    record = _policy(cmdp, worst.policy, None, None, RationalModel.of(cmdp)) | {"share": 1.0}
    return cmdp, consistent(plain, proof | {"policies": [record]})
