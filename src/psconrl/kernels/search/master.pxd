# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstMatrix, ConstVector, Ints, Matrix, Vector

# The master problem of at most one constraint.
cdef (bint, double) mix_on_line(
    ConstMatrix gains, Py_ssize_t n, double tau, double limit, Vector weights, Ints columns, Vector shares
) noexcept nogil

# The master problem of several constraints.
cdef class Tableau:
    cdef Matrix columns, B
    cdef Vector costs, excess, x, y, d, room
    cdef readonly Vector right
    cdef Ints basis, order
    cdef Py_ssize_t n
    cdef bint feasible

    cdef void begin(self, ConstVector thresholds) noexcept nogil
    cdef void put(self, ConstVector averages) noexcept nogil
    cdef void allow(self, double excess) noexcept nogil
    cdef (bint, double) mix(self, Vector weights, Ints mixed, Vector shares) noexcept nogil
    cdef Py_ssize_t _place(self, Py_ssize_t j) noexcept nogil
    cdef void _first_basis(self) noexcept nogil
    cdef bint _factorise(self) noexcept nogil
    cdef bint _without_excess(self, Py_ssize_t at) noexcept nogil
    cdef Py_ssize_t _entering(self, ConstVector costs, Py_ssize_t first, bint bland) noexcept nogil
    cdef (Py_ssize_t, double) _leaving(self, bint bland) noexcept nogil
    cdef bint _simplex(self, ConstVector costs, Py_ssize_t first) noexcept nogil
