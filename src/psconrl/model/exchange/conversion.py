"""Conversion of a file's contents and a goal to a ``CMDP``, and of a ``CMDP``, or a policy's chain, to a file."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.caps import LARGEST_COST, need
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP
from psconrl.model.exchange.explicit_model import ChoiceNames, ExplicitModel, Reward, distinct
from psconrl.model.exchange.goal import Goal, Limit

LONGEST_ACTION_NAME = 40  # longest name of an action that has different names in different states
MOST_JOINED = 3  # most names joined in one


class _Rows(NamedTuple):
    """Positions of the choices of a model in a table of states and actions."""

    n_actions: int
    state: Ints  # (C,) of a choice
    row: Ints  # (C,) state * n_actions + action
    stuck: Ints  # states without a choice, which get a self-loop
    available: Bools  # (S, A)
    action_names: list[str] | None


def to_cmdp(model: ExplicitModel, goal: Goal) -> CMDP:
    """Build a CMDP from a model and a goal. The actions of a state are its choices; all others are unavailable.

    The start is uniform over the initial states, or the first state if none is marked.
    """
    goal.check(model.quantities)
    S = model.n_states
    rows = _rows(model, len(goal.limits) + 1)
    wanted = [(goal.objective, goal.maximise), *((limit.name, limit.at_least) for limit in goal.limits)]
    tables = [_tables(model, rows, name, -1.0 if negated else 1.0) for name, negated in wanted]
    names = goal.cost_names()
    thresholds = [-limit.value if limit.at_least else limit.value for limit in goal.limits]
    start = model.initial if model.initial.any() else np.arange(S) == 0
    options = {
        "initial": start / start.sum(),
        "available": rows.available,
        "state_names": model.state_names,
        "action_names": rows.action_names,
        "cost_names": names,
        "maximise": goal.maximise,
        "at_least": [name for name, limit in zip(names[1:], goal.limits, strict=True) if limit.at_least],
    }
    branches = _matrix(model, rows, model.probabilities)
    if model.exit_rates is None:
        loops = csr_array((np.ones(rows.stuck.size), (rows.stuck * rows.n_actions, rows.stuck)), shape=branches.shape)
        costs = [lasting + jump for lasting, jump in tables]
        return CMDP(branches + loops if rows.stuck.size else branches, costs, thresholds, **options)
    rates = _matrix(
        model, rows, model.probabilities * np.repeat(model.exit_rates[rows.state], np.diff(model.first_branch))
    )
    per_time, per_jump = [lasting for lasting, _ in tables], [jump for _, jump in tables]
    return CMDP.from_rates(rates, per_time, thresholds, impulses=per_jump, **options)


def everything(model: ExplicitModel) -> Goal:
    """Return a goal that names every quantity and constrains none, to inspect a model before choosing a goal."""
    names = list(model.quantities)
    if not names:
        raise ModelError("it has neither rewards nor labels, and so nothing to plan for")
    return Goal(names[0], False, tuple(Limit(name, False, LARGEST_COST) for name in names[1:]))


def _rows(model: ExplicitModel, n_costs: int) -> _Rows:
    S, counts = model.n_states, np.diff(model.first_choice)
    A = max(1, int(counts.max()))
    need(8.0 * S * A * (n_costs + 2), f"a model of {S:,} states and {A:,} actions", ModelError)
    state = np.repeat(np.arange(S), counts)
    column, names = _columns(model, state)
    row, stuck = state * A + column, np.flatnonzero(counts == 0)
    available = np.zeros(S * A, dtype=bool)
    available[row] = True
    available[stuck * A] = True
    return _Rows(A, state, row, stuck, available.reshape(S, A), names)


def _columns(model: ExplicitModel, state: Ints) -> tuple[Ints, list[str] | None]:
    """Return for each choice its action index, and the names of the actions.

    If a name marks at most one choice per state, and there are no more names than actions, an action is identified by
    its name. Otherwise the first choice of a state is its first action, and its name joins the different names of that
    choice.
    """
    order = np.arange(model.n_choices) - model.first_choice[state]
    called = model.choice_names
    if called is None or not any(called.names) or not model.n_choices:
        return order, None
    A = int(order.max()) + 1
    used, code = np.unique(called.of_choice, return_inverse=True)
    names = [called.names[k] for k in used]
    if used.size <= A and all(names) and np.unique(state * used.size + code).size == state.size:
        return code, distinct(_lines(names), "{} ({})")
    pairs = np.unique(order * used.size + code)
    joined: list[list[str]] = [[] for _ in range(A)]
    for pair in pairs[: A * (MOST_JOINED + 2)]:
        column, name = divmod(int(pair), used.size)
        if names[name]:
            joined[column].append(names[name])
    shown = ["/".join(parts) or str(column) for column, parts in enumerate(joined)]
    if any(len(parts) > MOST_JOINED for parts in joined) or max(map(len, shown)) > LONGEST_ACTION_NAME:
        return order, None
    return order, distinct(_lines(shown), "{} ({})")


def _lines(names: list[str]) -> list[str]:
    return [" ".join(name.split()) for name in names]


def _tables(model: ExplicitModel, rows: _Rows, name: str, sign: float) -> tuple[Floats, Floats]:
    """Return the running cost (S, A) of a quantity, and its cost at the end of a stay; for labels and rewards alike."""
    shape = rows.available.shape
    lasting, jump = np.zeros(rows.available.size), np.zeros(rows.available.size)
    reward = model.rewards.get(name)
    if reward is None:
        label = next(label for label in model.labels if model.label_name(label) == name)
        reward = Reward(states=model.labels[label].astype(np.float64))
    if reward.states is not None:
        lasting[rows.row] = reward.states[rows.state]
        lasting[rows.stuck * rows.n_actions] = reward.states[rows.stuck]
    if reward.choices is not None:
        jump[rows.row] += reward.choices
    if reward.branches is not None:
        choice = np.repeat(np.arange(model.n_choices), np.diff(model.first_branch))
        mean = np.bincount(choice, model.probabilities * reward.branches, minlength=model.n_choices)
        jump[rows.row] += mean
    return sign * lasting.reshape(shape), sign * jump.reshape(shape)


def _matrix(model: ExplicitModel, rows: _Rows, values: Floats) -> csr_array:
    """Return values of branches as a matrix (S*A, S)."""
    S, lengths = model.n_states, np.diff(model.first_branch)
    targets = model.targets
    if (np.diff(rows.row) < 0).any():  # actions are ordered by name, not as in the file
        order = np.argsort(rows.row, kind="stable")
        moved = np.repeat(model.first_branch[:-1][order], lengths[order]) + _counted(lengths[order])
        values, targets = values[moved], targets[moved]
    indptr = np.zeros(S * rows.n_actions + 1, dtype=np.int64)
    indptr[rows.row + 1] = lengths
    return csr_array((values, targets, np.cumsum(indptr)), shape=(S * rows.n_actions, S))


def _counted(lengths: Ints) -> Ints:
    """Return 0, 1, ... restarting for every length."""
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if ends.size else 0) - np.repeat(ends - lengths, lengths)


def from_cmdp(cmdp: CMDP) -> ExplicitModel:
    """Return a model for a file, with costs as rewards of choices, in the sense shown to users, and no constraints."""
    rows = np.flatnonzero(cmdp.available)
    state, action = np.divmod(rows, cmdp.n_actions)
    first_choice = np.searchsorted(state, np.arange(cmdp.n_states + 1))
    names = None if cmdp.action_names is None else ChoiceNames(cmdp.action_names, action)
    rewards = [Reward(choices=sign * cost.ravel()[rows]) for sign, cost in _signed_costs(cmdp)]
    return _explicit(cmdp, first_choice, csr_array(cmdp.transition.matrix)[rows], rewards, names)


def from_policy(cmdp: CMDP, policy: Floats) -> ExplicitModel:
    """Return the chain of a policy (S, A) for a file, with its costs; another program can check its averages."""
    S, A = cmdp.n_states, cmdp.n_actions
    state, action = np.nonzero(policy)
    weights = csr_array((policy[state, action], (state, state * A + action)), shape=(S, S * A))
    matrix = csr_array(weights @ csr_array(cmdp.transition.matrix))
    rewards = [Reward(states=sign * np.einsum("sa,sa->s", policy, cost)) for sign, cost in _signed_costs(cmdp)]
    return _explicit(cmdp, np.arange(S + 1), matrix, rewards)


def _signed_costs(cmdp: CMDP) -> Iterator[tuple[float, Floats]]:
    return zip(cmdp.names.signs, cmdp.costs, strict=True)


def _explicit(
    cmdp: CMDP, first_choice: Ints, branches: csr_array, rewards: list[Reward], choices: ChoiceNames | None = None
) -> ExplicitModel:
    branches.sort_indices()
    return ExplicitModel(
        first_choice=first_choice,
        first_branch=branches.indptr.astype(np.int64),
        targets=branches.indices.astype(np.int64),
        probabilities=np.asarray(branches.data, dtype=np.float64),
        initial=cmdp.initial > 0,
        rewards=dict(zip(cmdp.cost_names, rewards, strict=True)),
        choice_names=choices,
        state_names=cmdp.state_names,
    )
