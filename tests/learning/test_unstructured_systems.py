"""Learning systems of many states without their structure: samples whose rows are mostly unknown."""

import numpy as np
import pytest

from psconrl.agents import PSConRL
from psconrl.markov.elimination_order import NO_ORDER
from psconrl.planning.mixture import solve as search
from psconrl.simulation.model_run import Simulation
from psconrl.systems import Bernoulli, Poisson, System


def store():
    """Stock, what is under way and a season: 930 states."""
    return System(
        state={"shelf": range(50), "coming": range(10), "season": range(2)},
        action={"order": [0, 4, 9]},
        noise={"demand": Poisson("1 + 0.5 * season", most=9), "turn": Bernoulli(0.1)},
        step={
            "shelf": "min(max(shelf - demand, 0) + min(coming, 5), 49)",
            "coming": "min(max(coming - 5, 0) + order, 9)",
            "season": "(season + turn) % 2",
        },
        costs={"profit": "3 * min(shelf, demand) - 0.2 * shelf - 2 * order", "lost": "max(demand - shelf, 0)"},
        maximise="profit",
        limits=["lost <= 0.1"],
    )


def test_a_search_by_products_does_not_give_up_for_its_distributions(monkeypatch):
    """They are refined until they have the gains; otherwise all policies are evaluated once more, more slowly."""
    system, found = store(), []
    plain = search.solve_compiled

    def compiled(problem, *args, order=None, **options):
        result = plain(problem, *args, order=order, **options)
        if order is NO_ORDER:
            found.append((problem, result))
        return result

    monkeypatch.setattr(search, "solve_compiled", compiled)
    model = system.model()
    agent = PSConRL(model.n_states, model.n_actions, model.thresholds, costs=model.costs, seed=0)
    Simulation(system, agent, 0).run(12)
    assert len(found) > 10
    assert all(result is not None for _, result in found)
    for problem, result in found[::4]:
        if not result.settled_within(1e-6):
            continue
        exact = search.solve(problem)
        assert result.feasible == exact.feasible
        if result.feasible:
            assert result.value == pytest.approx(exact.value, abs=1e-6)
        P, occupancy = problem.transition, result.occupancy
        np.testing.assert_allclose(occupancy.ravel() @ P, occupancy.sum(axis=1), atol=1e-9)
        averages = problem.costs @ occupancy.ravel()
        mixed = sum(w * c.costs for w, c in zip(result.mixture.shares, result.mixture.answers, strict=True))
        np.testing.assert_allclose(averages, mixed, atol=2e-7)


def test_more_steps_are_tried_only_if_a_chain_has_not_converged():
    asked = []

    def compiled(result, order, products=None):
        asked.append(products)
        return result

    given = object()
    assert search._by_products(lambda **options: compiled(given, **options)) is given
    assert asked == [None]
    assert search._by_products(lambda **options: compiled(None, **options)) is None
    assert asked == [None, None, search.PATIENT * search.KRYLOV_STEPS]
