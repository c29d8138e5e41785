r"""Rates of events, drawn one after the other by slice sampling of their logarithms (Neal 2003).

The density of a rate x, given the others, is that of its gamma prior times

.. math:: x^{n} \prod_g (r_g - f_g x)^{n_g},

with n events of that rate, :math:`n_g` rounds without any event in context g, the factor :math:`f_g` of the rate there,
and the probability :math:`r_g` that no other event happens.
"""

import cython
import numpy as np
from cython.cimports.libc.math import sqrt
from cython.cimports.psconrl.kernels._types import ConstInts, ConstMatrix, ConstVector, Matrix, Vector
from cython.cimports.psconrl.kernels.arithmetic.special import exp, log, log_all

_INF = cython.declare(cython.double, float("inf"))
_STEPS_OUT = cython.declare(cython.Py_ssize_t, 30)  # of the width of a slice, at most
# Uniforms for one rate: a height, a place, and points of a slice, which in the end holds hardly more than one point.
SLICE_UNIFORMS = 102


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _log_density(
    log_rate: cython.double,
    shape: cython.double,
    exposure: cython.double,
    largest: cython.double,
    contexts: Matrix,
    none: Vector,
) -> cython.double:
    """Return the log density of the logarithm of a rate; the rows of contexts are factors, rests and times."""
    if not log_rate < 700.0:
        return -_INF
    rate: cython.double = exp(log_rate)
    if not rate < largest:
        return -_INF
    n: cython.Py_ssize_t = none.shape[0]
    for g in range(n):
        none[g] = contexts[1, g] - contexts[0, g] * rate
        if none[g] <= 0.0:
            return -_INF
    log_all(none, none)
    total: cython.double = 0.0
    for g in range(n):
        total += contexts[2, g] * none[g]
    return shape * log_rate - exposure * rate + total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _slice(
    rate: cython.double,
    shape: cython.double,
    exposure: cython.double,
    largest: cython.double,
    contexts: Matrix,
    none: Vector,
    uniforms: ConstVector,
) -> cython.double:
    """Return the next rate: the slice is found by stepping out, and shrinks to the present rate."""
    here: cython.double = log(rate)
    height: cython.double = _log_density(here, shape, exposure, largest, contexts, none) + log(1.0 - uniforms[0])
    width: cython.double = 2.0 / sqrt(shape)
    low: cython.double = here - width * uniforms[1]
    high: cython.double = low + width
    steps: cython.Py_ssize_t = 0
    while steps < _STEPS_OUT and _log_density(low, shape, exposure, largest, contexts, none) > height:
        low -= width
        steps += 1
    steps = 0
    while steps < _STEPS_OUT and _log_density(high, shape, exposure, largest, contexts, none) > height:
        high += width
        steps += 1
    for k in range(2, uniforms.shape[0]):
        drawn: cython.double = low + (high - low) * uniforms[k]
        if _log_density(drawn, shape, exposure, largest, contexts, none) > height:
            return exp(drawn)
        if drawn < here:
            low = drawn
        else:
            high = drawn
    return rate


def draw_rates(
    factors: ConstMatrix,
    idle: ConstVector,
    rates: Vector,
    of_event: ConstInts,
    shapes: ConstVector,
    exposures: ConstVector,
    uniforms: ConstMatrix,
):
    """Draw all unknown rates once, each given the others; ``rates`` (E,) of the events are changed in place.

    ``factors`` (G, E): probabilities of events in a round are factors times rates. ``idle`` (G,): rounds without an
    event. ``of_event`` (E,): the number of the unknown rate of an event, -1 if its rate is known. ``shapes`` (K,) and
    ``exposures`` (K,): of the priors, the shapes with the numbers of events added. ``uniforms``: (K, SLICE_UNIFORMS).
    """
    G: cython.Py_ssize_t = factors.shape[0]
    E: cython.Py_ssize_t = factors.shape[1]
    K: cython.Py_ssize_t = shapes.shape[0]
    contexts: Matrix = np.empty((3, G))
    none: Vector = np.empty(G)
    k: cython.Py_ssize_t
    g: cython.Py_ssize_t
    e: cython.Py_ssize_t
    with cython.nogil:
        for k in range(K):
            n: cython.Py_ssize_t = 0
            rate: cython.double = 0.0
            largest: cython.double = _INF
            for e in range(E):
                if of_event[e] == k:
                    rate = rates[e]
            for g in range(G):
                own: cython.double = 0.0
                rest: cython.double = 1.0
                for e in range(E):
                    if of_event[e] == k:
                        own += factors[g, e]
                    else:
                        rest -= factors[g, e] * rates[e]
                if own > 0.0:
                    if rest / own < largest:
                        largest = rest / own
                    if idle[g] > 0.0:
                        contexts[0, n] = own
                        contexts[1, n] = rest
                        contexts[2, n] = idle[g]
                        n += 1
            rate = _slice(rate, shapes[k], exposures[k], largest, contexts, none[:n], uniforms[k])
            for e in range(E):
                if of_event[e] == k:
                    rates[e] = rate
