"""Estimation of a model from playing an environment, with its uncertainty.

The model consists of the states that were met, the pairs that were tried, and the observed frequencies of their
outcomes. A pair that was never tried is not available in the model, rather than free, so that no plan relies on it.

Uncertainty is Bayesian. Rows of transitions are drawn from the belief given the counts, independent of how the pairs
were chosen. A cost belongs to its outcome (s, a, s'); if it varies there, its mean is drawn from a normal distribution
with the pooled variance of all outcomes. Outcomes not seen have the average cost of their pair.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats, Ints, Matrix
from psconrl.base.escaping import quoted
from psconrl.base.sizes import TABLE_DENSE_ENTRIES
from psconrl.envs.continuing import ContinuingEnv, continuing
from psconrl.envs.gym_env import CMDPEnv
from psconrl.errors import ConfigError, ModelError
from psconrl.learning.argument_checks import as_count, is_whole
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.learned_mass import LearnedMass
from psconrl.learning.posterior.transition_beliefs import Belief
from psconrl.markov.evaluation import evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.model.policy_validation import as_policy
from psconrl.simulation.exploration import Explorer
from psconrl.simulation.observations import Observations


def estimate(
    env: Any,
    rounds: int,
    thresholds: ArrayLike | Mapping[str, float] | None = None,
    *,
    seed: int | None = None,
    belief: Belief | None = None,
) -> "EstimatedModel":
    """Play an environment for a number of rounds, trying all pairs evenly, and return an estimated model of it.

    ``env``: a Gymnasium environment with finite spaces, a task of ``psconrl.continuing``, or a model, for experiments.
    ``rounds``: how many to play. ``seed``: of the environment and of the exploration.
    ``thresholds``: of its constrained costs, in order or by name, unless the task has ``limits``. ``belief``: about the
    transitions among the states that were met, as in an agent; by default a ``LearnedMass`` under which an action may
    lead to any successor that some action in the same state was seen to lead to. If the environment reports available
    actions in ``info["action_mask"]``, no others are tried.

    >>> import psconrl
    >>> lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    >>> found = psconrl.estimate(lake, rounds=300, seed=0)
    >>> found
    EstimatedModel(16 states, 64 of 64 pairs tried, 1 to 35 times, in 300 rounds)
    >>> round(psconrl.plan(found.model).value, 6)  # a prize in seven rounds, the new start included
    0.142857
    """
    rounds = as_count(rounds, "rounds", ConfigError)
    if seed is not None and not (is_whole(seed) and seed >= 0):
        raise ConfigError(f"seed must be a whole number from 0 on; got {quoted(seed)}")
    if belief is not None:
        Belief.checked(belief)
    task = _task(env, thresholds)
    at, info = task.reset(seed=seed)
    first = at
    seen: Observations | None = None
    explorer: Explorer | None = None
    for _ in range(rounds):
        action = _first_action(info) if explorer is None else explorer.action(at)
        following, reward, _, _, after = task.step(action)
        costs = np.append(-reward, after["costs"])
        if seen is None or explorer is None:
            _need_limits(costs.size - 1, task)
            seen = Observations(task.states.size, task.actions.size, costs.size)
            explorer = Explorer(seen, np.random.default_rng(seed))
            _check_mask(seen, at, info)
        seen.note(at, action, following, costs)
        _check_mask(seen, following, after)
        at, info = following, after
    assert seen is not None
    return _model_of(seen, task, first, rounds, belief)


@dataclass(frozen=True, eq=False)
class Interval:
    """Credible intervals of the averages of a policy, given the observations; the level holds for each separately."""

    low: Floats  # (m+1,) of the costs, the objective first and as a cost
    high: Floats  # (m+1,)
    level: float
    objective_sign: float = 1.0

    @property
    def value(self) -> tuple[float, float]:
        """Lower and upper end for the objective in the user's sense: a reward if the model maximises."""
        ends = self.objective_sign * self.low[0], self.objective_sign * self.high[0]
        return float(min(ends)), float(max(ends))


