"""Builds the kernels: every module in a folder of ``src/psconrl/kernels`` becomes an extension module.

The sources are Python, typed for Cython ("pure Python mode"). Those in ``WIDE`` are compiled once more for each wider
instruction set that this kind of processor may have; ``psconrl.kernels`` chooses among them when it is imported. The
flags keep every result the same to the last bit whichever is chosen: no contraction of a*b + c to one rounding, and no
re-association of sums.

Set ``PSCONRL_BUILD=debug`` for kernels that check every index, under the address and undefined-behaviour sanitizers,
and ``PSCONRL_BUILD=later`` to install a clone without them (``make`` builds them in a step of its own).
"""

import hashlib
import logging
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from sysconfig import get_platform

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, "tools")
import compiler

LATER = os.environ.get("PSCONRL_BUILD") == "later"

SOURCES = Path("src/psconrl/kernels")
SHARED = "psconrl.kernels._shared"  # what all modules need to hand arrays to each other, compiled once
# Loops over long rows, compiled for wider instruction sets, too.
WIDE = ("drawn_averages", "elimination", "improvement", "sa_cvi", "special")
# Walks over graphs and checks, which gain nothing from more than the first level of optimisation, but compile slowly.
WALKS = (
    *(
        "boxes",
        "certificates",
        "closed_classes",
        "costs",
        "csr",
        "end_components",
        "graph",
        "intervals",
    ),
    *("moves", "nested_dissection", "occupancy", "pessimism", "small_components", "sorting"),
    *("transient", "visits"),
)

DEBUG = os.environ.get("PSCONRL_BUILD") == "debug"
MSVC = sys.platform == "win32"
# Not for a Mac's extension modules for two kinds of processors in one.
TWO_KINDS = any(kind in (os.environ.get("ARCHFLAGS") or get_platform()) for kind in ("arm64", "universal2"))
X86 = get_platform().endswith(("x86_64", "amd64")) and not TWO_KINDS

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "initializedcheck": DEBUG,
    "wraparound": False,
    "cdivision": True,
    "infer_types": True,
    "binding": False,
    "autotestdict": False,
    "auto_pickle": False,
    "embedsignature": True,
    "embedsignature.format": "python",
    "show_performance_hints": not DEBUG,  # there are thousands, all of them about the checks that are wanted
}
if MSVC:
    # Before 2022, /fp:precise alone would contract.
    FLAGS, QUICKER, LIGHT = ["/O2", "/fp:precise", f"/FI{(SOURCES / '_precise.h').resolve()}"], [], ["/O1"]
    INSTRUCTION_SETS = {"avx2": ["/arch:AVX2"], "avx512": ["/arch:AVX512"]}
elif DEBUG:
    FLAGS = ["-O1", "-g", "-ffp-contract=off", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    QUICKER, LIGHT, INSTRUCTION_SETS = [], FLAGS, {}
else:
    FLAGS, QUICKER, LIGHT = ["-O3", "-g0", "-ffp-contract=off", "-Wno-stringop-overflow"], ["-O1"], ["-O1", "-g0"]
    INSTRUCTION_SETS = {
        "avx2": ["-march=x86-64-v3"],
        "avx512": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
    }
if not MSVC and compiler.is_zig():
    # Zig means the processor that it runs on unless it is told, and spells the names of processors its own way.
    FLAGS, LIGHT = [*FLAGS, "-mcpu=baseline"], [*LIGHT, "-mcpu=baseline"]
    INSTRUCTION_SETS = {
        name: [flag.replace("-march=x86-64-", "-mcpu=x86_64_") for flag in flags]
        for name, flags in INSTRUCTION_SETS.items()
    }
if not X86:
    INSTRUCTION_SETS = {}
LINK = ["-fsanitize=address,undefined"] if DEBUG else ([] if MSVC else ["-Wl,-s"] if sys.platform == "linux" else [])


def extensions() -> list[Extension]:
    """All extension modules, their C files written to ``build/``."""
    from Cython.Build import cythonize

    # C files of another version of Cython, or of other directives, are not used again.
    made_by = hashlib.sha256(Path(__file__).read_bytes() + version("cython").encode()).hexdigest()[:8]
    generated = Path("build", f"kernels-{made_by}{'-debug' if DEBUG else ''}")
    generated.mkdir(parents=True, exist_ok=True)
    shared = generated / "_shared.c"
    if not shared.exists():
        subprocess.run([sys.executable, "-m", "cython", "--generate-shared", str(shared)], check=True)
    made = [
        Extension("psconrl.kernels._cpu", [str(SOURCES / "_cpu.c")], extra_compile_args=LIGHT, extra_link_args=LINK),
        Extension(SHARED, [str(shared)], extra_compile_args=LIGHT, extra_link_args=LINK),
    ]
    kernels = cythonize(
        [
            Extension(
                f"psconrl.kernels.{path.parent.name}.{path.stem}",
                [str(path)],
                extra_compile_args=FLAGS + (QUICKER if path.stem in WALKS else []),
                extra_link_args=LINK,
            )
            for path in sorted(SOURCES.glob("*/[!_]*.py"))
        ],
        build_dir=str(generated),
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
        nthreads=os.cpu_count() or 1,
    )
    made += kernels
    for kernel in kernels:
        folder, name = kernel.name.split(".")[2:]
        for instructions, flags in INSTRUCTION_SETS.items() if name in WIDE else ():
            copy = generated / f"{name}_{instructions}.c"  # a file of its own, since its object is named after it
            shutil.copy2(kernel.sources[0], copy)  # with its date, so that it is compiled again only when it changes
            (SOURCES / instructions / folder).mkdir(parents=True, exist_ok=True)  # where an editable install puts it
            wide = f"psconrl.kernels.{instructions}.{folder}.{name}"
            made.append(
                Extension(wide, [str(copy)], extra_compile_args=FLAGS + flags, extra_link_args=LINK, optional=True)
            )  # an old compiler does not know the flags; the baseline serves then
    return made


def remove_old() -> None:
    """Remove modules of kernels that an earlier version had: they would be imported, or packed."""
    for kernels in (SOURCES, *Path("build").glob("lib*/psconrl/kernels")):
        for path in [*kernels.rglob("*.so"), *kernels.rglob("*.pyd")]:
            place, name = path.parent.relative_to(kernels), path.name.partition(".")[0]
            is_wide = place.parts[:1] in (("avx2",), ("avx512",))
            source = SOURCES / (place.relative_to(place.parts[0]) if is_wide else place) / name
            is_made = source.with_suffix(".py").exists() or source.with_suffix(".c").exists() or name == "_shared"
            if not is_made or (is_wide and name not in WIDE):
                path.unlink()


class BuildKernels(build_ext):
    """Writes the C files when the kernels are built, not each time that setuptools asks about the project."""

    def run(self) -> None:
        """Find out what there is to build, and build it."""
        remove_old()
        self.parallel = os.cpu_count() or 1
        self.announce(
            f"psconrl: compiling the numerical kernels with {self.parallel} processes; "
            "with two this takes about a minute, and three or more if the machine is busy",
            logging.INFO,
        )
        self.distribution.ext_modules[:] = extensions()
        self.swig_opts = None  # which setuptools does not expect to find finalized
        self.finalize_options()
        super().run()


if __name__ == "__main__":  # and not in the processes that translate kernels, where they import this file
    if not LATER and (found := compiler.problem()):
        sys.exit(compiler.advice(found))
    # One extension says that there are some; the rest follow.
    setup(cmdclass={"build_ext": BuildKernels}, ext_modules=[] if LATER else [Extension("psconrl.kernels._cpu", [])])
