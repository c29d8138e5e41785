r"""Solution of linear systems of integers in rational numbers, by p-adic lifting (Dixon 1982).

With :math:`C = A^{-1} \bmod p` the digits of the p-adic solution follow one after the other,

.. math:: x_k = C\, r_k \bmod p, \qquad r_{k+1} = (r_k - A x_k) / p, \qquad r_0 = b,

each by multiplications of small integers. Rational reconstruction turns the sum of :math:`x_k p^k` into fractions,
and multiplying them by A checks them: a solution that is returned solves the system exactly. Gaussian elimination
would take O(n^3) operations on numbers of O(n) digits; this takes O(n^3) on machine integers.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from math import isqrt
from typing import Any

import numpy as np

from psconrl.base.arrays import Ints
from psconrl.errors import SolverError

PRIMES = (134217689, 134217649, 134217617, 134217613, 134217593)  # below 2^27: 512 products sum up to less than 2^63
DIGIT_BITS = 27  # of the parts in which coefficients are stored
SPARE_BITS = 32  # a fraction of the right size is found by accident with probability 2^-32; the product decides anyway
FIRST_DIGITS = 8
MOST_DIGITS = 1 << 16


def solve_integers(A: Sequence[Sequence[int]], B: Sequence[Sequence[int]]) -> tuple[list[list[int]], int]:
    """Solve A x = b for every b of B; return the numerators of every x, and their common denominator.

    >>> solve_integers([[2, 1], [0, 3]], [[1, 1]])
    ([[1, 1]], 3)
    """
    coefficients = np.array(A, dtype=object)
    p, inverse = _inverse(coefficients)
    parts = _parts(coefficients)
    right = np.array(B, dtype=object).T
    digits: list[Ints] = []
    residual, wanted = right, FIRST_DIGITS
    while True:
        while len(digits) < wanted:
            x = inverse @ (residual % p).astype(np.int64) % p
            digits.append(x)
            moved = sum(((part @ x).astype(object) << shift for shift, part in parts), np.zeros_like(residual))
            residual = (residual - moved) // p
        found = _fractions(digits, p)
        if found is not None:
            numerators, denominator = found
            if (coefficients @ numerators == denominator * right).all():
                return numerators.T.tolist(), denominator
        if wanted > MOST_DIGITS:
            raise SolverError(f"a solution of {len(A)} equations takes more than {MOST_DIGITS * DIGIT_BITS:,} bits")
        wanted = wanted * 3 // 2


def _inverse(A: np.ndarray) -> tuple[int, Ints]:
    """Return a prime and the inverse of a matrix of integers modulo that prime."""
    for p in PRIMES:
        inverse = _inverse_modulo((A % p).astype(np.int64), p)
        if inverse is not None:
            return p, inverse
    raise SolverError("a system of equations is singular")


def _inverse_modulo(A: Ints, p: int) -> Ints | None:
    n = len(A)
    M = np.hstack([A, np.eye(n, dtype=np.int64)])
    for k in range(n):
        below = np.flatnonzero(M[k:, k])
        if not below.size:
            return None
        M[[k, k + below[0]]] = M[[k + below[0], k]]
        M[k] = M[k] * pow(int(M[k, k]), -1, p) % p
        factors = M[:, k].copy()
        factors[k] = 0
        rows = np.flatnonzero(factors)
        M[rows] = (M[rows] - factors[rows, None] * M[k]) % p
    return np.ascontiguousarray(M[:, n:])


def _parts(A: np.ndarray) -> list[tuple[int, Ints]]:
    """Split a matrix of integers into matrices of small ones, each with the power of two by which it is multiplied."""
    size: Any = abs(A)
    sign = np.where(A < 0, -1, 1)
    found: list[tuple[int, Ints]] = []
    shift = 0
    while size.any():
        part = (size & ((1 << DIGIT_BITS) - 1)).astype(np.int64) * sign
        if part.any():
            found.append((shift, part))
        size, shift = size >> DIGIT_BITS, shift + DIGIT_BITS
    return found


def _fractions(digits: list[Ints], p: int) -> tuple[np.ndarray, int] | None:
    """Return numerators and a common denominator of fractions with these p-adic digits; None if more are needed."""
    stack = np.array(digits)
    shape = stack.shape[1:]
    stack = stack.reshape(len(digits), -1).astype(object)
    modulus = p ** len(digits)
    most = isqrt(modulus >> 1)
    denominator = 1
    numerators: list[int] = []
    # The first entry mostly shows whether there are enough digits.
    for value in chain(_joined(stack[:, :1], p), _joined(stack[:, 1:], p)):
        numerator = value * denominator % modulus
        if 2 * numerator > modulus:
            numerator -= modulus
        if abs(numerator) << SPARE_BITS > most:
            numerator, factor = _fraction(numerator % modulus, modulus, most)
            denominator *= factor
            if abs(numerator) * factor << SPARE_BITS > modulus or denominator > most:
                return None
            numerators = [earlier * factor for earlier in numerators]
        numerators.append(numerator)
    return np.array(numerators, dtype=object).reshape(shape), denominator


def _joined(digits: np.ndarray, base: int) -> Iterator[int]:
    """Yield the numbers with these digits (k, n), in halves: most products are then of small numbers."""
    if not digits.shape[1]:
        return
    while len(digits) > 1:
        if len(digits) % 2:
            digits = np.vstack([digits, np.zeros_like(digits[:1])])
        digits = digits[::2] + digits[1::2] * base
        base *= base
    yield from digits[0]


def _fraction(value: int, modulus: int, most: int) -> tuple[int, int]:
    """Return the fraction of a numerator of at most ``most`` that has this value modulo a number (Wang 1981)."""
    r, s, t, u = modulus, value, 0, 1
    while s > most:
        q = r // s
        r, s, t, u = s, r - q * s, u, t - q * u
    return (-s, -u) if u < 0 else (s, u)
