"""The blackjack example against dynamic programming over hands of cards, by Gymnasium's own rules."""

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from gymnasium.envs.toy_text.blackjack import deck, is_bust, sum_hand, usable_ace

from psconrl import certify

EXAMPLE = Path(__file__).parents[2] / "examples" / "blackjack.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("blackjack", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def dealers(hand):
    """The dealer's final sum; 0 is a bust."""
    if sum_hand(hand) >= 17:
        return {0 if is_bust(hand) else sum_hand(hand): 1.0}
    distribution = {}
    for card in deck:
        for total, p in dealers(tuple(sorted((*hand, card)))).items():
            distribution[total] = distribution.get(total, 0.0) + p / 13
    return distribution


def most_per_hand(price):
    """The best mean gain less a price per bust, by backward induction."""

    @cache
    def worth(hand, shown):
        mine = sum_hand(hand)
        stick = sum(p * float(np.sign(mine - theirs)) for theirs, p in dealers((shown,)).items())
        more = [tuple(sorted((*hand, card))) for card in deck]
        hit = sum((-1.0 - price if is_bust(after) else worth(after, shown)) / 13 for after in more)
        return max(stick, hit)

    return sum(worth(tuple(sorted((a, b))), shown) for a in deck for b in deck for shown in deck) / 13**3


def test_the_best_value_of_a_hand(example):
    value, best = example.best_per_hand(1.0)
    assert value == pytest.approx(-0.0465559771, abs=1e-9)
    assert value == pytest.approx(most_per_hand(0.0), abs=1e-10)
    assert certify(example.model(value, 1.0), best).holds
    # Against the ace, 2, ..., 10, without and with a usable ace; compare Sutton and Barto (2018), figure 5.2.
    assert example.sticks_from(best, 0) == ["17", "13", "13", "12", "12", "12", "17", "17", "17", "17"]
    assert example.sticks_from(best, 1) == ["19", "18", "18", "18", "18", "18", "18", "18", "19", "19"]


def test_the_best_value_within_the_limit_is_that_of_its_price(example):
    """Duality: at the plan's multiplier, the best unconstrained play has the plan's value, unused budget refunded."""
    value, best = example.best_per_hand(example.LIMIT)
    won, busts = example.per_hand(best)
    assert (won, busts) == pytest.approx((value, example.LIMIT), abs=1e-10)
    price = best.multipliers[0]
    assert price > 0.1
    assert value == pytest.approx(most_per_hand(price) + price * example.LIMIT, abs=1e-10)
    assert best.randomised_states.size == 1


def test_hands_and_their_numbers_are_those_of_gymnasium(example):
    rng = np.random.default_rng(0)
    for _ in range(200):
        cards = [int(card) for card in rng.choice(deck, size=rng.integers(2, 6))]
        total, ace = 0, 0
        for card in cards:
            total, ace = example.with_card(total, ace, card)
        assert (total, ace) == (sum_hand(cards), usable_ace(cards))
    table = example.psconrl.continuing(example.gymnasium.make("Blackjack-v1", sab=False))
    assert all(table.states.number(hand) == example.number(*hand) for hand in [*example.HANDS, example.OVER])


@pytest.mark.full
@pytest.mark.statistical
def test_the_plan_is_worth_the_same_on_gymnasiums_table(example):
    """5 standard errors from 20 blocks: false-alarm rate 8e-5 a number, at a fixed seed."""
    value, best = example.best_per_hand(example.LIMIT)
    mean, error = example.played(best.policy, 10_000)
    assert (abs(mean - [value, example.LIMIT]) < 5 * error).all()
    assert (error < 0.02).all()
