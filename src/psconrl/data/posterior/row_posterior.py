r"""Models drawn from the posterior that a log gives: transitions, costs, and the policy that wrote the log.

*Transitions* are drawn from a belief of ``learning.posterior``: by default ``LearnedMass``, or ``Dirichlet()``, the
prior of the paper.

*Costs*, unless they are known, belong to outcomes (s, a, s'): with means :math:`\bar c(s,a,s')` of n observations,

.. math:: c(s,a) = \sum_{s'} p(s'|s,a)\, c(s,a,s'), \qquad c(s,a,s') \sim N(\bar c(s,a,s'), \sigma^2 / n),

with the pooled variance of all outcomes. So what a cost has to do with the next state is kept. Outcomes never seen
cost the average of their pair; a pair never tried costs what a tried pair costs, drawn at random.

*The policy that wrote the log* has rows :math:`\pi_b(\cdot|s) \sim \mathrm{Dirichlet}(M b + N(s,\cdot))`, with common
frequencies b and a mass M that are learned: M is large if all states have the same frequencies, and tiny if every state
has an action of its own. In states that were hardly visited the policy is thus believed to do what it does elsewhere.
Given M, :math:`b \sim \mathrm{Dirichlet}(\sum_s M b_a (\psi(M b_a + N(s,a)) - \psi(M b_a)))`, with the expected number
of actions that came from b (Antoniak 1974) in place of a random one. Actions that the log does not have have no share.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import digamma, gammaln

from psconrl.base.arrays import Bools, Floats, Ints, Places
from psconrl.data.posterior.large_chains import large_averages
from psconrl.data.rounds.recorded import Recorded
from psconrl.kernels.chains.drawn_averages import drawn_averages
from psconrl.kernels.chains.policy_evaluation import evaluated
from psconrl.kernels.draws import dirichlet
from psconrl.kernels.draws.gamma import log_gamma_variates
from psconrl.learning.posterior.given_weights import stored_weights
from psconrl.learning.posterior.learned_mass import LearnedMass
from psconrl.learning.posterior.sampled_rows import LOG_FLOOR, NEGLECTED, Prior, dirichlet_rows
from psconrl.learning.posterior.transition_beliefs import Belief, Dirichlet

DENSE_DRAWN_STATES = 600  # chains of draws with more states are solved as sparse ones
FEW_DRAWS_STATES = 256  # a model with more states takes long to evaluate, so that fewer are drawn
ROWS_BURN_IN = 20  # draws of masses that are dropped
MASSES_OF_BEHAVIOUR = 10.0 ** np.arange(-3.0, 4.0)
SURPRISE = 0.1  # share of the mass of ``neighbours`` that is spread over all states
BLOCK_ENTRIES = 20_000_000  # of the models that are drawn together


class Models(NamedTuple):
    """Models drawn from a posterior, and the policies that may have written the log."""

    indptr: Places  # (n*S*A + 1,) of the transitions of all models
    indices: Places
    data: Floats
    costs: Floats  # (n, m+1, S*A), or (1, m+1, S*A) if all models have the same
    behaviours: Floats  # (n, S, A)
    start: Floats  # (S,) from where averages count, if a policy has several closed classes
    reference: int  # a state that is visited often

    @property
    def n_draws(self) -> int:
        """Number of models."""
        return len(self.behaviours)

    def averages(self, policy: Floats) -> Floats:
        """Return the long-run averages (n, m+1) of a policy (S, A), or of one for every model, (n, S, A)."""
        policies = np.ascontiguousarray(policy if policy.ndim == 3 else policy[None])
        if policies.shape[1] > DENSE_DRAWN_STATES:
            found, done = large_averages(self, policies)
        else:
            found, done = drawn_averages(self.indptr, self.indices, self.data, self.costs, policies, self.reference)
        for k in np.flatnonzero(~done):
            S, A = policies.shape[1:]
            costs = self.costs[k if len(self.costs) > 1 else 0].reshape(-1, S, A)
            own = np.ascontiguousarray(policies[k if len(policies) > 1 else 0])
            found[k] = evaluated(self.transition(int(k)).toarray(), own, np.ascontiguousarray(costs), self.start)[0]
        return np.asarray(found)

    def today(self) -> Floats:
        """Return the long-run averages (n, m+1) of the policy that wrote the log."""
        return self.averages(self.behaviours)

    def transition(self, k: int) -> csr_array:
        """Return the transitions (S*A, S) of one model."""
        S, A = self.behaviours.shape[1:]
        starts = self.indptr[k * S * A : (k + 1) * S * A + 1]
        inside = slice(starts[0], starts[-1])
        return csr_array((self.data[inside], self.indices[inside], starts - starts[0]), shape=(S * A, S))

    def one(self, k: int) -> "Models":
        """Return one of the models."""
        P = self.transition(k)
        costs = self.costs[k if len(self.costs) > 1 else 0][None]
        return self._replace(
            indptr=P.indptr, indices=P.indices, data=P.data, costs=costs, behaviours=self.behaviours[k][None]
        )


class Posterior(ABC):
    """What a log says of the model, and of the policy that wrote it. ``part``: the rounds that count, if not all."""

    name: str  # of the belief

    def __init__(self, log: Recorded, part: Recorded | None = None) -> None:
        self.log, self.counts = log, (part or log).counts()
        self.n_states, self.n_actions = log.n_states, log.n_actions
        self.behaviour = Behaviour(self.counts.pairs)

    @cached_property
    def start(self) -> Floats:
        """Frequencies (S,) of the states in which the runs of the log ended."""
        last = np.append(np.flatnonzero(~self.log.follows[1:]), self.log.n_rounds - 1)
        ends = np.bincount(self.log.next_states[last], minlength=self.n_states)
        return np.asarray(ends / ends.sum())

    @cached_property
    def reference(self) -> int:
        """The state that was entered most often."""
        return int(np.bincount(self.log.next_states, minlength=self.n_states).argmax())

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> Models:
        """Draw models."""

    @abstractmethod
    def entries(self) -> float:
        """Return the approximate number of transitions of one draw."""

    def blocks(self, n: int, rng: np.random.Generator) -> Iterator[Models]:
        """Draw n models in blocks that fit into memory."""
        together = int(max(8, min(n, BLOCK_ENTRIES / self.entries())))
        for begin in range(0, n, together):
            yield self.draw(min(together, n - begin), rng)

    def averages(self, policy: Floats, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the averages (n, m+1) of a policy and of the one that wrote the log, in the same n models."""
        found = [(models.averages(policy), models.today()) for models in self.blocks(n, rng)]
        return np.concatenate([own for own, _ in found]), np.concatenate([today for _, today in found])


