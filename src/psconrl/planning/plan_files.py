"""Reading and writing of plans: ``.npz`` to load again, JSON for other programs. Never pickle.

``Plan`` has these functions as methods, so this file cannot import it. Any object with the fields of a plan will do.
"""

import json
import math
import os
from dataclasses import fields
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.base.files import as_path, write_atomically
from psconrl.errors import PolicyError
from psconrl.model.archive import Archive, opened_archive
from psconrl.model.names import Names
from psconrl.model.units import read_units
from psconrl.model.validation import read_at_least
from psconrl.planning.exact.exact_plan import ExactPlan
from psconrl.planning.infeasibility import Infeasibility
from psconrl.planning.mixture_policy import PolicyMixture
from psconrl.planning.proof.certificate import Certificate, Status
from psconrl.planning.tolerances import PROVEN_EXCESS, SUM_OF_SHARES

FORMAT = "psconrl-plan"
VERSION = 1
_ARRAYS = ("costs", "thresholds", "policy", "occupancy", "multipliers", "potential", "low_potential")
_OF_LIMITS = ("excess", "limit_tolerances")  # arrays (m,) of a certificate
_LIMITS = ("thresholds", "alone", "with_others", "jointly", "multipliers")  # of an infeasibility


def record(plan: Any) -> dict[str, Any]:
    """Return a plan as plain data for JSON, in the user's names and units; non-finite numbers become None."""
    names, proof = plan.names, plan.certificate
    S, A = plan.policy.shape
    limited, sign = names.costs[1:], names.signs[1:]
    result: dict[str, Any] = {
        "status": plan.status.value,
        "value": plan.value,
        "sense": names.sense,
        "objective": names.costs[0],
        "costs": dict(zip(limited, (sign * plan.costs[1:]).tolist(), strict=True)),
        "thresholds": dict(zip(limited, (sign * plan.thresholds).tolist(), strict=True)),
        "multipliers": dict(zip(limited, plan.multipliers.tolist(), strict=True)),
        "units": {name: names.units.average(name) for name in names.costs if names.units.average(name)},
        "gap": plan.gap,
        "settles": plan.settles,
        "method": plan.method,
        "note": plan.note,
        "actions": [names.action(a) for a in range(A)],
        "states": [names.state(s) for s in range(S)],
        "policy": plan.policy.tolist(),
        "occupancy": plan.occupancy.tolist(),
        "certificate": {
            "holds": proof.holds,
            "lower": proof.lower,
            "upper": proof.upper,
            "excess": proof.excess.tolist(),
            "flow_residual": proof.flow_residual,
            "policy_error": proof.policy_error,
            "dual_residual": proof.dual_residual,
            "margin": proof.margin,
            "tolerance": proof.tolerance,
            "limit_tolerances": proof.limit_tolerances.tolist(),
            "potential": plan.potential.tolist(),
            "low_potential": plan.low_potential.tolist(),
            "gains": None if plan.gains is None else plan.gains.tolist(),
        },
    }
    if plan.mixture is not None:
        result["mixture"] = {"shares": plan.mixture.shares.tolist(), "policies": plan.mixture.policies.tolist()}
    if plan.exact is not None:
        result["exact"] = plan.exact.record()
    if names.at_least:
        result["at_least"] = sorted(names.at_least)
    if plan.infeasibility is not None:
        result["infeasibility"] = plan.infeasibility.record()
    return {key: _finite(value) for key, value in result.items()}


def write_json(plan: Any, path: str | os.PathLike[str]) -> None:
    """Write the record of a plan to a JSON file."""
    text = json.dumps(record(plan), indent=1, allow_nan=False)
    write_atomically(as_path(path, PolicyError), lambda f: f.write(text.encode()), PolicyError)


