r"""Noise: random variables that are drawn in every round, independently of each other and of the past.

The distribution of a noise has one parameter, which is known (a number, or an expression in the variables of the
system) or unknown (a prior). It may depend on the variables through further arguments, such as the number of patients
of a binomial distribution. The distinct values of parameters and arguments are the *contexts* of a noise; ``table``
returns the probabilities of all outcomes in each of them. ``statistics`` reduces the numbers of observed outcomes to
the sufficient statistics of the prior.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psconrl.arrays import Floats
from psconrl.errors import ModelError
from psconrl.kernels import special
from psconrl.model.validation import as_floats
from psconrl.systems.priors import Beta, Gamma, ParameterPrior, Weights, prior_from_dict

MOST_OUTCOMES = 10_000
TAIL_DEVIATIONS = 60  # standard deviations beyond the mean at which the tail of a Poisson distribution is cut
PROBABILITY_SUM_TOL = 1e-9  # of probabilities that should sum to one

Arguments = Mapping[str, Floats]  # by name, one value for every context


class Noise(ABC):
    """A random variable of a system."""

    name: ClassVar[str]
    parameter_name: ClassVar[str]
    prior_type: ClassVar[type[ParameterPrior]]
    is_conjugate: ClassVar[bool] = True  # whether the outcomes alone determine the posterior

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
                    f"{self.prior_type.__name__}; got {parameter!r}"
                )
            self.prior = parameter
        elif isinstance(parameter, str) or callable(parameter):
            self.arguments[self.parameter_name] = parameter
        else:
            self.known = self._checked(np.atleast_1d(as_floats(parameter, self.parameter_name)))

    @abstractmethod
    def _checked(self, parameter: Floats) -> Floats:
        """Return a parameter, or values of it, after a check."""

    @abstractmethod
    def outcomes(self, arguments: Arguments) -> NDArray[Any]:
        """Return the values (W,) that the noise may have in some context."""

    @abstractmethod
    def table(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probabilities (G, W) of the outcomes in every context."""

    @abstractmethod
    def statistics(self, counts: Floats, parameter: Floats, arguments: Arguments, rng: np.random.Generator) -> Floats:
        """Return sufficient statistics of the prior, given the numbers of outcomes (G, W)."""

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
        other.arguments = {key: given for key, given in self.arguments.items() if key != self.parameter_name}
        other._set_parameter(value)
        return other

    def of_contexts(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the parameter in every context, (G,)."""
        given = arguments.get(self.parameter_name, parameter)
        return np.broadcast_to(np.asarray(given, dtype=np.float64), (n_contexts,))

    def options(self) -> dict[str, Any]:
        """Return what else describes the noise, as plain data."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, without the arguments, which are values of a context."""
        prior = None if self.prior is None else self.prior.to_dict()
        return {"name": self.name, "known": self.known, "prior": prior, "options": self.options()}

    def __repr__(self) -> str:
        shown: Any = self.prior
        if self.known is not None:
            shown = f"{self.known[0]:g}" if self.known.size == 1 else [f"{x:g}" for x in self.known]
        rest = {**({} if shown is None else {self.parameter_name: shown}), **self.arguments, **self.options()}
        return f"{type(self).__name__}({', '.join(f'{key}={value}' for key, value in rest.items())})"


class Binomial(Noise):
    r"""The number of successes in ``n`` trials of probability ``p``, which may be a prior such as ``Beta(1, 1)``.

    ``n`` may be an expression, such as ``"patients"``.
    """

    name: ClassVar[str] = "binomial"
    parameter_name: ClassVar[str] = "p"
    prior_type: ClassVar[type[ParameterPrior]] = Beta

    def __init__(self, n: Any, p: Any) -> None:
        super().__init__(p, {"n": n})

    def _checked(self, parameter: Floats) -> Floats:
        return _probability(parameter, self.parameter_name)

    def checked_arguments(self, arguments: Arguments) -> Arguments:
        """Return the values of the arguments after a check."""
        n = arguments["n"]
        if not ((n >= 0) & (n == np.floor(n)) & (n < MOST_OUTCOMES)).all():
            raise ModelError(f"n must be a whole number from 0 to {MOST_OUTCOMES - 1}; got {n.min():g} to {n.max():g}")
        return super().checked_arguments(arguments)

    def outcomes(self, arguments: Arguments) -> NDArray[Any]:
        """Return the numbers from 0 to the largest n."""
        return np.arange(int(arguments["n"].max()) + 1)

    def table(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probabilities (G, W)."""
        n, p = arguments["n"], self.of_contexts(parameter, arguments, n_contexts)
        k = self.outcomes(arguments).astype(np.float64)
        table = np.zeros((n_contexts, k.size))
        for number in np.unique(n):
            rows = n == number
            few = k[: int(number) + 1]
            ways = np.array([_log_choose(int(number), int(j)) for j in few])
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(p[rows, None]) * few + np.log1p(-p[rows, None]) * (number - few)
            logs = np.where(np.isnan(logs), 0.0, logs)  # 0 times the logarithm of 0
            table[np.ix_(rows, np.arange(few.size))] = np.exp(ways + logs)
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    def statistics(self, counts: Floats, parameter: Floats, arguments: Arguments, rng: np.random.Generator) -> Floats:
        """Return the numbers of successes and failures."""
        successes = float((counts @ np.arange(counts.shape[1])).sum())
        return np.array([successes, float((counts.sum(axis=1) * arguments["n"]).sum()) - successes])


class Bernoulli(Binomial):
    """1 with probability ``p``, which may be a prior such as ``Beta(1, 1)``, and 0 otherwise.

    ``when``: a condition; elsewhere the noise is 0, and nothing is learned about p.
    """

    name: ClassVar[str] = "bernoulli"

    def __init__(self, p: Any, when: Any = 1) -> None:
        super().__init__(when, p)

    def checked_arguments(self, arguments: Arguments) -> Arguments:
        """Return the values of the arguments after a check."""
        return super().checked_arguments({**arguments, "n": (arguments["n"] != 0.0).astype(np.float64)})

    def outcomes(self, arguments: Arguments) -> NDArray[Any]:
        """Return 0 and 1."""
        return np.arange(2)

    def table(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probabilities (G, 2)."""
        p = arguments["n"] * self.of_contexts(parameter, arguments, n_contexts)
        return np.column_stack([1.0 - p, p])


class Poisson(Noise):
    r"""A count with a Poisson distribution; ``most`` and everything above it is one outcome.

    ``rate`` may be a prior such as ``Gamma(2, 1)``. The mean is the rate times ``times``, a number or an expression,
    such as the hours that a shop is open.
    """

    name: ClassVar[str] = "poisson"
    parameter_name: ClassVar[str] = "rate"
    prior_type: ClassVar[type[ParameterPrior]] = Gamma
    is_conjugate: ClassVar[bool] = False  # counts beyond the most are drawn given the rate

    def __init__(self, rate: Any, most: int, times: Any = 1) -> None:
        super().__init__(rate, {"times": times})
        self.most = _most(most)

    def _checked(self, parameter: Floats) -> Floats:
        return _at_least_zero(parameter, self.parameter_name)

    def flat_prior(self) -> Gamma:
        """Return an exponential prior whose mean is the largest count that is distinguished."""
        return Gamma(1.0, 1.0 / self.most)

    def checked_arguments(self, arguments: Arguments) -> Arguments:
        """Return the values of the arguments after a check."""
        _at_least_zero(arguments["times"], "times")
        return super().checked_arguments(arguments)

    def outcomes(self, arguments: Arguments) -> NDArray[Any]:
        """Return the numbers from 0 to the most."""
        return np.arange(self.most + 1)

    def table(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probabilities (G, most + 1), the last of all counts from ``most`` on."""
        mean = self.of_contexts(parameter, arguments, n_contexts) * arguments["times"]
        table = _poisson(mean, self.most)
        table[:, -1] = np.maximum(1.0 - table[:, :-1].sum(axis=1), 0.0)
        return table

    def statistics(self, counts: Floats, parameter: Floats, arguments: Arguments, rng: np.random.Generator) -> Floats:
        """Return the number of events and their exposure; counts beyond the most are drawn."""
        n_contexts = len(counts)
        events = float((counts[:, :-1] @ np.arange(self.most)).sum())
        mean = self.of_contexts(parameter, arguments, n_contexts) * arguments["times"]
        for g in np.flatnonzero(counts[:, -1]):
            events += float(_tail_sum(float(mean[g]), self.most, int(counts[g, -1]), rng))
        return np.array([events, float((counts.sum(axis=1) * arguments["times"]).sum())])

    def options(self) -> dict[str, Any]:
        """Return the most."""
        return {"most": self.most}


class Geometric(Noise):
    r"""The number of failures before the first success of probability ``p``; ``most`` and above is one outcome."""

    name: ClassVar[str] = "geometric"
    parameter_name: ClassVar[str] = "p"
    prior_type: ClassVar[type[ParameterPrior]] = Beta

    def __init__(self, p: Any, most: int) -> None:
        super().__init__(p)
        self.most = _most(most)

    def _checked(self, parameter: Floats) -> Floats:
        return _probability(parameter, self.parameter_name)

    def outcomes(self, arguments: Arguments) -> NDArray[Any]:
        """Return the numbers from 0 to the most."""
        return np.arange(self.most + 1)

    def table(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probabilities (G, most + 1)."""
        p = self.of_contexts(parameter, arguments, n_contexts)[:, None]
        table = (1.0 - p) ** np.arange(self.most + 1)
        table[:, :-1] *= p
        return np.asarray(table)

    def statistics(self, counts: Floats, parameter: Floats, arguments: Arguments, rng: np.random.Generator) -> Floats:
        """Return the numbers of successes and failures; a count of ``most`` or more has no success yet."""
        return np.array([float(counts[:, :-1].sum()), float((counts @ np.arange(self.most + 1)).sum())])

    def options(self) -> dict[str, Any]:
        """Return the most."""
        return {"most": self.most}


class Categorical(Noise):
    """One of several values, numbers or texts.

    ``values``: a list, or a table of values and their probabilities. ``probabilities``: one for each value, if known.
    ``prior``: if unknown, the weight of every value in observations, a number or one for each.

    >>> Categorical({"none": 0.4, "first": 0.6})
    Categorical(probabilities=['0.4', '0.6'], values=['none' 'first'])
    """

    name: ClassVar[str] = "categorical"
    parameter_name: ClassVar[str] = "probabilities"
    prior_type: ClassVar[type[ParameterPrior]] = Weights

    def __init__(self, values: Any, probabilities: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> None:
        if isinstance(values, Mapping):
            if probabilities is not None or prior is not None:
                raise ModelError("Categorical: give a table of probabilities, or values with probabilities or a prior")
            values, probabilities = list(values), list(values.values())
        self.values = np.array(list(values))
        if self.values.ndim != 1 or not 1 <= self.values.size <= MOST_OUTCOMES:
            raise ModelError(f"Categorical: values must be a list of numbers or texts; got {values!r}")
        if self.values.dtype.kind not in "biufU" or np.unique(self.values).size != self.values.size:
            raise ModelError(f"Categorical: values must be numbers, or texts, all different; got {values!r}")
        if (probabilities is None) == (prior is None):
            raise ModelError("Categorical: give probabilities, or a prior such as prior=1 if they are unknown")
        if prior is not None:
            weights = np.broadcast_to(as_floats(prior, "prior"), self.values.shape)
            super().__init__(Weights(weights))
        else:
            super().__init__(probabilities)

    def _checked(self, parameter: Floats) -> Floats:
        if parameter.shape != self.values.shape:
            raise ModelError(f"Categorical: {self.values.size} probabilities are needed; got {parameter.size}")
        if not ((parameter >= 0) & np.isfinite(parameter)).all() or abs(parameter.sum() - 1.0) > PROBABILITY_SUM_TOL:
            raise ModelError(f"Categorical: probabilities must sum to 1; got {parameter.tolist()}")
        return parameter

    def flat_prior(self) -> Weights:
        """Return the uniform distribution of all probabilities."""
        return Weights(np.ones(self.values.size))

    def outcomes(self, arguments: Arguments) -> NDArray[Any]:
        """Return the values."""
        return self.values

    def table(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probabilities (G, W), the same in every context."""
        return np.broadcast_to(parameter, (n_contexts, parameter.size))

    def statistics(self, counts: Floats, parameter: Floats, arguments: Arguments, rng: np.random.Generator) -> Floats:
        """Return the number of every value."""
        return np.asarray(counts.sum(axis=0))

    def options(self) -> dict[str, Any]:
        """Return the values."""
        return {"values": self.values}


KINDS: dict[str, type[Noise]] = {kind.name: kind for kind in (Binomial, Bernoulli, Poisson, Geometric, Categorical)}


def noise_from_dict(data: dict[str, Any]) -> Noise:
    """Return the noise that ``to_dict`` described."""
    noise = object.__new__(KINDS[data["name"]])
    noise.known = None if data["known"] is None else np.asarray(data["known"], dtype=np.float64)
    noise.prior = None if data["prior"] is None else prior_from_dict(data["prior"])
    noise.arguments = {}
    vars(noise).update(data["options"])
    return noise


def _poisson(mean: Floats, most: int) -> Floats:
    """Return the probabilities (G, most + 1) of the counts 0 to most."""
    k = np.arange(most + 1)
    logs = np.array([special.lgamma(float(j) + 1.0) for j in k])
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.where(k == 0, 0.0, k * np.log(mean)[:, None])
    return np.asarray(np.exp(powers - mean[:, None] - logs))


def _tail_sum(mean: float, most: int, times: int, rng: np.random.Generator) -> float:
    """Return the sum of that many Poisson counts, each at least ``most``."""
    width = int(TAIL_DEVIATIONS * (1.0 + mean**0.5))
    counts = np.arange(most, max(most, int(mean)) + width)
    logs = counts * np.log(mean) - np.array([special.lgamma(float(k) + 1.0) for k in counts])
    shares = np.exp(logs - logs.max())
    return float(rng.multinomial(times, shares / shares.sum()) @ counts)


def _log_choose(n: int, k: int) -> float:
    return special.lgamma(n + 1.0) - special.lgamma(k + 1.0) - special.lgamma(n - k + 1.0)


def _probability(values: Floats, what: str) -> Floats:
    if not ((values >= 0) & (values <= 1)).all():
        raise ModelError(f"{what} must be a probability from 0 to 1; got {_shown(values)}")
    return values


def _at_least_zero(values: Floats, what: str) -> Floats:
    if not ((values >= 0) & np.isfinite(values)).all():
        raise ModelError(f"{what} must be finite and not negative; got {_shown(values)}")
    return values


def _shown(values: Floats) -> str:
    return f"{values.min():g}" if values.min() == values.max() else f"{values.min():g} to {values.max():g}"


def _most(most: Any) -> int:
    if not isinstance(most, int | np.integer) or not 1 <= most < MOST_OUTCOMES:
        raise ModelError(f"most must be a whole number from 1 to {MOST_OUTCOMES - 1}; got {most!r}")
    return int(most)