class Behaviour:
    """The posterior of the policy that wrote the log, from the visits of pairs (S, A).

    >>> Behaviour(np.array([[4, 0], [0, 6], [0, 0]])).mean().round(2).tolist()
    [[0.98, 0.02], [0.01, 0.99], [0.49, 0.51]]
    """

    def __init__(self, pairs: Ints) -> None:
        self._pairs = pairs.astype(np.float64)
        usual = self._pairs.sum(axis=0) / self._pairs.sum()
        self.taken = np.flatnonzero(usual > 0.0)  # actions that the log has
        base, seen = np.multiply.outer(MASSES_OF_BEHAVIOUR, usual[self.taken])[:, None], self._pairs[:, self.taken]
        logs = (gammaln(base + seen) - gammaln(base)).sum(axis=(1, 2))
        logs += (gammaln(base.sum(axis=2)) - gammaln((base + seen).sum(axis=2))).sum(axis=1)
        shares = np.exp(logs - logs.max())
        self._shares = shares / shares.sum()  # posterior of the mass
        # How often a state's action came from the common frequencies rather than from earlier ones in the same state.
        self._common = (base * (digamma(base + seen) - digamma(base))).sum(axis=1)

    def mean(self) -> Floats:
        """Return the expected policy (S, A)."""
        common = self._common / self._common.sum(axis=1, keepdims=True)
        alpha = self._parameters(MASSES_OF_BEHAVIOUR, common)
        means = alpha / alpha.sum(axis=2, keepdims=True)
        return np.asarray((self._shares[:, None, None] * means).sum(axis=0))

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw policies (n, S, A)."""
        which = rng.choice(self._shares.size, size=n, p=self._shares)
        alpha = self._parameters(MASSES_OF_BEHAVIOUR[which], dirichlet_rows(self._common[which], rng))
        return dirichlet_rows(alpha.reshape(-1, alpha.shape[2]), rng).reshape(alpha.shape)

    def _parameters(self, masses: Floats, common: Floats) -> Floats:
        """Return the parameters (n, S, A) of the rows, given masses (n,) and common frequencies of the actions."""
        alpha = np.repeat(self._pairs[None], len(masses), axis=0)
        alpha[:, :, self.taken] += (masses[:, None] * common)[:, None]
        return np.asarray(alpha)


class RoundCosts:
    """Costs of the outcomes (s, a, s') of a log: their means, and how much a cost varies within an outcome."""

    def __init__(self, log: Recorded) -> None:
        assert log.costs is not None
        S, A = log.n_states, log.n_actions
        numbers = (log.states.astype(np.int64) * A + log.actions) * S + log.next_states
        costs = log.costs * log.signs
        known = ~np.isnan(costs)
        self.numbers, place = np.unique(numbers, return_inverse=True)
        n, q = self.numbers.size, costs.shape[1]
        self.times: Floats = np.empty((n, q))  # rounds in which a cost was known
        self.means: Floats = np.empty((n, q))
        self.noise: Floats = np.empty(q)  # standard deviation within an outcome
        for i in range(q):
            own, values = place[known[:, i]], costs[known[:, i], i]
            times = np.bincount(own, minlength=n)
            means = np.bincount(own, values, minlength=n) / np.maximum(times, 1)
            spread = (values - means[own]) ** 2
            exact = 1e-24 * values**2  # rounding of sums
            total = float(np.where(spread > exact, spread, 0.0).sum())
            self.noise[i] = np.sqrt(total / max(int((times - (times > 0)).sum()), 1))
            self.times[:, i], self.means[:, i] = times, means
        self.pairs, self.successors = np.divmod(self.numbers, S)
        self._n_states, self._n_pairs = S, S * A

    def costs(self, models: tuple[Places, Places, Floats], n: int, rng: np.random.Generator) -> Floats:
        """Draw the costs (n, m+1, S*A) of models with these transitions."""
        q, SA = self.means.shape[1], self._n_pairs
        result = np.empty((n, q, SA))
        probabilities = self._probabilities(models, n)
        tried = np.bincount(self.pairs, minlength=SA) > 0
        others = rng.choice(np.flatnonzero(tried), size=(n, int((~tried).sum())))
        for i in range(q):
            times = np.maximum(self.times[:, i], 1e-9)
            drawn = self.means[:, i] + np.zeros((n, 1))
            if self.noise[i] > 0.0 or (self.times[:, i] == 0).any():
                sd = np.where(self.times[:, i] > 0, self.noise[i] / np.sqrt(times), self.means[:, i].std())
                drawn = drawn + sd * rng.standard_normal(drawn.shape)
            average = _by_pair(self.pairs, drawn * times, SA) / np.maximum(np.bincount(self.pairs, times, SA), 1e-12)
            own = average + _by_pair(self.pairs, probabilities * (drawn - average[:, self.pairs]), SA)
            own[:, ~tried] = np.take_along_axis(own, others, axis=1)
            result[:, i] = own
        return result

    def _probabilities(self, models: tuple[Places, Places, Floats], n: int) -> Floats:
        """Return the probabilities (n, outcomes) of the outcomes in models."""
        indptr, indices, data = models
        matrix = csr_array((data, indices, indptr), shape=(n * self._n_pairs, self._n_states))
        wanted = np.arange(n)[:, None] * self._n_pairs + self.pairs
        return np.asarray(matrix[wanted.ravel(), np.tile(self.successors, n)]).reshape(n, -1)


def _by_pair(pairs: Ints, values: Floats, n_pairs: int) -> Floats:
    """Return the sums (n, n_pairs) of values (n, k) by pair; pairs increase."""
    starts = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1]))
    sums = np.zeros((len(values), n_pairs))
    sums[:, pairs[starts]] = np.add.reduceat(values, starts, axis=1)
    return sums


