# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstMatrix, Matrix, Vector

cdef (Py_ssize_t, double) eliminate(Matrix W, Matrix C) noexcept nogil
cdef Py_ssize_t stationary_distribution(ConstMatrix W, Vector stationary) noexcept nogil
cdef (Py_ssize_t, double) solve_unichain(
    ConstMatrix chain, ConstMatrix costs, Py_ssize_t reference, Matrix W, Matrix C, Vector gains, Matrix biases,
    Vector stationary
) noexcept nogil
