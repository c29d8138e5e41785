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

from psconrl.arrays import Floats, Ints
from psconrl.caps import need_sparse
from psconrl.envs.event_transitions import transitions
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP
from psconrl.model.units import Units
from psconrl.model.validation import as_floats

CLASSES = ("urgent", "elective", "transfer")


def ward(
    beds: int = 18,
    arrivals: ArrayLike = (0.16, 0.2, 0.1),
    discharges: ArrayLike = (0.02, 0.03, 0.025),
    values: ArrayLike = (5.0, 2.0, 3.0),
    speeds: ArrayLike = (0.6, 0.8, 1.0),
    nurses: ArrayLike = (3.0, 4.0, 6.0),
    staff: float = 4.5,
    refused: float = 0.02,
    occupied: float = 14.0,
) -> CMDP:
    """Maximise the value of the patients admitted within limits on staff, urgent patients refused and occupied beds.

    ``arrivals``, ``discharges``, ``values``: one number per class, of one to three classes. ``speeds``: how fast
    patients recover, one number per staff level; ``nurses``: the number on duty at that level.

    >>> ward()
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
    beds, K = int(beds), come.size
    admits = np.array(list(product((0.0, 1.0), repeat=K - 1))).reshape(2 ** (K - 1), K - 1)
    S, A = comb(beds + K, K), len(admits) * speed.size
    need_sparse(S, A, 2 * K + 1)
    patients = _patients(beds, K)
    number = np.zeros((beds + 1,) * K, dtype=np.int64)
    number[tuple(patients.T)] = np.arange(S)
    room = (patients.sum(axis=1) < beds)[:, None]
    # An action is a staff level and, varying faster, the classes admitted besides urgent patients.
    admitted = np.tile(np.column_stack([np.ones(len(admits)), admits]), (speed.size, 1))
    pace, on_duty = np.repeat(speed, len(admits)), np.repeat(duty, len(admits))
    total = come.sum() + beds * leave.max() * speed.max()
    events, reward = [], np.zeros((S, A))
    for k in range(K):
        one = np.arange(K) == k
        enters = room * admitted[:, k] * come[k]
        goes = patients[:, k, None] * pace * leave[k]
        events.append((enters / total, number[tuple(np.where(room, patients + one, patients).T)][:, None]))
        events.append((goes / total, number[tuple(np.maximum(patients - one, 0).T)][:, None]))
        reward += enters * worth[k]
    taken = patients.sum(axis=1)[:, None]
    return CMDP.from_rewards(
        transitions(S, A, events),
        reward,
        costs=[np.broadcast_to(cost, (S, A)) for cost in (on_duty, ~room, taken)],
        thresholds=[staff, refused, occupied],
        state_names=[_words(row) for row in patients.tolist()],
        action_names=[f"staff {s} admits {_open(row)}" for s in range(speed.size) for row in admits],
        cost_names=("value", "staff", "refused", "occupied"),
        units=Units(levels={"staff": "nurses", "refused": "of urgent patients", "occupied": "beds"}),
    )


def _patients(beds: int, classes: int) -> Ints:
    """Return all ways to occupy up to ``beds`` beds, one per row."""
    rows: Ints = np.indices((beds + 1,) * classes).reshape(classes, -1).T
    return np.asarray(rows[rows.sum(axis=1) <= beds])


def _words(patients: list[int]) -> str:
    return ", ".join(f"{n} {name}" for n, name in zip(patients, CLASSES, strict=False))


def _open(admits: Floats) -> str:
    return " and ".join(["urgent", *(name for name, yes in zip(CLASSES[1:], admits, strict=False) if yes)])
