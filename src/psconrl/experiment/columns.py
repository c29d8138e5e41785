"""Reading the columns of a results file. What is not as a sweep writes it is one clear line: the file is damaged."""

import json
import math
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from psconrl.arrays import Floats
from psconrl.errors import StoreError
from psconrl.learning.checks import is_whole

LARGEST = 2**53  # of whole numbers: beyond, floats skip some


class Columns:
    """Values of the types they must have, or an error that names the file and the place."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def wrong(self, where: str, wanted: str) -> NoReturn:
        """Say what is damaged."""
        raise StoreError(
            f"{self._path}: damaged: {where} must be {wanted}. Take an older copy, or run the sweep into a new file"
        )

    def text(self, value: Any, where: str) -> str:
        """Text."""
        return value if isinstance(value, str) else self.wrong(where, "text")

    def whole(self, value: Any, where: str) -> int:
        """A whole number from 0 on."""
        if not is_whole(value) or not 0 <= value <= LARGEST:
            self.wrong(where, "a whole number from 0 on")
        return value

    def number(self, value: Any, where: str, finite: bool = True) -> float:
        """A number."""
        if isinstance(value, float) and not finite:
            return value
        if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= 1e308:
            self.wrong(where, "a number")
        return float(value)

    def numbers(self, value: Any, where: str, length: int | None = None) -> list[float]:
        """A list of numbers, of a length if one is given."""
        if not isinstance(value, list) or (length is not None and len(value) != length):
            self.wrong(where, "a list of numbers" if length is None else f"a list of {length} numbers")
        return [self.number(x, where) for x in value]

    def texts(self, value: Any, where: str) -> list[str]:
        """A list of texts."""
        return [self.text(x, where) for x in value] if isinstance(value, list) else self.wrong(where, "a list of texts")

    def json(self, value: Any, where: str) -> Any:
        """What a column of JSON holds."""
        try:
            return json.loads(self.text(value, where))
        except (ValueError, RecursionError):
            self.wrong(where, "JSON")

    def table(self, value: Any, where: str) -> dict[str, Any]:
        """An object of JSON."""
        found = self.json(value, where)
        return found if isinstance(found, dict) else self.wrong(where, "a JSON object")

    def points(self, rows: list[tuple[Any, ...]], where: str, n_costs: int) -> Floats:
        """Checkpoints (n, q, 5) of round, cost, total, strong, largest: every cost in every round, rounds rising."""
        try:
            points = np.array(rows, dtype=np.float64).reshape(-1, n_costs, 5)
        except (TypeError, ValueError, OverflowError):
            self.wrong(where, f"numbers for each of {n_costs} costs")
        rounds = points[:, :, 0]
        if (
            not points.size
            or not (rounds >= 1).all()
            or not (rounds <= LARGEST).all()
            or (np.diff(rounds[:, 0]) <= 0).any()
        ):
            self.wrong(where, "at rounds from 1 on, one after the other")
        if (rounds != rounds[:, :1]).any() or (points[:, :, 1] != np.arange(n_costs)).any():
            self.wrong(where, f"numbers for each of {n_costs} costs")
        if not np.isfinite(points[:, :, 2]).all():
            self.wrong(where, "finite")
        return points

    def facts(self, value: Any, where: str) -> dict[str, Any]:
        """What is known of an experiment, as ``experiment.environment_record`` writes it."""
        facts = self.table(value, where)
        self.text(facts.get("env"), f"env in {where}")
        if not facts.get("drawn"):
            for key in ("states", "actions"):
                self.whole(facts.get(key), f"{key} in {where}")
            names = self.texts(facts.get("cost_names"), f"cost_names in {where}")
            lengths = {"optimum": len(names), "prices": len(names) - 1, "thresholds": len(names) - 1}
            has_optimum = "infeasibility" not in facts and facts.get("status") != "unknown"  # of what is only played
            for key, length in lengths.items():
                if key in facts or has_optimum:
                    self.numbers(facts.get(key), f"{key} in {where}", length)
        for key in ("fastest", "safest"):
            if key in facts:
                self.number(facts[key], f"{key} in {where}")
        if "gap" in facts:
            self.number(facts["gap"], f"gap in {where}", finite=False)
            facts["certified"] = facts.get("certified") is True
        return facts

    def summary(self, value: Any, where: str) -> dict[str, Any]:
        """What is kept of a run's episodes, as ``experiment.job`` writes it."""
        summary = self.table(value, where)
        rounds = summary.get("rounds")
        if not isinstance(rounds, dict):
            self.wrong(f"rounds in {where}", "a JSON object")
        sizes: dict[str, float] = {
            key: self.number(summary[key], f"{key} in {where}") for key in ("states", "actions") if key in summary
        }
        if "diameter" in summary:
            sizes["diameter"] = self.number(summary["diameter"], f"diameter in {where}", finite=False)
        episodes = self.number(summary.get("episodes"), f"episodes in {where}")
        counted = {kind: self.number(n, f"rounds in {where}") for kind, n in rounds.items()}
        return summary | sizes | {"episodes": episodes, "rounds": counted}

    def seconds(self, record: dict[str, Any], key: str, where: str) -> float:
        """A time in a record of provenance; nan if it was not taken."""
        return self.number(record[key], f"{key} in {where}", finite=False) if key in record else math.nan
