"""``ExactPlan``, a plan in rational numbers."""

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

from psconrl.base.arrays import Floats

Rationals = tuple[Fraction, ...]
DECIMAL_BITS = 10_000  # Python refuses to convert integers of more than 4,300 digits; larger ones are hexadecimal


@dataclass(frozen=True, eq=False)
class ExactPlan:
    """The optimum of a model in rational numbers, without any rounding.

    The model is that of its doubles, with rows that sum to exactly one: the probability of staying in a state is one
    minus those of leaving it. ``value`` and ``costs`` are averages as in ``Plan``, and the multipliers, potential and
    gains prove that no policy costs less, or that none meets the thresholds. ``policy`` is None if no stationary policy
    was found that attains them; then each run draws one of ``policies`` with the probabilities ``shares``.
    """

    feasible: bool
    value: Fraction  # in the user's sense: a reward if the model was built from rewards
    costs: Rationals  # (m+1,) averages, of which the first is the objective as a cost
    excess: Rationals  # (m,) averages minus thresholds; none is positive if feasible
    multipliers: Rationals  # (m,)
    potential: Rationals  # (S,)
    gains: Rationals  # (S,) all equal unless the model has several end components
    policy: tuple[Rationals, ...] | None  # (S, A)
    policies: tuple[tuple[int, ...], ...]  # deterministic policies whose mixture is optimal
    shares: Rationals  # their probabilities

    def extended(self, states: list[int], elsewhere: Floats) -> "ExactPlan":
        """Return the plan of a model with these reachable states; others play as the policy ``elsewhere`` (S, A)."""
        idle = [tuple(Fraction(x) for x in row) for row in elsewhere.tolist()]
        zeros = [Fraction(0)] * len(idle)
        return replace(
            self,
            potential=_spread(states, self.potential, zeros),
            gains=_spread(states, self.gains, zeros),
            policy=None if self.policy is None else _spread(states, self.policy, idle),
            policies=tuple(_spread(states, actions, elsewhere.argmax(axis=1).tolist()) for actions in self.policies),
        )

    def record(self) -> dict[str, Any]:
        """Return the plan as plain data, with fractions as text, such as ``"31/40"``; long ones are hexadecimal."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "ExactPlan":
        """Return the plan of a record."""
        return cls(**{f.name: _read(record[f.name]) for f in fields(cls)})


def _spread(states: list[int], values: tuple[Any, ...], elsewhere: list[Any]) -> tuple[Any, ...]:
    full = list(elsewhere)
    for s, value in zip(states, values, strict=True):
        full[s] = value
    return tuple(full)


def _plain(x: Any) -> Any:
    if isinstance(x, Fraction):
        return fraction_as_text(x)
    return [_plain(entry) for entry in x] if isinstance(x, tuple) else x


def fraction_as_text(x: Fraction) -> str:
    """Return a fraction as text, such as ``"31/40"``; integers of many digits are hexadecimal."""
    return f"{_text(x.numerator)}/{_text(x.denominator)}" if x.denominator != 1 else _text(x.numerator)


def _text(x: int) -> str:
    return str(x) if x.bit_length() <= DECIMAL_BITS else hex(x)


def _read(x: Any) -> Any:
    if isinstance(x, str):
        numerator, _, denominator = x.partition("/")
        return Fraction(int(numerator, 0), int(denominator or "1", 0))
    return tuple(_read(entry) for entry in x) if isinstance(x, list) else x
