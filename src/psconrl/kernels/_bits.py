"""Pure-Python stand-in for ``_bits.pxd``, for kernels that run uncompiled."""

import struct


def bits_of(x: float) -> int:
    """Return the 64 bits of a double."""
    bits: int = struct.unpack("<Q", struct.pack("<d", x))[0]
    return bits


def with_bits(n: int) -> float:
    """Return the double with the given 64 bits."""
    x: float = struct.unpack("<d", struct.pack("<Q", n % 2**64))[0]
    return x
