r"""Random small environments for counting lost runs: what all families share.

A family is a function ``family(rng) -> CMDP``. Its draft draws transition probabilities and costs; the thresholds
follow from plans, so that the model is feasible and at least one constraint has a price:

- *binding*: between the least reachable average and the average at the optimum without this constraint;
- *nearly binding*: slightly above the average at the optimum;
- *free*: above the largest reachable average;
- *twice*: the binding constraint stated again, with the same threshold or a larger one.

All costs are scaled to [0, 1], so that they can be probabilities of Bernoulli costs. Actions are permuted, and so is
the order of the constraints.

Some environments cannot tell whether a run is lost: uniform play is nearly optimal, or luck decides. At the optimum,
the regret at shadow prices is a martingale up to a bounded term. With the potential h of the Lagrangian
:math:`c_0 + \lambda^\top c`, each of its steps has the variance

.. math:: v = \sum_{s,a} \mu(s,a) \left[ \mathrm{Var}_{s'} h(s') + \textstyle\sum_i \lambda_i^2 c_i (1 - c_i) \right],

where :math:`\lambda_0 = 1` and the second term is for Bernoulli costs. An environment is drawn again unless a fifth of
the loss of uniform play in 2,500 rounds is at least three standard deviations of the optimum, :math:`\sqrt{2500 v}`.
"""

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple

import numpy as np

import psconrl

Draft = tuple[np.ndarray, list[np.ndarray]]  # (S, A, S); (S, A) each: the objective, and the costs of constraints
Family = Callable[[np.random.Generator], psconrl.CMDP]

KINDS = ("known", "learned", "noisy")  # what is known of the costs; rotates over the members of a family
QUARTER = 2_500  # a quarter of the usual rounds
LAST_SHARE = 0.2  # see lost_runs
LEAST_LOSS = 0.03  # of uniform play in a round, in ranges of the objective
DEVIATIONS = 3.0
LEAST_SLACK = 0.005  # of the constraint that binds, in ranges of its cost
PRICES = (0.02, 20.0)  # the sum of the prices lies between
MAX_DRAWS = 20_000


class Reference(NamedTuple):
    """What is known of an environment before any agent is played."""

    value: float  # certified lower bound of the optimal objective
    prices: np.ndarray  # (m,)
    uniform: float  # loss of uniform play in a round: regret and twice the price of overspending
    variance: float  # of the optimum's regret at shadow prices in a round
    bernoulli: float  # the same with Bernoulli costs


def reference(cmdp: psconrl.CMDP) -> Reference | None:
    """Return the optimum, its prices, the loss of uniform play and the luck of optimal play; None if unproven."""
    best = psconrl.plan(cmdp)
    if best.status not in (psconrl.Status.OPTIMAL, psconrl.Status.NOT_ATTAINED):
        return None
    S, A = cmdp.n_states, cmdp.n_actions
    averages = psconrl.evaluate(cmdp, np.full((S, A), 1.0 / A)).costs
    value, prices = float(best.certificate.lower), np.maximum(best.multipliers, 0.0)
    over = np.maximum(averages[1:] - cmdp.thresholds, 0.0)
    P, h, mu = cmdp.transition.toarray().reshape(S, A, S), best.potential, best.occupancy
    steps = np.maximum(P @ h**2 - (P @ h) ** 2, 0.0)
    weights = np.concatenate([[1.0], prices])[:, None, None] ** 2
    noise = (weights * cmdp.costs * (1.0 - cmdp.costs)).sum(axis=0)
    uniform = float(averages[0] - value + 2.0 * over @ prices)
    return Reference(value, prices, uniform, float((mu * steps).sum()), float((mu * (steps + noise)).sum()))


def can_be_judged(known: Reference, kind: str) -> bool:
    """Whether uniform play is clearly worse than the optimum, and luck does not decide which runs are lost."""
    luck = np.sqrt(QUARTER * (known.bernoulli if kind == "noisy" else known.variance))
    fifth = LAST_SHARE * QUARTER * known.uniform
    return bool(known.uniform >= LEAST_LOSS and fifth >= DEVIATIONS * luck)


def member(family: Family, index: int, number: int) -> tuple[psconrl.CMDP, Reference, str]:
    """Return an environment of a family, its reference, and what is known of its costs.

    It is a function of the index of the family and the number alone.
    """
    rng, kind = np.random.default_rng(np.random.SeedSequence([index, number])), KINDS[number % len(KINDS)]
    for _ in range(MAX_DRAWS):
        cmdp = family(rng)
        known = reference(cmdp)
        if known is not None and can_be_judged(known, kind):
            return cmdp, known, kind
    raise RuntimeError(f"family {index}, number {number}: nothing that can be judged in {MAX_DRAWS:,} draws")


