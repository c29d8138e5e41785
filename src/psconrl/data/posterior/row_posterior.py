r"""Models drawn from the posterior that a log gives: transitions, costs, and the policy that wrote the log.

*Transitions* are drawn from a belief of ``learning.posterior``: by default ``LearnedMass``, or ``Dirichlet()``, the
prior of the paper.

*Costs*, unless they are known: ``round_costs``.

*The policy that wrote the log*: ``behaviour``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Bools, Floats, Places
from psconrl.data.posterior.behaviour import Behaviour
from psconrl.data.posterior.large_chains import large_averages
from psconrl.data.posterior.round_costs import RoundCosts
from psconrl.data.rounds.recorded import Recorded
from psconrl.kernels.chains.drawn_averages import drawn_averages
from psconrl.kernels.chains.policy_evaluation import evaluated
from psconrl.kernels.draws import dirichlet
from psconrl.kernels.draws.gamma import log_gamma_variates
from psconrl.learning.posterior.given_weights import stored_weights
from psconrl.learning.posterior.learned_mass import LearnedMass
from psconrl.learning.posterior.sampled_rows import LOG_FLOOR, NEGLECTED, Prior
from psconrl.learning.posterior.transition_beliefs import Belief, Dirichlet

DENSE_DRAWN_STATES = 600  # chains of draws with more states are solved as sparse ones
FEW_DRAWS_STATES = 256  # a model with more states takes long to evaluate, so that fewer are drawn
ROWS_BURN_IN = 20  # draws of masses that are dropped
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
    """What a log says of the model, and of the policy that wrote it.

    ``part``: the rounds that count, if not all. ``today``: those that today's policy wrote, if not these; others are of
    an experiment.
    """

    name: str  # of the belief

    def __init__(self, log: Recorded, part: Recorded | None = None, today: Recorded | None = None) -> None:
        self.log, self.counts = log, (part or log).counts()
        self.n_states, self.n_actions = log.n_states, log.n_actions
        self.behaviour = Behaviour(self.counts.pairs if today is None else today.counts().pairs)

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


class RowPosterior(Posterior):
    """The posterior of a log without a system: every row of the transitions is learned by itself.

    ``costs`` (m+1, S, A): as in a model, if they are known; otherwise those of the log are learned.
    """

    def __init__(
        self,
        log: Recorded,
        belief: Belief | None = None,
        costs: Floats | None = None,
        part: Recorded | None = None,
        today: Recorded | None = None,
    ) -> None:
        super().__init__(log, part, today)
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
