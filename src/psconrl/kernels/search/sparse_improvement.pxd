# Declarations that other kernels cimport; see improvement.pxd.

from psconrl.kernels.graphs.successors cimport index

cdef (double, Py_ssize_t) improve_sparse(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, Py_ssize_t state, double restart,
    const double[::1] cost, const unsigned char[:, ::1] available, const Py_ssize_t[::1] policy, const double[::1] h,
    double tol, Py_ssize_t[::1] new
) noexcept nogil
cdef double sparse_rounding(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, Py_ssize_t state, double restart,
    const double[::1] h
) noexcept nogil

# Sweeps of value iteration from the bias h of a policy: both are overwritten.
cdef void sweep_ahead(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, Py_ssize_t state, double restart,
    const double[::1] cost, const unsigned char[:, ::1] available, double[::1] h, double gain, Py_ssize_t sweeps,
    double tol, Py_ssize_t[::1] policy
) noexcept nogil
