# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstFlagMatrix, ConstInts, ConstMatrix, ConstVector, Ints, Vector

# The bias (S,) of the weighted cost, from those of every cost (q, S), is written to h.
cdef void weigh_biases(ConstVector weights, ConstMatrix biases, Vector h) noexcept nogil

# One step of policy iteration with the weighted bias h, from ``policy`` to ``new``; ``difference`` (S,) is overwritten.
# Returns the lower bound on the gain of any policy, without an allowance for rounding, and how many states switched.
cdef (double, Py_ssize_t) improve_dense(
    ConstMatrix P, ConstMatrix costs, ConstVector weights, ConstFlagMatrix available, ConstInts policy, ConstVector h,
    double tol, Vector difference, Ints new
) noexcept nogil

# The rounding error of the bound.
cdef double dense_rounding(ConstMatrix P, ConstVector h, Vector difference) noexcept nogil
