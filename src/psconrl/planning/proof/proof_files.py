"""Proofs in files of their own, which ``check_proof`` checks without this library.

A file has the policy, the dual point, and for every policy its biases, which enclose its averages: see
``psconrl.check_proof`` for the inequalities. Numbers are written so that they read back as the same doubles. A proof is
checked in exact arithmetic before it is written.
"""

import json
import os
from fractions import Fraction
from typing import Any

import numpy as np

from psconrl import check_proof
from psconrl.base.arrays import Bools, Floats
from psconrl.base.files import as_path, write_atomically
from psconrl.base.sizes import EXACT_STATES
from psconrl.check_proof.plain_model import as_float
from psconrl.errors import PolicyError, SolverError
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.markov.chain import chain_of
from psconrl.markov.evaluation import evaluate_policy
from psconrl.markov.structure import find_end_components
from psconrl.model.cmdp import CMDP, need_model
from psconrl.model.fingerprint import fingerprint
from psconrl.model.matrix_product import product
from psconrl.model.transition import Transition
from psconrl.planning.components.quotient import Quotient
from psconrl.planning.exact.proof_records import bias_record, dual_record
from psconrl.planning.exact.rational_model import RationalModel
from psconrl.planning.proof.certificate import Status
from psconrl.planning.tolerances import PROVEN_FLOW, PROVEN_POLICY, SHARE_OF_TOLERANCE

SMALLEST_AVERAGE = float(np.finfo(np.float64).tiny)  # that has all digits of a double
REFINEMENTS = 40  # of biases: each adds the 16 digits of one double, of the 632 from the largest to the smallest


def save_proof(cmdp: CMDP, plan: Any, path: str | os.PathLike[str]) -> None:
    """Write the proof of a plan to a ``.json`` file, after checking it in exact arithmetic."""
    need_model(cmdp, "save_proof")
    target = as_path(path, PolicyError)
    if target.suffix != ".json":
        raise PolicyError(f"{target}: a proof must end in .json")
    model = plain_model(cmdp)
    try:
        record = checked_proof(cmdp, plan, model)
    except SolverError as error:
        raise PolicyError(f"the proof cannot be written: {error}") from None
    except (check_proof.RefusedError, check_proof.BadInputError) as error:
        advice = _advice(cmdp, plan)
        raise PolicyError(
            f"rounding spoiled the proof, which is not written: in exact arithmetic, {error}{advice}"
        ) from None
    text = json.dumps(record, indent=None, separators=(",", ": "), allow_nan=False)
    write_atomically(target, lambda f: f.write(text.encode()), PolicyError)


def checked_proof(cmdp: CMDP, plan: Any, model: check_proof.PlainModel) -> dict[str, Any]:
    """Return a proof that the checker accepts: in doubles or, if these do not suffice, in rational numbers."""
    try:
        record = proof_of(cmdp, plan, model)
        check_proof.check(model, record)
    except (check_proof.RefusedError, check_proof.BadInputError, SolverError):
        if cmdp.n_states > EXACT_STATES:
            raise
        record = proof_of(cmdp, plan, model, in_rationals=True)
        check_proof.check(model, record)
    return record


def _advice(cmdp: CMDP, plan: Any) -> str:
    """Return what helps if averages are so small that doubles have too few digits to state them."""
    small = [name for name, x in zip(cmdp.cost_names, _sizes(cmdp, plan), strict=True) if 0.0 < x < SMALLEST_AVERAGE]
    return f"; take a smaller unit for {small[0]!r}, which is below {SMALLEST_AVERAGE:.1e}" if small else ""


def _sizes(cmdp: CMDP, plan: Any) -> Floats:
    """Return the sizes of the averages, or of the largest costs where an average is 0."""
    largest: Floats = np.abs(np.where(cmdp.available, cmdp.costs, 0.0)).max(axis=(1, 2))
    return np.where(plan.costs == 0.0, largest, np.abs(plan.costs))


