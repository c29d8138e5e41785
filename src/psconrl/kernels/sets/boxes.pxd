# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstInts, ConstMatrix, ConstVector, Matrix, Vector

cdef void pour_into(
    ConstMatrix low, ConstMatrix high, Py_ssize_t pair, double left, ConstInts order, Matrix out, Py_ssize_t row
) noexcept nogil
cdef void leave_over(ConstMatrix low, Vector left) noexcept nogil
cdef void weigh_costs(ConstMatrix costs, ConstVector weights, Vector cost) noexcept nogil