def save_plan(plan: Any, path: str | os.PathLike[str]) -> None:
    """Write a plan to an ``.npz`` file, atomically."""
    target = as_path(path, PolicyError)
    if target.suffix != ".npz":
        raise PolicyError(f"{target}: a plan file must end in .npz; to_json and to_csv write for other programs")
    proof, why = plan.certificate, plan.infeasibility
    header = {
        "format": FORMAT,
        "version": VERSION,
        "mixture": plan.mixture is not None,
        "status": plan.status.value,
        "value": plan.value,
        "method": plan.method,
        "note": plan.note,
        "states": plan.names.states,
        "actions": plan.names.actions,
        "cost_names": plan.names.costs,
        "maximise": plan.names.maximise,
        "units": plan.names.units.record(),
        "at_least": sorted(plan.names.at_least),
        "certificate": {f.name: getattr(proof, f.name) for f in fields(proof) if f.name not in _OF_LIMITS},
        "infeasible": why is not None,
        "model": plan.model,
        "settles": plan.settles,
        "exact": None if plan.exact is None else plan.exact.record(),
    }
    arrays: dict[str, Any] = {name: getattr(proof, name) for name in _OF_LIMITS}
    arrays |= {name: getattr(plan, name) for name in _ARRAYS}
    arrays["columns"] = np.array(plan.columns, dtype=np.int64).reshape(len(plan.columns), len(plan.policy))
    if plan.gains is not None:
        arrays["gains"] = plan.gains
    if plan.mixture is not None:
        arrays |= {f"mixture_{name}": getattr(plan.mixture, name) for name in ("policies", "shares", "distributions")}
        record = plan.mixture.policy_certificate
        arrays |= {f"mixture_{name}": getattr(record, name) for name in _OF_LIMITS}
        header["policy_certificate"] = {
            f.name: getattr(record, f.name) for f in fields(record) if f.name not in _OF_LIMITS
        }
    if why is not None:
        arrays |= {f"infeasibility_{name}": getattr(why, name) for name in _LIMITS}
    arrays["header"] = np.array(json.dumps(header))
    write_atomically(target, lambda f: np.savez_compressed(f, **arrays), PolicyError)


