"""Random numbers that can be read one by one or in blocks, with identical results."""

from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import Kind, fields, flag, integer, need_that, read_fields, text
from psconrl.errors import AgentError

BLOCK = 4096
_PCG64: dict[str, Kind] = {
    "bit_generator": text("PCG64"),
    "state": fields({"state": integer(0, 2**128 - 1), "inc": integer(1, 2**128 - 1)}),
    "has_uint32": integer(0, 1),
    "uinteger": integer(0, 2**32 - 1),
}


class UniformStream:
    """Uniforms in [0, 1) from a generator, drawn in blocks of fixed size.

    A compiled loop reads ``block`` from ``position`` on and advances ``position``; a Python loop calls ``next``.
    """

    def __init__(self, rng: np.random.Generator, width: int = 1) -> None:
        self._rng = rng
        self.width = width
        self._before: Any = None
        self.block: Floats = np.empty((0, width))
        self.position = 0

    def refill(self) -> None:
        """Draw a new block if the last one is used up."""
        if self.position >= len(self.block):
            self._before = self._rng.bit_generator.state
            self.block = self._rng.random((BLOCK, self.width))
            self.position = 0

    def next(self) -> float:
        """Return the next number of a stream of width 1."""
        self.refill()
        self.position += 1
        return float(self.block[self.position - 1, 0])

    def state(self) -> dict[str, Any]:
        """Return the state of the generator before the present block, and the position in the block."""
        before = self._rng.bit_generator.state if self._before is None else self._before
        return {"rng": before, "position": self.position, "begun": self._before is not None, "width": self.width}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned, for a stream of the same width."""
        width = integer(self.width, self.width)
        saved = read_fields(
            state, {"rng": restored_generator, "position": integer(0, BLOCK), "begun": flag, "width": width}
        )
        self._rng = saved["rng"]
        self._before, self.block, self.position = None, np.empty((0, self.width)), 0
        if saved["begun"]:
            self.refill()
            self.position = saved["position"]


def seed_sequences(seed: Any) -> tuple[np.random.SeedSequence, np.random.SeedSequence]:
    """Return separate seeds for planning and for acting, so that plans do not depend on how episodes are played."""
    try:
        plan, act = np.random.SeedSequence(seed).spawn(2)
    except (TypeError, ValueError):
        raise AgentError(f"seed must be a whole number from 0 on, or several; got {quoted(seed)}") from None
    return plan, act


def saved_seed(seed: Any) -> Any:
    """Read a seed: a whole number from 0 on, several, or None."""
    seed_sequences(seed)
    return seed


def restored_generator(state: dict[str, Any]) -> np.random.Generator:
    """Return a generator with the given state of its bit generator."""
    saved = read_fields(state, _PCG64)
    need_that(saved["state"]["inc"] % 2, "the increment of a generator must be odd")
    bits: Any = np.random.PCG64()
    bits.state = saved
    return np.random.Generator(bits)
