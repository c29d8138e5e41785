"""The model: a validated CMDP, what its policies do in the long run, and how its states hang together."""

from psconrl import compiling

compiling.announce()  # all kernels are below this folder, or import from it
