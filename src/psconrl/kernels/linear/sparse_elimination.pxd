# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstInts, ConstMatrix, ConstPlaces, ConstVector, Matrix, Vector
from psconrl.kernels.linear.elimination_workspace cimport Elimination

# ``costs`` (q, number of rows in the matrix); gains (q,), biases (q, S) and stationary (S,) are filled in.
# Returns -1, or a state of a closed class without the reference.
cdef Py_ssize_t eliminate_unichain(
    ConstPlaces indptr, ConstPlaces indices, ConstVector data, ConstInts rows, ConstMatrix costs, Py_ssize_t reference,
    double probability, Elimination work, Vector gains, Matrix biases, Vector stationary
) noexcept nogil
