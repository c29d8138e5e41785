"""Advice: what a log supports, from its faults to a policy and how sure that is."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.answers.answer import or_none
from psconrl.data.advice.advised_policy import AdvisedPolicy
from psconrl.data.advice.averages import Average
from psconrl.data.advice.decisions import AdvisedDecision
from psconrl.data.advice.guarantee import Guarantee
from psconrl.data.advice.improvement import Improvement, Verdict
from psconrl.data.advice.kept_limits import KeptLimit
from psconrl.data.advice.measuring import Measuring
from psconrl.data.advice.worth import LimitPrice
from psconrl.data.checks.finding import COVERAGE, REMARKS
from psconrl.data.checks.report import LogReport
from psconrl.data.rounds.recorded import Recorded
from psconrl.model.units import Units


@dataclass(frozen=True, eq=False)
class Advice:
    """What to do instead of what the log does, and how sure that is; ``str`` has the main lines.

    ``policy``: to be played: the proposal if the verdict is to improve or to pay, else what the log does. ``limits``,
    ``gain`` and ``decisions`` are those of the proposal, or if there is none, of what more data might allow
    (``is_recommended`` is then false). ``prices``: what one unit of each limit is worth. ``measuring``: what would
    settle the question if there are not enough data. ``guarantee``: the policy with a guarantee that needs no prior.
    """

    log: Recorded
    checks: LogReport
    averages: tuple[Average, ...]
    improvement: Improvement
    policy: AdvisedPolicy
    limits: tuple[KeptLimit, ...]
    decisions: tuple[AdvisedDecision, ...]
    prices: tuple[LimitPrice, ...]
    measuring: Measuring | None
    guarantee: Guarantee
    objective: str
    maximises: bool
    units: Units

    @property
    def verdict(self) -> Verdict:
        """Whether to improve, to pay for limits that are broken today, to keep what is done, or to collect data."""
        return self.improvement.verdict

    @property
    def is_recommended(self) -> bool:
        """Whether the proposal is recommended."""
        return self.verdict in (Verdict.IMPROVE, Verdict.PAY)

    @property
    def probability(self) -> float:
        """Probability that the proposal keeps all limits and is no worse than today's policy."""
        return self.improvement.probability

    @property
    def gain(self) -> tuple[float, float, float]:
        """By how much the proposal improves the objective per round: mean and interval; negative if it costs."""
        return self.improvement.gain

    def act(self, state: Any, rng: np.random.Generator | None = None) -> Any:
        """Return the action in a state, both as values of the columns of the log.

        >>> from psconrl.data.log import Log
        >>> rng = np.random.default_rng(0)
        >>> pump = rng.integers(2, size=500)
        >>> log = Log({"tank": [0] * 500, "pump": pump, "power": 2 - pump}, state="tank", action="pump", costs="power")
        >>> advice = log.improve()
        >>> advice.verdict, advice.act({"tank": 0}), advice.act(0)
        (<Verdict.IMPROVE: 'improve'>, {'pump': 1}, 1)
        """
        return self.policy.act(state, rng)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the policy as a table: state, action, probability, long_run_share."""
        self.policy.to_csv(path)

    def record(self) -> dict[str, Any]:
        """Return plain data for JSON; what is not finite becomes None."""
        mean, low, high = self.gain
        log = self.log
        return {
            "data": {
                "rounds": log.n_rounds,
                "runs": int(log.run.max(initial=0)) + 1,
                "states": log.n_states,
                "actions": log.n_actions,
                "gaps": log.gaps,
                "with_system": log.system is not None,
                "faults": [
                    {"kind": fault.kind, "count": fault.count, "lines": list(fault.lines), "message": str(fault)}
                    for fault in log.faults
                ],
            },
            "checks": self.checks.record(),
            "objective": {
                "name": self.objective,
                "sense": "maximise" if self.maximises else "minimise",
                "unit": self.units.average(self.objective),
            },
            "averages": [self._average(one) for one in self.averages],
            "verdict": self.verdict.value,
            "confidence": self.improvement.confidence,
            "recommended": self.is_recommended,
            "probability": self.probability,
            "gain": {"mean": or_none(mean), "low": or_none(low), "high": or_none(high)} | self._objective(),
            "limits": [limit.record() for limit in self.limits],
            "decisions": [decision.record() for decision in self.decisions],
            "prices": [dict(vars(price)) for price in self.prices],
            "measuring": None if self.measuring is None else self.measuring.record(),
            "guarantee": self.guarantee.record(),
        }

    def _objective(self) -> dict[str, float]:
        """Return the average of the objective under the proposal, with an interval, as in ``gain``."""
        level = self.improvement.confidence
        least = min(self.improvement.compared, key=lambda one: one.gain(level)[0])
        own = least.averages[:, 0] * (-1.0 if self.maximises else 1.0)
        low, high = np.quantile(own, [(1.0 - level) / 2.0, (1.0 + level) / 2.0]).tolist()
        return {"average": float(own.mean()), "average_low": low, "average_high": high}

    def _average(self, one: Average) -> dict[str, Any]:
        batch = None if one.batch is None or one.batch.batches < 2 else one.batch
        low, high = (None, None) if batch is None else map(or_none, batch.interval(one.level))
        return {
            "name": one.name,
            "unit": self.units.average(one.name),
            "mean": or_none(one.mean),
            "low": or_none(one.low),
            "high": or_none(one.high),
            "level": one.level,
            "in_log": None if batch is None else {"mean": or_none(batch.mean), "low": low, "high": high},
            "disagreement": one.disagreement,
        }

    @property
    def _of_tried(self) -> str:
        """Say so if actions that may matter were hardly tried."""
        hardly = self.log.system is None and any(one.check == COVERAGE for one in self.checks.findings)
        return " by what was tried; the log hardly tells what other actions do" if hardly else ""

    def __str__(self) -> str:
        mean, low, high = self.gain
        better, size = ("better", mean) if mean >= 0.0 else ("worse", -mean)
        low, high = (low, high) if mean >= 0.0 else (-high, -low)
        gain = f"{self.objective} {better} by {size:.4g} ({self.improvement.confidence:.0%}: {low:.4g} to {high:.4g})"
        head = {
            Verdict.IMPROVE: f"improve: {gain}",
            Verdict.PAY: f"pay: the limits are broken today, and to keep them makes {gain}",
            Verdict.KEEP: f"keep: today's policy keeps the limits, and hardly anything can be gained{self._of_tried}",
            Verdict.NOT_ENOUGH: "not enough data: no policy is good enough with the probability asked for",
        }[self.verdict]
        doubts = [f"  in doubt: {one.message}" for one in self.checks.findings if one.check not in REMARKS]
        parts = [
            head,
            *doubts,
            *(f"  {one}" for one in (*self.limits, *self.averages, *self.decisions[:3], *self.prices)),
        ]
        parts += [f"  {line}" for line in ([] if self.measuring is None else str(self.measuring).splitlines())]
        parts += [f"  {one}" for one in self.checks.findings if one.check == COVERAGE and self.log.system is None]
        return "\n".join([*parts, f"  {self.guarantee}"])
