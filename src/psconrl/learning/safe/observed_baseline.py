r"""Slack and span of a baseline, proven from rounds that were observed, for the agent ``safe`` of a system.

The rounds give a confidence set for the noise of the system (``posterior.noise_bounds``), which contains the true
distribution with probability :math:`1 - \delta`, whenever the record is stopped. For a function h of the states let

.. math:: G = \max_s \sum_a \pi_b(a|s) \Big( c(s,a) + \max_p p \cdot h \Big) - h(s)

with p in the set. Then :math:`c_b + P_b h - h \le G` in every state, with the true P: the slack :math:`\tau - G` and
the span :math:`h - \min h` are correct with that probability, for all constraints together.

Two kinds of h are tried: the one of the least G, and functions that certify averages between that and the threshold,
which have smaller spans. The latter are computed for the worst distributions of the former; their own G counts.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import AgentError
from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import as_failure_probability
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.learning.posterior.noise_views import noise_names
from psconrl.learning.safe.baseline import SHARES, STILL, most_exploring, recovery
from psconrl.learning.safe.confidence_sets import NoiseKnowledge, Occasion, View
from psconrl.learning.safe.noise_bounds import NoiseIntervals
from psconrl.markov.chain import SparseChain
from psconrl.markov.evaluation import evaluate_policy
from psconrl.model.policy_validation import as_policy
from psconrl.planning.robust.noise_box import NoiseBox
from psconrl.planning.robust.pessimism import worst_average
from psconrl.planning.robust.worst_noise import worst_bias, worst_distributions
from psconrl.planning.tolerances import BOUND_ROUNDING
from psconrl.systems.events import EventClock
from psconrl.systems.structure import Structure
from psconrl.systems.system import System


def observed_baseline(
    system: System, policy: Any, rounds: Agent | Iterable[tuple[Any, ...]], *, delta: float = 0.05
) -> dict[str, Any]:
    """Return the options ``baseline``, ``slack`` and ``span`` of ``SafeStart.of``, proven from rounds observed.

    ``policy``: (S, A), an action for every state, a plan, or a function of a state, a table of values, that returns an
    action. ``rounds``: (state, action, next state) of each, tables of values or numbers, or an agent that has played.
    They may be rounds of any policy, but which are kept must not depend on what came of them. If noise was recorded,
    too, a fourth entry is a table of its values, of the same noises in all rounds: were a noise only recorded when it
    has certain values, nothing would be proven. Such rounds inform about the noises in the table only. ``delta``: the
    probability that slack or span are wrong, in addition to that of the agent's own proofs.

    >>> import psconrl
    >>> from psconrl.agents import FixedPolicy, observed_baseline
    >>> from psconrl.envs.registry import load_system
    >>> shop, true = load_system("inventory"), load_system("inventory", known=True).model_for_learning()
    >>> cautious = psconrl.plan(true.with_thresholds([0.2, 0.3])).policy
    >>> player = FixedPolicy(true.n_states, true.n_actions, true.thresholds, policy=cautious, seed=0)
    >>> _ = psconrl.simulate(true, player, 2_000, seed=0)
    >>> given = observed_baseline(shop, cautious, player)
    >>> bool((given["slack"] < [0.1, 0.1]).all()), given["span"].shape
    (True, (2, 9))
    """
    if not isinstance(system, System):
        raise AgentError(
            f"observed_baseline needs a System; got {type(system).__name__}. Without one, no record proves anything "
            "about states that were never visited; known_baseline takes a model"
        )
    belief = Structured.of(system)
    baseline = _as_policy(system, belief, policy)
    counts = _counted(system, belief, rounds)
    belief.check(counts)
    if belief.doubts:
        raise AgentError(f"the rounds contradict the system: {'; '.join(belief.doubts.values())}")
    knowledge = NoiseKnowledge(belief.known_structure, belief.vocabulary)
    occasion = Occasion(0, system.thresholds, baseline, None)
    view, _ = knowledge.view(counts, as_failure_probability(delta), occasion)
    estimates = evaluate_policy(view.whole, baseline).gains.max(axis=1)
    m, S = len(system.thresholds), belief.known_structure.n_states
    slack, span = np.empty(m), np.empty((m, S))
    for i, tau in enumerate(system.thresholds.tolist()):
        pairs = _proven(baseline, view, i, tau)
        if pairs[0][0] >= tau:
            reason = _unproven(system, i, pairs[0][0], float(estimates[i + 1]), int(counts.visits.sum()))
            unseen = _unseen(belief.known_structure, counts)
            raise AgentError(f"{reason}. {unseen}" if unseen else reason)
        slack[i], span[i] = most_exploring(pairs, tau, float(knowledge.ranges[i + 1, 1]))
    return {"baseline": baseline, "slack": slack, "span": span}


def _as_policy(system: System, belief: Structured, policy: Any) -> Floats:
    """Return a policy (S, A), whatever it was given as."""
    model = system.model_for_learning()
    given = getattr(policy, "policy", policy)
    if callable(given):
        words = belief.vocabulary
        assert words is not None
        numbers = [words.action(given(words.states.label(int(place)))) for place in words.reachable]
        given = [words.action_taken(state, number) for state, number in enumerate(numbers)]
    distributions = as_policy(model, given)
    return np.asarray(distributions / distributions.sum(axis=1, keepdims=True))


def _counted(system: System, belief: Structured, rounds: Any) -> Counts:
    """Return the counts of an agent, or those of rounds given one by one."""
    structure, words = belief.known_structure, belief.vocabulary
    assert words is not None
    S, A = structure.n_states, structure.n_actions
    counts, nothing = Counts(S, A, len(system.thresholds) + 1), np.zeros(len(system.thresholds) + 1)
    if isinstance(rounds, Agent):
        if (rounds.n_states, rounds.n_actions) != (S, A):
            raise AgentError(
                f"rounds: the agent has {rounds.n_states} states and {rounds.n_actions} actions, the system {S} and {A}"
            )
        if any(seen.noise.ticks for seen in (rounds.counts, *([rounds._play.record] if rounds._play else []))):
            raise AgentError(
                "rounds: the agent was given times of sojourns with after=..., which are rounded to ticks of the "
                "clock; intervals are proven for rounds that were observed one by one"
            )
        # Without values of the noise that were seen: whether one was may depend on the value.
        for seen in (rounds.counts, *([rounds._play.record] if rounds._play is not None else [])):
            counts.tally.add(seen.tally)
            counts.visits += seen.visits
        return counts
    record, recorded = Record.empty(counts), None
    for t, row in enumerate(rounds):
        if not isinstance(row, list | tuple) or len(row) not in (3, 4):
            raise AgentError(f"rounds[{t}] must be (state, action, next state), or with noise; got {quoted(row)}")
        try:
            numbers = words.state(row[0]), words.action(row[1]), words.state(row[2], "next_state")
        except AgentError as error:
            raise AgentError(f"rounds[{t}]: {error}") from None
        for number, size, what in zip(numbers, (S, A, S), ("state", "action", "next state"), strict=True):
            if not isinstance(number, int | np.integer) or not 0 <= number < size:
                raise AgentError(
                    f"rounds[{t}]: {what} must be a table of values, or 0 to {size - 1}; got {quoted(number)}"
                )
        state, action, following = (int(number) for number in numbers)
        words.need_available(state, action)
        record.step(state, action, following, nothing)
        noise = row[3] if len(row) == 4 else {}
        _note_noise(belief, record, (state * A + action) * S + following, noise, t)
        recorded = set(noise) if recorded is None else recorded
        if set(noise) != recorded:
            raise AgentError(
                f"rounds[{t}]: the noise of {_listed(noise)} is given, and before that of {_listed(recorded)}; whether "
                "it is must not depend on its value, so give the same in all rounds"
            )
    counts.add(record)
    return counts


def _note_noise(belief: Structured, record: Record, number: int, noise: Any, t: int) -> None:
    """Note the noise of round t, which had the transition of this number."""
    words, S = belief.vocabulary, belief.known_structure.n_states
    assert words is not None
    if not isinstance(noise, Mapping) or any(value is None for value in noise.values()):
        raise AgentError(f"rounds[{t}]: noise must be a table of values, such as {{'demand': 3}}; got {quoted(noise)}")
    if noise:
        try:
            cells = belief.explained(number // S, number % S, noise).cells
        except AgentError as error:
            raise AgentError(f"rounds[{t}]: {error}") from None
        record.noise.note(number, words.reported(noise), cells)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, sorted(names))) or "nothing"


def _proven(baseline: Floats, view: View, i: int, tau: float) -> list[tuple[float, Floats]]:
    """Return upper bounds of the baseline's average of a constrained cost, and the functions h that prove them.

    The first one is the least.
    """
    box = view.distributions
    assert isinstance(box, NoiseBox)
    S, A = baseline.shape
    paid, unit = view.paid[i], float(np.ptp(view.costs[i])) or 1.0
    start = worst_average(baseline, view.costs[i], box, paid=paid).bias
    tight = worst_bias(baseline, np.ascontiguousarray(view.costs[i]).ravel(), box, start, paid, STILL * unit)
    least = _bound(baseline, view, i, tight)
    pairs = [(least, tight)]
    if least >= tau:
        return pairs
    worst = worst_distributions(box, np.arange(S * A), tight, paid)
    costs = view.costs[i] if paid is None else view.costs[i] + (worst * paid).sum(axis=1).reshape(S, A)
    shares = baseline.ravel()[:, None] * worst
    states = np.repeat(np.arange(S), A * worst.shape[1])
    chain = SparseChain(csr_array((shares.ravel(), (states, box.successors.ravel())), shape=(S, S)))
    played = (baseline * costs).sum(axis=1)
    for share in SHARES:
        h = recovery(chain, played, tau - share * (tau - least), unit)[1]
        pairs.append((_bound(baseline, view, i, h), h))
    return pairs


def _bound(baseline: Floats, view: View, i: int, h: Floats) -> float:
    """Return what a function h proves of the average, rounded up."""
    S, A = baseline.shape
    values = view.costs[i] + view.largest(i, h).reshape(S, A)
    rounding = BOUND_ROUNDING * float(np.abs(h).max() + np.abs(values).max())
    return float(((baseline * values).sum(axis=1) - h).max()) + rounding


def _unproven(system: System, i: int, bound: float, estimate: float, rounds: int) -> str:
    """Say that rounds do not prove that constraint i is met."""
    name, tau = system.shown_names[i + 1], system.thresholds[i]
    line = f"{rounds:,} rounds do not prove that the baseline keeps {name!r} <= {tau:g}: its average is estimated at"
    if estimate >= tau:
        return f"{line} {estimate:.4g}. Give a baseline that stays below the limit"
    return f"{line} {estimate:.4g}, and proven to be at most {bound:.4g}; more rounds may do"


def _unseen(structure: Structure, counts: Counts) -> str:
    """Name the unknowns of which counts show nothing, so that no number of such rounds proves anything."""
    intervals, randomness = NoiseIntervals(structure), structure.randomness
    found, nothing = (
        intervals.bounds(one, 0.0) for one in (counts, Counts(counts.n_states, counts.n_actions, len(counts.cost_sums)))
    )
    same = ((found.low == nothing.low) & (found.high == nothing.high)).all(axis=0)  # by value
    if isinstance(randomness, EventClock):
        hidden = {key for event, key in randomness.keys.items() if same[event]}
    else:
        ends = np.cumsum(randomness.sizes)
        own = zip(noise_names(randomness), ends - randomness.sizes, ends, strict=True)
        hidden = {name for name, start, end in own if name in intervals.views.names and same[start:end].all()}
    if not hidden:
        return ""
    names = ", ".join(repr(name) for name in sorted(hidden))
    return f"They show nothing of {names}: give its values, if they were recorded, or rounds of any policy that show it"
