"""How much evidence is there of what is wrong in the ten trades? Likelihoods of the truth and of the best right system.

    python benchmarks/ten_trades_oracle.py [--only "lifts,bakery"] [--kinds "in time,known"] [--runs 3] [--first-run 0]

A run of ``ten_trades.py`` is played to its end. The oracle knows in which way the system is wrong, all parameters, and
when they change; of rates that change by fits it follows the probability of a fit from round to round. Printed is the
logarithm of its likelihood of what was seen, less the largest one of a right system: no test can do better on average.
Correlated noises of the trades in discrete time are left out.
"""

import argparse
import itertools
import math
import warnings
from collections.abc import Sequence

import numpy as np

from psconrl.learning.posterior.checks.result_likelihood import ResultLikelihood
from psconrl.learning.posterior.checks.round_results import RoundResults
from trades import TRADES, learning
from trades.simulator import CALM, FIT, STAY, Simulator, truth
from trades.trade import Numbers, Trade, Values

DRAWS = 300  # of an overdispersed parameter
LEAST = 1e-12  # probability
Seen = tuple[object, ...]
Distribution = dict[Seen, float]
KINDS = ("by state", "in time", "overdispersed", "correlated", "known")


def seen(trade: Trade, state: Values, action: Values, noise: Values) -> Seen:
    """Return what is seen of a round: the next state, noise and costs that are reported."""
    then = trade.step(state, action, noise)
    amounts = trade.amounts(state, action, noise, then)
    costs = (round(amounts[name], 9) for name in trade.costs_seen)
    return (*then.values(), *(noise[name] for name in trade.seen), *costs)


def distribution(trade: Trade, state: Values, action: Values, numbers: Sequence[Numbers]) -> Distribution:
    """Return the probabilities of what may be seen, as a mean over several parameters."""
    found: Distribution = {}
    for each in numbers:
        tables = [draw(state, action, each).items() for draw in trade.draws.values()]
        for values in itertools.product(*tables):
            probability = math.prod(max(p, 0.0) for _, p in values) / len(numbers)
            if probability > 0.0:
                noise = dict(zip(trade.draws, (value for value, _ in values), strict=True))
                key = seen(trade, state, action, noise)
                found[key] = found.get(key, 0.0) + probability
    return found


class Oracle:
    """Predicts what is seen of a wrong system, round by round."""

    def __init__(self, real: Simulator) -> None:
        self._trade, self._kind, self._numbers = real.trade, real.kind, real.numbers
        other = Simulator(real.trade, real.kind, real.numbers, 1, 0)
        self._draws = [other._numbers_now() for _ in range(DRAWS)]  # of what is drawn in every round
        self._fit = np.array([0.0, 1.0])  # probabilities of a fit, and of none
        self._kept: dict[Seen, Distribution] = {}

    def log(self, state: Values, action: Values, now: Numbers, what: Seen) -> float:
        """Return the logarithm of the probability of what was seen, given the parameters where they are no draws."""
        trade, wrong = self._trade, self._trade.wrong
        if trade.timed and self._kind in ("overdispersed", "correlated"):
            names = wrong.correlated if self._kind == "correlated" else (wrong.overdispersed,)
            changed = [{name: self._numbers[name] * factor for name in names} for factor in (FIT, CALM)]
            self._fit = STAY * self._fit + (1.0 - STAY) * self._fit[::-1]
            shares = [self._of(state, action, [self._numbers | one], (k,), what) for k, one in enumerate(changed)]
            both = self._fit * shares
            self._fit = both / both.sum()
            return math.log(both.sum())
        if self._kind == "overdispersed":
            return math.log(self._of(state, action, self._draws, (), what))
        return math.log(self._of(state, action, [now], tuple(map(str, now.values())), what))

    def _of(self, state: Values, action: Values, numbers: Sequence[Numbers], tag: Seen, what: Seen) -> float:
        key = (*state.values(), *action.values(), *tag)
        if key not in self._kept:
            self._kept[key] = distribution(self._trade, state, action, numbers)
        return max(self._kept[key].get(what, 0.0), LEAST)


def evidence(trade: Trade, kind: str, run: int, rounds: int) -> float:
    """Return the logarithm of the oracle's likelihood, less the largest one of a right system."""
    numbers = truth(trade, np.random.default_rng([run, 1]))
    real = Simulator(trade, kind, numbers, rounds, [run, 2])
    learner = learning._made(trade, "psconrl", numbers, run)
    oracle, total = Oracle(real), 0.0
    draws = kind in ("overdispersed", "correlated")
    for _ in range(rounds):
        state = dict(real.state)
        action = learner.act(state)
        now = numbers if draws else real._numbers_now()
        noise, amounts = real.play(action)
        total += oracle.log(state, action, now, seen(trade, state, action, noise))
        learner.observe(action, real.state, **learning._reported(trade, "psconrl", noise, amounts))
    learner.finish()
    structure = learner.belief.known_structure
    results = RoundResults(structure)
    counted = results.new(learner.counts)
    times = np.bincount(counted.results, weights=counted.times, minlength=len(results.results)).astype(np.float64)
    return total - ResultLikelihood(structure, results).largest(times, learner.belief.parameters)[0]


def main() -> None:
    """Print the evidence of all runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(TRADES), help="trades")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--first-run", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, kind in itertools.product(options.only.split(","), options.kinds.split(",")):
        if TRADES[name].timed or kind != "correlated":
            runs = range(options.first_run, options.first_run + options.runs)
            found = [evidence(TRADES[name], kind, run, options.rounds) for run in runs]
            print(
                f"{name}, {kind}: {', '.join(f'{x:.1f}' for x in found)} nats in {options.rounds:,} rounds", flush=True
            )


if __name__ == "__main__":
    main()
