# Types of arguments and attributes of kernels: arrays in C order, of which those named Const are only read.

ctypedef int index  # of row starts and columns of sparse matrices: fewer than 2^31 entries

ctypedef double[::1] Vector
ctypedef double[:, ::1] Matrix
ctypedef double[:, :, ::1] Tables
ctypedef Py_ssize_t[::1] Ints
ctypedef Py_ssize_t[:, ::1] IntMatrix
ctypedef index[::1] Places
ctypedef unsigned char[::1] Flags
ctypedef unsigned char[:, ::1] FlagMatrix

ctypedef const double[::1] ConstVector
ctypedef const double[:, ::1] ConstMatrix
ctypedef const double[:, :, ::1] ConstTables
ctypedef const Py_ssize_t[::1] ConstInts
ctypedef const Py_ssize_t[:, ::1] ConstIntMatrix
ctypedef const index[::1] ConstPlaces
ctypedef const unsigned char[::1] ConstFlags
ctypedef const unsigned char[:, ::1] ConstFlagMatrix
