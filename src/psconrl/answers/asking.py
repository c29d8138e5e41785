"""Asking: the plan of a model or a system, and the answer of which everything else is asked."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, overload

from psconrl.answers.answer import Answer
from psconrl.answers.least_ratio import without_denominator
from psconrl.answers.solve_statement import solve_statement
from psconrl.answers.stated_infeasibility import why_infeasible
from psconrl.answers.stated_model import Asked, StatedModel
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError, ModelError
from psconrl.model.cmdp import CMDP
from psconrl.planning.methods import MIXTURE
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan_model
from psconrl.planning.progress import Progress
from psconrl.systems.reports import Report
from psconrl.systems.system import System


@overload
def plan(
    asked: CMDP,
    method: str = MIXTURE,
    start: Plan | None = None,
    progress: Callable[[Progress], object] | None = None,
    exact: bool = False,
) -> Plan: ...


@overload
def plan(asked: System, *, progress: Report | None = None, **known: Any) -> Answer: ...


def plan(
    asked: CMDP | System,
    method: str = MIXTURE,
    start: Plan | None = None,
    progress: Callable[[Any], object] | None = None,
    exact: bool = False,
    **known: Any,
) -> Plan | Answer:
    """Return the best policy within the limits, with its shadow prices and a certificate.

    The plan of a model is in terms of its arrays; the answer for a system is in those in which the system is stated.

    ``progress``: called with the state of the search from time to time if it takes long, for example ``print``. Ctrl-C
    then returns the best policy so far, with its proven gap, unless the limits of a system are not linear. ``known``:
    of a system, unknown parameters of noise, by name of the noise.

    The other options are those of models. ``method``: ``"mixture"`` (default; fast) or ``"lp"`` (the reference, on
    HiGHS). ``start``: an earlier plan of a model with the same states and actions; its policies are tried first.
    ``exact``: plan in rational arithmetic too; ``plan.exact`` then holds the optimum as fractions. Small models whose
    proof rounding leaves open are planned so in any case.

    >>> import psconrl
    >>> p = psconrl.plan(psconrl.load("marsrover-4x4"))
    >>> p.status.value, round(p.value, 9), p.multipliers.round(9).tolist()
    ('optimal', 0.775, [0.5])
    >>> third = psconrl.CMDP([[[0.5, 0.5]], [[1.0, 0.0]]], costs=[[[0.0], [1.0]]])
    >>> psconrl.plan(third, exact=True).exact.value
    Fraction(1, 3)
    >>> shop = psconrl.load_system("inventory").with_limits(["lost <= 0.3"])
    >>> print(psconrl.plan(shop, demand=[0.1, 0.2, 0.3, 0.2, 0.1, 0.1]))
    minimise holding: 1.78471 euro a day (optimal)
      lost <= 0.3 holds with 0.3; one sales a day more of lost is worth 3.605 euro a day
      orders <= 0.4 holds with 0.4; one orders a day more of orders is worth 5.702 euro a day
    """
    need_asked(asked, "plan", known)
    if isinstance(asked, System):
        if method != MIXTURE or start is not None or exact:
            raise ConfigError("method, start and exact are for models; plan answer.model with them")
        system = asked.with_known(**known)
        with system.report.to(progress) as report:
            return answer_of(system, None if report.is_silent else report)
    return plan_model(asked, method, start, progress, exact)


def linear(system: System, **guess: Any) -> System:
    """Return a system with linear objective and limits, for agents that learn its noise.

    Levels of expected shortfalls, and the ratio of the objective, are those of the best policy for guessed parameters,
    by default the prior means. Limits with such levels are sufficient, whatever the parameters are.
    """
    if system.statement.is_linear:
        return system
    means = {name: prior.mean() for name, prior in system.source.unknown().items()}
    return system.with_statement(plan(system, **(means | guess)).required().system.statement)


def answered(asked: CMDP | System | Answer, what: str, best: Plan | None = None) -> Answer:
    """Return the answer for a model or a system, if it is not one; raise an error if no policy keeps the limits.

    ``best``: the plan of a model, if it is known. ``what`` is asked for, for errors.
    """
    if isinstance(asked, Answer):
        return asked.required()
    if isinstance(asked, System):
        return plan(asked).required()
    need_asked(asked, what, {})
    stated = StatedModel(asked)
    return (answer_of(stated) if best is None else Answer.of_model(stated, asked, best)).required()


def need_asked(asked: object, what: str, known: Mapping[str, Any]) -> None:
    """Raise an error unless something is a model or a system; a model has no unknown parameters."""
    if not isinstance(asked, CMDP | System):
        raise ModelError(
            f"{what} needs a CMDP or a System; psconrl.load reads one from a file. Got {type(asked).__name__}"
        )
    if known and isinstance(asked, CMDP):
        raise ConfigError(f"{what} of a model has no option {quoted(next(iter(known)))}; a System has parameters")


def answer_of(asked: Asked, follow: Callable[[object], object] | None = None) -> Answer:
    """Return the answer, with the reasons if limits cannot be kept; ``follow`` is given the progress of planning."""
    if isinstance(asked, StatedModel):
        model = asked.expected_model()
        return Answer.of_model(asked, model, plan_model(model))
    found = solve_statement(asked, follow=follow)
    if not found.plan.feasible:
        return Answer.of(asked, found, why_infeasible(asked, found.plan))
    answer = Answer.of(asked, found)
    return replace(answer, note="; ".join(filter(None, [answer.note, *_undefined_notes(answer)])))


def _undefined_notes(answer: Answer) -> list[str]:
    """Return what can be reached where the denominators of limited ratios are positive, if some are zero."""
    system = answer.asked
    if not answer.undefined or not isinstance(system, System):
        return []
    base = system.statement.goal.base(answer.of_policy(answer.plan.occupancy))
    limits = [limit for limit in system.statement.requirements if limit.name in answer.undefined]
    return [without_denominator(system, limit, answer.value, base) for limit in limits]