class RowPosterior(Posterior):
    """The posterior of a log without a system: every row of the transitions is learned by itself.

    ``costs`` (m+1, S, A): as in a model, if they are known; otherwise those of the log are learned.
    """

    def __init__(
        self, log: Recorded, belief: Belief | None = None, costs: Floats | None = None, part: Recorded | None = None
    ) -> None:
        super().__init__(log, part)
        q = len(log.cost_names) if costs is None else len(costs)
        self._belief = (belief or LearnedMass()).made_for(self.n_states, self.n_actions, q - 1)
        self.name = self._belief.name
        self.known_costs = costs
        self.outcomes = None if costs is not None else RoundCosts(part or log)
        self._burnt = False

    def entries(self) -> float:
        """Return the approximate number of transitions of one draw."""
        return float(self.counts.tally.numbers.size + 4.0 * self.counts.visits.size)

    def draw(self, n: int, rng: np.random.Generator, taken: Bools | None = None) -> Models:
        """Draw models; of pairs that are not ``taken`` (S, A), nothing is drawn."""
        rows = self._rows(n, rng, None if taken is None else taken.ravel())
        if self.outcomes is None:
            assert self.known_costs is not None
            costs = np.ascontiguousarray(self.known_costs.reshape(1, -1, self.counts.visits.size))
        else:
            costs = self.outcomes.costs(rows, n, rng)
        return Models(*rows, costs, self.behaviour.draw(n, rng), self.start, self.reference)

    def averages_of(self, policy: Floats, n: int, rng: np.random.Generator) -> Floats:
        """Return the averages (n, m+1) of a policy in n models of which only its own pairs are drawn."""
        together = int(max(8, min(n, BLOCK_ENTRIES / self.entries())))
        sizes = [min(together, n - begin) for begin in range(0, n, together)]
        return np.concatenate([self.draw(size, rng, policy > 0.0).averages(policy) for size in sizes])

    def _rows(self, n: int, rng: np.random.Generator, taken: Bools | None) -> tuple[Places, Places, Floats]:
        """Draw the transitions (n*S*A, S) of n models, without the rows that are not taken (S*A,)."""
        found = self._parameters(n, rng)
        if found is None:
            models = [self._belief.sample(self.counts, rng).csr() for _ in range(n)]
            ends = np.cumsum(np.concatenate([[0], *(np.diff(one.indptr) for one in models)]))
            columns = np.concatenate([one.indices for one in models])
            return ends.astype(np.int32), columns.astype(np.int32), np.concatenate([one.data for one in models])
        (starts, one_indices, one_alpha), rests = found
        sizes, kept = np.diff(starts), np.ones(starts.size - 1, dtype=np.bool_) if taken is None else taken
        entries = np.repeat(kept, sizes)
        indptr = np.append(0, np.cumsum(np.tile(sizes[kept], n))).astype(np.int32)
        indices, alpha = np.tile(one_indices[entries], n), np.tile(one_alpha[entries], n)
        rests = np.ascontiguousarray(rests.reshape(n, -1)[:, kept]).ravel()
        logs = log_gamma_variates(dirichlet.with_rest(indptr, alpha, rests), rng)
        p, p_rest, until, expected = dirichlet.split(indptr, logs, rests, LOG_FLOOR, NEGLECTED)
        data, states, drawn = dirichlet.assemble(indptr, indices, p, p_rest, rests, until, expected, self.n_states, rng)
        lengths = np.zeros((n, kept.size), dtype=np.int64)
        lengths[:, kept] = np.diff(drawn).reshape(n, -1)
        return np.append(0, np.cumsum(lengths)).astype(np.int32), states, data

    def _parameters(self, n: int, rng: np.random.Generator) -> tuple[tuple[Places, Places, Floats], Floats] | None:
        """Return the parameters of stored transitions, in CSR form, and the masses (n*S*A,) spread over all states.

        None if the parameters of stored transitions change from draw to draw.
        """
        belief, counts = self._belief, self.counts
        moves = counts.moves
        seen = moves.indptr, moves.indices, moves.data.astype(np.float64)
        if type(belief) is Dirichlet:
            rest = np.full(n * counts.visits.size, belief.surprise)
            if belief.prior is None or isinstance(belief.prior, float):
                return seen, rest + (1.0 if belief.prior is None else belief.prior * self.n_states)
            stored = stored_weights(belief.prior, self.n_states, self.n_actions, "prior", anything=rest[0] > 0.0)
            own = Prior(*stored, rest[: counts.visits.size]).after(counts.tally, np.ones(counts.visits.size))
            return (own.indptr, own.indices, own.alpha), rest
        if type(belief) is LearnedMass and belief.support is None:
            if not self._burnt:
                for _ in range(ROWS_BURN_IN):
                    belief.masses(counts, rng)
                self._burnt = True
            return seen, np.concatenate([belief.masses(counts, rng) for _ in range(n)])
        return None


