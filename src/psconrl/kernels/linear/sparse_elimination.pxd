# Declarations that other kernels cimport.

from psconrl.kernels.linear.elimination_workspace cimport Elimination
from psconrl.kernels.graphs.successors cimport index


# ``costs`` (q, number of rows in the matrix); gains (q,), biases (q, S) and stationary (S,) are filled in.
# Returns -1, or a state of a closed class without the reference.
cdef Py_ssize_t eliminate_unichain(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, const Py_ssize_t[::1] rows,
    const double[:, ::1] costs, Py_ssize_t reference, double probability, Elimination work,
    double[::1] gains, double[:, ::1] biases, double[::1] stationary
) noexcept nogil
