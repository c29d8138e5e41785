"""The kernels: numerical loops on arrays, which ``setup.py`` compiles when the package is built.

The sources are Python in which arguments and attributes are typed for Cython; ``_types.pxd`` names the types of arrays.
A function that other kernels call is declared, with its types, in the ``.pxd`` beside its source, and only there.
Importing this package chooses the widest instruction set that was built and that the processor has. Results are the
same to the last bit for all of them.

The environment variable ``PSCONRL_KERNELS`` overrides the choice: ``baseline``, ``avx2`` or ``avx512``; or ``python``,
which runs the sources as they are, for debuggers and coverage (a hundred times slower; needs Cython installed).
"""

import os
from importlib import import_module
from pathlib import Path

CHOICES = ("baseline", "avx2", "avx512", "python")
PACKAGES = ("agents", "arithmetic", "chains", "draws", "graphs", "linear", "play", "search", "sets")


def _choose(wanted: str | None) -> str:
    """Make the packages in this one find modules built for an instruction set first; return which it is."""
    if wanted == "python":
        from psconrl.kernels import _uncompiled

        _uncompiled.use([*__path__, *(str(Path(__file__).parent / name) for name in PACKAGES)])
        return wanted
    if wanted and wanted not in CHOICES:
        raise ImportError(f"PSCONRL_KERNELS must be one of {', '.join(CHOICES)}; got {wanted!r}")
    try:
        from psconrl.kernels import _cpu  # type: ignore[attr-defined]
    except ImportError as error:
        raise ImportError(
            f"the kernels of psconrl are not built for this Python; in a clone, pip install . builds them ({error})"
        ) from None
    here = Path(__file__).parent
    usable = [name for name in _cpu.instruction_sets() if (here / name).is_dir()]
    if wanted and wanted != "baseline" and wanted not in usable:
        raise ImportError(f"PSCONRL_KERNELS={wanted}: this processor or this build has only {['baseline', *usable]}")
    chosen = wanted or (usable[0] if usable else "baseline")
    if chosen != "baseline":
        for name in PACKAGES:
            import_module(f"psconrl.kernels.{name}").__path__.insert(0, str(here / chosen / name))
    return chosen


INSTRUCTIONS = _choose(os.environ.get("PSCONRL_KERNELS"))
