"""The base class of noise, see ``noise``."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import Kind, need_that, read_fields, reals
from psconrl.errors import ModelError
from psconrl.model.validation import as_floats
from psconrl.systems.priors import Beta, ParameterPrior
from psconrl.systems.signatures import without_defaults

Arguments = Mapping[str, Floats]  # by name, one value for every context


def variables_of(name: str) -> tuple[str, ...]:
    """Return the names of the variables of a noise, which its own name lists.

    >>> variables_of("arriving, sky")
    ('arriving', 'sky')
    """
    return tuple(part.strip() for part in name.split(","))


def full_name(name: str) -> str:
    """Return the name of a noise, with a comma and a blank between its variables.

    >>> full_name("arriving,sky")
    'arriving, sky'
    """
    return ", ".join(variables_of(name))


def as_argument(name: str) -> str:
    """Return how a value is given by the name of a noise or an event in a call.

    >>> as_argument("demand"), as_argument("arriving, sky")
    ('demand=...', "**{'arriving, sky': ...}")
    """
    return f"{name}=..." if name.isidentifier() else f"**{{{name!r}: ...}}"


class Noise(ABC):
    """A random variable of a system."""

    name: ClassVar[str]
    parameter_name: ClassVar[str]
    prior_type: ClassVar[type[ParameterPrior]]
    argument_names: ClassVar[tuple[str, ...]] = ()  # of the constructor's arguments that may be expressions
    option_kinds: ClassVar[Mapping[str, Kind]] = {}  # of what else describes the noise, in a file
    exposure_name: ClassVar[str] = ""  # of the argument besides ``times`` by which the mean is multiplied, if any

    def __init__(self, parameter: Any, arguments: Mapping[str, Any] | None = None) -> None:
        #: Known number(s), or None if the parameter is unknown or an expression.
        self.known: Floats | None = None
        self.prior: ParameterPrior | None = None
        self.arguments: dict[str, Any] = dict(arguments or {})  # expressions or numbers, by name
        self._set_parameter(parameter)

    def _set_parameter(self, parameter: Any) -> None:
        if isinstance(parameter, ParameterPrior):
            if not isinstance(parameter, self.prior_type):
                raise ModelError(
                    f"{type(self).__name__}: the prior of {self.parameter_name} must be a "
                    f"{self.prior_type.__name__}; got {quoted(parameter)}"
                )
            self.prior = parameter
        elif isinstance(parameter, str) or callable(parameter):
            self.arguments[self.parameter_name] = parameter
        else:
            self.known = self._checked(self._numbers(parameter))

    def _numbers(self, parameter: Any) -> Floats:
        """Return a known parameter as an array of one number."""
        number = as_floats(parameter, self.parameter_name)
        if number.size != 1:
            raise ModelError(
                f"{type(self).__name__}: {self.parameter_name} must be a number, an expression or a prior; "
                f"got {quoted(parameter)}"
            )
        return number.reshape(1)

    @abstractmethod
    def _checked(self, parameter: Floats) -> Floats:
        """Return a parameter, or values of it, after a check."""

    @abstractmethod
    def outcomes(self, arguments: Arguments) -> NDArray[Any]:
        """Return the values (W,) that the noise may have in some context."""

    @abstractmethod
    def table(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probabilities (G, W) of the outcomes in every context."""

    def possible(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Bools:
        """Return which outcomes (G, W) have a positive probability, for some value of an unknown parameter."""
        if self.prior is None:
            return np.asarray(self.table(parameter, arguments, n_contexts) > 0.0)
        return np.broadcast_to(self._support(arguments), (n_contexts, self.outcomes(arguments).size))

    def _support(self, arguments: Arguments) -> Bools:
        """Return the same for a parameter that is neither the least nor the largest that it may be: by default all."""
        return np.ones((1, 1), dtype=bool)

    @abstractmethod
    def statistics(self, counts: Floats, parameter: Floats, arguments: Arguments, rng: np.random.Generator) -> Floats:
        """Return sufficient statistics of the prior, given the numbers of outcomes (G, W)."""

    def is_conjugate(self, arguments: Arguments) -> bool:
        """Return whether the outcomes alone determine the posterior, with these arguments of all contexts."""
        return True

    def columns(self, names: Sequence[str], arguments: Arguments) -> dict[str, NDArray[Any]]:
        """Return the values (W,) of every variable that the noise has, by name: of one, unless it is a joint table."""
        return {names[0]: self.outcomes(arguments)}

    def flat_prior(self) -> ParameterPrior:
        """Return a prior under which all parameters, or all up to a large one, are about equally likely."""
        return Beta(1.0, 1.0)

    def checked_arguments(self, arguments: Arguments) -> Arguments:
        """Return the values of the arguments after a check."""
        if self.parameter_name in arguments:
            self._checked(arguments[self.parameter_name])
        return arguments

    def with_parameter(self, value: Any) -> "Noise":
        """Return the same noise with a known parameter, or with an unknown one if a prior is given."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other.prior = other.known = None
        other.arguments = {key: given for key, given in self.arguments.items() if key not in self.parameter_arguments}
        other._set_parameter(value)
        return other

    @property
    def parameter_arguments(self) -> tuple[str, ...]:
        """Names of the arguments that stand for the parameter, where it is an expression."""
        return (self.parameter_name,)

    def of_contexts(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the parameter in every context, (G,)."""
        given = arguments.get(self.parameter_name, parameter)
        return np.broadcast_to(np.asarray(given, dtype=np.float64), (n_contexts,))

    def options(self) -> dict[str, Any]:
        """Return what else describes the noise, as plain data."""
        return {}

    def check_options(self) -> None:  # noqa: B027
        """Raise an error if options from a file do not go together."""

    def need_arguments(self, arguments: Mapping[str, Any], n_contexts: int) -> None:
        """Raise an error unless arguments from a file, one value for every context, are possible."""
        given = self.known is not None or self.prior is not None
        names = (*self.argument_names, *(() if given else self.parameter_arguments))
        need_that(arguments.keys() == {*names}, f"must be a table of {', '.join(names) or 'nothing'}")
        need_that(names or n_contexts == 1, "must have one context, as there are no arguments")
        self.checked_arguments(read_fields(arguments, dict.fromkeys(names, reals((n_contexts,), infinite=True))))

    def description(self) -> dict[str, Any]:
        """Return the arguments of the constructor that make this noise, without defaults.

        >>> from psconrl.systems.noise import Bernoulli
        >>> Bernoulli(0.5).description()
        {'p': 0.5}
        """
        given = {**self._given_parameter(), **self.arguments, **self.options()}
        return without_defaults(type(self), given)

    def _given_parameter(self) -> dict[str, Any]:
        """Return the parameter as it was given; nothing if it is an expression, which is an argument."""
        if self.prior is not None:
            return {self.parameter_name: self.prior}
        return {} if self.known is None else {self.parameter_name: self.known.item()}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data. The arguments are those given, for ``repr``: their values are those of a context."""
        prior = None if self.prior is None else self.prior.to_dict()
        arguments = {key: _without_code(given) for key, given in self.arguments.items()}
        return {
            "name": self.name, "known": self.known, "prior": prior, "arguments": arguments, "options": self.options(),
        }  # fmt: skip

    def __repr__(self) -> str:
        shown = (
            f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in ((key, _without_code(given)) for key, given in self.description().items())
        )  # fmt: skip
        return f"{type(self).__name__}({', '.join(shown)})"


def _without_code(given: Any) -> Any:
    """Return an argument as it is shown and saved: functions by a word.

    >>> _without_code([0.5, lambda hour: 0.5])
    [0.5, 'a function']
    """
    if isinstance(given, list):
        return [_without_code(each) for each in given]
    return "a function" if callable(given) else given
