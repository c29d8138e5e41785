r"""Random CMDPs: Garnets, and draws from a Dirichlet and a finite prior, on which Bayesian regret is defined.

A seed gives the same model on every machine and with every version of the libraries. NumPy guarantees the raw output of
a bit generator permanently, but neither the methods of ``Generator`` nor the order of unstable sorts. So every draw
here is an explicit function of raw output. Successors and costs are equal bit by bit; probabilities from logarithms and
thresholds from linear algebra are equal up to rounding.
"""

from collections.abc import Sequence

import numpy as np
from numpy.random import PCG64
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats, Ints
from psconrl.base.caps import need, need_dense
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.markov.evaluation import evaluate
from psconrl.markov.structure import is_communicating
from psconrl.model.cmdp import CMDP

MAX_DRAWS = 1000
RINGS = 50  # of the finite prior
PLACES = 6  # on a ring


def garnet(
    states: int = 20,
    actions: int = 3,
    branching: int = 4,
    constraints: int = 1,
    slack: float = 0.1,
    sparse: bool = False,
    copies: int = 0,
    seed: int = 0,
) -> CMDP:
    """Draw a Garnet: every pair has ``branching`` random successors with random probabilities, and uniform costs.

    It is drawn again until it is communicating. The thresholds lie ``slack`` below the averages of the uniform policy.
    ``copies``: constraints that repeat the last one, after the others.

    >>> garnet(seed=1)
    CMDP(20 states, 3 actions, 1 constraint, dense)
    """
    S, A, B = int(states), int(actions), int(branching)
    if not 1 <= B <= S or A < 1:
        raise ModelError(f"branching must lie between 1 and states = {S}, actions be at least 1; got {B} and {A}")
    if not isinstance(copies, int | np.integer) or isinstance(copies, bool) or copies < 0:
        raise ModelError(f"copies must be a whole number from 0 on; got {quoted(copies)}")
    if copies and constraints < 1:
        raise ModelError(f"copies repeat the last constraint, but constraints is {constraints}")
    need_dense(S, A)
    n_costs = 1 + int(constraints) + copies
    need(8.0 * n_costs * S * A, f"a table of {n_costs:,} costs", ModelError)
    bits = _bits(seed)
    for _ in range(MAX_DRAWS):
        successors = _subsets(bits, S * A, B, S)
        rows = np.repeat(np.arange(S * A), B)
        P = csr_array((_spacings(bits, S * A, B).ravel(), (rows, successors.ravel())), shape=(S * A, S))
        drawn = _uniforms(bits, int(constraints) + 1, S, A)
        costs = np.concatenate([drawn, np.repeat(drawn[-1:], copies, axis=0)])
        cmdp = _with_limits(P if sparse else P.toarray(), costs, slack)
        if is_communicating(cmdp):
            return cmdp
    raise ModelError(f"no communicating Garnet in {MAX_DRAWS} draws; raise branching (now {B})")


def dirichlet_cmdp(
    states: int = 10,
    actions: int = 3,
    prior: float | None = None,
    constraints: int = 1,
    slack: float = 0.1,
    seed: int = 0,
    masses: Sequence[float] | None = None,
) -> CMDP:
    """Draw transitions from Dirichlet(prior), by default 0.1, and uniform costs: a model from a learner's own prior.

    ``masses``, instead of the prior: every action draws one, and its rows are from Dirichlet(mass/S), as in
    ``LearnedMass``.

    >>> dirichlet_cmdp(seed=1)
    CMDP(10 states, 3 actions, 1 constraint, dense)
    """
    if prior is not None and masses is not None:
        raise ModelError("give prior or masses, not both")
    prior = 0.1 if prior is None else prior
    if not prior > 0 or states < 1 or actions < 1:
        raise ModelError(f"prior, states and actions must be positive; got {prior}, {states}, {actions}")
    bits = _bits(seed)
    S, A = int(states), int(actions)
    need_dense(S, A)
    each = np.full((S * A, 1), float(prior))
    if masses is not None:
        grid = _as_masses(masses)
        each = np.tile(grid[(_uniforms(bits, A) * grid.size).astype(np.int64)] / S, S)[:, None]
    P = _dirichlet(bits, S * A, S, each)
    return _with_limits(P, _uniforms(bits, int(constraints) + 1, S, A), slack)


