"""The LP solver HiGHS: silent, on one thread, with the tightest tolerances it accepts."""

from typing import TYPE_CHECKING, Any

from psconrl.planning.tolerances import HIGHS_DEFAULT_TOL, HIGHS_LEAST_ENTRY, HIGHS_TOL, HIGHS_WIDER_TOL

if TYPE_CHECKING:
    import highspy

MOST_INTERIOR_STEPS = 1000  # of the interior-point method, which takes tens of them, or repeats one forever

# By default HiGHS accepts errors of 1e-7; these are its tightest settings.
_OPTIONS: dict[str, Any] = {
    "output_flag": False,
    "threads": 1,
    "primal_feasibility_tolerance": HIGHS_TOL,
    "dual_feasibility_tolerance": HIGHS_TOL,
    "small_matrix_value": HIGHS_LEAST_ENTRY,
}


def new_highs(**options: Any) -> Any:
    """Create a solver instance; ``options`` override the defaults above."""
    import highspy

    make: Any = highspy.Highs  # highspy has no type annotations
    highs = make()
    for name, setting in (_OPTIONS | options).items():
        highs.setOptionValue(name, setting)
    return highs


def status(highs: Any) -> str:
    """Return the status of the last run by HiGHS' own name, such as ``kOptimal``."""
    return str(highs.getModelStatus().name)


def run(program: "highspy.HighsLp") -> Any:
    """Run HiGHS with tight tolerances; if it fails, retry with wider ones, up to its defaults."""
    for tolerance, options in (
        (HIGHS_TOL, {}),
        (HIGHS_WIDER_TOL, {}),
        (HIGHS_WIDER_TOL, {"presolve": "off"}),
        (HIGHS_DEFAULT_TOL, {}),
        (HIGHS_DEFAULT_TOL, {"solver": "ipm", "ipm_iteration_limit": MOST_INTERIOR_STEPS}),
    ):
        highs = new_highs(primal_feasibility_tolerance=tolerance, dual_feasibility_tolerance=tolerance, **options)
        highs.passModel(program)
        highs.run()
        if status(highs) in ("kOptimal", "kInfeasible"):
            break
    return highs
