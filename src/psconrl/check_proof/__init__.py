r"""Check a saved proof against a model in exact arithmetic, without the library.

Copy this folder anywhere and run ``python -m check_proof model.npz proof.json`` beside it. It needs nothing but Python,
3.11 or newer. A proof is what ``plan.save_proof`` writes; a model, what ``psconrl.save`` writes. Exit code 0: proven;
1: refused, with the reason; 2: a file cannot be read.

Doubles are rationals, and all comparisons are made in whole numbers over a common denominator, without rounding. The
model that is meant has rows that sum to exactly one: the probability of staying in a state is what the probabilities of
moving leave; if rounding makes these exceed one, they are divided by their sum.

**Bound.** For every h and every :math:`\lambda \ge 0` no policy within the thresholds costs less than the least
:math:`v = c_0 + \sum_i \lambda_i (c_i - \tau_i) + P h - h` of the reachable pairs. Without :math:`c_0`, a positive
least value shows that no policy meets the thresholds.

**Several end components.** The proof then has gains g and a function :math:`U \ge 0` with :math:`P U \le U` everywhere.
Pairs with :math:`P U < U` are visited finitely often in the mean, whatever the policy; all others must have
:math:`P g \ge g`. If gains fall by at most :math:`\rho (U - P U)` at the former and :math:`v \ge g + \epsilon` at the
latter, no policy costs less than :math:`\beta g + \epsilon - \rho\, \beta U` from the initial distribution
:math:`\beta`.

**Averages.** The same inequality for the pairs that a policy plays, with its bias as h, encloses its averages, from
below and, with signs changed, from above. So no linear system is solved, and the time is linear in the entries.

**Tolerances** are functions of the model alone; a proof cannot change them. ``docs/proofs.md`` states what an accepted
proof implies, and proves it.
"""

import os
from pathlib import Path
from typing import Any

from .arrays import need_memory
from .checker import Checker
from .errors import BadInputError, RefusedError, shown
from .model_files import data_of
from .plain_model import PlainModel

PROOF_FORMAT, PROOF_VERSION = "psconrl-proof", 2

__all__ = ["BadInputError", "Checker", "PlainModel", "RefusedError", "check", "read_proof"]


def check(model: PlainModel, proof: dict[str, Any]) -> list[str]:
    """Return what is proven, in lines; raise ``RefusedError``, or ``BadInputError`` if the proof is damaged."""
    try:
        return Checker(model, proof).check()
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise BadInputError(f"damaged ({type(error).__name__}: {error})") from None
    except (MemoryError, RecursionError) as error:
        raise BadInputError(f"asks for too much ({type(error).__name__})") from None


def read_proof(path: Path) -> dict[str, Any]:
    """Read a proof."""
    with path.open("rb") as f:
        need_memory(f.seek(0, os.SEEK_END), "its text")
        f.seek(0)
        text = f.read()
    need_memory(len(text) + sum(size * text.count(mark) for mark, size in PARSED.items()), "its text")
    try:
        proof = data_of(text.decode())
    except UnicodeDecodeError:
        raise BadInputError("not valid JSON (the text is not UTF-8)") from None
    if not isinstance(proof, dict) or proof.get("format") != PROOF_FORMAT:
        raise BadInputError(f"this is no {PROOF_FORMAT} file")
    version = proof.get("version")
    if type(version) is not int or version != PROOF_VERSION:
        raise BadInputError(f"version {shown(version)} of the format is not known here: {PROOF_VERSION}")
    return proof


PARSED = {b",": 48, b"[": 72, b"{": 256, b'"': 40}  # bytes of memory for every value, list, table and text
