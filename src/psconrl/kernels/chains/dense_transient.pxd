# Declarations that other kernels cimport.

from psconrl.kernels._types cimport Matrix, Vector

cdef bint censor_transient(Matrix W, Matrix C, Vector exits, Py_ssize_t n, Py_ssize_t q) noexcept nogil
cdef bint solve_transient(Matrix W, Matrix C, Vector exits, Py_ssize_t n) noexcept nogil
cdef bint solve_visits(Matrix W, Vector y, Vector exits, Py_ssize_t n) noexcept nogil
