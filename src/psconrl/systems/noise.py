r"""Noise: random variables that are drawn in every round, independently of the past.

The distribution of a noise has one parameter, which is known (a number, or an expression in the variables of the
system and in other noise) or unknown (a prior). It may depend on them through further arguments, such as the number of
patients of a binomial distribution. Noises are independent but for what their arguments say (``dependent_noise``).

The distinct values of parameters and arguments are the *contexts* of a noise; ``table`` returns the probabilities of
all outcomes in each of them, ``possible`` which of them have a positive probability for some value of the parameter.
``statistics`` reduces the numbers of observed outcomes to the sufficient statistics of the prior.

An outcome of a known distribution whose probability is too small for a double, below about 5e-324, counts as
impossible. If the parameter is unknown, what is possible does not depend on its prior.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats
from psconrl.base.saved_fields import (
    Kind,
    brief,
    fields,
    integer,
    integers,
    maybe,
    need_that,
    read_fields,
    reals,
    table_of,
    text,
)
from psconrl.errors import ModelError
from psconrl.systems.categorical import Categorical, Joint
from psconrl.systems.noise_base import Arguments, Noise
from psconrl.systems.noise_values import (
    MOST_OUTCOMES,
    checked_at_least_zero,
    checked_most,
    checked_probability,
    log_choose,
    poisson_table,
    tail_sum,
)
from psconrl.systems.priors import Beta, Gamma, ParameterPrior, prior_from_dict

LARGEST = "largest n"  # an argument of a binomial distribution that its constructor does not have


class Trials(Noise):
    r"""Noise made of trials, each of which succeeds with probability ``p`` times a factor, ``times``.

    The posterior of p is not conjugate where a factor :math:`f` lies between 0 and 1. A success is then one of a latent
    trial of probability p that was kept with probability f, and the latent trial of a failure succeeded with
    probability :math:`p (1 - f) / (1 - p f)`; ``statistics`` draws how many did. Where f is 0, trials say nothing.
    """

    parameter_name: ClassVar[str] = "p"
    prior_type: ClassVar[type[ParameterPrior]] = Beta

    def _checked(self, parameter: Floats) -> Floats:
        return checked_probability(parameter, self.parameter_name)

    def checked_arguments(self, arguments: Arguments) -> Arguments:
        """Return the values of the arguments after a check."""
        checked_probability(arguments["times"], "times", "a factor")
        return super().checked_arguments(arguments)

    def of_trial(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probability that a trial succeeds, in every context (G,)."""
        return self.of_contexts(parameter, arguments, n_contexts) * arguments["times"]

    def is_conjugate(self, arguments: Arguments) -> bool:
        """Return whether all factors are 0 or 1."""
        return bool(np.isin(arguments["times"], (0.0, 1.0)).all())

    @abstractmethod
    def trials(self, counts: Floats, arguments: Arguments) -> tuple[Floats, Floats]:
        """Return the numbers (G,) of successes and failures in every context, given those of outcomes (G, W)."""

    def statistics(self, counts: Floats, parameter: Floats, arguments: Arguments, rng: np.random.Generator) -> Floats:
        """Return the numbers of successes and failures, of latent trials where there is a factor."""
        factors = np.broadcast_to(arguments["times"], (len(counts),))
        successes, failures = (numbers * (factors > 0.0) for numbers in self.trials(counts, arguments))
        p = self.of_contexts(parameter, arguments, len(counts))
        for g in np.flatnonzero((factors < 1.0) & (failures > 0.0)):
            thinned = float(rng.binomial(int(failures[g]), p[g] * (1.0 - factors[g]) / (1.0 - p[g] * factors[g])))
            successes[g], failures[g] = successes[g] + thinned, failures[g] - thinned
        return np.array([float(successes.sum()), float(failures.sum())])


