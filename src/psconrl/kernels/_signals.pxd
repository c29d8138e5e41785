# Check for Ctrl-C, in kernels that run for seconds outside the interpreter.

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1
