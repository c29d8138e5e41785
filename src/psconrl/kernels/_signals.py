"""``_signals.pxd`` for kernels that run uncompiled: there the interpreter looks for signals by itself."""


def PyErr_CheckSignals() -> int:  # noqa: N802  its name in C
    """Nothing to do."""
    return 0
