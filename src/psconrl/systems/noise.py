r"""Noise: random variables that are drawn in every round, independently of each other and of the past.

The distribution of a noise has one parameter, which is known (a number, or an expression in the variables of the
system) or unknown (a prior). It may depend on the variables through further arguments, such as the number of patients
of a binomial distribution. The distinct values of parameters and arguments are the *contexts* of a noise; ``table``
returns the probabilities of all outcomes in each of them, ``possible`` which of them have a positive probability for
some value of the parameter. ``statistics`` reduces the numbers of observed outcomes to the sufficient statistics of the
prior.

An outcome of a known distribution whose probability is too small for a double, below about 5e-324, counts as
impossible. If the parameter is unknown, what is possible does not depend on its prior.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psconrl.arrays import Bools, Floats
from psconrl.errors import ModelError
from psconrl.model.validation import as_floats
from psconrl.systems.noise_base import Arguments, Noise
from psconrl.systems.noise_values import (
    MOST_OUTCOMES,
    checked_at_least_zero,
    checked_most,
    checked_probability,
    listed_values,
    log_choose,
    poisson_table,
    tail_sum,
)
from psconrl.systems.priors import Beta, Gamma, ParameterPrior, Weights, prior_from_dict

PROBABILITY_SUM_TOL = 1e-9  # of probabilities that should sum to one

LARGEST = "largest n"  # an argument of a binomial distribution that its constructor does not have


class Binomial(Noise):
    r"""The number of successes in ``n`` trials of probability ``p``, which may be a prior such as ``Beta(1, 1)``.

    ``n`` may be an expression, such as ``"patients"``.
    """

    name: ClassVar[str] = "binomial"
    parameter_name: ClassVar[str] = "p"
    prior_type: ClassVar[type[ParameterPrior]] = Beta
    exposure_name: ClassVar[str] = "n"

    def __init__(self, n: Any, p: Any) -> None:
        super().__init__(p, {"n": n})

    def _checked(self, parameter: Floats) -> Floats:
        return checked_probability(parameter, self.parameter_name)

    def checked_arguments(self, arguments: Arguments) -> Arguments:
        """Return the values of the arguments after a check."""
        n = arguments["n"]
        if not ((n >= 0) & (n == np.floor(n)) & (n < MOST_OUTCOMES)).all():
            raise ModelError(f"n must be a whole number from 0 to {MOST_OUTCOMES - 1}; got {n.min():g} to {n.max():g}")
        return super().checked_arguments({**arguments, LARGEST: np.array([n.max()])})

    def outcomes(self, arguments: Arguments) -> NDArray[Any]:
        """Return the numbers from 0 to the largest n, reached or not."""
        return np.arange(int(arguments.get(LARGEST, arguments["n"]).max()) + 1)

    def _support(self, arguments: Arguments) -> Bools:
        return np.asarray(self.outcomes(arguments) <= arguments["n"][:, None])

    def table(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probabilities (G, W)."""
        n, p = arguments["n"], self.of_contexts(parameter, arguments, n_contexts)
        k = self.outcomes(arguments).astype(np.float64)
        table = np.zeros((n_contexts, k.size))
        for number in np.unique(n):
            rows = n == number
            few = k[: int(number) + 1]
            ways = np.array([log_choose(int(number), int(j)) for j in few])
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(p[rows, None]) * few + np.log1p(-p[rows, None]) * (number - few)
            logs = np.where(np.isnan(logs), 0.0, logs)  # 0 times the logarithm of 0
            table[np.ix_(rows, np.arange(few.size))] = np.exp(ways + logs)
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    def statistics(self, counts: Floats, parameter: Floats, arguments: Arguments, rng: np.random.Generator) -> Floats:
        """Return the numbers of successes and failures."""
        successes = float((counts @ np.arange(counts.shape[1])).sum())
        return np.array([successes, float((counts.sum(axis=1) * arguments["n"]).sum()) - successes])


