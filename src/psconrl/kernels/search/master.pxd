# Declarations that other kernels cimport.

# The master problem of at most one constraint.
cdef (bint, double) mix_on_line(
    const double[:, ::1] gains, Py_ssize_t n, double tau, double limit, double[::1] weights, Py_ssize_t[::1] columns,
    double[::1] shares
) noexcept nogil


# The master problem of several constraints.
cdef class Tableau:
    cdef double[:, ::1] columns, B
    cdef double[::1] costs, excess, x, y, d, room
    cdef readonly double[::1] right
    cdef Py_ssize_t[::1] basis, order
    cdef Py_ssize_t n
    cdef bint feasible

    cdef void begin(self, const double[::1] thresholds) noexcept nogil
    cdef void put(self, const double[::1] averages) noexcept nogil
    cdef void allow(self, double excess) noexcept nogil
    cdef (bint, double) mix(self, double[::1] weights, Py_ssize_t[::1] mixed, double[::1] shares) noexcept nogil
    cdef Py_ssize_t _place(self, Py_ssize_t j) noexcept nogil
    cdef void _first_basis(self) noexcept nogil
    cdef bint _factorise(self) noexcept nogil
    cdef bint _without_excess(self, Py_ssize_t at) noexcept nogil
    cdef Py_ssize_t _entering(self, const double[::1] costs, Py_ssize_t first, bint bland) noexcept nogil
    cdef (Py_ssize_t, double) _leaving(self, bint bland) noexcept nogil
    cdef bint _simplex(self, const double[::1] costs, Py_ssize_t first) noexcept nogil