def halves(log: Recorded) -> tuple[Recorded, Recorded]:
    """Return two halves of the rounds: every other visit of each pair.

    >>> log = Recorded.of_arrays(n_states=2, n_actions=1, states=np.array([0, 1, 0]), actions=np.zeros(3, dtype=int),
    ...     next_states=np.array([1, 0, 0]))
    >>> [half.states.tolist() for half in halves(log)]
    [[0], [1, 0]]
    """
    pairs = log.states.astype(np.int64) * log.n_actions + log.actions
    order = np.argsort(pairs, kind="stable")
    first = np.append(True, np.diff(pairs[order]) != 0)
    starts = np.flatnonzero(first)
    visit = np.arange(order.size) - np.repeat(starts, np.diff(np.append(starts, order.size)))
    # Of pairs tried an odd number of times, every other one has the additional visit in the second half.
    parity = np.repeat(np.arange(starts.size) % 2, np.diff(np.append(starts, order.size)))
    second = np.empty(order.size, dtype=np.bool_)
    second[order] = (visit + parity) % 2 == 1
    return _part(log, ~second), _part(log, second)


def _part(log: Recorded, kept: Bools) -> Recorded:
    """Return a log of some of the rounds."""
    rounds = ("states", "actions", "next_states", "costs", "run", "lines", "times", "local_times")
    fields = {name: getattr(log, name) for name in log.__dataclass_fields__}
    fields |= {name: None if fields[name] is None else fields[name][kept] for name in rounds}
    fields["follows"] = np.zeros(int(kept.sum()), dtype=np.bool_)
    fields |= {"records": {}, "system_rounds": None}
    return Recorded.of_arrays(**fields)


def neighbours(log: Recorded, mass: float = 1.0) -> Dirichlet:
    """Return a belief under which an action may lead to the states that others in the same state were seen to lead to.

    They share most of the ``mass``, as much as one observation by default; a tenth of it is spread over all states.
    With few tries the prior of the paper takes an outcome that was not among them for nearly impossible, although it is
    common after other actions in this state.
    """
    S, A = log.n_states, log.n_actions
    moves = np.unique(log.states.astype(np.int64) * S + log.next_states)
    states, successors = np.divmod(moves, S)
    number = np.bincount(states, minlength=S)
    pairs = (states[:, None] * A + np.arange(A)).ravel()
    weights = np.repeat((1.0 - SURPRISE) * mass / number[states], A)
    prior = csr_array((weights, (pairs, np.repeat(successors, A))), shape=(S * A, S))
    return Dirichlet(prior, surprise=SURPRISE * mass)
