"""What a doubt about a noise says: what was found, and what to write instead."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats
from psconrl.systems.categorical import Categorical
from psconrl.systems.noise import Bernoulli, Binomial, Poisson
from psconrl.systems.noise_base import Noise

MOST_SHOWN = 4  # values of a variable
MOST_LISTED = 8  # values of a noise that are listed in an example


def dependence_text(
    name: str, noise: Noise | None, variable: str, values: Sequence[Any], times: Floats, estimates: Floats | None
) -> str:
    """Say that a noise, or an event, depends on a variable; ``times``: how often it was seen at each value."""
    shown = ""
    seen = np.flatnonzero(times > 0.0)
    if estimates is not None and seen.size:
        most = np.sort(seen[np.argsort(-times[seen], kind="stable")][:MOST_SHOWN])
        shown = f" ({', '.join(f'{estimates[i]:.2g} at {values[i]}' for i in most)})"
    one = repr(values[int(seen[0])] if seen.size else values[0])
    how = f"give it one parameter for each {variable}, {_how(noise, variable, one)}"
    if noise is not None and any(variable in _words(given) for given in noise.arguments.values()):
        return f"{name} depends on {variable}{shown} in another way than its arguments say: correct them, or {how}"
    return f"{name} depends on {variable}{shown}: {how}"


def _words(given: Any) -> list[str]:
    """Return the words of an argument, the names of variables among them; none of a number."""
    return re.findall(r"\w+", given) if isinstance(given, str) else []


def _how(noise: Noise | None, variable: str, value: str) -> str:
    """Say how to write one parameter for each value of a variable."""
    condition = f"{variable} == {value}"
    if noise is None:
        return f'as one event for each, with when="{condition}"'
    if noise.prior is None:
        return f"as an expression of {variable}, or as one noise for each with a prior, of which the rules use one"
    if isinstance(noise, Bernoulli):
        return f'as one noise for each, Bernoulli(..., when="{condition}"), and use their sum'
    if isinstance(noise, Binomial):
        return f'as one noise for each, Binomial("... if {condition} else 0", ...), and use their sum'
    if isinstance(noise, Poisson):
        return f'as one noise for each, Poisson(..., times="{condition}"), and use their sum'
    return "as one noise for each, of which the rules use the one that applies"


def changed_text(name: str, round_: int, estimates: Floats | None) -> str:
    """Say that a noise, or an event, changed; ``estimates``: before and after."""
    shown = "" if estimates is None else f" (from {estimates[0]:.3g} to {estimates[1]:.3g})"
    return (
        f"{name} changed over time, at about round {round_:,}{shown}: begin again with a new agent, or add what it "
        "depends on, such as a season, to the state"
    )


def value_text(name: str, noise: Noise | None, estimates: Floats | None) -> str:
    """Say that a known parameter of a noise, or the rate of an event, is another."""
    what = "rate" if noise is None else noise.parameter_name
    shown = "" if estimates is None else f", but about {estimates[0]:.3g}"
    return f"{what} of {name} is not as given{shown}: correct it, or give a prior to learn it"


def dispersion_text(name: str, noise: Noise, size: int) -> str:
    """Say that a noise varies more than its family allows."""
    return (
        f"{name} varies more than {noise!r} does, as if its parameter were drawn in every round: give its values free "
        f"probabilities, Categorical(range({size}), prior=1), or add what its parameter depends on to the state"
    )


def family_text(shown: str, noise: Noise | None, size: int) -> str:
    """Say what to write in place of a distribution that is not the right one; None: of the rates of events."""
    if noise is None:
        return f"{shown}: correct the rates, or add what they depend on to the state"
    if isinstance(noise, Categorical):
        return f"{shown}: correct its probabilities, or give them a prior, Categorical(..., prior=1)"
    return (
        f"{shown}: give its values free probabilities, Categorical(range({size}), prior=1), or add what its parameter "
        "depends on to the state"
    )


def fits_text(name: str) -> str:
    """Say that a noise, or an event, comes in fits."""
    return (
        f"{name}: higher in some stretches of rounds, and lower in others, than can be accidental; add what decides "
        "it, such as busy and quiet times, to the state, or begin again with a new agent if it has changed for good"
    )


def hidden_correlation_text(name: str, other: str, parents: Mapping[str, Sequence[str]]) -> str:
    """Say that two noises depend on each other, as far as their joint results show; ``parents``: as given."""
    for child, parent in ((name, other), (other, name)):
        if parent in parents.get(child, ()):
            return (
                f"{child} depends on {parent} in another way than its arguments say, as their joint results show: "
                f'correct them, or make both one joint table, "{name}, {other}": Joint(..., prior=1)'
            )
    return (
        f"{name} and {other} depend on each other, as their joint results show: make them one joint table, "
        f'"{name}, {other}": Joint(..., prior=1), or report both, which shows how; or, if one of them is known before '
        "the round, make it part of the state"
    )


def correlation_text(name: str, values: NDArray[Any], other: str, by: NDArray[Any], times: Floats) -> str:
    """Say that two noises depend on each other; ``times``: how often each value of ``by`` (rows) came with each value.

    The remedy is one joint table of both.
    """
    groups = _groups(by, times.sum(axis=1))
    shares = np.array([times[of].sum(axis=0) / times[of].sum() for _, of in groups])
    if values.dtype.kind == "U":
        k = int(np.ptp(shares, axis=0).argmax())
        what, numbers = f"{values[k]} in a share of", shares[:, k]
    else:
        what, numbers = "on average", (shares * values).sum(axis=1)
    shown = ", ".join(f"{x:.2g} when {other} is {at}" for x, (at, _) in zip(numbers, groups, strict=True))
    product = f"itertools.product({_listed(name, values)}, {_listed(other, by)})"
    return (
        f"{name} and {other} depend on each other ({name} is {what} {shown}): make them one joint table, "
        f'"{name}, {other}": Joint({product}, prior=1), or let one of them depend on the other in its arguments; '
        "or, if one of them is known before the round, make it part of the state"
    )


def _listed(name: str, values: NDArray[Any]) -> str:
    """Return the values of a noise as they are written in a program."""
    if values.dtype.kind in "biu" and (values == np.arange(values.size)).all():
        return f"range({values.size})"
    return repr(values.tolist()) if values.size <= MOST_LISTED else f"[the values of {name}]"


def _groups(by: NDArray[Any], times: Floats) -> list[tuple[str, Bools]]:
    """Return the values that were seen, the most frequent texts, or two groups of more numbers than can be shown."""
    seen = np.flatnonzero(times > 0.0)
    if seen.size <= MOST_SHOWN or by.dtype.kind == "U":
        most = np.sort(seen[np.argsort(-times[seen], kind="stable")][:MOST_SHOWN])
        return [(str(by[i]), np.arange(by.size) == i) for i in most]
    ordered = seen[np.argsort(by[seen], kind="stable")]
    below = np.cumsum(times[ordered])[:-1] / times.sum()
    cut = by[ordered[int(np.abs(below - 0.5).argmin())]]
    return [(f"at most {cut}", by <= cut), (f"above {cut}", by > cut)]
