"""Sizes by which the library chooses a method, each with its reason.

A size is the largest number of states for which the comment holds, unless the name or the comment says otherwise.
Methods on both sides of a size agree up to rounding or in distribution, but not in their bits, so the sizes are part of
the code version of a result. Sizes inside a compiled kernel are defined in that kernel; ``caps`` holds the sizes that
the library refuses.
"""

# Dense or sparse matrices.
PLANNED_DENSE_STATES = 256  # a sparse model is planned as a dense one: the compiled dense kernels are faster
EMPTY_DENSE_STATES = 200  # a larger dense model of mostly zeros is planned faster as a sparse one:
MOSTLY_ZEROS = 0.1  # if at most this share of its entries is positive
TABLE_DENSE_ENTRIES = 4_000_000  # of estimated models and Gymnasium tables, 32 MB per matrix: dense plans are faster
SAFE_DENSE_ENTRIES = 300_000  # entries (s, a, s') of the models of safe agents: dense plans are faster
SMALL_SAMPLE_STATES = 64  # all entries of a sample are drawn, and it is planned without restarts, exactly
ELIMINATED_SAMPLE_STATES = 128  # a sparse sample is planned as a dense one: elimination is faster than Krylov methods

# Markov chains.
DENSE_CLASS_STATES = 200  # a closed class of a sparse chain is solved as a dense chain
DENSE_PLAYED_CLASS_STATES = 100  # the same when the policies played in a run are evaluated
ELIMINATED_CHAIN_STATES = 100  # a sparse chain is solved by GTH elimination, which keeps all digits of rare states
DENSE_GROUP_STATES = 64  # communicating transient states are solved as a dense system
COARSEST_STATES = 400  # of the coarsest level of multigrid, which is solved as a dense system
GTH_STATES = 2000  # a chain that is too ill-conditioned for an LU is solved by GTH elimination, which takes O(S^3)
MULTIGRID_STATES = 5000  # from here on chains that mix slowly are solved by multigrid; below, an LU is faster
FEW_CLASSES = 16  # closed classes up to which absorption probabilities are computed for every state and class

# Planning.
SMALL_COMPONENT_STATES = 64  # end components up to this size are planned together in one compiled call
# From here on averages change so little from policy to policy that secants find the weights, and the search uses rough
# evaluations while large improvements remain.
HASTY_STATES = 5000
OUTWARD_STATES = 2000  # from here on actions of narrow models are chosen outward; below, sweeps reach far enough
DOUBLE_DOUBLE_STATES = 1000  # a gap left by rounding is retried in double-double precision: three times O(S^3) a policy
SAMPLE_DOUBLE_DOUBLE_STATES = 200  # the same for a plan of one episode, of which there are thousands in a run
SECOND_OPINION_STATES = 2000  # models without a proof are also planned with HiGHS; beyond, it may take minutes
MULTICHAIN_LP_STATES = 5000  # the linear program of a multichain model takes minutes beyond
LP_HERE = 2_000_000  # rows times entries of a linear program; it takes .1 s, beyond it has a process of its own
LAST_RESORT_STATES = 100  # models without a proof are planned in rational arithmetic: seconds; beyond, minutes
EXACT_STATES = 500  # the same on request; products of this many machine integers are exact
VERTEX_STATES = 1000  # randomised states are reduced by directions, which are computed from a dense system
SAME_BITS_STATES = 200  # systems of that reduction are solved without LAPACK, whose last bits depend on the processor
BISECTED_STATES = 1000  # policies between two optimal ones are evaluated, in number twice the logarithm of the states
ENUMERATED_POLICIES = 20_000  # policies tried to recognise unichain models, which is NP-hard (Tsitsiklis 2007)

# Evaluation and analyses that are made by default.
EFFORT_STATES = 5000  # from here on the time and memory of planning are estimated; smaller models take a moment
INSPECTED_STATES = 500  # the diameter needs a shortest path to every state, the unichain test a search from every state
DIAMETER_STATES = 100  # beyond, the diameter of the environment of a run takes longer than the run
EVALUATED_STATES = 2000  # the policies of a run are evaluated; beyond, that may take half as long as planning
OFTEN_EVALUATED_STATES = 100  # a policy that is updated every round is evaluated ten times as often as in larger models
ADVISED_STATES = 500  # a model is planned or evaluated only for advice, which must not take long
FEWEST_FOR_ADVICE = 1000  # of pairs and of rounds; in smaller models and shorter runs no advice is given on them
