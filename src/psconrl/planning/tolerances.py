"""Tolerances of the planners, each with its reason. Costs are scaled to [0, 1] unless stated otherwise.

A double holds 16 digits; sums over some hundred states lose two of them. The search uses tighter tolerances than the
proof, so that a proof does not fail for what the search left over. Tolerances of a single compiled kernel, such as
pivots of the simplex method, are defined in that kernel, and those of a solver of Markov chains in its module in
``markov``. A plan states the tolerances of its certificate as absolute numbers: ``plan.proven``.
"""

# Howard's policy iteration.
SWITCH_TOL = 1e-13  # an action must gain more than this times the bias of its state, or rounding makes Howard cycle
SWITCH_TOL_OF_LARGE = 2e-14  # biases of large models are larger, and their sums are compensated for rounding
CAUTION = (1.0, 1e2, 1e4, 1e6)  # times SWITCH_TOL: if a switch made things worse, it was rounding; use the next factor
WORSE_TOL = 1e-12  # by how much an improved policy may seem worse
STALLED, STALLED_SHARE = 0.9, 0.3  # of the last gap, and of the largest playable gap: large models stop here
BEYOND_OFF = 10.0  # times the error of a gain: a smaller improvement may be an error
ROUGH = 1e-5  # initial error of gains if evaluations take long,
ROUGH_SHARE = 0.01  # or this share of the improvement by the last policy,
LEAST_ROUGH = 1e-10  # below which gains are computed exactly
NEARLY_CLOSED = 1e-10  # a set of states left less often counts as closed: a double keeps five decimals of its biases
NEARLY_CLOSED_DOUBLE_DOUBLE = 1e-18  # in double-double precision
SAME_CLASS_COST = 1e-12  # classes whose costs differ by less are equally cheap

# The search for a mixture.
SEARCH_GAP = 1e-11  # Howard's answers are exact, so a small gap costs nothing
OVERLAP = 1e-2  # largest mass that policies in different regimes have in common
SAME_AVERAGE = 1e-13  # policies whose averages differ by less are the same column
FEASIBLE = 1e-9  # a smaller excess counts as feasible
PLAYABLE_GAP = 1e-9  # largest gap of a mixture that may be played: rounding may stop the search early
LEAST_GUESS = 1e-9  # least weight of the objective in a guess: bounds are accurate to 1e-16 of the sum of the weights
SAME_VERTEX = 1e-9  # averages that differ by less are not new; two such in a row mean that a vertex has been found
SAME_VALUE = 1e-13  # a backward recursion that gains no more than this has found the same policy

# Fewest randomised states.
SAME_LINE = 1e-11  # largest distance of an intermediate policy from the optimal line
DIRECTION_ROUNDING = 1e-13  # of a direction, whose largest entry is one, and of an occupancy
UNVISITED = 1e-13  # mass of a state below which its action changes no average by more than rounding
LEAST_SHARE = 1e-9  # of an action in a state
RESIDUE = 1e-12  # shares of an action in a state, or of a policy in a mixture, up to this may be rounding residue

# Explanations of actions.
NO_LOSS = 1e-9  # of the range of the priced cost: actions that lose less are equally good
ROUNDED_BIAS = 1e-12  # relative: precision of differences of biases

# Policies under a certificate.
VERTEX_ROUNDING = 1e-12  # by which an inequality may be exceeded, relative to its largest number
LYAPUNOV_GAIN = 1e-9  # improvements that count, relative to the range of the costs

# Linear programs on HiGHS.
LP_MASS = 1e-10  # HiGHS' primal tolerance: less is not mass
HIGHS_TOL = 1e-10  # of feasibility, primal and dual: the tightest that HiGHS accepts
HIGHS_WIDER_TOL = 1e-9  # if it fails with the tightest
HIGHS_DEFAULT_TOL = 1e-7  # if it fails with that, too; the certificate decides what the answer is worth
HIGHS_LEAST_ENTRY = 1e-12  # of the matrix; by default HiGHS drops entries below 1e-9

# Certificates, in the units of ``certificate.units``: deviations are relative to the costs that the policy meets.
PROVEN_GAP = 1e-9  # of the Lagrangian, whose size is that of the objective plus the priced constraints
LARGEST_PRICES = 1e3  # but at most this many units of the objective: high shadow prices must not excuse an open gap
PROVEN_EXCESS = 2e-9  # the search accepts FEASIBLE beyond the threshold
PROVEN_MARGIN = 1e-10  # a smaller margin of infeasibility may be rounding
DOUBTFUL_EXCESS = 1e-13  # averages meet a binding threshold up to rounding; more is decided in rational arithmetic
DOUBTFUL_AVERAGE = 1e-12  # error of an average from which on it is compared with its frequencies,
ACCURATE_AVERAGE = 1e-9  # of which it may miss this share of the mean absolute cost
PROVEN_FLOW = 1e-9  # L1 distance of an occupancy from stationarity
PROVEN_POLICY = 1e-8  # difference between averages by the occupancy and by the exact evaluation of the policy
ROUNDED_ENTRY = 1e-15  # of a threshold: an entry of a table that is beyond by less, such as 0.1 + 0.2, equals it
MET_COSTS = 100.0  # the unit of a cost is its range, but at most this many times what the policy meets of it
ROUNDED = 1e-6  # and at least this share of the average: times the tolerances that is 1e-15, the precision of doubles
ONE_DOUBLE = 1e-7  # times the tolerance of an excess: 2e-16
SHARE_OF_TOLERANCE = 0.01  # biases of a saved proof are refined until they enclose averages within this share
MORE_MOVES = 1e-6  # slack of the bound on the number of moves in a multichain proof, which need not be the least one

SUM_OF_SHARES = 1e-9  # largest deviation of a sum of probabilities, given or read from a file, from one

INVOLVED = 1e-9  # a constraint with a smaller Farkas weight (the largest is 1) has no part in the contradiction

# Analyses of plans.
SAME_GAIN = 1e-9  # of a cost's range: smaller changes of its long-run average count as zero
PLAYED = 1e-9  # long-run share above which a state or an action counts as used
UNVISITED_WEIGHT = 1e-12  # weight of an unvisited state in the choice of the state to branch on

# The highest cost in a confidence set.
BOUND_GAP = 1e-3  # of the range of a cost: the gap between upper and lower bound at which the iteration stops
BOUND_ROUNDING = 1e-12  # rounding error of sums of doubles, relative to the summands

# The best model in L1 balls.
BALL_TOL = 1e-12  # improvements of a smaller share of costs and biases are rounding
PRICE_TOL = 1e-11  # so much lower, for costs in [0, 1], is the answer at the price of the constraint by rounding

# Repair of plans with disjoint classes.
TIED_ACTION = 1e-9  # actions that lose no more than this times the potential of their state are optimal too
CONNECTING_SHARE = 1e-4  # share of the time in which such a policy moves between its classes
TIED_SHARES = (0.5, 0.1, 0.01, 1e-3)  # shares to try if nothing is lost: the largest that the thresholds allow


# Tolerances of the compiled search, passed as its last argument.
SEARCH = (SWITCH_TOL, FEASIBLE, SAME_AVERAGE, NEARLY_CLOSED, SAME_CLASS_COST, LEAST_GUESS)
PRODUCT_OFF = 1e-10  # least error of gains of chains solved by Krylov methods


def search_with(off: float) -> tuple[float, float, float, float, float, float]:
    """Return ``SEARCH`` for gains with an error of ``off``; policies that are no further apart count as the same."""
    return max(SWITCH_TOL, 0.01 * off), FEASIBLE, max(SAME_AVERAGE, off), *SEARCH[3:]