def load_plan(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the fields of a plan from an ``.npz`` file."""
    source = as_path(path, PolicyError)
    if source.suffix != ".npz":
        raise PolicyError(f"{source}: a plan file must end in .npz, as plan.save writes it")
    with opened_archive(source, FORMAT, PolicyError) as archive:
        return _read(archive)


def _read(arrays: Archive) -> dict[str, Any]:
    header = arrays.json("header") if "header" in arrays else {}
    if header.get("format") != FORMAT:
        raise arrays.other_format(FORMAT, header.get("format"))
    if header["version"] != VERSION:
        raise PolicyError(
            f"format version {quoted(header['version'])} is not known here (newest: {VERSION}); update psconrl"
        )
    costs = tuple(str(name) for name in header["cost_names"])
    m = len(costs) - 1
    S, A = arrays.shape("policy")
    if not S or not A:
        raise PolicyError("the policy must be a distribution over actions in every state")
    shapes = {"costs": (m + 1,), "thresholds": (m,), "policy": (S, A), "occupancy": (S, A), "multipliers": (m,)}
    given = {name: _floats(arrays, name, shapes.get(name, (S,))) for name in _ARRAYS}
    policy = given["policy"]
    if not (policy >= 0).all() or not (np.abs(policy.sum(axis=1) - 1.0) <= SUM_OF_SHARES).all():
        raise PolicyError("the policy must be a distribution over actions in every state")
    columns = _policies(arrays, "columns", S, A)
    infeasibility = None
    if header["infeasible"]:
        limits = {name: _floats(arrays, f"infeasibility_{name}", (m,)) for name in _LIMITS}
        at_least = read_at_least(header.get("at_least", ()), costs)
        infeasibility = Infeasibility(costs[1:], **limits, lower=tuple(name in at_least for name in costs[1:]))
    return given | {
        "status": Status(header["status"]),
        "value": float(header["value"]),
        "gains": _floats(arrays, "gains", (S,)) if "gains" in arrays else None,
        "certificate": _certificate(header["certificate"], arrays, "", given["thresholds"]),
        "method": str(header["method"]),
        "note": str(header["note"]),
        "origin": str(header["model"]),
        "settles": float(header["settles"]),
        "infeasibility": infeasibility,
        "exact": _exact(header["exact"], (S, A, m)) if header.get("exact") else None,
        "columns": tuple(columns),
        "mixture": _mixture(header, arrays, (S, A), given["thresholds"]) if header["mixture"] else None,
        "names": Names(
            _names(header["states"], S),
            _names(header["actions"], A),
            costs,
            bool(header["maximise"]),
            read_units(header["units"], costs),
            read_at_least(header.get("at_least", ()), costs),
        ),
    }


def _policies(arrays: Archive, name: str, S: int, A: int) -> Ints:
    policies = np.asarray(arrays[name])
    if policies.dtype.kind != "i" or policies.shape[1:] != (S,) or not ((policies >= 0) & (policies < A)).all():
        raise PolicyError(f"{name} must be policies of {S} actions from 0 to {A - 1}")
    return policies


def _mixture(header: dict[str, Any], arrays: Archive, sizes: tuple[int, int], thresholds: Floats) -> PolicyMixture:
    S, A = sizes
    policies = _policies(arrays, "mixture_policies", S, A)
    shares, distributions = (
        _floats(arrays, "mixture_shares", (len(policies),)),
        _floats(arrays, "mixture_distributions", policies.shape),
    )
    if not (shares >= 0).all() or not abs(shares.sum() - 1.0) <= SUM_OF_SHARES:
        raise PolicyError("the shares of a mixture must add up to 1")
    proof = _certificate(header["policy_certificate"], arrays, "mixture_", thresholds)
    return PolicyMixture(policies, shares, distributions, proof)


def _exact(record: dict[str, Any], sizes: tuple[int, int, int]) -> ExactPlan:
    S, A, m = sizes
    plan = ExactPlan.from_record(record)
    lengths = {"costs": m + 1, "excess": m, "multipliers": m, "potential": S, "gains": S, "shares": len(plan.policies)}
    sound = all(len(getattr(plan, name)) == length for name, length in lengths.items())
    rows = plan.policy is None or (len(plan.policy) == S and all(len(row) == A for row in plan.policy))
    if not (sound and rows and all(len(actions) == S for actions in plan.policies)):
        raise PolicyError(f"the plan in rational numbers must be one of {S} states, {A} actions and {m} constraints")
    return plan


def _floats(arrays: Archive, name: str, shape: tuple[int, ...]) -> Floats:
    if arrays.shape(name) != shape or arrays[name].dtype.kind not in "fiu":
        raise PolicyError(
            f"{quoted(name)} must be numbers of shape {shape}; got {arrays[name].dtype} {arrays.shape(name)}"
        )
    return np.asarray(arrays[name], dtype=float)


def _certificate(record: dict[str, Any], arrays: Archive, prefix: str, thresholds: Floats) -> Certificate:
    """Read a certificate. Files from before tolerances were stated are judged relative to the thresholds."""
    numbers = {"tolerance": math.nan} | {key: float(value) for key, value in record.items() if key != "holds"}
    excess = _floats(arrays, f"{prefix}excess", thresholds.shape)
    stated = f"{prefix}limit_tolerances"
    allowed = _floats(arrays, stated, thresholds.shape) if stated in arrays else PROVEN_EXCESS * np.abs(thresholds)
    return Certificate(excess=excess, limit_tolerances=allowed, holds=record["holds"] is True, **numbers)


def _names(names: Any, n: int) -> tuple[str, ...] | None:
    if names is not None and (len(names) != n or len(set(map(str, names))) != n):
        raise PolicyError(f"there must be {n} distinct names; got {len(names)}")
    return None if names is None else tuple(str(name) for name in names)


def _finite(x: Any) -> Any:
    """Replace nan and inf, which JSON lacks, by None."""
    if isinstance(x, dict):
        return {key: _finite(value) for key, value in x.items()}
    if isinstance(x, list):
        return [_finite(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x
