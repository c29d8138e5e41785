"""From a model with several end components to a candidate: its policies, their shares, and the proof."""

from collections.abc import Sequence

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.model.cmdp import CMDP
from psconrl.model.evaluation import evaluate_policy
from psconrl.model.structure import EndComponents
from psconrl.planning.candidate import Candidate
from psconrl.planning.components.oracle import Components
from psconrl.planning.mixture.column_generation import mix
from psconrl.planning.policy_from_occupancy import one_hot, policy_from_occupancy
from psconrl.planning.problem import Problem

NOTE = "several end components, each planned on its own"


def solve_components(part: CMDP, problem: Problem, parts: EndComponents) -> Candidate:
    """The cheapest mixture of policies of the whole model, and the stationary policy that may do the same."""
    oracle = Components(problem, part.initial, parts)
    found = mix(oracle, problem.thresholds, least_excess=True)
    w = found.weights
    unit = w[0] if found.feasible else 1.0
    policies = tuple(answer.policy for answer in found.answers)
    dual = oracle.proof(w / unit, w[1:] / unit)
    occupancy, policy = combined(part, policies, found.shares)
    return Candidate(found.feasible, occupancy, policy, dual, policies, "mixture", NOTE, found.shares)


def combined(part: CMDP, policies: Sequence[Ints], shares: Floats) -> tuple[Floats, Floats]:
    """The occupancy of a mixture, and the stationary policy that has it if any does.

    In states where the mixture remains, by its frequencies; in those that it passes through, by its visits: so all
    that flows through them ends where it should, unless some of the policies remain where others pass through.
    """
    S, A = part.n_states, part.n_actions
    states = np.arange(S)
    occupancy, visits = np.zeros((S, A)), np.zeros((S, A))
    for actions, share in zip(policies, shares, strict=True):
        played = one_hot(actions, A)
        occupancy += share * evaluate_policy(part, played).occupancy
        if len(policies) > 1:
            visits[states, actions] += share * transient_visits(part, actions)
    guide = one_hot(policies[int(shares.argmax())], A)
    if len(policies) == 1:
        return occupancy, guide
    onward = policy_from_occupancy(visits, guide, 0.0)
    return occupancy, policy_from_occupancy(occupancy, onward, part.transition.mass_error)


def transient_visits(part: CMDP, actions: Ints) -> Floats:
    """How often a deterministic policy visits each of the states (S,) that it leaves for ever, in mean."""
    chain = part.transition.chain(actions)
    passing = np.flatnonzero(chain.labelled_classes()[1] < 0)
    visits = np.zeros(part.n_states)
    if passing.size:
        visits[passing] = chain.visits(passing, part.initial)
    return visits
