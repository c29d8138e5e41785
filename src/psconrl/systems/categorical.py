r"""Noise with a table of probabilities: one of several values, or several variables whose values come together.

Probabilities that are expressions are arguments, one for each value, which must sum to 1 wherever they are evaluated.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import Kind, listed, listing
from psconrl.errors import ModelError
from psconrl.model.validation import as_floats
from psconrl.systems.noise_base import Arguments, Noise
from psconrl.systems.noise_values import MOST_OUTCOMES
from psconrl.systems.priors import ParameterPrior, Weights

PROBABILITY_SUM_TOL = 1e-9  # of probabilities that should sum to one


class Categorical(Noise):
    """One of several values, numbers or texts.

    ``values``: a list, or a table of values and their probabilities. ``probabilities``: one for each value, if known,
    numbers or expressions. ``prior``: if unknown, the weight of every value in observations, a number or one for each.

    >>> Categorical({"none": 0.4, "first": 0.6})
    Categorical(values=['none', 'first'], probabilities=[0.4, 0.6])
    >>> Categorical({"dry": "0.9 if hour < 12 else 0.5", "wet": "0.1 if hour < 12 else 0.5"}).probability_of(1)
    "probability of 'wet'"
    """

    name: ClassVar[str] = "categorical"
    option_kinds: ClassVar[Mapping[str, Kind]] = {"values": listing(most=MOST_OUTCOMES)}
    parameter_name: ClassVar[str] = "probabilities"
    prior_type: ClassVar[type[ParameterPrior]] = Weights

    def __init__(self, values: Any, probabilities: Any = None, *, prior: ArrayLike | None = None) -> None:
        if isinstance(values, Mapping):
            if probabilities is not None or prior is not None:
                raise ModelError(
                    f"{type(self).__name__}: give a table of probabilities, or values with probabilities or a prior"
                )
            values, probabilities = list(values), list(values.values())
        self._set_values(values)
        if (probabilities is None) == (prior is None):
            raise ModelError(
                f"{type(self).__name__}: give probabilities, or a prior such as prior=1 if they are unknown"
            )
        if prior is not None:
            weights = as_floats(prior, "prior")
            size = len(self.value_list)
            super().__init__(Weights(np.broadcast_to(weights, (size,)) if weights.ndim == 0 else weights))
        else:
            super().__init__(probabilities)

    def _set_values(self, values: Any) -> None:
        self.values = listed_values(values)
        if self.values.ndim != 1 or not 1 <= self.values.size <= MOST_OUTCOMES:
            raise ModelError(f"Categorical: values must be a list of numbers or texts; got {quoted(values)}")
        if self.values.dtype.kind not in "biufU" or np.unique(self.values).size != self.values.size:
            raise ModelError(f"Categorical: values must be numbers, or texts, all different; got {quoted(values)}")

    def check_options(self) -> None:
        """Raise an error if values from a file are not those of a distribution."""
        self._set_values(self.value_list)

    @property
    def value_list(self) -> list[Any]:
        """The values, as numbers and texts."""
        listed: list[Any] = self.values.tolist()
        return listed

    def probability_of(self, place: int) -> str:
        """Return the name of the argument that stands for the probability of a value.

        >>> Categorical(["dry", "wet"], prior=1).probability_of(1)
        "probability of 'wet'"
        """
        return f"probability of {self.value_list[place]!r}"

    @property
    def parameter_arguments(self) -> tuple[str, ...]:
        """Names of the arguments that stand for the probabilities, where some are expressions."""
        return tuple(self.probability_of(place) for place in range(len(self.value_list)))

    def _set_parameter(self, parameter: Any) -> None:
        kind, size = type(self).__name__, len(self.value_list)
        if isinstance(parameter, Weights) and parameter.weights.size != size:
            raise ModelError(f"{kind}: {size} weights are needed; got {parameter.weights.size}")
        if isinstance(parameter, str) or callable(parameter):
            raise ModelError(f"{kind}: probabilities must be a list, one for each value; got {quoted(parameter)}")
        if isinstance(parameter, Sequence) and any(isinstance(each, str) or callable(each) for each in parameter):
            if len(parameter) != size:
                raise ModelError(f"{kind}: {size} probabilities are needed; got {len(parameter)}")
            self.arguments |= dict(zip(self.parameter_arguments, parameter, strict=True))
            return
        super()._set_parameter(parameter)

    def _numbers(self, parameter: Any) -> Floats:
        return as_floats(parameter, self.parameter_name)

    def description(self) -> dict[str, Any]:
        """Return the arguments of the constructor that make this noise, without defaults."""
        found: dict[str, Any] = {"values": self.value_list}
        if isinstance(self.prior, Weights):
            found["prior"] = self.prior.weights.tolist()
        elif self.known is not None:
            found["probabilities"] = self.known.tolist()
        else:
            found["probabilities"] = [self.arguments[key] for key in self.parameter_arguments]
        return found

    def _checked(self, parameter: Floats) -> Floats:
        kind, size = type(self).__name__, len(self.value_list)
        if parameter.shape != (size,):
            raise ModelError(f"{kind}: {size} probabilities are needed; got {parameter.size}")
        if not ((parameter >= 0) & np.isfinite(parameter)).all() or abs(parameter.sum() - 1.0) > PROBABILITY_SUM_TOL:
            raise ModelError(f"{kind}: probabilities must sum to 1; got {quoted(parameter.tolist())}")
        return parameter

    def checked_arguments(self, arguments: Arguments) -> Arguments:
        """Return the values of the arguments after a check; the first probabilities that are none are named."""
        if self.known is None and self.prior is None:
            rows = self._rows(arguments)
            wrong = ~((rows >= 0.0) & (rows <= 1.0)).all(axis=1)
            wrong |= ~(np.abs(rows.sum(axis=1) - 1.0) <= PROBABILITY_SUM_TOL)
            if wrong.any():
                shown = ", ".join(f"{p:g}" for p in rows[int(wrong.argmax())])
                raise ModelError(f"probabilities must lie between 0 and 1 and sum to 1; got {shown}")
        return arguments

    def _rows(self, arguments: Arguments) -> Floats:
        """Return the probabilities (G, W) that the arguments give."""
        return np.column_stack(np.broadcast_arrays(*(arguments[key] for key in self.parameter_arguments)))

    def flat_prior(self) -> Weights:
        """Return the uniform distribution of all probabilities."""
        return Weights(np.ones(len(self.value_list)))

    def outcomes(self, arguments: Arguments) -> NDArray[Any]:
        """Return the values."""
        return self.values

    def table(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probabilities (G, W), the same in every context unless they are expressions."""
        if self.known is None and self.prior is None:
            return self._rows(arguments)
        return np.broadcast_to(parameter, (n_contexts, parameter.size))

    def statistics(self, counts: Floats, parameter: Floats, arguments: Arguments, rng: np.random.Generator) -> Floats:
        """Return the number of every value."""
        return np.asarray(counts.sum(axis=0))

    def options(self) -> dict[str, Any]:
        """Return the values."""
        return {"values": self.values}


