"""Pure-Python stand-in for ``_types.pxd``, for kernels that run uncompiled."""

import cython

index = cython.int

Vector = ConstVector = cython.double[::1]
Matrix = ConstMatrix = cython.double[:, ::1]
Tables = ConstTables = cython.double[:, :, ::1]
Ints = ConstInts = cython.Py_ssize_t[::1]
IntMatrix = ConstIntMatrix = cython.Py_ssize_t[:, ::1]
Places = ConstPlaces = index[::1]
Flags = ConstFlags = cython.uchar[::1]
FlagMatrix = ConstFlagMatrix = cython.uchar[:, ::1]
