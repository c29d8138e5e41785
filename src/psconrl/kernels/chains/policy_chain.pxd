# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstInts, ConstMatrix, ConstTables, Matrix, Vector

cdef void gather_rows(ConstMatrix P, ConstInts rows, ConstMatrix costs, Matrix chain, Matrix cost) noexcept nogil
cdef void mix_rows(ConstMatrix P, ConstMatrix policy, Matrix chain) noexcept nogil
cdef void mix_costs(ConstTables costs, ConstMatrix policy, Matrix mixed, Vector base) noexcept nogil
