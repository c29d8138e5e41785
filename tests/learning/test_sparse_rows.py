"""Sparse samples of rows, against closed forms and against the sampler that draws every entry.

Bounds on means are Bernstein's with the exact variance, on distribution functions those of Dvoretzky, Kiefer, Wolfowitz
and Massart: each test states the probability of a false alarm, which holds for every sample size.
"""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import gammaln
from scipy.stats import beta

from psconrl.agents import Dirichlet, FlooredCounts, LearnedMass
from psconrl.errors import AgentError
from psconrl.learning.posterior import sampled_rows as rows
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.posterior.sampled_rows import (
    NEGLECTED,
    Parameters,
    Prior,
    dirichlet_rows,
    is_drawn_sparse,
    numbered_entries,
    sparse_rows,
)
from psconrl.learning.posterior.sparse_counts import Tally
from psconrl.markov.chain import chain_of

S = 80
N = 20_000  # rows of the same distribution
STORED = {3: 0.7, 10: 3.0, 50: 0.05}
SURE = 1e-7  # the probability of a false alarm of a single comparison


def drawn(stored, rest, seed, n=N):
    """n rows of one distribution, and the parameters (S,) of all entries."""
    states, alpha = np.array(sorted(stored), dtype=np.int32), np.array([stored[s] for s in sorted(stored)])
    parameters = Parameters(
        np.arange(n + 1, dtype=np.int32) * states.size,
        np.tile(states, n),
        np.tile(alpha, n),
        np.full(n, rest, dtype=float),
    )
    full = np.full(S, rest / S)
    full[states] += alpha
    return sparse_rows(parameters, S, np.random.default_rng(seed)), full


def off(samples, mean, second):
    """How far means of samples from [0, 1] are off, in units of the bound exceeded with probability ``SURE``.

    ``second``: their second moments.
    """
    n, L = len(samples), math.log(2.0 / SURE)
    variance = np.maximum(second - mean**2, 0.0)
    allowed = (L / 3 + np.sqrt(L**2 / 9 + 2 * n * L * variance)) / n
    return (np.abs(samples.mean(axis=0) - mean) / allowed).max()


def apart(values, cdf):
    """The largest distance of an empirical distribution function from another, in the same units.

    Compared where neither a probability nor what it lacks of one is near what is neglected.
    """
    x = np.sort(values)
    ends = np.geomspace(10 * NEGLECTED, 0.5, 300)
    at = np.concatenate([ends, 1.0 - ends, x[(x > ends[0]) & (x < 1.0 - ends[0])]])
    distance = np.abs(np.searchsorted(x, at, side="right") / x.size - cdf(at))
    return distance.max() / math.sqrt(math.log(2.0 / SURE) / (2 * x.size))


RESTS = pytest.mark.parametrize("rest", [1e-3, 0.3, 1.0, 5.0])


@RESTS
def test_entries_have_the_moments_of_the_full_distribution(rest):
    """First and second moments of all entries, and of all pairs of six: 560 comparisons, 1e-4 for all four cases."""
    P, a = drawn(STORED, rest, 0)
    p, total = P.toarray(), a.sum()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (p >= 0.0).all()

    def rising(x, k):
        return np.prod([x + i for i in range(k)], axis=0)

    assert off(p, a / total, rising(a, 2) / rising(total, 2)) < 1.0
    assert off(p**2, rising(a, 2) / rising(total, 2), rising(a, 4) / rising(total, 4)) < 1.0
    some = [3, 10, 50, 0, 7, 79]
    for i in some:
        for j in some:
            if i < j:
                mean, second = a[i] * a[j] / rising(total, 2), rising(a[i], 2) * rising(a[j], 2) / rising(total, 4)
                assert off(p[:, i] * p[:, j], mean, second) < 1.0


@RESTS
def test_sets_of_states_have_the_distribution_of_the_aggregated_parameters(rest):
    """Beta, with the sums of the parameters; 2e-6 for all sets and cases."""
    P, a = drawn(STORED, rest, 1)
    p = P.toarray()
    for members in ([10], [3, 50], [0], list(range(40)), list(range(20, 80))):
        inside = a[members].sum()
        assert apart(p[:, members].sum(axis=1), beta(inside, a.sum() - inside).cdf) < 1.0


