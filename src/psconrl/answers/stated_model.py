"""A model as a system states its objective and limits: by the names of its costs, in the user's sense."""

from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import ConfigError
from psconrl.model.cmdp import CMDP
from psconrl.model.coordinates import coordinates, why_unlike
from psconrl.systems.expressions import Expression
from psconrl.systems.limits import Requirement, Statement
from psconrl.systems.quantities import Combination, LinearLimit, Mean
from psconrl.systems.reports import Reports
from psconrl.systems.system import System


class CostName(Expression):
    """The name of a cost of a model, which may be any text."""

    def __init__(self, text: str) -> None:
        self.text, self.names = text, frozenset([text])


class ModelCosts:
    """The costs of a model by name; a reward has its own sign."""

    def __init__(self, cmdp: CMDP) -> None:
        self._cmdp = cmdp

    def cost(self, cost: Combination | LinearLimit) -> Floats:
        """Return the expected values (S, A) of a cost."""
        names = self._cmdp.names
        rows = [(weight, names.costs.index(term.text)) for weight, term in cost.terms]
        return np.asarray(sum(weight * names.signs[i] * self._cmdp.costs[i] for weight, i in rows))


class StatedModel:
    """A model with its objective and limits as a statement; both can be replaced, as those of a system."""

    def __init__(self, cmdp: CMDP, statement: Statement | None = None) -> None:
        self.cmdp, self.units, self.report = cmdp, cmdp.units, Reports()
        self.statement = stated(cmdp) if statement is None else statement
        self.expectations, self.cost_names = ModelCosts(cmdp), cmdp.cost_names

    def cost_quantity(self, name: str) -> Mean:
        """Return the average of a cost, by its name."""
        return mean_of(name)

    def with_limits(self, limits: Any) -> "StatedModel":
        """Return the model with other limits: a table by name, with a number, or None to leave the limit out."""
        return self.with_statement(self.statement.with_requirements(limits, frozenset(self.cost_names)))

    def with_statement(self, statement: Statement) -> "StatedModel":
        """Return the model with another objective and other limits."""
        other = StatedModel(self.cmdp, statement)
        other.report = self.report
        return other

    def expected_model(self) -> CMDP:
        """Return the model of the statement."""
        cmdp, statement = self.cmdp, self.statement
        names = tuple(row.name for row in statement.rows)
        at_least = frozenset(row.name for row in statement.rows if row.at_least)
        if (names, statement.maximises, at_least) == (cmdp.cost_names, cmdp.maximise, cmdp.at_least):
            return cmdp.with_thresholds(statement.thresholds)
        rows = zip(statement.signs.tolist(), statement.rows, strict=True)
        return CMDP(
            cmdp.transition,
            np.array([sign * self.expectations.cost(row) for sign, row in rows]),
            statement.thresholds,
            initial=cmdp.initial,
            available=cmdp.available,
            state_names=cmdp.state_names,
            action_names=cmdp.action_names,
            cost_names=names,
            maximise=statement.maximises,
            units=cmdp.units.of(names),
            at_least=at_least,
        )

    def state_number(self, state: Any) -> int:
        """Return the number of a state, given by name or number."""
        return self.cmdp.names.state_number(state, self.cmdp.n_states)

    def state_values(self, number: int) -> str:
        """Return the name of a state."""
        return self.cmdp.names.state(number)

    def action_values(self, number: int) -> str:
        """Return the name of an action."""
        return self.cmdp.names.action(number)

    @property
    def state_table(self) -> dict[str, Any]:
        """The numbers (S,) in the names of states, by what they count; an error if the names differ otherwise."""
        places = coordinates(self.cmdp)
        if places is None or not places.names:
            raise ConfigError(
                f"names of states must differ in numbers, such as '3 waiting', to be asked for; {why_unlike(self.cmdp)}"
            )
        return dict(zip(places.names, places.values.T, strict=True))

    @property
    def action_table(self) -> dict[str, Any]:
        """The names (A,) of actions."""
        return {"action": np.array([self.action_values(a) for a in range(self.cmdp.n_actions)])}


def mean_of(name: str) -> Mean:
    """Return the average of a cost of a model."""
    return Mean(name, Combination(((1.0, CostName(name)),)))


def stated(cmdp: CMDP) -> Statement:
    """Return the objective and the limits of a model."""
    names = cmdp.names
    goal, *limited = map(mean_of, names.costs)
    limits = [
        Requirement(one.text, one, low=-tau) if one.text in names.at_least else Requirement(one.text, one, high=tau)
        for one, tau in zip(limited, cmdp.thresholds.tolist(), strict=True)
    ]
    return Statement(goal, cmdp.maximise, tuple(limits))


Asked = System | StatedModel  # what has an objective and limits
