"""The LP solver HiGHS: silent, on one thread, with the tightest tolerances it accepts."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
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


class HighsProgram(NamedTuple):
    """A linear program in HiGHS' terms: minimise ``cost x`` over x >= 0, with rows between two bounds, by columns."""

    cost: Floats  # (n,)
    lower: Floats  # (rows,)
    upper: Floats  # (rows,)
    start: Ints  # (n+1,) the entries of column j are start[j] to start[j+1]
    row: Ints  # of every entry
    value: Floats

    @property
    def work(self) -> int:
        """Rows times entries: a rough measure of the time that HiGHS takes."""
        return int(self.lower.size) * int(self.value.size)

    def highs(self) -> "highspy.HighsLp":
        """Return the program as HiGHS' own object."""
        import highspy

        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = self.lower.size, self.cost.size
        lp.col_cost_ = self.cost
        lp.col_lower_, lp.col_upper_ = np.zeros(self.cost.size), np.full(self.cost.size, highspy.kHighsInf)
        lp.row_lower_, lp.row_upper_ = self.lower, self.upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = self.start, self.row, self.value
        return lp


class HighsAnswer(NamedTuple):
    """How HiGHS ended, and what it found: the variables, and the duals of the rows."""

    status: str
    values: Floats
    duals: Floats


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


def highs_answer(program: HighsProgram) -> HighsAnswer:
    """Solve a program by ``run``."""
    highs = run(program.highs())
    solution = highs.getSolution()
    return HighsAnswer(status(highs), np.array(solution.col_value), np.array(solution.row_dual))