@RESTS
@pytest.mark.parametrize("stored", [STORED, {}], ids=["seen", "nothing"])
def test_both_samplers_have_the_same_distribution(rest, stored):
    """The distribution functions of five random functionals; each has a false alarm once in 1e7: 2e-6 a case."""
    rng = np.random.default_rng(2)
    P, a = drawn(stored, rest, 3)
    full = dirichlet_rows(np.tile(a, (N, 1)), rng)
    for _ in range(5):
        f = rng.random(S)
        one, two = P @ f, np.sort(full @ f)
        assert apart(one, lambda x, two=two: np.searchsorted(two, x, side="right") / N) < 2.0


@pytest.mark.statistical
@RESTS
def test_a_row_has_as_many_atoms_as_it_should(rest):
    """Of a rest that is all there is, one and a Poisson number of mean 27.6 M more: mean and variance; 1e-6."""
    P, _ = drawn({}, rest, 4)
    more = np.diff(P.matrix.indptr) - 1.0
    mean = -rest * math.log(NEGLECTED)
    assert mean == pytest.approx(27.631 * rest, rel=1e-5)
    # five standard deviations, by the central limit theorem; the fourth moment of a Poisson variable is m + 3 m^2
    assert abs(more.mean() - mean) < 5 * math.sqrt(mean / N)
    assert abs(((more - mean) ** 2).mean() - mean) < 5 * math.sqrt((mean + 2 * mean**2) / N)
    prior = Prior(np.empty(0, dtype=np.int64), np.empty(0), np.full(10, rest))
    assert prior.entries() == pytest.approx(10 * (1 + mean))


def test_atoms_at_the_same_state_add_up():
    P, _ = drawn({}, 5.0, 5, n=S)
    matrix = P.matrix
    row = matrix.indices[: matrix.indptr[1]]
    assert np.unique(row).size < row.size  # some hundred atoms on 80 states
    by_hand = np.zeros(S)
    np.add.at(by_hand, row, matrix.data[: matrix.indptr[1]])
    np.testing.assert_allclose(P.toarray()[0], by_hand, rtol=1e-15)
    ahead = P.restarting(2, 0.25).toarray()
    np.testing.assert_allclose(ahead, 0.75 * P.toarray() + 0.25 * np.eye(S)[2], rtol=1e-14, atol=1e-300)
    h = np.random.default_rng(0).random(S)
    np.testing.assert_allclose(P.drift(h).ravel(), P.toarray() @ h - h, atol=1e-14)
    np.testing.assert_allclose(chain_of(P, np.zeros(S, int)).toarray(), P.toarray())
    states = np.arange(0, S, 2)
    np.testing.assert_allclose(P.restrict(states).toarray(), P.toarray()[np.ix_(states, states)])


def test_what_is_neglected_does_not_happen_at_all():
    """A parameter of 1e-3 beside one of 1 is below 1e-12 with probability (1e-12)^0.001; 1e-7."""
    P, _ = drawn({3: 1e-3, 10: 1.0}, 0.0, 6)
    p = P.toarray()[:, 3]
    assert p[p > 0.0].min() >= NEGLECTED
    probability = NEGLECTED**1e-3
    assert off((p == 0.0).astype(float)[:, None], probability, probability) < 1.0
    assert P.matrix.nnz == 2 * N  # it is stored nevertheless: the pattern is that of the support


def test_a_rest_that_is_neglected_leaves_no_atom():
    """Beside a parameter of 1: a remainder of 1e-3 is below 1e-12 with probability (1e-12)^0.001; 1e-7."""
    P, _ = drawn({3: 1.0}, 1e-3, 7)
    atoms = np.diff(P.matrix.indptr) - 1
    probability = NEGLECTED**1e-3
    assert off((atoms == 0).astype(float)[:, None], probability, probability) < 1.0
    p = P.matrix.data[P.matrix.data < 1.0]
    assert p.min() > 0.0


