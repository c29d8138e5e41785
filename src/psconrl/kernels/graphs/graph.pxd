# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstFlags, ConstInts, ConstMatrix, ConstPlaces, Flags, IntMatrix, Ints, Places

# See graph.py for the arrays; `keep` may be empty: then every pair is kept.
cdef Py_ssize_t label_components(
    ConstPlaces indptr, ConstPlaces indices, ConstFlags keep, ConstInts roots, Ints label, Flags left, IntMatrix room,
    Py_ssize_t count
) noexcept nogil

# The closed classes of a dense chain (S, S) without moves of probability at most `least`: returns how many, and
# writes the number of every state's class, or -1, to `label` (S,). Overwritten: `edges` (at least S * S + S + 1),
# `left` (at least S) and `room` (8, at least S).
cdef Py_ssize_t closed_classes(
    ConstMatrix P, double least, Ints label, Places edges, Flags left, IntMatrix room
) noexcept nogil
