# Has the user pressed Ctrl-C? For kernels that run for seconds without the interpreter.

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1