def test_without_a_rest_the_pattern_is_that_of_the_support_again_and_again():
    rng = np.random.default_rng(8)
    possible = rng.random((3 * S, S)) < 0.05
    possible[:, 0] = True
    support = csr_array(possible.astype(float))
    belief = Dirichlet(support).made_for(S, 3, 0)
    counts = Counts(S, 3, 1)
    for _ in range(3):
        P = belief.sample(counts, rng)
        assert P.repeats
        np.testing.assert_array_equal(P.matrix.indptr, support.indptr)
        np.testing.assert_array_equal(P.matrix.indices, support.indices)
    assert not Dirichlet(support, surprise=0.1).made_for(S, 3, 0).sample(counts, rng).repeats
    assert not Dirichlet().made_for(S, 3, 0).sample(counts, rng).repeats


def test_parameters_are_the_prior_scaled_and_the_counts():
    rng = np.random.default_rng(9)
    for _ in range(20):
        n_pairs, n_states = 8, 4
        prior = csr_array((rng.random((n_pairs, n_states)) < 0.4) * rng.random((n_pairs, n_states)))
        tally, table = Tally(n_pairs, n_states), np.zeros((n_pairs, n_states))
        for pair, state in rng.integers((n_pairs, n_states), size=(int(rng.integers(0, 20)), 2)):
            tally.note(int(pair), int(state))
            table[pair, state] += 1
        scale, rest = rng.random(n_pairs), rng.random(n_pairs)
        found = Prior(*numbered_entries(prior), rest).after(tally, scale)
        full = csr_array((found.alpha, found.indices, found.indptr), shape=table.shape)
        assert full.has_canonical_format
        np.testing.assert_allclose(full.toarray(), scale[:, None] * prior.toarray() + table, rtol=1e-15)
        assert (found.alpha > 0.0).all()
        np.testing.assert_allclose(found.rest, scale * rest)
        np.testing.assert_allclose(
            Prior(*numbered_entries(prior), rest).toarray(n_states), prior.toarray() + rest[:, None] / n_states
        )


def test_entries_are_numbered_in_rising_order_whatever_the_matrix():
    """Out of order, twice, and a zero that is stored."""
    matrix = csr_array(([0.5, 0.25, 0.25, 0.0, 1.0], [2, 0, 2, 1, 1], [0, 3, 4, 5, 5]), shape=(4, 3))
    numbers, values = numbered_entries(matrix)
    assert (numbers.tolist(), values.tolist()) == ([0, 2, 7], [0.25, 0.75, 1.0])
    assert matrix.nnz == 5  # it is not changed


def test_sparse_are_large_models_with_a_small_rest():
    assert is_drawn_sparse(65, 1.0)
    assert not is_drawn_sparse(64, 0.0)
    assert is_drawn_sparse(280, 5.0)  # 138 atoms
    assert not is_drawn_sparse(270, 5.0)


# Beliefs


def counted(seed, n_states=S, A=1, steps=400):
    """Counts of random steps, most of them to a few states."""
    rng = np.random.default_rng(seed)
    counts = Counts(n_states, A, 1)
    record = Record.empty(counts)
    for _ in range(steps):
        record.step(int(rng.integers(n_states)), int(rng.integers(A)), int(n_states * rng.random() ** 4), np.zeros(1))
    counts.add(record)
    return counts


def sparse_support(seed, A=1, weighted=False):
    rng = np.random.default_rng(seed)
    support = (rng.random((S * A, S)) < 0.1).astype(float)
    support[:, :8] = 1.0
    return csr_array(support * (rng.uniform(0.1, 5.0, support.shape) if weighted else 1.0))


@pytest.fixture(params=["sparse", "dense"])
def form(request, monkeypatch):
    """Every belief in either form."""
    monkeypatch.setattr(rows, "SMALL_SAMPLE_STATES", 0 if request.param == "sparse" else 10**9)
    return request.param


def log_likelihood(alpha, n):
    """Of the counts n in some order under Dirichlet parameters; what has none of them is not counted."""
    possible = alpha > 0.0
    alpha, n = alpha[possible], n[possible]
    whole = gammaln(alpha.sum()) - gammaln(alpha.sum() + n.sum())
    return whole + (gammaln(alpha + n) - gammaln(alpha)).sum()