class Bernoulli(Noise):
    """1 with probability ``p``, which may be a prior such as ``Beta(1, 1)``, and 0 otherwise.

    ``when``: a condition; elsewhere the noise is 0, and nothing is learned about p.
    """

    name: ClassVar[str] = "bernoulli"
    parameter_name: ClassVar[str] = "p"
    prior_type: ClassVar[type[ParameterPrior]] = Beta
    exposure_name: ClassVar[str] = "when"

    def __init__(self, p: Any, when: Any = 1) -> None:
        super().__init__(p, {"when": when})

    def _checked(self, parameter: Floats) -> Floats:
        return checked_probability(parameter, self.parameter_name)

    def checked_arguments(self, arguments: Arguments) -> Arguments:
        """Return the values of the arguments after a check."""
        if np.isnan(arguments["when"]).any():
            raise ModelError("when must be a condition; got nan")
        when = (arguments["when"] != 0.0).astype(np.float64)
        return super().checked_arguments({**arguments, "when": when})

    def outcomes(self, arguments: Arguments) -> NDArray[Any]:
        """Return 0 and 1."""
        return np.arange(2)

    def _support(self, arguments: Arguments) -> Bools:
        when = arguments["when"] > 0.0
        return np.column_stack([np.ones_like(when), when])

    def table(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probabilities (G, 2)."""
        p = arguments["when"] * self.of_contexts(parameter, arguments, n_contexts)
        return np.column_stack([1.0 - p, p])

    def statistics(self, counts: Floats, parameter: Floats, arguments: Arguments, rng: np.random.Generator) -> Floats:
        """Return the numbers of successes and failures in rounds in which the condition holds."""
        successes = float(counts[:, 1].sum())
        return np.array([successes, float((counts.sum(axis=1) * arguments["when"]).sum()) - successes])


class Poisson(Noise):
    r"""A count with a Poisson distribution; ``most`` and everything above it is one outcome.

    ``rate`` may be a prior such as ``Gamma(2, 1)``. The mean is the rate times ``times``, a number or an expression,
    such as the hours that a shop is open.
    """

    name: ClassVar[str] = "poisson"
    parameter_name: ClassVar[str] = "rate"
    prior_type: ClassVar[type[ParameterPrior]] = Gamma
    exposure_name: ClassVar[str] = "times"
    is_conjugate: ClassVar[bool] = False  # counts beyond the most are drawn given the rate

    def __init__(self, rate: Any, most: int, times: Any = 1) -> None:
        super().__init__(rate, {"times": times})
        self.most = checked_most(most)

    def _checked(self, parameter: Floats) -> Floats:
        return checked_at_least_zero(parameter, self.parameter_name)

    def flat_prior(self) -> Gamma:
        """Return an exponential prior whose mean is the largest count that is distinguished."""
        return Gamma(1.0, 1.0 / self.most)

    def checked_arguments(self, arguments: Arguments) -> Arguments:
        """Return the values of the arguments after a check."""
        checked_at_least_zero(arguments["times"], "times")
        return super().checked_arguments(arguments)

    def outcomes(self, arguments: Arguments) -> NDArray[Any]:
        """Return the numbers from 0 to the most."""
        return np.arange(self.most + 1)

    def _support(self, arguments: Arguments) -> Bools:
        return np.asarray((self.outcomes(arguments) == 0) | (arguments["times"] > 0.0)[:, None])

    def table(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probabilities (G, most + 1), the last of all counts from ``most`` on."""
        mean = self.of_contexts(parameter, arguments, n_contexts) * arguments["times"]
        table = poisson_table(mean, self.most)
        table[:, -1] = np.maximum(1.0 - table[:, :-1].sum(axis=1), 0.0)
        return table

    def statistics(self, counts: Floats, parameter: Floats, arguments: Arguments, rng: np.random.Generator) -> Floats:
        """Return the number of events and their exposure; counts beyond the most are drawn."""
        n_contexts = len(counts)
        events = float((counts[:, :-1] @ np.arange(self.most)).sum())
        mean = self.of_contexts(parameter, arguments, n_contexts) * arguments["times"]
        for g in np.flatnonzero(counts[:, -1]):
            events += float(tail_sum(float(mean[g]), self.most, int(counts[g, -1]), rng))
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
        self.most = checked_most(most)

    def _checked(self, parameter: Floats) -> Floats:
        return checked_probability(parameter, self.parameter_name)

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
    Categorical(values=['none', 'first'], probabilities=[0.4, 0.6])
    """

    name: ClassVar[str] = "categorical"
    parameter_name: ClassVar[str] = "probabilities"
    prior_type: ClassVar[type[ParameterPrior]] = Weights

    def __init__(self, values: Any, probabilities: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> None:
        if isinstance(values, Mapping):
            if probabilities is not None or prior is not None:
                raise ModelError("Categorical: give a table of probabilities, or values with probabilities or a prior")
            values, probabilities = list(values), list(values.values())
        self.values = listed_values(values)
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

    def _set_parameter(self, parameter: Any) -> None:
        if isinstance(parameter, Weights) and parameter.weights.shape != self.values.shape:
            raise ModelError(f"Categorical: {self.values.size} weights are needed; got {parameter.weights.size}")
        if isinstance(parameter, str) or callable(parameter):
            raise ModelError(f"Categorical: probabilities must be numbers; got {parameter!r}")
        super()._set_parameter(parameter)

    def _numbers(self, parameter: Any) -> Floats:
        return as_floats(parameter, self.parameter_name)

    def _given_parameter(self) -> dict[str, Any]:
        weights = self.prior.weights.tolist() if isinstance(self.prior, Weights) else None
        return {"probabilities": None if self.known is None else self.known.tolist(), "prior": weights}

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

    def description(self) -> dict[str, Any]:
        """Return the arguments of the constructor that make this noise, without defaults."""
        return {**super().description(), "values": self.values.tolist()}


KINDS: dict[str, type[Noise]] = {kind.name: kind for kind in (Binomial, Bernoulli, Poisson, Geometric, Categorical)}


def noise_from_dict(data: dict[str, Any]) -> Noise:
    """Return the noise that ``to_dict`` described."""
    noise = object.__new__(KINDS[data["name"]])
    noise.known = None if data["known"] is None else np.asarray(data["known"], dtype=np.float64)
    noise.prior = None if data["prior"] is None else prior_from_dict(data["prior"])
    noise.arguments = {}
    vars(noise).update(data["options"])
    return noise
