"""The model of a trade by enumeration of its plain rules, its linear program, and the averages of a policy.

Nothing of psconrl is used here. The program is over the stationary frequencies of states and actions: the flow into a
state is that out of it. A ratio as objective is scaled so that its denominator has the average 1 (Charnes and Cooper
1962). An expected shortfall is limited at every level in turn, and the best level counts.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from trades.trade import Limit, Numbers, Trade, Values

Floats = NDArray[np.float64]
Key = tuple[Any, ...]
ROUNDING = 1e-9  # of shares


class OwnModel(NamedTuple):
    """States that can be reached, pairs of a state and an action, and what happens in them."""

    states: list[Values]
    pairs: list[tuple[int, Values]]
    transitions: Floats  # (pairs, states)
    amounts: dict[str, Floats]  # means by pair
    distributions: dict[str, list[dict[float, float]]]  # of amounts of which a shortfall is limited, by pair


def key(values: Values) -> Key:
    """Return a state or action as a tuple.

    >>> key({"a": 1, "b": "x"})
    (1, 'x')
    """
    return tuple(values.values())


def enumerated(trade: Trade, numbers: Numbers) -> OwnModel:
    """Return the model of a trade, with all parameters given."""
    states, at = [trade.start], {key(trade.start): 0}
    pairs: list[tuple[int, Values]] = []
    moves: list[dict[int, float]] = []
    means: list[dict[str, float]] = []
    spread: list[dict[str, dict[float, float]]] = []
    tails = [limit.amount for limit in trade.limits.values() if limit.worst]
    for s, state in enumerate(states):  # grows
        for action in trade.actions(state):
            move: dict[int, float] = {}
            mean: dict[str, float] = {}
            tail: dict[str, dict[float, float]] = {name: {} for name in tails}
            for probability, noise in _outcomes(trade, state, action, numbers):
                then = trade.step(state, action, noise)
                t = at.setdefault(key(then), len(states))
                if t == len(states):
                    states.append(then)
                move[t] = move.get(t, 0.0) + probability
                for name, amount in trade.amounts(state, action, noise, then).items():
                    mean[name] = mean.get(name, 0.0) + probability * amount
                    if name in tail:
                        tail[name][amount] = tail[name].get(amount, 0.0) + probability
            pairs.append((s, action))
            moves.append(move)
            means.append(mean)
            spread.append(tail)
    transitions = np.zeros((len(pairs), len(states)))
    for k, move in enumerate(moves):
        transitions[k, list(move)] = list(move.values())
    return OwnModel(
        states,
        pairs,
        transitions,
        {name: np.array([mean[name] for mean in means]) for name in means[0]},
        {name: [tail[name] for tail in spread] for name in tails},
    )


def best(trade: Trade, model: OwnModel) -> float:
    """Return the optimal objective, by linear programs; NaN if the limits cannot be met."""
    sign = -1.0 if trade.maximise else 1.0
    values = [_program(trade, model, dict(levels)) for levels in _levels(trade, model)]
    found = [value for value in values if value is not None]
    return sign * min(found) if found else np.nan


def averages(trade: Trade, model: OwnModel, policy: Mapping[Key, Mapping[Key, float]]) -> dict[str, float]:
    """Return the objective and the limited quantities of a policy, which maps states to probabilities of actions."""
    weights = np.array([policy[key(model.states[s])].get(key(action), 0.0) for s, action in model.pairs])
    occupancy = weights * _stationary(model, weights)[[s for s, _ in model.pairs]]
    return {"objective": _ratio(model, occupancy, trade.aim, trade.aim_over)} | {
        name: _limited(model, occupancy, limit) for name, limit in trade.limits.items()
    }


def _outcomes(trade: Trade, state: Values, action: Values, numbers: Numbers) -> list[tuple[float, Values]]:
    tables = [draw(state, action, numbers).items() for draw in trade.draws.values()]
    return [
        (float(np.prod([p for _, p in joint])), dict(zip(trade.draws, (value for value, _ in joint), strict=True)))
        for joint in product(*tables)
        if all(p > 0.0 for _, p in joint)
    ]


def _levels(trade: Trade, model: OwnModel) -> list[list[tuple[str, float]]]:
    """Return all choices of a level for every limited shortfall."""
    choices = [
        [(name, level) for level in sorted({x for row in model.distributions[limit.amount] for x in row})]
        for name, limit in trade.limits.items()
        if limit.worst
    ]
    return [list(choice) for choice in product(*choices)]


def _program(trade: Trade, model: OwnModel, levels: Mapping[str, float]) -> float | None:
    n_pairs, n_states = model.transitions.shape
    ones = np.ones(n_pairs)
    aim = model.amounts[trade.aim] * (-1.0 if trade.maximise else 1.0)
    flow = -model.transitions.T.copy()
    flow[[s for s, _ in model.pairs], np.arange(n_pairs)] += 1.0
    above = []
    for name, limit in trade.limits.items():
        over = model.amounts[limit.over] if limit.over else ones
        amount = _excess(model, limit, levels[name]) if limit.worst else model.amounts[limit.amount]
        if limit.high is not None:
            above.append(amount - limit.high * over)
        if limit.low is not None:
            above.append(limit.low * over - amount)
    scale = model.amounts[trade.aim_over] if trade.aim_over else ones
    solved = linprog(
        aim,
        A_ub=np.array(above) if above else None,
        b_ub=np.zeros(len(above)) if above else None,
        A_eq=np.vstack([flow, scale]),
        b_eq=np.append(np.zeros(n_states), 1.0),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return float(solved.fun) if solved.status == 0 else None


def _excess(model: OwnModel, limit: Limit, level: float) -> Floats:
    """Return ``level + E[(x - level)^+] / worst`` by pair."""
    assert limit.worst is not None
    rows = model.distributions[limit.amount]
    return np.array([level + sum(p * max(x - level, 0.0) for x, p in row.items()) / limit.worst for row in rows])


def _limited(model: OwnModel, occupancy: Floats, limit: Limit) -> float:
    if limit.worst:
        return _shortfall(model, occupancy, limit)
    if limit.percentile:
        return _percentile(model, occupancy, limit)
    return _ratio(model, occupancy, limit.amount, limit.over)


def _percentile(model: OwnModel, occupancy: Floats, limit: Limit) -> float:
    """Return the least value that enough rounds do not exceed, or the largest that enough rounds reach."""
    assert limit.percentile is not None
    name, level = limit.percentile
    values = model.amounts[name]
    weights = occupancy * (model.amounts[limit.over] if limit.over else 1.0)
    share = weights / weights.sum()
    if level > 0.5:
        return min(float(v) for v in values if share[values > v].sum() <= 1.0 - level + ROUNDING)
    return max(float(v) for v in values if share[values < v].sum() <= level + ROUNDING)


def _shortfall(model: OwnModel, occupancy: Floats, limit: Limit) -> float:
    levels = sorted({x for row in model.distributions[limit.amount] for x in row})
    return min(float(_excess(model, limit, level) @ occupancy) for level in levels)


def _ratio(model: OwnModel, occupancy: Floats, amount: str, over: str | None) -> float:
    below = float(model.amounts[over] @ occupancy) if over else 1.0
    return float(model.amounts[amount] @ occupancy) / below


def _stationary(model: OwnModel, weights: Floats) -> Floats:
    """Return the stationary distribution of a policy with one closed class."""
    n = len(model.states)
    chain = np.zeros((n, n))
    np.add.at(chain, [s for s, _ in model.pairs], weights[:, None] * model.transitions)
    equations = np.vstack([np.eye(n) - chain.T, np.ones(n)])
    return np.linalg.lstsq(equations, np.append(np.zeros(n), 1.0), rcond=None)[0]
