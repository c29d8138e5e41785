"""Prior distributions of unknown parameters, each conjugate to the noise that it belongs to.

Every noise or event has a parameter of its own. Several have one parameter in common if their priors name it:
``Beta(1, 1, shared="repair")``.

A prior is drawn from given sufficient statistics of what was observed. ``about`` says what most owners can say: "about
2.3 a day, worth ten days of observation".
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import Kind, distributions, read_fields, reals, text
from psconrl.errors import ModelError
from psconrl.kernels.arithmetic import special
from psconrl.kernels.draws.gamma import log_gamma_variates
from psconrl.model.validation import as_floats

LEAST_PRIOR, LARGEST_PRIOR = 1e-6, 1e12  # weights of a prior


class ParameterPrior(ABC):
    """The distribution of an unknown parameter."""

    name: ClassVar[str]
    statistic: ClassVar[str]  # what an observation adds up to
    shared: str | None = None  # name of the parameter, if several noises or events have it in common

    @abstractmethod
    def mean(self) -> Floats:
        """Return the expected parameter."""

    @abstractmethod
    def draw(self, statistics: Floats, rng: np.random.Generator) -> Floats:
        """Draw the parameter from its posterior, given sufficient statistics."""

    @abstractmethod
    def parameter_kind(self) -> Kind:
        """Return the kind of the parameter in a file."""

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """Return the numbers that the constructor takes, by name."""

    def description(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return self.numbers() | ({} if self.shared is None else {"shared": self.shared})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"name": self.name} | self.description()

    def __repr__(self) -> str:
        shown = [f"{x:g}" for x in self.numbers().values()]
        shown += [] if self.shared is None else [f"shared={self.shared!r}"]
        return f"{type(self).__name__}({', '.join(shown)})"


class Gamma(ParameterPrior):
    r"""An unknown rate: density proportional to :math:`x^{shape-1} e^{-rate\,x}`, with mean shape / rate.

    Statistics: the number of events, and the exposure in which they happened.

    >>> Gamma.about(2.3, worth=10)
    Gamma(23, 10)
    """

    name: ClassVar[str] = "gamma"
    statistic: ClassVar[str] = "rate"

    def __init__(self, shape: float, rate: float, *, shared: str | None = None) -> None:
        self.shape, self.rate = _weight(shape, "shape"), _weight(rate, "rate")
        self.shared = _shared_name(shared)

    @classmethod
    def about(cls, value: float, worth: float, *, shared: str | None = None) -> "Gamma":
        """Return the belief that a rate is about ``value``, worth that exposure: ten days, if the rate is per day."""
        return cls(_weight(value, "value") * _weight(worth, "worth"), worth, shared=shared)

    def mean(self) -> Floats:
        """Return the expected rate."""
        return np.array([self.shape / self.rate])

    def draw(self, statistics: Floats, rng: np.random.Generator) -> Floats:
        """Draw a rate, given the number of events and their exposure."""
        events, exposure = statistics
        drawn = special.exp_array(log_gamma_variates(np.array([self.shape + events]), rng))
        return np.asarray(drawn / (self.rate + exposure))

    def parameter_kind(self) -> Kind:
        """Return the kind of a rate."""
        return reals((1,), 0.0)

    def numbers(self) -> dict[str, Any]:
        """Return shape and rate."""
        return {"shape": self.shape, "rate": self.rate}


class Beta(ParameterPrior):
    r"""An unknown probability: density proportional to :math:`p^{yes-1} (1-p)^{no-1}`, with mean yes / (yes + no).

    Statistics: the numbers of successes and failures.

    >>> Beta.about(0.3, worth=10)
    Beta(3, 7)
    """

    name: ClassVar[str] = "beta"
    statistic: ClassVar[str] = "probability"

    def __init__(self, yes: float = 1.0, no: float = 1.0, *, shared: str | None = None) -> None:
        self.yes, self.no = _weight(yes, "yes"), _weight(no, "no")
        self.shared = _shared_name(shared)

    @classmethod
    def about(cls, value: float, worth: float, *, shared: str | None = None) -> "Beta":
        """Return the belief that a probability is about ``value``, worth that many observations."""
        probability, weight = _weight(value, "value"), _weight(worth, "worth")
        if not 0 < probability < 1:
            raise ModelError(f"value must be a probability between 0 and 1; got {quoted(value)}")
        return cls(probability * weight, (1 - probability) * weight, shared=shared)

    def mean(self) -> Floats:
        """Return the expected probability."""
        return np.array([self.yes / (self.yes + self.no)])

    def draw(self, statistics: Floats, rng: np.random.Generator) -> Floats:
        """Draw a probability, given the numbers of successes and failures."""
        logs = log_gamma_variates(np.array([self.yes, self.no]) + statistics, rng)
        return np.array([1.0 / (1.0 + special.exp(float(logs[1] - logs[0])))])

    def parameter_kind(self) -> Kind:
        """Return the kind of a probability."""
        return reals((1,), 0.0, 1.0)

    def numbers(self) -> dict[str, Any]:
        """Return the weights of both outcomes."""
        return {"yes": self.yes, "no": self.no}


class Weights(ParameterPrior):
    r"""Unknown probabilities of several values: a Dirichlet distribution with these weights.

    Statistics: how often each value was observed.
    """

    name: ClassVar[str] = "weights"
    statistic: ClassVar[str] = "probabilities"

    def __init__(self, weights: ArrayLike) -> None:
        self.weights = np.array([_weight(x, "prior") for x in np.ravel(as_floats(weights, "prior"))])

    def mean(self) -> Floats:
        """Return the expected probabilities."""
        return np.asarray(self.weights / self.weights.sum())

    def draw(self, statistics: Floats, rng: np.random.Generator) -> Floats:
        """Draw all probabilities, given the counts of the values."""
        logs = log_gamma_variates(self.weights + statistics, rng)
        drawn = special.exp_array(logs - logs.max())
        return np.asarray(drawn / drawn.sum())

    def parameter_kind(self) -> Kind:
        """Return the kind of the probabilities."""
        return distributions(self.weights.shape)

    def numbers(self) -> dict[str, Any]:
        """Return the weights."""
        return {"weights": self.weights}

    def __repr__(self) -> str:
        return f"Weights({self.weights.tolist()})"


PRIORS: dict[str, type[ParameterPrior]] = {prior.name: prior for prior in (Gamma, Beta, Weights)}


def prior_from_dict(data: dict[str, Any]) -> ParameterPrior:
    """Return the prior that ``to_dict`` described."""
    made: Any = PRIORS[read_fields(data, {"name": text(*PRIORS)})["name"]]
    prior: ParameterPrior = made(**{key: value for key, value in data.items() if key != "name"})
    return prior


def _shared_name(name: Any) -> str | None:
    if name is not None and not (isinstance(name, str) and name.isidentifier()):
        raise ModelError(f"shared must be the name of a parameter, such as 'repair'; got {quoted(name)}")
    return name


def _weight(value: Any, what: str) -> float:
    array = as_floats(value, what)
    number = float(array) if array.ndim == 0 else np.nan
    if not LEAST_PRIOR <= number <= LARGEST_PRIOR:
        raise ModelError(f"{what} must be a number from {LEAST_PRIOR:g} to {LARGEST_PRIOR:g}; got {quoted(value)}")
    return number
