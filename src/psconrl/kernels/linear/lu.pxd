# Declarations that other kernels cimport; arrays of k rows each.

from psconrl.kernels._types cimport ConstInts, ConstMatrix, ConstVector, Ints, Matrix, Vector

cdef bint factorise(Matrix matrix, Ints order) noexcept nogil
cdef void solve(ConstMatrix factors, ConstInts order, ConstVector right, Vector x) noexcept nogil
cdef void solve_transposed(
    ConstMatrix factors, ConstInts order, ConstVector right, Vector x, Vector room
) noexcept nogil
