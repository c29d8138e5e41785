"""Models on which a plan failed: shrunk as far as the failure remains, and kept as small JSON files."""

import json
import time
from pathlib import Path

import numpy as np

from psconrl import CMDP
from psconrl.errors import PsconrlError

FOLDER = Path(__file__).parent / "data" / "exact"
DIGITS = (1, 2, 4, 8)


def write_case(cmdp: CMDP, family: str, seed: int, form: str, verdict) -> str:
    """Write a model and what was found; return the name of the file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    S, A = cmdp.n_states, cmdp.n_actions
    record = {
        "family": family,
        "seed": seed,
        "form": form,
        "found": " ".join(filter(None, (f"{verdict.kind}: {verdict.reason}", verdict.detail))),
        "expected_to_fail": verdict.reason,
        "transition": np.asarray(cmdp.transition).reshape(S, A, S).tolist(),
        "costs": cmdp.costs.tolist(),
        "thresholds": cmdp.thresholds.tolist(),
        "initial": cmdp.initial.tolist(),
        "available": cmdp.available.astype(int).tolist(),
    }
    name = f"{family}-{seed}.json"
    text = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in record.items())
    (FOLDER / name).write_text("{\n" + text + "\n}\n")
    return name


def read_case(path: Path) -> tuple[CMDP, dict]:
    """Read a model and what was found with it."""
    record = json.loads(path.read_text())
    fields = {key: record.pop(key) for key in ("transition", "costs", "thresholds", "initial", "available")}
    return CMDP(fields.pop("transition"), fields.pop("costs"), fields.pop("thresholds"), **fields), record


def shrunk(cmdp: CMDP, fails, seconds: float) -> CMDP:
    """Return a smaller model for which ``fails`` is still true: the first smaller one, again and again."""
    deadline = time.monotonic() + seconds
    while True:
        for smaller in candidates(cmdp):
            if time.monotonic() > deadline:
                return cmdp
            if fails(smaller):
                cmdp = smaller
                break
        else:
            return cmdp


def candidates(cmdp: CMDP):
    """Yield simpler models: without a constraint, a state, an action; with one initial state; with shorter numbers."""
    for build in (_fewer_constraints, _fewer_states, _fewer_actions, _one_start, _shorter_numbers):
        for parts in build(cmdp):
            try:
                yield CMDP(
                    parts["transition"],
                    parts["costs"],
                    parts["thresholds"],
                    initial=parts["initial"],
                    available=parts["available"],
                )
            except PsconrlError:
                continue


def _parts(cmdp: CMDP) -> dict:
    S, A = cmdp.n_states, cmdp.n_actions
    return {
        "transition": np.asarray(cmdp.transition).reshape(S, A, S).copy(),
        "costs": cmdp.costs.copy(),
        "thresholds": cmdp.thresholds.copy(),
        "initial": cmdp.initial.copy(),
        "available": cmdp.available.copy(),
    }


def _fewer_constraints(cmdp):
    for i in range(cmdp.n_constraints):
        parts = _parts(cmdp)
        yield parts | {
            "costs": np.delete(parts["costs"], i + 1, axis=0),
            "thresholds": np.delete(parts["thresholds"], i),
        }


def _fewer_states(cmdp):
    """Without a state: its share of a row goes to the state of the row, or to each other state."""
    S = cmdp.n_states
    for gone in range(S) if S > 1 else ():
        left = np.delete(np.arange(S), gone)
        for target in (None, *left):
            parts = _parts(cmdp)
            P = parts["transition"]
            for s in left:
                P[s, :, s if target is None else target] += P[s, :, gone]
            initial = parts["initial"]
            initial[left[0] if target is None else target] += initial[gone]
            yield {
                "transition": P[left][:, :, left],
                "costs": parts["costs"][:, left],
                "thresholds": parts["thresholds"],
                "initial": initial[left],
                "available": parts["available"][left],
            }


def _fewer_actions(cmdp):
    for a in range(cmdp.n_actions) if cmdp.n_actions > 1 else ():
        parts = _parts(cmdp)
        kept = np.delete(np.arange(cmdp.n_actions), a)
        yield parts | {
            "transition": parts["transition"][:, kept],
            "costs": parts["costs"][:, :, kept],
            "available": parts["available"][:, kept],
        }
    for s, a in np.argwhere(cmdp.available):
        parts = _parts(cmdp)
        parts["available"][s, a] = False
        parts["transition"][s, a] = 0.0
        parts["costs"][:, s, a] = 0.0
        if parts["available"][s].any():
            yield parts


def _one_start(cmdp):
    for s in np.flatnonzero(cmdp.initial) if (cmdp.initial > 0).sum() > 1 else ():
        parts = _parts(cmdp)
        parts["initial"] = np.eye(cmdp.n_states)[s]
        yield parts


def _shorter_numbers(cmdp):
    """One number at a time, with fewer digits than it has; a row keeps its sum by its largest other entry."""
    for name in ("costs", "thresholds"):
        for place in np.argwhere(getattr(cmdp, name) != 0):
            value = getattr(cmdp, name)[tuple(place)]
            for short in _shorter(value):
                parts = _parts(cmdp)
                parts[name][tuple(place)] = short
                yield parts
    S, A = cmdp.n_states, cmdp.n_actions
    P = np.asarray(cmdp.transition).reshape(S, A, S)
    for s, a, j in np.argwhere(P > 0):
        others = np.where(np.arange(S) == j, -1.0, P[s, a])
        k = int(others.argmax())
        if others[k] <= 0 or P[s, a, j] > others[k]:
            continue
        for short in _shorter(P[s, a, j]):
            parts = _parts(cmdp)
            row = parts["transition"][s, a]
            row[j] = short
            row[k] = 1.0 - np.delete(row, k).sum()
            yield parts


def _shorter(value):
    """Yield zero, one and roundings of a number, shortest first, that have fewer characters than it."""
    tried = []
    for short in (0.0, 1.0, *(float(f"{value:.{d}g}") for d in DIGITS)):
        if short not in tried and len(repr(short)) < len(repr(float(value))):
            tried.append(short)
            yield short
