"""Random numbers that can be read one by one or in blocks, with the same bits either way."""

from typing import Any

import numpy as np

from psconrl.arrays import Floats

BLOCK = 4096


class UniformStream:
    """Uniforms in [0, 1) from a generator, drawn in blocks of fixed size.

    A compiled loop takes ``block`` from ``position`` on and says how many it used; a plain loop calls ``next``.
    """

    def __init__(self, rng: np.random.Generator, width: int = 1) -> None:
        self._rng = rng
        self.width = width
        self._before: Any = None
        self.block: Floats = np.empty((0, width))
        self.position = 0

    def refill(self) -> None:
        """A new block, once the last one is used up."""
        if self.position >= len(self.block):
            self._before = self._rng.bit_generator.state
            self.block = self._rng.random((BLOCK, self.width))
            self.position = 0

    def next(self) -> float:
        """The next number, of a stream that is one wide."""
        self.refill()
        self.position += 1
        return float(self.block[self.position - 1, 0])

    def state(self) -> dict[str, Any]:
        """Where the stream stands: the generator before the present block, and the position in it."""
        before = self._rng.bit_generator.state if self._before is None else self._before
        return {"rng": before, "position": self.position, "begun": self._before is not None, "width": self.width}

    @classmethod
    def restored(cls, state: dict[str, Any], width: int = 1) -> "UniformStream":
        """The stream of which ``state`` was taken, of the width it must have."""
        position = int(state["position"])
        if state["width"] != width or not 0 <= position <= BLOCK:
            raise ValueError("a place that is not in the stream")
        stream = cls(restore_generator(state["rng"]), width)
        if state["begun"]:
            stream.refill()
            stream.position = position
        return stream


def restore_generator(state: dict[str, Any]) -> np.random.Generator:
    """A generator with the given state of its bits."""
    bits: Any = np.random.PCG64()
    bits.state = state
    return np.random.Generator(bits)
