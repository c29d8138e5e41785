"""The tolerances of the planners, each with its reason. Costs are scaled to [0, 1] unless it says otherwise.

A double holds 16 digits; sums over some hundred states lose two of them. What is searched for is held to tighter
tolerances than what is proven, so that a proof does not fail for what the search left over. What concerns a single
compiled kernel (pivots of the simplex method) stands there.
"""

# Howard's policy iteration.
SWITCH_TOL = 1e-13  # an action must gain more than this, times the bias of its state, else rounding makes Howard cycle
SWITCH_TOL_OF_LARGE = 2e-14  # biases of large models are larger, and their sums keep what rounding leaves out
CAUTION = (1.0, 1e2, 1e4, 1e6)  # times SWITCH_TOL: a switch that made things worse was rounding, so ask for more
WORSE_TOL = 1e-12  # by how much an improved policy may seem worse
STALLED, STALLED_SHARE = 0.9, 0.3  # of the last gap, and of one that may be played: then large models are done
BEYOND_OFF = 10.0  # times what a gain may be off: a smaller gain is not sure to be one
ROUGH = 1e-5  # gains may be off by so much at first where evaluations take long,
ROUGH_SHARE = 0.01  # or by this share of what the last policy gained,
LEAST_ROUGH = 1e-10  # unless that is so little that they may as well be exact
NEARLY_CLOSED = 1e-10  # a set of states left less often counts as closed: a double keeps five decimals of its biases
NEARLY_CLOSED_DOUBLE_DOUBLE = 1e-18  # the same where biases have two doubles a state
SAME_CLASS_COST = 1e-12  # classes whose costs differ by less are equally cheap

# The search for a mixture.
SEARCH_GAP = 1e-11  # Howard's answers are exact, so a small gap costs nothing
SAME_AVERAGE = 1e-13  # policies whose averages differ by less are the same column
FEASIBLE = 1e-9  # within this of the boundary counts as feasible
PLAYABLE_GAP = 1e-9  # how far a mixture may be from its bound and still be played: rounding may stop the search early
LEAST_GUESS = 1e-9  # of the objective in weights that are guessed: what they bound is known to 1e-16 of their sum
SAME_VALUE = 1e-13  # a backward recursion that gains no more than this has found the same policy

# Fewest randomised states.
SAME_LINE = 1e-11  # how far from the optimal line a policy in between may lie
DIRECTION_ROUNDING = 1e-13  # of a direction, whose largest entry is one, and of an occupancy
UNVISITED = 1e-13  # of the mass of a state: what is done there changes no average by more than rounding
LEAST_SHARE = 1e-9  # of an action in a state
RESIDUE = 1e-12  # a share of an action in a state, or of a policy in a lot, that may be rounding of the master

# Linear programs on HiGHS.
LP_MASS = 1e-10  # HiGHS' primal tolerance: less is not mass

# Certificates, in the units of ``certificate.units``: what is compared is judged by what the policy meets.
PROVEN_GAP = 1e-9  # of the Lagrangian, whose size is that of the objective plus the priced constraints
LARGEST_PRICES = 1e3  # but at most this many units of the objective: dear limits must not excuse an open gap
PROVEN_EXCESS = 2e-9  # the search takes FEASIBLE beyond the threshold as feasible
PROVEN_MARGIN = 1e-10  # a smaller margin of infeasibility may be rounding
PROVEN_FLOW = 1e-9  # L1 distance of an occupancy from a stationary law
PROVEN_POLICY = 1e-8  # occupancy against the exact evaluation of the policy: two ways to one number
MET_COSTS = 100.0  # a cost is judged by its range, but by no more than this many times what the policy meets of it
ROUNDED = 1e-6  # nor finer than this share of the average itself: times the tolerances it is 1e-15, what doubles hold
ONE_DOUBLE = 1e-7  # times the tolerance of an excess: 2e-16
MORE_MOVES = 1e-6  # the bound on the number of moves of a multichain proof need not be the least one

INVOLVED = 1e-9  # a limit with a smaller Farkas weight, of which the largest is 1, has no part in the contradiction

# Repair of plans whose classes do not meet.
TIED_ACTION = 1e-9  # actions that lose no more than this, times the potential of their state, are optimal too
CONNECTING_SHARE = 1e-4  # of the time in which such a policy moves between its classes
TIED_SHARES = (0.5, 0.1, 0.01, 1e-3)  # the same where nothing is lost: as large as the thresholds allow


# What the compiled search is told, as the last of its arguments.
SEARCH = (SWITCH_TOL, FEASIBLE, SAME_AVERAGE, NEARLY_CLOSED, SAME_CLASS_COST, LEAST_GUESS)
PRODUCT_OFF = 1e-10  # by how much gains may be wrong at least, where chains are solved by products


def search_with(off: float) -> tuple[float, float, float, float, float, float]:
    """The same where gains may be wrong by so much: policies that are no further apart are the same."""
    return max(SWITCH_TOL, 0.01 * off), FEASIBLE, max(SAME_AVERAGE, off), *SEARCH[3:]