def ring(seed: int = 0) -> CMDP:
    """Draw one of fifty models, which are all the models that there are: a prior with an exact posterior.

    Six places on a ring can be stayed at or left. Leaving succeeds with a probability between 0.4 and 1, staying fails
    with one between 1e-5 and 0.1, so that the diameter is at most 5 / 0.4. The objective is 0 for staying at the first
    place, and 1 elsewhere. The constrained cost is 1 there, 0 for staying at the opposite place, 0.5 elsewhere, and may
    be 0.4 on average: the optimum alternates between these two places, and rarely where staying rarely fails.
    ``seed``: the number of the model, modulo 50.

    >>> ring()
    CMDP(6 states, 2 actions, 1 constraint, dense)
    """
    drawn = _uniforms(_bits(int(seed) % RINGS), 2, PLACES)
    left = np.stack([10.0 ** (-5.0 + 4.0 * drawn[0]), 0.4 + 0.6 * drawn[1]], axis=1)
    places = np.arange(PLACES)
    P = np.zeros((PLACES, 2, PLACES))
    P[places, :, places] = 1.0 - left
    P[places, :, (places + 1) % PLACES] = left
    costs = np.stack([np.ones((PLACES, 2)), np.full((PLACES, 2), 0.5)])
    costs[:, 0, 0], costs[:, PLACES // 2, 0] = (0.0, 1.0), (1.0, 0.0)
    return CMDP(
        P,
        costs,
        [0.4],
        initial=0,
        state_names=[f"place {place}" for place in places],
        action_names=("stay", "leave"),
        cost_names=("cost", "other"),
    )


def _as_masses(masses: Sequence[float]) -> Floats:
    try:
        given = np.asarray(masses)
        grid = given.astype(np.float64) if given.dtype.kind in "iuf" else np.empty(0)
    except (TypeError, ValueError):
        grid = np.empty(0)
    if grid.ndim != 1 or not grid.size or not np.isfinite(grid).all() or not (grid > 0).all():
        raise ModelError(f"masses must be a list of positive numbers; got {quoted(masses)}")
    return grid


def _bits(seed: int) -> PCG64:
    if int(seed) < 0:
        raise ModelError(f"seed must not be negative; got {seed}")
    return PCG64(int(seed))  # explicit, since default_rng may change


def _uniforms(bits: PCG64, *shape: int) -> Floats:
    """Return midpoints of 2^52 equal cells: never 0 or 1, so that u and 1 - u have finite logarithms."""
    raw = bits.random_raw(int(np.prod(shape))) >> np.uint64(12)
    return np.asarray((raw.astype(np.float64) + 0.5) * 2.0**-52).reshape(shape)


def _subsets(bits: PCG64, rows: int, size: int, n: int) -> Ints:
    """Draw ``size`` distinct numbers below n in every row, all sets equally likely (Floyd; Bentley 1987, column 13)."""
    chosen = np.empty((rows, size), dtype=np.int64)
    for k, last in enumerate(range(n - size, n)):
        pick = (_uniforms(bits, rows) * (last + 1)).astype(np.int64)
        taken = (chosen[:, :k] == pick[:, None]).any(axis=1)
        chosen[:, k] = np.where(taken, last, pick)
    return chosen


def _spacings(bits: PCG64, rows: int, size: int) -> Floats:
    """Draw rows from Dirichlet(1, ..., 1): the gaps between sorted uniforms (Devroye 1986, section V.2.1)."""
    cuts = np.sort(_uniforms(bits, rows, size - 1), axis=1)
    return np.diff(cuts, axis=1, prepend=0.0, append=1.0)


def _dirichlet(bits: PCG64, rows: int, size: int, mass: Floats) -> Floats:
    r"""Draw rows from Dirichlet(mass, ..., mass), one mass per row (rows, 1), in logarithms to avoid underflow.

    A gamma variable of shape a is one of shape a + 1, here by inversion, times :math:`U^{1/a}` (Devroye 1986, IX.3.5).
    """
    from scipy.special import gammaincinv  # importing it takes longer than planning on a small model

    larger, power = _uniforms(bits, rows, size), _uniforms(bits, rows, size)
    log_gamma = np.log(gammaincinv(mass + 1.0, larger)) + np.log(power) / mass
    weights = np.exp(log_gamma - log_gamma.max(axis=1, keepdims=True))
    weights[weights < np.finfo(np.float64).tiny] = 0.0  # some processors flush subnormal numbers, others do not
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _with_limits(P: object, costs: np.ndarray, slack: float) -> CMDP:
    m = len(costs) - 1
    cmdp = CMDP(P, costs, np.zeros(m))
    uniform = np.full(costs.shape[1:], 1.0 / costs.shape[2])
    return cmdp.with_thresholds(evaluate(cmdp, uniform).costs[1:] - slack)
