"""Models with published answers: those of Storm's tests, built here from their rules.

The values are in Storm's tests of long-run averages (LraMdpPrctlModelCheckerTest, multi-objective tests), and for the
philosophers, whose model is in ``examples/philosophers.py``, in the tables of PRISM and Storm.
"""

import importlib.util
from pathlib import Path

import numpy as np

from psconrl.model.exchange.explicit_model import ChoiceNames, ExplicitModel, Reward

EXAMPLES = Path(__file__).parents[1] / "examples"


def philosophers(n):
    spec = importlib.util.spec_from_file_location("philosophers", EXAMPLES / "philosophers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.philosophers(n)


def explored(start, choices, state_rewards, choice_rewards):
    """Explore all states from a start. ``choices(state)``: (name, {target: probability}); rewards are functions."""
    states, numbers, names = [start], {start: 0}, {}
    first_choice, first_branch, targets, probabilities, called = [0], [0], [], [], []
    earned = {name: [] for name in choice_rewards}
    for state in states:
        for name, outcomes in choices(state):
            for target, p in outcomes.items():
                if target not in numbers:
                    numbers[target] = len(states)
                    states.append(target)
                targets.append(numbers[target])
                probabilities.append(p)
            first_branch.append(len(targets))
            called.append(names.setdefault(name, len(names)))
            for reward, amount in choice_rewards.items():
                earned[reward].append(float(amount(state, name)))
        first_choice.append(len(called))
    rewards = {
        name: Reward(
            np.array([float(state_rewards[name](s)) for s in states]) if name in state_rewards else None,
            np.array(earned[name]) if name in earned else None,
        )
        for name in (*state_rewards, *(n for n in choice_rewards if n not in state_rewards))
    }
    return ExplicitModel(
        np.array(first_choice),
        np.array(first_branch),
        np.array(targets),
        np.array(probabilities),
        initial=np.arange(len(states)) == 0,
        rewards=rewards,
        choice_names=ChoiceNames(tuple(names), np.array(called)),
    )


def simple_lra():
    """Storm's multiobj_simple_lra: four states, two of which can be traded off against each other."""
    table = {
        0: [("a", {1: 0.5, 0: 0.5}), ("a", {0: 0.2, 3: 0.8})],
        1: [("b", {1: 1.0}), ("d", {2: 1.0})],
        2: [("c", {2: 1.0}), ("d", {1: 0.1, 2: 0.9})],
        3: [("", {3: 1.0})],
    }
    return explored(
        0,
        lambda s: table[s],
        {"second": lambda s: 8 * (s == 2)},
        {"first": lambda s, a: {"a": 1, "b": 5, "d": 5}.get(a, 0), "second": lambda s, a: {"a": 1, "c": 8}.get(a, 0)},
    )


STEPS = {"right": (1, 0), "left": (-1, 0), "top": (0, 1), "down": (0, -1)}
HOME, GOLD, GEM, ENEMIES = (3, 1), (3, 5), (5, 4), ((4, 5), (3, 4))


def resource_gathering():
    """Storm's resource-gathering: fetch gold and gems over a map with two enemies, who send the robber home."""

    def choices(state):
        x, y, gold, gem, _ = state
        for name, (dx, dy) in STEPS.items():
            place = (x + dx, y + dy)
            if not (1 <= place[0] <= 5 and 1 <= place[1] <= 5):
                continue
            kept = place != HOME
            arrived = (*place, (gold and kept) or place == GOLD, (gem and kept) or place == GEM, False)
            robbed = (*HOME, False, False, True)
            yield name, {robbed: 0.1, arrived: 0.9} if place in ENEMIES else {arrived: 1.0}

    def delivered(what):
        return lambda s, a: s[what] and (s[0] + STEPS[a][0], s[1] + STEPS[a][1]) == HOME

    return explored(
        (*HOME, False, False, False),
        choices,
        {"attacks": lambda s: s[4]},
        {"gold": delivered(2), "gem": delivered(3)},
    )


def client_server():
    """Storm's cs_nfail3: three clients ask a server for one resource, and may cancel once."""
    request, grant, deny, cancel, use, decide = "request", "grant", "deny", "cancel", "use", "decide"

    def server(s, i, j, what, k):
        """Return the server after a client's action, or None if it cannot take part now."""
        if what == cancel:
            if s == 0 or (s == 2 and i != k):
                return s, i, j
            return (0, 0, j) if s == 2 else None
        if what == request:
            return {0: (1, k, j), 2: (3, i, k)}.get(s)
        if what == grant:
            return (2, i, j) if s == 1 and i == k else None
        return (2, i, 0) if s == 3 and j == k else None

    client = {0: {request: 1}, 1: {deny: 0, grant: 2}, 2: {use: 2, cancel: 0}, 3: {cancel: 1}, -1: {}}

    def choices(state):
        s, i, j, *clients = state
        for k, c in enumerate(clients, start=1):
            with_client = lambda new, k=k: tuple(new if n == k else old for n, old in enumerate(clients, start=1))  # noqa: E731
            if c == -1:
                yield f"{decide} {k}", {(s, i, j, *with_client(0)): 0.9, (s, i, j, *with_client(3)): 0.1}
            for what, new in client[c].items():
                seen = (s, i, j) if what == use else server(s, i, j, what, k)
                if seen is not None:
                    yield f"{what} {k}", {(*seen, *with_client(new)): 1.0}

    return explored((0, 0, 0, -1, -1, -1), choices, {}, {"grants": lambda s, a: a.startswith(grant)})
