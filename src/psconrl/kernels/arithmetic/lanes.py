"""Sums and products of vectors in eight lanes that are added in a fixed order.

So vector instructions of any width give the same result.
"""

import cython


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def total(x: cython.const[cython.double][::1]) -> cython.double:
    """Return the sum of a vector."""
    a: cython.double = 0.0
    b: cython.double = 0.0
    c: cython.double = 0.0
    d: cython.double = 0.0
    e: cython.double = 0.0
    f: cython.double = 0.0
    g: cython.double = 0.0
    h: cython.double = 0.0
    n = x.shape[0]
    whole = n - n % 8
    for i in range(0, whole, 8):
        a += x[i]
        b += x[i + 1]
        c += x[i + 2]
        d += x[i + 3]
        e += x[i + 4]
        f += x[i + 5]
        g += x[i + 6]
        h += x[i + 7]
    rest: cython.double = 0.0
    for i in range(whole, n):
        rest += x[i]
    return (((a + b) + (c + d)) + ((e + f) + (g + h))) + rest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def dot(x: cython.const[cython.double][::1], z: cython.const[cython.double][::1]) -> cython.double:
    """Return the product of two vectors."""
    a: cython.double = 0.0
    b: cython.double = 0.0
    c: cython.double = 0.0
    d: cython.double = 0.0
    e: cython.double = 0.0
    f: cython.double = 0.0
    g: cython.double = 0.0
    h: cython.double = 0.0
    n = x.shape[0]
    whole = n - n % 8
    for i in range(0, whole, 8):
        a += x[i] * z[i]
        b += x[i + 1] * z[i + 1]
        c += x[i + 2] * z[i + 2]
        d += x[i + 3] * z[i + 3]
        e += x[i + 4] * z[i + 4]
        f += x[i + 5] * z[i + 5]
        g += x[i + 6] * z[i + 6]
        h += x[i + 7] * z[i + 7]
    rest: cython.double = 0.0
    for i in range(whole, n):
        rest += x[i] * z[i]
    return (((a + b) + (c + d)) + ((e + f) + (g + h))) + rest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def weighted_dot(
    weights: cython.const[cython.double][::1],
    x: cython.const[cython.double][::1],
    y: cython.const[cython.double][::1],
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
) -> cython.double:
    """Return the weighted product of x and y over a range of entries."""
    a: cython.double = 0.0
    b: cython.double = 0.0
    c: cython.double = 0.0
    d: cython.double = 0.0
    e: cython.double = 0.0
    f: cython.double = 0.0
    g: cython.double = 0.0
    h: cython.double = 0.0
    whole = end - (end - begin) % 8
    for i in range(begin, whole, 8):
        a += weights[i] * x[i] * y[i]
        b += weights[i + 1] * x[i + 1] * y[i + 1]
        c += weights[i + 2] * x[i + 2] * y[i + 2]
        d += weights[i + 3] * x[i + 3] * y[i + 3]
        e += weights[i + 4] * x[i + 4] * y[i + 4]
        f += weights[i + 5] * x[i + 5] * y[i + 5]
        g += weights[i + 6] * x[i + 6] * y[i + 6]
        h += weights[i + 7] * x[i + 7] * y[i + 7]
    rest: cython.double = 0.0
    for i in range(whole, end):
        rest += weights[i] * x[i] * y[i]
    return (((a + b) + (c + d)) + ((e + f) + (g + h))) + rest
