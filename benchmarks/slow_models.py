"""Chains that mix slowly, with loose and tight limits: queues near full load, and models that resemble them.

A queue of K places near full load mixes in about K^2 steps, its biases are of order K^2, and the probability of its
rarest states ranges down to load^K. Rates are uniformised: at most one event a step.
"""

import numpy as np
from scipy.sparse import csr_array

import psconrl

SPEEDS = (0.8, 0.9, 0.95, 1.0, 1.1, 1.25)


def one_queue(
    places: int, load: float, limit: float, speeds: tuple[float, ...] = SPEEDS, admission: bool = False
) -> psconrl.CMDP:
    """A queue of ``places`` states with a choice of speed: pay the square of the speed, limit the number waiting.

    ``load``: arrivals per service at speed 1. With ``admission`` each speed comes with the gate open and closed, and a
    refused customer costs 2.
    """
    n = np.arange(places)
    gates = (1.0, 0.0) if admission else (1.0,)
    actions = [(speed, gate) for speed in speeds for gate in gates]
    scale = load + max(speeds)
    up, down, pay = [], [], []
    for speed, gate in actions:
        up.append((n < places - 1) * gate * load / scale)
        down.append((n > 0) * speed / scale)
        pay.append((n > 0) * speed**2 + 2.0 * load * (1.0 - gate))
    P = _moves(places, [(np.stack(up, 1), np.minimum(n + 1, places - 1)), (np.stack(down, 1), np.maximum(n - 1, 0))])
    return _model(P, np.stack(pay, 1), n, limit)


def two_queues(side: int, load: float, limits: tuple[float, float], tandem: bool = False) -> psconrl.CMDP:
    """Two queues of ``side`` states each, slow or fast at either; a limit on the number waiting at each.

    In tandem, customers served at the first go on to the second, or are lost if that is full.
    """
    first, second = np.divmod(np.arange(side * side), side)
    actions = [(u, v) for u in (0.9, 1.2) for v in (0.9, 1.2)]
    scale = (1.0 if tandem else 2.0) * load + 2.4
    arrive = np.full((side * side, 4), load / scale)
    served = [np.array([a[k] for a in actions])[None, :] / scale for k in (0, 1)]
    here = np.arange(side * side)
    onward = np.where(second < side - 1, here - side + 1, here - side) if tandem else here - side
    events = [
        (arrive * (first < side - 1)[:, None], np.minimum(here + side, side * side - 1)),
        (served[0] * (first > 0)[:, None], np.maximum(onward, 0)),
        (served[1] * (second > 0)[:, None], np.maximum(here - 1, 0)),
    ]
    if not tandem:
        events.append((arrive * (second < side - 1)[:, None], np.minimum(here + 1, side * side - 1)))
    pay = np.broadcast_to([u**2 + v**2 for u, v in actions], (side * side, 4))
    waiting = [np.repeat(k[:, None], 4, axis=1).astype(float) for k in (first, second)]
    return psconrl.CMDP(
        _moves(side * side, events), [pay, *waiting], list(limits), cost_names=("power", "first", "second")
    )


def machine_repair(machines: int, limit: float) -> psconrl.CMDP:
    """Machines that fail independently and one repairer with four speeds: a limit on the number out of order."""
    n = np.arange(machines + 1)
    speeds = np.array([0.3, 0.5, 0.6, 0.9]) * machines
    fails = (machines - n).astype(float)
    scale = machines + speeds.max()
    P = _moves(
        machines + 1,
        [
            (np.repeat(fails[:, None], 4, axis=1) / scale, np.minimum(n + 1, machines)),
            ((n > 0)[:, None] * speeds[None, :] / scale, np.maximum(n - 1, 0)),
        ],
    )
    return _model(P, np.broadcast_to([0.0, 1.0, 1.5, 4.0], (machines + 1, 4)), n, limit)


def walk_with_reset(length: int, drift: float, limit: float) -> psconrl.CMDP:
    """Wear as a random walk that can be slowed down, or reset to zero at a price; a limit on the wear."""
    n = np.arange(length)
    up = np.array([0.5 + drift / 2, 0.5, 0.0])
    down = np.array([0.5 - drift / 2, 0.5, 0.0])
    reset = np.array([0.0, 0.0, 1.0])
    shape = np.ones((length, 1))
    P = _moves(
        length,
        [(shape * up, np.minimum(n + 1, length - 1)), (shape * down, np.maximum(n - 1, 0)), (shape * reset, 0 * n)],
    )
    return _model(P, shape * np.array([0.0, 0.1, 50.0]), n, limit)


def _moves(S: int, events: list[tuple[np.ndarray, np.ndarray]]) -> csr_array:
    """Transitions (S*A, S) from events: probabilities (S, A) and the state (S,) that each leads to."""
    A = events[0][0].shape[1]
    pairs = np.arange(S * A)
    stay = 1.0 - sum(p.ravel() for p, _ in events)
    weights = np.concatenate([*(p.ravel() for p, _ in events), np.maximum(stay, 0.0)])
    columns = np.concatenate([*(np.repeat(target, A) for _, target in events), pairs // A])
    P = csr_array((weights, (np.tile(pairs, len(events) + 1), columns)), shape=(S * A, S))
    P.eliminate_zeros()
    return P


def _model(P: csr_array, pay: np.ndarray, level: np.ndarray, limit: float) -> psconrl.CMDP:
    waiting = np.repeat(level[:, None].astype(float), pay.shape[1], axis=1)
    return psconrl.CMDP(P, [pay, waiting], [limit], cost_names=("power", "waiting"))
