# Declarations that other kernels cimport.

from psconrl.kernels.graphs.successors cimport index

# See graph.py for the arrays; `keep` may be empty: then every pair is kept.
cdef Py_ssize_t label_components(
    const index[::1] indptr, const index[::1] indices, const unsigned char[::1] keep, const Py_ssize_t[::1] roots,
    Py_ssize_t[::1] label, unsigned char[::1] left, Py_ssize_t[:, ::1] room, Py_ssize_t count
) noexcept nogil

# The closed classes of a dense chain (S, S) without moves of probability at most `least`: returns how many, and
# writes the number of every state's class, or -1, to `label` (S,). Overwritten: `edges` (at least S * S + S + 1),
# `left` (at least S) and `room` (8, at least S).
cdef Py_ssize_t closed_classes(
    const double[:, ::1] P, double least, Py_ssize_t[::1] label, int[::1] edges, unsigned char[::1] left,
    Py_ssize_t[:, ::1] room
) noexcept nogil