@pytest.mark.parametrize("surprise", [0.0, 0.2])
@pytest.mark.parametrize("support", [None, "sets", "weights"])
def test_the_likelihood_is_that_of_the_dirichlet_multinomial_distribution(form, support, surprise):
    """Also where an observed transition is outside the support: it carries no information about the mass."""
    grid, counts = [0.01, 0.5, 20.0], counted(0)
    weights = None if support is None else sparse_support(1, weighted=support == "weights")
    belief = LearnedMass(grid, support=weights, surprise=surprise).made_for(S, 1, 0)
    assert (belief._table is None) == (form == "sparse" and 20.0 * (1 if support is None else surprise) * 27.6 < S / 2)
    base = np.ones((S, S)) if weights is None else weights.toarray()
    base /= base.sum(axis=1, keepdims=True)
    if weights is not None:
        assert (counts.transitions[base == 0.0] > 0).any()
        base = (1.0 - surprise) * base + surprise / S
    wanted = [[log_likelihood(mass * base[s], counts.transitions[s]) for mass in grid] for s in range(S)]
    np.testing.assert_allclose(belief.likelihood(counts), wanted, rtol=1e-9, atol=1e-9)


def test_a_support_is_the_same_as_a_matrix_as_an_array_and_in_other_units(form):
    support, counts = sparse_support(2, A=2), counted(3, A=2)
    forms = [support, support.toarray().reshape(S, 2, S), support.toarray().reshape(S, 2, S) > 0, 7.0 * support]
    beliefs = [LearnedMass([0.1, 1.0], support=each).made_for(S, 2, 0) for each in forms]
    for belief in beliefs[1:]:
        np.testing.assert_allclose(belief.likelihood(counts), beliefs[0].likelihood(counts), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(belief.mean(counts), beliefs[0].mean(counts), rtol=1e-12)
    for belief in beliefs[1:3]:
        one, two = (each.sample(counts, np.random.default_rng(1)).toarray() for each in (beliefs[0], belief))
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("surprise", [0.0, 0.3])
def test_a_dirichlet_belief_has_its_mean_in_closed_form(form, surprise):
    """Prior, surprise over all states, and counts; 800 samples of five rows: 5e-7."""
    weights, counts = sparse_support(4, weighted=True), counted(5)
    belief = Dirichlet(weights, surprise).made_for(S, 1, 0)
    alpha = weights.toarray() + surprise / S + counts.transitions
    np.testing.assert_allclose(belief.parameters(counts), alpha, rtol=1e-14)
    np.testing.assert_allclose(belief.mean(counts), alpha / alpha.sum(axis=1, keepdims=True), rtol=1e-14)
    check_means(belief, counts, alpha / alpha.sum(axis=1, keepdims=True), 6)


@pytest.mark.parametrize(
    "options", [{}, {"support": sparse_support(7)}, {"surprise": 0.3}], ids=["", "support", "surprise"]
)
def test_learned_masses_have_the_mean_of_the_mixture_in_closed_form(form, options):
    """One mass a pool, in proportion to the likelihood of all its rows; 800 samples of five rows: 5e-7."""
    grid, counts = [0.05, 0.3, 1.0], counted(8, steps=25)
    if "surprise" in options:
        options = options | {"support": sparse_support(7, weighted=True)}
    belief = LearnedMass(grid, **options).made_for(S, 1, 0)
    support, surprise = options.get("support"), options.get("surprise", 0.0)
    base = np.ones((S, S)) if support is None else support.toarray()
    base = (1.0 - surprise) * base / base.sum(axis=1, keepdims=True) + surprise / S
    n = counts.transitions
    logs = np.array([sum(log_likelihood(mass * base[s], n[s]) for s in range(S)) for mass in grid])
    probabilities = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    assert np.sort(probabilities)[-2] > 0.01  # a proper mixture
    mean = np.zeros((S, S))
    for probability, mass in zip(probabilities, grid, strict=True):
        alpha = mass * base + n
        mean += probability * alpha / alpha.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(belief.mean(counts), mean, rtol=1e-9)
    check_means(belief, counts, mean, 9)


def check_means(belief, counts, mean, seed):
    """Of a random functional in [0, 1] of each of the five rows that were visited most."""
    rng = np.random.default_rng(seed)
    f, chosen = rng.random(S), np.argsort(counts.visits)[-5:]
    values = np.array([(belief.sample(counts, rng) @ f)[chosen] for _ in range(800)])
    wanted = mean[chosen] @ f
    assert off(values, wanted, np.minimum(wanted, 1.0)) < 1.0


def test_what_was_held_for_impossible_is_believed_once_it_is_seen(form):
    support = csr_array(np.eye(S))
    counts = Counts(S, 1, 1)
    record = Record.empty(counts)
    for _ in range(3):
        record.step(5, 0, 6, np.zeros(1))
    counts.add(record)
    for belief in (Dirichlet(support), LearnedMass([2.0], support=support)):
        own, rng = belief.made_for(S, 1, 0), np.random.default_rng(0)
        mass = 1.0 if isinstance(belief, Dirichlet) else 2.0
        P = own.sample(counts, rng)
        assert 0.0 < P.toarray()[5, 6] < 1.0
        assert P.toarray()[4, 4] == 1.0
        assert own.mean(counts)[5, [5, 6]] == pytest.approx([mass / (3 + mass), 3 / (3 + mass)])
        assert (P.is_sparse and P.repeats) == (form == "sparse")


def test_a_prior_of_nothing_at_all_is_refused_in_either_form(form):
    for make in (lambda: Dirichlet(0.0), lambda: Dirichlet(csr_array((S, S)))):
        with pytest.raises(AgentError, match=r"prior\[0, 0\] must allow at least one next state"):
            make().made_for(S, 1, 0)
    nothing = Dirichlet(csr_array((S, S)), surprise=1.0).made_for(S, 1, 0)
    np.testing.assert_allclose(nothing.mean(Counts(S, 1, 1)), 1.0 / S)
    one_row = sparse_support(0)
    one_row.data[one_row.indptr[7] : one_row.indptr[8]] = 0.0
    for make in (lambda: Dirichlet(one_row), lambda: LearnedMass(support=one_row)):
        with pytest.raises(AgentError, match=r"\[7, 0\] must allow at least one next state"):
            make().made_for(S, 1, 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (csr_array(np.full((S, S), -1.0)), "must be finite and not negative"),
        (csr_array(np.full((S, S), np.nan)), "must be finite and not negative"),
        (csr_array(np.full((S, S), 1e-101)), "must lie between 1e-100 and 1e"),
        (csr_array(np.ones((S, S + 1))), r"must have shape \(S\*A, S\) = \(80, 80\) if it is sparse; got \(80, 81\)"),
        (np.ones((S, S)), r"must be a number or have shape \(S, A, S\), or be sparse"),
        (np.ones((S, 2, S)), r"must have shape \(S, A, S\) = \(80, 1, 80\), or be sparse"),
    ],
)
def test_weights_that_cannot_be_are_refused_in_one_line(form, given, message):
    for make in (Dirichlet, lambda weights: LearnedMass(support=weights)):
        with pytest.raises(AgentError, match=message) as error:
            make(given).made_for(S, 1, 0)
        assert "\n" not in str(error.value)


