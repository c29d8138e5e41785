"""Validated reading of values in a file of results. Unexpected content raises a one-line error: file damaged."""

import json
import math
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import StoreError
from psconrl.learning.argument_checks import is_whole

LARGEST_WHOLE = 2**53  # the largest whole number accepted: beyond it floats are not exact


class ColumnReader:
    """Checks values for their type; errors name the file and the place."""

    def __init__(self, path: Path, remedy: str = "Take an older copy, or run the sweep into a new file") -> None:
        self._path, self._remedy = path, remedy

    def wrong(self, where: str, wanted: str) -> NoReturn:
        """Raise an error that says what is damaged."""
        raise StoreError(f"{self._path}: damaged: {' '.join(where.split())} must be {wanted}. {self._remedy}")

    def text(self, value: Any, where: str) -> str:
        """Return the value, which must be text."""
        return value if isinstance(value, str) else self.wrong(where, "text")

    def whole(self, value: Any, where: str) -> int:
        """Return the value, which must be a whole number from 0 on."""
        if not is_whole(value) or not 0 <= value <= LARGEST_WHOLE:
            self.wrong(where, "a whole number from 0 on")
        return value

    def number(self, value: Any, where: str, finite: bool = True) -> float:
        """Return the value as a float; it must be a number."""
        if isinstance(value, float) and not finite:
            return value
        if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= 1e308:
            self.wrong(where, "a number")
        return float(value)

    def numbers(self, value: Any, where: str, length: int | None = None) -> list[float]:
        """Return the value, which must be a list of numbers, of the given length if any."""
        if not isinstance(value, list) or (length is not None and len(value) != length):
            self.wrong(where, "a list of numbers" if length is None else f"a list of {length} numbers")
        return [self.number(x, where) for x in value]

    def prices(self, value: Any, where: str, length: int) -> list[float]:
        """Return the value, which must be a list of numbers from 0 on."""
        if any(price < 0 for price in self.numbers(value, where, length)):
            self.wrong(where, "a list of numbers from 0 on")
        return self.numbers(value, where, length)

    def texts(self, value: Any, where: str) -> list[str]:
        """Return the value, which must be a list of texts."""
        return [self.text(x, where) for x in value] if isinstance(value, list) else self.wrong(where, "a list of texts")

    def json(self, value: Any, where: str) -> Any:
        """Return the contents of a column of JSON."""
        try:
            return json.loads(self.text(value, where))
        except (ValueError, RecursionError):
            self.wrong(where, "JSON")

    def table(self, value: Any, where: str) -> dict[str, Any]:
        """Return the contents of a column that must hold a JSON object."""
        found = self.json(value, where)
        return found if isinstance(found, dict) else self.wrong(where, "a JSON object")

    def points(self, rows: list[tuple[Any, ...]], where: str, n_costs: int) -> Floats:
        """Return checkpoints (n, q, 5) of round, cost, total, strong, largest.

        Rounds must increase, and every round must have every cost.
        """
        try:
            points = np.array(rows, dtype=np.float64).reshape(-1, n_costs, 5)
        except (TypeError, ValueError, OverflowError):
            self.wrong(where, f"numbers for each of {n_costs} costs")
        rounds = points[:, :, 0]
        if (
            not points.size
            or not (rounds >= 1).all()
            or not (rounds <= LARGEST_WHOLE).all()
            or (np.diff(rounds[:, 0]) <= 0).any()
        ):
            self.wrong(where, "at rounds from 1 on, one after the other")
        if (rounds != rounds[:, :1]).any() or (points[:, :, 1] != np.arange(n_costs)).any():
            self.wrong(where, f"numbers for each of {n_costs} costs")
        if not np.isfinite(points[:, :, 2]).all():
            self.wrong(where, "finite")
        return points

    def facts(self, value: Any, where: str) -> dict[str, Any]:
        """Return the facts of an experiment, as ``experiment.environment_record`` writes them."""
        facts = self.table(value, where)
        self.text(facts.get("env"), f"env in {where}")
        if not facts.get("drawn"):
            for key in ("states", "actions"):
                self.whole(facts.get(key), f"{key} in {where}")
            names = self.texts(facts.get("cost_names"), f"cost_names in {where}")
            lengths = {"optimum": len(names), "prices": len(names) - 1, "thresholds": len(names) - 1}
            has_optimum = "infeasibility" not in facts and facts.get("status") != "unknown"  # unknown: no model
            for key, length in lengths.items():
                if key in facts or has_optimum:
                    self.numbers(facts.get(key), f"{key} in {where}", length)
            if "range_prices" in facts:  # results of earlier versions have none
                self.prices(facts["range_prices"], f"range_prices in {where}", len(names) - 1)
        for key in ("fastest", "safest"):
            if key in facts:
                self.number(facts[key], f"{key} in {where}")
        if "gap" in facts:
            self.number(facts["gap"], f"gap in {where}", finite=False)
            facts["certified"] = facts.get("certified") is True
        return facts

    def summary(self, value: Any, where: str) -> dict[str, Any]:
        """Return the summary of a run's episodes, as ``experiment.job`` writes it."""
        summary = self.table(value, where)
        rounds = summary.get("rounds")
        if not isinstance(rounds, dict):
            self.wrong(f"rounds in {where}", "a JSON object")
        has_bounds = {"most_episodes", "diameter"} <= summary.keys()
        sizes = {
            key: self.number(summary.get(key), f"{key} in {where}", finite=key in ("states", "actions"))
            for key in ("states", "actions", "most_episodes", "diameter")
            if has_bounds or key in summary
        }
        episodes = self.number(summary.get("episodes"), f"episodes in {where}")
        counted = {kind: self.number(n, f"rounds in {where}") for kind, n in rounds.items()}
        return summary | sizes | {"episodes": episodes, "rounds": counted}

    def seconds(self, record: dict[str, Any], key: str, where: str) -> float:
        """Return a time from a record of provenance; nan if it was not measured."""
        return self.number(record[key], f"{key} in {where}", finite=False) if key in record else math.nan
