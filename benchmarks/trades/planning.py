"""Whether ``system.plan`` agrees with the own linear program of a trade, and whether a saved system plans the same."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

import psconrl
from psconrl.answers.answer import Answer
from psconrl.systems import System
from trades import own_model
from trades.own_model import Key, OwnModel
from trades.trade import Numbers, Trade


class Agreement(NamedTuple):
    """A plan beside the own linear program."""

    states: int
    own: float  # the optimum of the own program
    value: float  # of the plan
    difference: float  # the largest, of the optimum and of all limited quantities of the plan's policy
    files_agree: bool


def agreement(trade: Trade, numbers: Numbers) -> Agreement:
    """Return how a plan compares with the own program, for known parameters."""
    system = trade.describe()
    unknown = {name: numbers[name] for name in trade.priors}
    answer = psconrl.plan(system, **unknown)
    model = own_model.enumerated(trade, numbers)
    optimum = own_model.best(trade, model)
    own = own_model.averages(trade, model, _policy(model, trade, system, answer))
    promised = {name: answer.averages[name] for name in trade.limits} | {"objective": answer.value}
    differences = [abs(answer.value - optimum), *(abs(own[name] - promised[name]) for name in own)]
    return Agreement(
        len(model.states), optimum, float(answer.value), float(max(differences)), _files_agree(system, answer, unknown)
    )


def _policy(model: OwnModel, trade: Trade, system: System, answer: Answer) -> dict[Key, dict[Key, float]]:
    """Return the probabilities of actions in all states, in the terms of the own model."""
    numbered = {name: number for number, name in enumerate(answer.model.action_names)}
    policy = {}
    for state in model.states:
        row = answer.plan.policy[system.state_number(state)]
        policy[own_model.key(state)] = {
            own_model.key(action): float(row[numbered[", ".join(f"{name}={value}" for name, value in action.items())]])
            for action in trade.actions(state)
        }
    return policy


def _files_agree(system: System, answer: Answer, unknown: Numbers) -> bool:
    with TemporaryDirectory() as folder:
        for name in ("system.toml", "system.json"):
            path = Path(folder) / name
            system.save(path)
            again = psconrl.plan(System.load(path), **unknown)
            if again.value != answer.value or not np.array_equal(again.plan.policy, answer.plan.policy):
                return False
    return True
