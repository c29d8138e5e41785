# Sums and products of vectors in eight lanes that are added in a fixed order, so that vector instructions of any width
# give the same result.

from psconrl.kernels._types cimport ConstMatrix, ConstVector
cimport cython

cdef extern from *:
    """
    #define PSCONRL_LANES(NAME, ARGUMENTS, TERM)                                                    \\
        static CYTHON_INLINE double NAME ARGUMENTS {                                                \\
            double a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, rest = 0;                \\
            Py_ssize_t i, whole = n - n % 8;                                                        \\
            for (i = 0; i < whole; i += 8) {                                                        \\
                a += TERM(i); b += TERM(i + 1); c += TERM(i + 2); d += TERM(i + 3);                 \\
                e += TERM(i + 4); f += TERM(i + 5); g += TERM(i + 6); h += TERM(i + 7);             \\
            }                                                                                       \\
            for (i = whole; i < n; ++i) rest += TERM(i);                                            \\
            return (((a + b) + (c + d)) + ((e + f) + (g + h))) + rest;                              \\
        }
    #define PSCONRL_ENTRY(i) x[i]
    #define PSCONRL_PRODUCT(i) (x[i] * y[i])
    #define PSCONRL_WEIGHTED(i) (w[i] * x[i] * y[i])
    PSCONRL_LANES(psconrl_total, (const double *x, Py_ssize_t n), PSCONRL_ENTRY)
    PSCONRL_LANES(psconrl_dot, (const double *x, const double *y, Py_ssize_t n), PSCONRL_PRODUCT)
    PSCONRL_LANES(
        psconrl_weighted, (const double *w, const double *x, const double *y, Py_ssize_t n), PSCONRL_WEIGHTED)
    """
    double psconrl_total(const double* x, Py_ssize_t n) noexcept nogil
    double psconrl_dot(const double* x, const double* y, Py_ssize_t n) noexcept nogil
    double psconrl_weighted(const double* w, const double* x, const double* y, Py_ssize_t n) noexcept nogil

# The first entries are pointed at even in arrays without any, so indices are not checked.

@cython.boundscheck(False)
cdef inline double total(ConstVector x) noexcept nogil:
    return psconrl_total(&x[0], x.shape[0])

@cython.boundscheck(False)
cdef inline double dot(ConstVector x, ConstVector y) noexcept nogil:
    return psconrl_dot(&x[0], &y[0], x.shape[0])

@cython.boundscheck(False)
cdef inline double weighted_dot(
    ConstVector weights, ConstVector x, ConstVector y, Py_ssize_t begin, Py_ssize_t end
) noexcept nogil:
    return psconrl_weighted(&weights[begin], &x[begin], &y[begin], end - begin)

@cython.boundscheck(False)
cdef inline double row_sum(ConstMatrix W, Py_ssize_t i, Py_ssize_t n) noexcept nogil:
    return psconrl_total(&W[i, 0], n)

@cython.boundscheck(False)
cdef inline double row_times(ConstMatrix W, Py_ssize_t i, ConstVector x, Py_ssize_t n) noexcept nogil:
    return psconrl_dot(&W[i, 0], &x[0], n)

@cython.boundscheck(False)
cdef inline double row_dot(
    ConstMatrix W, Py_ssize_t i, ConstMatrix x, Py_ssize_t k, Py_ssize_t n
) noexcept nogil:
    return psconrl_dot(&W[i, 0], &x[k, 0], n)
