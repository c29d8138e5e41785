r"""A hospital ward whose beds several classes of patients share: a loss network (Kelly 1991) with control.

State: the patients of each class, urgent, elective and transfer, together at most ``beds``. Patients of class i arrive
at rate ``arrivals[i]`` and are discharged at rate ``discharges[i]`` each, times the speed of the staff. A step is one
uniformised event time: at most one patient comes or goes. Actions: every pair of a staff level and a set of classes
admitted besides urgent patients. Urgent patients are admitted whenever a bed is free. No patient is admitted when none
is.

Reward: the value of the patients admitted. Limits: ``staff``, the average number on duty; ``refused``, the share of
urgent patients refused, which is the share of time without a free bed, since Poisson arrivals see time averages;
``occupied``, the average number of occupied beds. All are paid as rates, so that averages are per unit of time.
"""

from itertools import product
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.caps import need_sparse
from psconrl.envs.model_builder import at_most, model_builder
from psconrl.errors import ModelError
from psconrl.model.units import Units
from psconrl.model.validation import as_floats
from psconrl.systems.events import Event
from psconrl.systems.system import System

CLASSES = ("urgent", "elective", "transfer")


def ward_system(
    beds: int = 18,
    arrivals: ArrayLike = (0.16, 0.2, 0.1),
    discharges: ArrayLike = (0.02, 0.03, 0.025),
    values: ArrayLike = (5.0, 2.0, 3.0),
    speeds: ArrayLike = (0.6, 0.8, 1.0),
    nurses: ArrayLike = (3.0, 4.0, 6.0),
    staff: float = 4.5,
    refused: float = 0.02,
    occupied: float = 14.0,
) -> System:
    """Maximise the value of the patients admitted within limits on staff, urgent patients refused and occupied beds.

    ``arrivals``, ``discharges``, ``values``: one number per class, of one to three classes. ``speeds``: how fast
    patients recover, one number per staff level; ``nurses``: the number on duty at that level.

    >>> ward_system().model()
    CMDP(1330 states, 12 actions, 3 constraints, sparse)
    """
    come, leave, worth = (as_floats(x, "arrivals, discharges and values") for x in (arrivals, discharges, values))
    speed, duty = as_floats(speeds, "speeds"), as_floats(nurses, "nurses")
    if not 1 <= beds < np.inf or int(beds) != beds:
        raise ModelError(f"beds must be a whole number from 1 on; got {beds}")
    if come.ndim != 1 or not 1 <= come.size <= len(CLASSES) or not come.shape == leave.shape == worth.shape:
        raise ModelError("arrivals, discharges and values must have one number a class, of one to three classes")
    if not all(np.isfinite(x).all() and (x > 0).all() for x in (come, leave, speed)):
        raise ModelError("arrivals, discharges and speeds must be positive and finite")
    if speed.ndim != 1 or not speed.size or speed.shape != duty.shape:
        raise ModelError("speeds and nurses must have one number a staff")
    beds, kinds = int(beds), CLASSES[: come.size]
    # Besides urgent patients, any set of the other classes is admitted.
    admits = [
        " and ".join(["urgent", *(kind for kind, yes in zip(kinds[1:], chosen, strict=True) if yes)])
        for chosen in product((False, True), repeat=len(kinds) - 1)
    ]
    need_sparse(comb(beds + len(kinds), len(kinds)), len(admits) * speed.size, 2 * len(kinds) + 1)
    taken, pace = " + ".join(kinds), f"pick(staff, {_listed(speed)})"
    events = {}
    for kind, rate, leaves, value in zip(kinds, come, leave, worth, strict=True):
        admitted = " or ".join(f"admits == '{group}'" for group in admits if kind in group)
        events[f"{kind}_comes"] = Event(
            float(rate), {kind: f"{kind} + 1"}, when=f"{taken} < {beds} and ({admitted})", costs={"value": float(value)}
        )
        events[f"{kind}_goes"] = Event(float(leaves), {kind: f"{kind} - 1"}, times=f"{kind} * {pace}")
    return System(
        state={kind: range(beds + 1) for kind in kinds},
        action={"staff": range(speed.size), "admits": admits},
        events=events,
        clock=float(come.sum() + beds * leave.max() * speed.max()),
        costs={
            "value": 0,
            "nurses": f"pick(staff, {_listed(duty)})",
            "refused": f"{taken} == {beds}",
            "occupied": taken,
        },
        maximise="value",
        limits=[at_most("nurses", staff), at_most("refused", refused), at_most("occupied", occupied)],
        units=Units(levels={"staff": "nurses", "refused": "of urgent patients", "occupied": "beds"}),
        state_names=", ".join(f"{{{kind}}} {kind}" for kind in kinds),
        action_names="staff {staff} admits {admits}",
        cost_names={"nurses": "staff"},
    )


ward = model_builder(ward_system, sparse=True)


def _listed(numbers: Floats) -> str:
    return ", ".join(map(repr, numbers.tolist()))