class EstimatedModel:
    """Result of ``estimate``: a model, the counts behind it, and draws of models from the posterior.

    ``model``: the CMDP of observed frequencies. ``states``: the number in the environment of every state of the model.
    ``counts``: (S*A, S) how often every transition was seen. ``untried``: (n, 2) states and actions of the model that
    were never tried, and are not available in it.
    """

    def __init__(
        self, model: CMDP, states: Ints, seen: "_Seen", rounds: int, n_task_states: int, belief: Belief
    ) -> None:
        self.model, self.states, self.rounds = model, states, rounds
        self.untried: Ints = np.argwhere(~model.available)
        self._seen = seen
        self._n_task_states = n_task_states
        S, A = model.n_states, model.n_actions
        self._counts = Counts(S, A, len(model.costs))
        order = np.argsort(seen.pairs * S + seen.successors)
        self._counts.tally.restore({"numbers": (seen.pairs * S + seen.successors)[order], "times": seen.times[order]})
        self._counts.visits[...] = self._counts.tally.csr().sum(axis=1)
        self._belief = belief.made_for(S, A, model.n_constraints)

    @property
    def counts(self) -> csr_array:
        """Counts of every transition, (S*A, S), sparse."""
        return self._counts.moves

    def draw(self, rng: np.random.Generator) -> CMDP:
        """Draw a model from the belief given the observations; untried pairs are not available in it either."""
        P = self._belief.sample(self._counts, rng)
        seen, model = self._seen, self.model
        drawn = seen.means + seen.noise / np.sqrt(seen.times)[:, None] * rng.standard_normal(seen.means.shape)
        average = _averages(seen.pairs, drawn, seen.times, model.n_states * model.n_actions)
        probability = np.asarray(P.csr()[seen.pairs, seen.successors]).ravel()
        costs = average + _sums(seen.pairs, probability[:, None] * (drawn - average[seen.pairs]), len(average))
        return CMDP(
            P.matrix,
            costs.T.reshape(model.costs.shape),
            model.thresholds,
            initial=model.initial,
            available=model.available,
            state_names=model.state_names,
            action_names=model.action_names,
            cost_names=model.cost_names,
            maximise=model.maximise,
        )

    def interval(self, policy: ArrayLike, level: float = 0.9, draws: int = 200, seed: int | None = 0) -> Interval:
        """Return credible intervals of the averages of a policy, from its exact averages in drawn models.

        ``policy``: for the states of the model, or for all of the environment (``everywhere``). A policy planned on the
        same rounds looks better than it is if these are few, because of selection bias. An interval from other rounds,
        by another ``estimate``, is free of this bias.
        """
        if not 0 < level < 1:
            raise ConfigError(f"level must lie between 0 and 1; got {quoted(level)}")
        as_count(draws, "draws", ConfigError)
        whole = (self._n_task_states, self.model.n_actions)
        given = np.asarray(policy)[self.states] if np.shape(policy) == whole else policy
        pi, rng = as_policy(self.model, given), np.random.default_rng(seed)
        averages = np.array([evaluate_policy(self.draw(rng), pi).costs for _ in range(draws)])
        low, high = np.quantile(averages, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return Interval(low, high, level, -1.0 if self.model.maximise else 1.0)

    def everywhere(self, policy: ArrayLike) -> Floats:
        """Return a policy of the model for all states of the environment, (S, A): uniform in states never met."""
        whole = np.full((self._n_task_states, self.model.n_actions), 1.0 / self.model.n_actions)
        whole[self.states] = as_policy(self.model, policy)
        return whole

    def __repr__(self) -> str:
        visits = self._counts.visits[self._counts.visits > 0]
        S, pairs = self.model.n_states, self._counts.visits.size
        return (
            f"EstimatedModel({S} states, {visits.size} of {pairs} pairs tried, {visits.min()} to {visits.max()} times, "
            f"in {self.rounds} rounds)"
        )


@dataclass(frozen=True, eq=False)
class _Seen:
    """Outcomes from which the model is estimated, with its states numbered from 0 on."""

    pairs: Ints
    successors: Ints
    times: Ints
    means: Floats  # (n, m+1)
    noise: Floats  # (m+1,) standard deviation of a cost within an outcome


def _task(env: Any, thresholds: ArrayLike | Mapping[str, float] | None) -> ContinuingEnv:
    """Return the task to play, with its thresholds."""
    if isinstance(env, CMDP):
        env = CMDPEnv(env)
    if not isinstance(env, gymnasium.Env):
        raise ConfigError(f"env must be a Gymnasium environment or a CMDP; got {type(env).__name__}")
    base = env.unwrapped
    if thresholds is None and isinstance(base, CMDPEnv) and not isinstance(env, ContinuingEnv):
        thresholds = dict(zip(base.model.cost_names[1:], base.model.thresholds.tolist(), strict=True))
    task = env if isinstance(env, ContinuingEnv) else continuing(env)
    return task if thresholds is None else task.with_thresholds(thresholds)


def _first_action(info: Mapping[str, Any]) -> int:
    return int(np.argmax(info["action_mask"])) if "action_mask" in info else 0


def _check_mask(seen: Observations, state: int, info: Mapping[str, Any]) -> None:
    mask = info.get("action_mask")
    if mask is not None and np.shape(mask) == (seen.n_actions,) and np.any(mask):
        seen.allowed[state] = np.asarray(mask, dtype=bool)


def _need_limits(m: int, task: ContinuingEnv) -> None:
    if task.thresholds.size != m:
        raise ModelError(
            f"the environment reports {m} costs, and {task.thresholds.size} limits are given for them; say "
            "thresholds=[...], or limits= of psconrl.continuing"
        )


def _model_of(
    seen: Observations, task: ContinuingEnv, first: int, rounds: int, belief: Belief | None
) -> EstimatedModel:
    A = seen.n_actions
    kept = _between_known_states(seen)
    met = np.unique(seen.pairs[kept] // A)
    if first not in met:
        raise ModelError(f"{rounds} rounds are too few: no state was met again; play more")
    number = np.full(seen.n_states, -1, dtype=np.int64)
    number[met] = np.arange(met.size)
    pairs = number[seen.pairs[kept] // A] * A + seen.pairs[kept] % A
    spread = (seen.times - 1).sum()
    outcomes = _Seen(
        pairs,
        number[seen.successors[kept]],
        seen.times[kept],
        seen.means[kept],
        np.sqrt(seen.deviations.sum(axis=0) / max(int(spread), 1)),
    )
    visits = np.bincount(pairs, outcomes.times, minlength=met.size * A)
    base = task.unwrapped
    model = CMDP(
        _matrix(outcomes.times / visits[pairs], outcomes, met.size * A, met.size),
        [_matrix(cost, outcomes, met.size * A, met.size) for cost in outcomes.means.T],
        task.thresholds,
        initial=int(number[first]),
        available=(visits > 0).reshape(met.size, A),
        state_names=None if met.size == task.states.size else [str(state) for state in met],
        cost_names=_names(task),
        maximise=not isinstance(base, CMDPEnv) or base.model.maximise,
    )
    return EstimatedModel(model, met, outcomes, rounds, seen.n_states, belief or _usual_belief(outcomes, met.size, A))


def _usual_belief(seen: _Seen, S: int, A: int) -> Belief:
    """Return a belief in which an action may lead to any successor seen in its state, and to no other."""
    states = seen.pairs // A
    pairs = (states[:, None] * A + np.arange(A)).ravel()
    possible = csr_array((np.ones(pairs.size), (pairs, np.repeat(seen.successors, A))), shape=(S * A, S))
    possible.sum_duplicates()
    possible.data[:] = 1.0
    return LearnedMass(support=possible)


def _names(task: ContinuingEnv) -> tuple[str, ...]:
    """Return the names of the objective and the costs; those of the model if a model is played."""
    base = task.unwrapped
    return (base.model.cost_names[0], *task.cost_names[1:]) if isinstance(base, CMDPEnv) else task.cost_names


def _between_known_states(seen: Observations) -> Ints:
    """Return the outcomes that lead to states in which an action was tried; the last outcomes may not."""
    kept = np.arange(seen.pairs.size)
    while True:
        left = np.isin(seen.successors[kept], seen.pairs[kept] // seen.n_actions)
        if left.all():
            return kept
        kept = kept[left]


def _matrix(values: Floats, seen: _Seen, n_pairs: int, n_states: int) -> Matrix:
    matrix = csr_array((values, (seen.pairs, seen.successors)), shape=(n_pairs, n_states))
    return matrix.toarray() if n_pairs * n_states <= TABLE_DENSE_ENTRIES else matrix


def _sums(pairs: Ints, values: Floats, n_pairs: int) -> Floats:
    """Return the sums (n_pairs, k) of values (n, k) by pair."""
    return np.stack([np.bincount(pairs, column, minlength=n_pairs) for column in values.T], axis=1)


def _averages(pairs: Ints, values: Floats, times: Ints, n_pairs: int) -> Floats:
    """Return the means (n_pairs, k) of values (n, k), weighted by ``times`` (n,)."""
    return _sums(pairs, values * times[:, None], n_pairs) / np.maximum(np.bincount(pairs, times, n_pairs), 1)[:, None]