class Joint(Categorical):
    """Several variables whose values come together: a table of their joint probabilities.

    The key of the noise has the names of the variables, separated by commas: ``{"arriving, sky": Joint(...)}``.
    ``values``: a list of tuples, or a table of tuples and their probabilities; tuples that are left out are impossible.
    ``probabilities`` and ``prior``: as of ``Categorical``.

    >>> Joint({(0, "wet"): 0.2, (0, "dry"): 0.3, (1, "dry"): 0.5}).columns(["arriving", "sky"], {})["sky"].tolist()
    ['wet', 'dry', 'dry']
    >>> import itertools
    >>> len(Joint(itertools.product(range(13), ["wet", "dry"]), prior=1).value_list)
    26
    """

    name: ClassVar[str] = "joint"
    option_kinds: ClassVar[Mapping[str, Kind]] = {"tables": listed(listing(most=MOST_OUTCOMES))}

    def _set_values(self, values: Any) -> None:
        shown = values if isinstance(values, list | tuple) else type(values).__name__
        try:
            rows = [tuple(row) if isinstance(row, list | tuple) else () for row in values]
        except TypeError:
            rows = []
        if not 1 <= len(rows) <= MOST_OUTCOMES or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
            raise ModelError(
                f"Joint: values must be a list of tuples of the same length, such as [(0, 'wet'), (1, 'dry')]; "
                f"got {quoted(shown)}"
            )
        self.tables: list[NDArray[Any]] = []  # the values of every variable
        for column in zip(*rows, strict=True):
            texts = sum(isinstance(value, str) for value in column)
            array = listed_values(column) if texts in (0, len(column)) else np.empty(0, dtype=object)
            if array.ndim != 1 or array.dtype.kind not in "biufU":
                raise ModelError(
                    f"Joint: the values of a variable must be numbers, or texts; got {quoted(list(column))}"
                )
            self.tables.append(array)
        if len(set(self.value_list)) < len(rows):
            raise ModelError(f"Joint: the tuples must be all different; got {quoted(shown)}")

    @property
    def value_list(self) -> list[Any]:
        """The tuples of values."""
        return list(zip(*(column.tolist() for column in self.tables), strict=True))

    def description(self) -> dict[str, Any]:
        """Return the arguments of the constructor that make this noise, without defaults."""
        return super().description() | {"values": [list(row) for row in self.value_list]}

    def outcomes(self, arguments: Arguments) -> NDArray[Any]:
        """Return the tuples as texts."""
        return np.array([f"({', '.join(map(str, row))})" for row in self.value_list])

    def columns(self, names: Sequence[str], arguments: Arguments) -> dict[str, NDArray[Any]]:
        """Return the values (W,) of every variable, by name."""
        return dict(zip(names, self.tables, strict=True))

    def options(self) -> dict[str, Any]:
        """Return the values of every variable."""
        return {"tables": list(self.tables)}


def listed_values(values: Any) -> NDArray[Any]:
    """Return the values of a categorical distribution as an array."""
    try:
        return np.array(list(values))
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"Categorical: values must be a list of numbers or texts; got {quoted(values)}") from None