def test_what_was_handed_in_may_be_changed_afterwards():
    given = sparse_support(3)
    belief = LearnedMass(support=given)
    given.data[:] = np.nan
    assert np.isfinite(belief.made_for(S, 1, 0).mean(Counts(S, 1, 1))).all()


class Doubled(Dirichlet):
    """A user's own belief, in which counts weigh twice."""

    name = "doubled-for-a-test"

    def __init__(self, prior=None):
        super().__init__(prior)

    def parameters(self, counts):
        return super().parameters(counts) + counts.transitions


del Dirichlet.known[Doubled.name]  # other tests list the known ones


@pytest.mark.statistical
def test_a_belief_with_parameters_of_its_own_is_drawn_from_them(form):
    """A thousand visits: the sample of a row is within five standard deviations of its mean; 1e-6."""
    counts = Counts(S, 1, 1)
    record = Record.empty(counts)
    for k in range(20_000):
        record.step(0, 0, k % 2, np.zeros(1))
    counts.add(record)
    rng = np.random.default_rng(0)
    spread = {
        belief: np.std([belief.made_for(S, 1, 0).sample(counts, rng).toarray()[0, 0] for _ in range(200)])
        for belief in (Dirichlet(), Doubled(), FlooredCounts())
    }
    usual, doubled, floored = spread.values()
    # a standard deviation from 200 draws is known to 5%: 5 sigma on either side
    assert doubled / usual == pytest.approx(math.sqrt(0.5), rel=0.35)
    assert floored / usual == pytest.approx(1.0, rel=0.35)
    assert not FlooredCounts().made_for(S, 1, 0).sample(counts, rng).is_sparse