def proof_of(cmdp: CMDP, plan: Any, model: check_proof.PlainModel, *, in_rationals: bool = False) -> dict[str, Any]:
    """Return the proof of a plan as plain data; ``model`` is the CMDP as the checker reads it."""
    certificate = plan.certificate
    if not certificate.holds or plan.status is Status.UNCERTIFIED:
        raise PolicyError(f"this plan is {plan.status.value}, so there is no proof to save")
    if not (np.isfinite(plan.costs).all() and np.isfinite(plan.multipliers).all()):
        raise PolicyError("averages and multipliers of the plan must be finite")
    identity = fingerprint(cmdp)
    same_size = plan.policy.shape == (cmdp.n_states, cmdp.n_actions)
    if plan.model not in ("", identity) or not same_size or not np.array_equal(plan.thresholds, cmdp.thresholds):
        raise PolicyError("the plan was made for another model, or for other thresholds; plan this one")
    reached = cmdp.transition.reachable_from(cmdp.initial > 0)
    record: dict[str, Any] = {
        "format": check_proof.PROOF_FORMAT,
        "version": check_proof.PROOF_VERSION,
        "status": plan.status.value,
        "model": identity,
        "thresholds": cmdp.thresholds.tolist(),
        "averages": plan.costs.tolist(),
        "multipliers": plan.multipliers.tolist(),
        "potential": plan.potential.tolist(),
        "low_potential": plan.low_potential.tolist(),
        "gains": _dual_gains(cmdp, plan),
    }
    rationals = RationalModel.of(cmdp) if in_rationals else None
    if rationals is not None:
        record |= dual_record(rationals, plan, reached)
    if record["gains"] is not None:
        record["moves"] = _most_moves(cmdp, reached)
    checker = check_proof.Checker(model, record)
    averages = [Fraction(x) for x in plan.costs.tolist()]
    within = checker.tolerances(averages)
    accurate = np.array([float(x) for x in within])
    record["bound"] = as_float(checker.lower_bound()[0])  # that of the plan is the same up to rounding
    shares, policies = np.ones(1), [plan.policy]
    if plan.mixture is not None:
        shares, policies = plan.mixture.shares, [one_hot(each, cmdp.n_actions) for each in plan.mixture.policies]
    record["policies"] = [
        {"share": float(share)} | _policy(cmdp, policy, accurate, checker, rationals)
        for share, policy in zip(shares, policies, strict=True)
    ]
    if rationals is not None:  # those of the plan may be off by its tolerances
        record["averages"] = [as_float(high) for _, high in checker.mixture()]
        averages = [Fraction(x) for x in record["averages"]]
    if certificate.flow_residual <= PROVEN_FLOW and certificate.policy_error <= PROVEN_POLICY:
        mass = plan.occupancy.ravel()
        record["occupancy"] = [[int(k), float(mass[k])] for k in np.flatnonzero(mass)]
        try:
            checker.check_shares(averages, within)
        except check_proof.RefusedError:  # rounded shares may miss averages that the biases prove
            del record["occupancy"]
    return record


def plain_model(cmdp: CMDP) -> check_proof.PlainModel:
    """Return a model as the checker reads it from a file."""
    P = cmdp.transition.csr()
    names = cmdp.names
    return check_proof.PlainModel(
        cmdp.n_states, cmdp.n_actions, P.indptr.tolist(), P.indices.tolist(), P.data.tolist(),
        [cost.ravel().tolist() for cost in cmdp.costs], cmdp.thresholds.tolist(), cmdp.initial.tolist(),
        cmdp.available.tobytes(), names.costs, names.states, names.actions,
        frozenset(name for i, name in enumerate(names.costs) if names.is_negated(i)),
        [names.units.average(name) for name in names.costs],
    )  # fmt: skip


