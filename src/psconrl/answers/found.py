"""What planning a statement finds: a certified plan of a linear model, and what it proves."""

from dataclasses import dataclass

from psconrl.answers.stated_model import Asked
from psconrl.model.cmdp import CMDP
from psconrl.planning.plan import Plan


@dataclass(frozen=True, eq=False)
class Found:
    """A certified plan of a linear model, and what it proves of the objective as stated, as a cost (less is better)."""

    system: Asked  # with a linear statement, of which the model is made
    model: CMDP
    plan: Plan
    value: float  # of the objective; nan if no policy meets the limits
    lower: float  # no policy within the limits has a smaller one
    plans: int  # that were made
