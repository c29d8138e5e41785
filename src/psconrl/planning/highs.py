"""HiGHS as we use it: silent, on one thread, with the tightest tolerances it takes."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import highspy

# HiGHS drops matrix entries below 1e-9 and accepts errors of 1e-7 unless told otherwise; these are its limits.
_OPTIONS: dict[str, Any] = {
    "output_flag": False,
    "threads": 1,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "small_matrix_value": 1e-12,
}


def new_highs(**options: Any) -> Any:
    """A fresh instance, with further options."""
    import highspy

    make: Any = highspy.Highs  # it carries no types
    highs = make()
    for name, setting in (_OPTIONS | options).items():
        highs.setOptionValue(name, setting)
    return highs


def status(highs: Any) -> str:
    """How the last run ended, by HiGHS' own name, such as ``kOptimal``."""
    return str(highs.getModelStatus().name)


def run(program: "highspy.HighsLp") -> Any:
    """Run HiGHS; if it cannot settle the tight tolerances, with the next wider ones, down to its own."""
    for tolerance, options in (
        (1e-10, {}),
        (1e-9, {}),
        (1e-9, {"presolve": "off"}),
        (1e-7, {}),
        (1e-7, {"solver": "ipm"}),
    ):
        highs = new_highs(primal_feasibility_tolerance=tolerance, dual_feasibility_tolerance=tolerance, **options)
        highs.passModel(program)
        highs.run()
        if status(highs) in ("kOptimal", "kInfeasible"):
            break
    return highs
