"""Blackjack with few busts: the best play when no more than one hand in ten may go over 21, with a proof.

    python examples/blackjack.py --rounds 20000

Averages in psconrl are per step, but a player counts hands, and hands differ in length. Per step, the best way to
play a losing game is slowly. Two devices turn steps into hands:

- "at most a tenth of the hands" is "busts minus a tenth of the ends are at most 0 on average": a constraint like any
  other;
- "most per hand" is found by charging a fee for every hand. The charge at which the best average is 0 is the
  best value of a hand (Dinkelbach 1967), and the certificate of that plan is the proof.

The model is written from the rules: an infinite deck, the dealer draws to 17, all wins pay 1. States are numbered like
the observations of Gymnasium's Blackjack-v1, on which the plan is then played, with two changes. It is made with
``sab=False``: otherwise a natural beats other hands of 21, but does not show in the observation. And the end of a hand
is shown, as (0, 0, 0): by itself Blackjack shows the final hand once more, as if it went on.
"""

import argparse
from functools import cache
from itertools import product
from typing import Any

import gymnasium
import numpy as np
from scipy.sparse import csr_array

import psconrl
from psconrl.agents import FixedPolicy

LIMIT = 0.1
STATES = 32 * 11 * 2
STICK, HIT = 0, 1
OVER = (0, 0, 0)  # sum, dealer's card, usable ace: no hand is like this
CARDS = dict.fromkeys(range(1, 10), 1 / 13) | {10: 4 / 13}
HANDS = [(total, dealer, ace) for total in range(4, 22) for dealer in CARDS for ace in (0, 1)]


def number(total: int, dealer: int, ace: int) -> int:
    """Return the number that ``psconrl.continuing`` gives to an observation."""
    return (total * 11 + dealer) * 2 + ace


def with_card(total: int, ace: int, card: int) -> tuple[int, int]:
    """Return the sum of a hand after one more card, and whether an ace counts as 11."""
    total, ace = (total + 11, 1) if card == 1 and total + 11 <= 21 else (total + card, ace)
    return (total - 10, 0) if total > 21 and ace else (total, ace)


@cache
def dealt(total: int, ace: int) -> dict[int, float]:
    """Return the distribution of the dealer's final sum; 0 is a bust."""
    if total >= 17:
        return {total if total <= 21 else 0: 1.0}
    distribution: dict[int, float] = {}
    for card, p in CARDS.items():
        for end, q in dealt(*with_card(total, ace, card)).items():
            distribution[end] = distribution.get(end, 0.0) + p * q
    return distribution


@cache
def rules() -> tuple[csr_array, np.ndarray, np.ndarray, np.ndarray]:
    """Return the transitions and, for every pair, the expected win and the probabilities of a bust and of an end."""
    P = np.zeros((STATES, 2, STATES))
    won, bust, ends = np.zeros((3, STATES, 2))
    ends[:] = 1.0  # states that are no hand lead to the end at once
    for total, dealer, ace in HANDS:
        s = number(total, dealer, ace)
        won[s, STICK] = sum(p * np.sign(total - end) for end, p in dealt(*with_card(0, 0, dealer)).items())
        for card, p in CARDS.items():
            after, soft = with_card(total, ace, card)
            if after <= 21:
                P[s, HIT, number(after, dealer, soft)] += p
            else:
                bust[s, HIT] += p
        won[s, HIT], ends[s, HIT] = -bust[s, HIT], bust[s, HIT]
    over = number(*OVER)
    ends[over] = 0.0
    P[:, :, over] = ends
    for (first, p), (second, q), (dealer, r) in product(CARDS.items(), repeat=3):
        total, ace = with_card(*with_card(0, 0, first), second)
        P[over, :, number(total, dealer, ace)] += p * q * r
    return csr_array(P.reshape(-1, STATES)), won, bust, ends


def model(charge: float, limit: float) -> psconrl.CMDP:
    """Maximise the wins less a charge per hand; busts beyond the limit per hand are at most 0 on average."""
    P, won, bust, ends = rules()
    names = ["won", "busts"]
    return psconrl.CMDP.from_rewards(
        P, won - charge * ends, [bust - limit * ends], [0.0], initial=number(*OVER), cost_names=names
    )