class Binomial(Trials):
    r"""The number of successes in ``n`` trials of probability ``p``, which may be a prior such as ``Beta(1, 1)``.

    ``n`` may be an expression, such as ``"patients"``. The probability is p times ``times``, a factor from 0 to 1 or an
    expression, such as ``"0.5 if night else 1"``.
    """

    name: ClassVar[str] = "binomial"
    argument_names: ClassVar[tuple[str, ...]] = ("n", "times")
    exposure_name: ClassVar[str] = "n"

    def __init__(self, n: Any, p: Any, times: Any = 1) -> None:
        super().__init__(p, {"n": n, "times": times})

    def checked_arguments(self, arguments: Arguments) -> Arguments:
        """Return the values of the arguments after a check."""
        n = arguments["n"]
        if not ((n >= 0) & (n == np.floor(n)) & (n < MOST_OUTCOMES)).all():
            raise ModelError(f"n must be a whole number from 0 to {MOST_OUTCOMES - 1}; got {n.min():g} to {n.max():g}")
        return super().checked_arguments({**arguments, LARGEST: np.array([n.max()])})

    def need_arguments(self, arguments: Mapping[str, Any], n_contexts: int) -> None:
        """Raise an error unless arguments from a file are possible, with the largest n among them."""
        largest: Floats = read_fields(arguments, {LARGEST: integers((None,), 0, MOST_OUTCOMES - 1)})[LARGEST]
        own = {key: given for key, given in arguments.items() if key != LARGEST}
        super().need_arguments(own, n_contexts)
        need_that(largest.size in (1, n_contexts), f"{LARGEST} must be one number, or one for every context")
        need_that(np.max(own["n"]) <= largest.max(), f"{LARGEST} must not be below n")

    def outcomes(self, arguments: Arguments) -> NDArray[Any]:
        """Return the numbers from 0 to the largest n, reached or not."""
        return np.arange(int(arguments.get(LARGEST, arguments["n"]).max()) + 1)

    def _support(self, arguments: Arguments) -> Bools:
        return np.asarray(self.outcomes(arguments) <= np.where(arguments["times"] > 0.0, arguments["n"], 0.0)[:, None])

    def table(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probabilities (G, W)."""
        n, p = arguments["n"], self.of_trial(parameter, arguments, n_contexts)
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

    def trials(self, counts: Floats, arguments: Arguments) -> tuple[Floats, Floats]:
        """Return the numbers (G,) of successes and failures."""
        successes: Floats = counts @ np.arange(counts.shape[1])
        return successes, counts.sum(axis=1) * arguments["n"] - successes


class Bernoulli(Trials):
    """1 with probability ``p``, which may be a prior such as ``Beta(1, 1)``, and 0 otherwise.

    ``when``: a condition; elsewhere the noise is 0, and nothing is learned about p. ``times``: a factor of p from 0 to
    1, or an expression, such as ``"0.5 if night else 1"``.
    """

    name: ClassVar[str] = "bernoulli"
    argument_names: ClassVar[tuple[str, ...]] = ("when", "times")
    exposure_name: ClassVar[str] = "when"

    def __init__(self, p: Any, when: Any = 1, times: Any = 1) -> None:
        super().__init__(p, {"when": when, "times": times})

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
        when = (arguments["when"] > 0.0) & (arguments["times"] > 0.0)
        return np.column_stack([np.ones_like(when), when])

    def table(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probabilities (G, 2)."""
        p = arguments["when"] * self.of_trial(parameter, arguments, n_contexts)
        return np.column_stack([1.0 - p, p])

    def trials(self, counts: Floats, arguments: Arguments) -> tuple[Floats, Floats]:
        """Return the numbers (G,) of successes and failures in rounds in which the condition holds."""
        return counts[:, 1].copy(), counts.sum(axis=1) * arguments["when"] - counts[:, 1]


class Poisson(Noise):
    r"""A count with a Poisson distribution; ``most`` and everything above it is one outcome.

    ``rate`` may be a prior such as ``Gamma(2, 1)``. The mean is the rate times ``times``, a number or an expression,
    such as the hours that a shop is open.
    """

    name: ClassVar[str] = "poisson"
    argument_names: ClassVar[tuple[str, ...]] = ("times",)
    option_kinds: ClassVar[Mapping[str, Kind]] = {"most": integer(1, MOST_OUTCOMES - 1)}
    parameter_name: ClassVar[str] = "rate"
    prior_type: ClassVar[type[ParameterPrior]] = Gamma

    def __init__(self, rate: Any, most: int, times: Any = 1) -> None:
        super().__init__(rate, {"times": times})
        self.most = checked_most(most)

    def _checked(self, parameter: Floats) -> Floats:
        return checked_at_least_zero(parameter, self.parameter_name)

    def is_conjugate(self, arguments: Arguments) -> bool:
        """Return False: counts beyond the most are drawn given the rate."""
        return False

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


class Geometric(Trials):
    r"""The number of failures before the first success of probability ``p``; ``most`` and above is one outcome.

    ``times``: a factor of p from 0 to 1, or an expression, such as ``"0.5 if night else 1"``.
    """

    name: ClassVar[str] = "geometric"
    argument_names: ClassVar[tuple[str, ...]] = ("times",)
    option_kinds: ClassVar[Mapping[str, Kind]] = {"most": integer(1, MOST_OUTCOMES - 1)}

    def __init__(self, p: Any, most: int, times: Any = 1) -> None:
        super().__init__(p, {"times": times})
        self.most = checked_most(most)

    def outcomes(self, arguments: Arguments) -> NDArray[Any]:
        """Return the numbers from 0 to the most."""
        return np.arange(self.most + 1)

    def _support(self, arguments: Arguments) -> Bools:
        return np.asarray((self.outcomes(arguments) == self.most) | (arguments["times"] > 0.0)[:, None])

    def table(self, parameter: Floats, arguments: Arguments, n_contexts: int) -> Floats:
        """Return the probabilities (G, most + 1)."""
        p = self.of_trial(parameter, arguments, n_contexts)[:, None]
        table = (1.0 - p) ** np.arange(self.most + 1)
        table[:, :-1] *= p
        return np.asarray(table)

    def trials(self, counts: Floats, arguments: Arguments) -> tuple[Floats, Floats]:
        """Return the numbers (G,) of successes and failures; a count of ``most`` or more has no success yet."""
        return counts[:, :-1].sum(axis=1), counts @ np.arange(self.most + 1)

    def options(self) -> dict[str, Any]:
        """Return the most."""
        return {"most": self.most}


KINDS: dict[str, type[Noise]] = {
    kind.name: kind for kind in (Binomial, Bernoulli, Poisson, Geometric, Categorical, Joint)
}


def noise_from_dict(data: dict[str, Any]) -> Noise:
    """Return the noise that ``to_dict`` described."""
    kind = KINDS[read_fields(data, {"name": text(*KINDS)})["name"]]
    saved = read_fields(
        data,
        {
            "known": maybe(reals((None,))),
            "prior": maybe(prior_from_dict),
            "arguments": table_of(_stated),
            "options": fields(kind.option_kinds),
        },
    )
    noise = object.__new__(kind)
    noise.known, noise.prior, noise.arguments = None, None, saved["arguments"]
    vars(noise).update(saved["options"])
    noise.check_options()
    given = [value for value in (saved["known"], saved["prior"]) if value is not None]
    need_that(len(given) <= 1, "known and prior must not both be given")
    for value in given:
        noise._set_parameter(value)
    return noise


def _stated(given: Any) -> Any:
    """Read an argument as it was stated: an expression, or a number."""
    need_that(isinstance(given, str | int | float), f"must be an expression or a number; is {brief(given)}")
    return given
