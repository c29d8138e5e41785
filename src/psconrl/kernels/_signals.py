"""Pure-Python stand-in for ``_signals.pxd``: uncompiled, the interpreter checks for signals itself."""


def PyErr_CheckSignals() -> int:  # noqa: N802  its name in C
    """Do nothing."""
    return 0