def best_per_hand(limit: float) -> tuple[float, psconrl.Plan]:
    """Return the value of a hand within a limit on the share of busts, and the plan that attains it."""
    value, lacking = -1.0, 1.0
    while lacking > 1e-12:
        best = psconrl.plan(model(value, limit))
        lacking = best.value / hands_per_step(best)
        value += lacking
    return value, best


def hands_per_step(plan: psconrl.Plan) -> float:
    """Return the number of hands per step."""
    return float(plan.occupancy[number(*OVER)].sum())


def per_hand(plan: psconrl.Plan) -> np.ndarray:
    """Return the wins and the busts of a plan per hand."""
    plain = psconrl.evaluate(model(0.0, 0.0), plan.policy)
    return plain.costs * [-1, 1] / hands_per_step(plan)


class ShownEnd(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Blackjack with an observation for the end of a hand."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and replace the observation at the end of a hand."""
        hand, reward, terminated, truncated, info = self.env.step(action)
        return (OVER if terminated else hand), reward, terminated, truncated, info


def ends_and_busts(hand: Any, action: int, after: Any) -> list[float]:
    """Return two costs: 1 if the hand is over, and 1 if it is over by a bust."""
    return [float(after == OVER), float(after == OVER and action == HIT)]


def played(policy: np.ndarray, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the wins and busts of a policy per hand on Gymnasium's table, with standard errors."""
    table = psconrl.continuing(ShownEnd(gymnasium.make("Blackjack-v1", sab=False)), cost=ends_and_busts)
    agent = FixedPolicy(STATES, 2, [1.0, 1.0], policy=policy, seed=0)
    blocks = psconrl.simulate(table, agent, rounds, seed=0, checkpoints=20).window_averages()
    each = np.column_stack([-blocks[:, 0], blocks[:, 2]]) / blocks[:, [1]]
    return each.mean(axis=0), each.std(axis=0, ddof=1) / np.sqrt(len(each))


def sticks_from(plan: psconrl.Plan, ace: int) -> list[str]:
    """Return the sum from which the plan sticks, for every card of the dealer; a star marks randomisation."""
    shown = []
    for dealer in CARDS:
        hit = np.array([plan.policy[number(total, dealer, ace), HIT] for total in range(12, 22)])
        star = "*" if ((hit > 0) & (hit < 1)).any() else ""
        shown.append(f"{12 + np.flatnonzero(hit < 1)[0]}{star}")
    return shown


def main() -> None:
    """Plan without the limit and with it, and play on Gymnasium's table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20_000, help="steps to play on Gymnasium's table")
    rounds = parser.parse_args().rounds

    slow = per_hand(psconrl.plan(model(0.0, 1.0)))
    print(f"best per step: wins {slow[0]:.6f} a hand; it loses slowly, by playing long hands")
    value, free = best_per_hand(1.0)
    print(f"best per hand: wins {value:.6f} a hand, busts in {per_hand(free)[1]:.4f} of them")
    value, best = best_per_hand(LIMIT)
    proven = psconrl.certify(model(value, LIMIT), best)
    print(f"within {LIMIT}:    wins {value:.6f} a hand, busts in {per_hand(best)[1]:.4f} of them")
    print(f"certificate holds: {proven.holds}, no policy wins {abs(proven.gap) / hands_per_step(best):.0e} more a hand")
    print(f"one bust less in a hundred hands costs {best.multipliers[0] / 100:.6f} a hand")

    print("\nstick from      ace " + " ".join(f"{card:>3}" for card in list(CARDS)[1:]))
    for name, plan in (("free", free), ("limit", best)):
        for ace, kind in enumerate(("hard", "soft")):
            print(f"{name:5} {kind} " + " ".join(f"{total:>4}" for total in sticks_from(plan, ace)))

    mean, error = played(best.policy, rounds)
    print(f"\non Gymnasium's table, {rounds} steps:")
    print(f"wins {mean[0]:.4f} ± {error[0]:.4f} a hand, busts in {mean[1]:.4f} ± {error[1]:.4f} of them")


if __name__ == "__main__":
    main()