def family(
    tight: float = 0.15, extras: tuple[str, ...] | None = None
) -> Callable[[Callable[[np.random.Generator], Draft]], Family]:
    """Turn a draft into a family.

    ``tight``: the share of members whose threshold is close to the least reachable average. ``extras``: the further
    constraints; by default none, one or two are drawn.
    """

    def decorate(draft: Callable[[np.random.Generator], Draft]) -> Family:
        @wraps(draft)
        def draw(rng: np.random.Generator) -> psconrl.CMDP:
            for _ in range(MAX_DRAWS):
                P, costs = draft(rng)
                cmdp = limited(rng, P, costs, tight, extras)
                if cmdp is not None:
                    return cmdp
            raise RuntimeError(f"{draft.__name__}: no model in {MAX_DRAWS:,} draws")

        return draw

    return decorate


def limited(
    rng: np.random.Generator, P: np.ndarray, costs: list[np.ndarray], tight: float, extras: tuple[str, ...] | None
) -> psconrl.CMDP | None:
    """Return a model with thresholds, or None if no threshold on the first cost is worth anything."""
    S, A, _ = P.shape
    order = rng.permutation(A)
    P, scaled = P[:, order], [_scaled(c[:, order]) for c in costs]
    if any(c is None for c in scaled):
        return None
    objective, first, *others = (c for c in scaled if c is not None)
    if not psconrl.CMDP(P, objective[None]).transition.communicates:
        return None
    share = rng.uniform(0.02, 0.1) if rng.random() < tight else rng.uniform(0.1, 0.9)
    limit = _between(P, objective, first, [], [], share)
    if limit is None:
        return None
    kept, limits = [first], [limit]
    if extras is None:
        extras = tuple(rng.choice(["binding", "near", "free", "twice"], size=rng.choice(3, p=[0.3, 0.4, 0.3])))
    for extra in extras:
        cost = first if extra == "twice" else others.pop(0) if others else _any_cost(rng, S, A)
        if extra == "twice":
            found: float | None = limits[0] + (0.0 if rng.random() < 0.3 else rng.uniform(0.02, 0.5))
        elif extra == "free":
            found = 0.05 - _averages(P, [-cost], [])[0]
        elif extra == "near":
            found = _averages(P, [objective, *kept, cost], [*limits, 2.0])[-1] + rng.uniform(0.005, 0.03)
        else:
            found = _between(P, objective, cost, kept, limits, rng.uniform(0.2, 0.9))
        if found is None:
            return None
        kept.append(cost)
        limits.append(found)
    places = rng.permutation(len(kept))
    cmdp = psconrl.CMDP(P, [objective, *(kept[k] for k in places)], [limits[k] for k in places])
    known = reference(cmdp)
    return cmdp if known is not None and PRICES[0] <= known.prices.sum() <= PRICES[1] else None


def _between(
    P: np.ndarray, objective: np.ndarray, cost: np.ndarray, kept: list[np.ndarray], limits: list[float], share: float
) -> float | None:
    """Return a threshold for a cost between its least average and that at the optimum, given the earlier limits."""
    least = _averages(P, [cost, *kept], limits)[0]
    most = _averages(P, [objective, *kept, cost], [*limits, 2.0])[-1]
    slack = share * (most - least)
    return float(least + slack) if slack >= LEAST_SLACK else None


def _averages(P: np.ndarray, costs: list[np.ndarray], limits: list[float]) -> np.ndarray:
    return psconrl.plan(psconrl.CMDP(P, costs, limits)).costs


def _scaled(cost: np.ndarray) -> np.ndarray | None:
    """Return the cost with its least value at 0 and its largest at 1; None if it is constant."""
    low, high = float(cost.min()), float(cost.max())
    return (cost - low) / (high - low) if high - low > 1e-9 else None


def _any_cost(rng: np.random.Generator, S: int, A: int) -> np.ndarray:
    """Return a further cost: uniform, or 1 in some pairs."""
    cost = rng.random((S, A)) if rng.random() < 0.5 else (rng.random((S, A)) < 0.3).astype(float)
    cost.flat[rng.integers(cost.size)] = 1.0
    return cost


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def show(families: dict[str, Family], first_index: int, each: int = 3) -> None:
    """List the first members of every family, with their prices and the loss of uniform play."""
    for index, (name, draw) in enumerate(families.items(), first_index):
        for number in range(each):
            cmdp, known, kind = member(draw, index, number)
            prices = " ".join(f"{price:.3g}" for price in known.prices)
            print(
                f"{name}/{number}: {cmdp}, costs {kind}, value {known.value:.4g}, prices {prices}, "
                f"uniform play loses {known.uniform:.3g} a round"
            )