def _dual_gains(cmdp: CMDP, plan: Any) -> list[float] | None:
    """Return gains that are constant on every end component; None if they are equal in all states."""
    if plan.gains is None:
        return None
    components = find_end_components(cmdp.transition, cmdp.available)
    gains = plan.gains - product(plan.multipliers, cmdp.thresholds)
    inside = components.of_state >= 0
    least = np.full(components.number, np.inf)
    np.minimum.at(least, components.of_state[inside], gains[inside])
    gains[inside] = least[components.of_state[inside]]
    found: list[float] = gains.tolist()
    return found


def _most_moves(cmdp: CMDP, reached: Bools) -> list[float]:
    """Return a bound on the number of moves between end components, from every state."""
    components = find_end_components(cmdp.transition, cmdp.available)
    quotient = Quotient(cmdp.transition, cmdp.available, components, reached)
    found: list[float] = quotient.moves_from()[quotient.node].tolist()
    return found


def _policy(
    cmdp: CMDP, policy: Floats, accurate: Floats, checker: check_proof.Checker, rationals: RationalModel | None
) -> dict[str, Any]:
    """Return a policy with biases and, if it may end in several classes, gains and the mean number of steps there."""
    S = cmdp.n_states
    exact = evaluate_policy(cmdp, policy)
    chain = chain_of(cmdp.transition, np.ascontiguousarray(policy))
    met = Transition.of(chain.matrix).reachable_from(cmdp.initial > 0)
    classes = [states for states in exact.classes if met[states[0]]]
    recurrent = np.zeros(S, dtype=bool)
    gains = np.where(met, exact.gains, 0.0)
    for states in classes:
        recurrent[states] = True
        gains[:, states] = gains[:, states[:1]]
    found: dict[str, Any] = {
        "actions": [
            int(some[0]) if some.size == 1 else [[int(a), float(policy[s, a])] for a in some]
            for s, some in enumerate(np.flatnonzero(row) for row in policy)
        ],
        "biases": [np.where(met, exact.biases, 0.0).tolist()],
        "gains": None,
    }
    if rationals is None:
        _refine(cmdp, policy, found, gains, recurrent if len(classes) > 1 else met, accurate, checker)
    if len(classes) > 1:
        passing = np.flatnonzero(met & ~recurrent)
        steps = np.zeros(S)
        if passing.size:
            # Twice the number of steps: it must fall in every step, whatever the rounding.
            steps[passing] = 2.0 * chain.collect(passing, np.ones((passing.size, 1)))[:, 0]
        found |= {"gains": gains.tolist(), "moves": steps.tolist()}
    return found if rationals is None else found | bias_record(rationals, policy, len(classes) > 1)


def _refine(
    cmdp: CMDP, policy: Floats, found: dict[str, Any], gains: Floats, states: Bools, accurate: Floats,
    checker: check_proof.Checker,
) -> None:  # fmt: skip
    """Add parts to the biases of a policy until they enclose its averages well within the tolerances.

    What is left of c - g + P h - h, in exact arithmetic, is evaluated as a cost in units of a power of two, and its
    bias is the next part (iterative refinement).
    """
    where, plain = np.flatnonzero(states), gains.tolist()
    for _ in range(REFINEMENTS):
        left = np.zeros(gains.shape)
        for i in range(len(left)):
            left[i, where] = checker.left_over(found, i, where.tolist(), plain[i])
        if (np.ptp(left[:, where], axis=1) <= SHARE_OF_TOLERANCE * accurate).all():
            break
        if not np.isfinite(left).all():  # biases beyond the range of doubles, which the checker refuses
            break
        unit = np.ldexp(1.0, np.frexp(np.abs(left).max())[1] - 1)
        scaled = cmdp.with_costs((left / unit)[:, :, None].repeat(cmdp.n_actions, axis=2))
        with np.errstate(over="ignore"):
            more = unit * np.where(states, evaluate_policy(scaled, policy).biases, 0.0)
        found["biases"].append(more.tolist())
