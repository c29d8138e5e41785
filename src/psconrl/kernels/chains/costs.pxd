# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstFlagMatrix, ConstMatrix, ConstTables, ConstVector

cdef int check_table(ConstTables costs, ConstVector thresholds, ConstFlagMatrix available) except -1
cdef (double, double, double) extent_of(ConstMatrix costs, ConstFlagMatrix available) noexcept nogil
