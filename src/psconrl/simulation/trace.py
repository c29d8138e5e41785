"""Record of a run: exact cumulative costs at checkpoints, and an entry for every episode."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats, Ints
from psconrl.base.caps import need
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import integers, listed, need_that, read_fields, reals, text
from psconrl.errors import ConfigError
from psconrl.learning.argument_checks import as_count, is_whole
from psconrl.model.units import Units
from psconrl.simulation.run_trajectory import RunTrajectory

DEFAULT_CHECKPOINTS = 200
POINT_BYTES = 500  # memory of a checkpoint with a few costs, in arrays, in lists and on its way to a results file


@dataclass
class EpisodeLog:
    """Log with one entry per episode."""

    start: list[int] = field(default_factory=list)  # round before its first step
    length: list[int] = field(default_factory=list)
    kind: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)  # spent planning
    value: list[float] = field(default_factory=list)  # of the objective in the agent's model, as a cost; nan if none

    def __len__(self) -> int:
        return len(self.start)

    def copy(self) -> "EpisodeLog":
        """Return a copy, which does not change if the run continues."""
        return EpisodeLog(*(list(getattr(self, name)) for name in self.__dataclass_fields__))

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        whole = {name: np.array(getattr(self, name), dtype=np.int64) for name in ("start", "length")}
        numbers = {name: np.array(getattr(self, name), dtype=np.float64) for name in ("seconds", "value")}
        return whole | numbers | {"kind": self.kind}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        start: Ints = read_fields(state, {"start": integers((None,))})["start"]
        n = start.size
        saved = read_fields(
            state,
            {
                "length": integers((n,)),
                "kind": listed(text(), n),
                "seconds": reals((n,), 0.0, unknown=True),
                "value": reals((n,), infinite=True, unknown=True),
            },
        )
        before = np.cumsum(saved["length"]) - saved["length"]
        need_that((start == before).all(), "start must be the sums of the lengths before")
        self.start, self.length, self.kind = start.tolist(), saved["length"].tolist(), saved["kind"]
        self.seconds, self.value = saved["seconds"].tolist(), saved["value"].tolist()


@dataclass
class PolicyLog:
    """Log of the policies played and their exact averages, one entry per policy; empty if none were evaluated."""

    length: list[int] = field(default_factory=list)  # rounds in which it was played
    costs: list[Floats] = field(default_factory=list)  # (m+1,) averages in the true model

    def __len__(self) -> int:
        return len(self.length)

    def copy(self) -> "PolicyLog":
        """Return a copy, which does not change if the run continues."""
        return PolicyLog(list(self.length), list(self.costs))

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        return {"length": np.array(self.length, dtype=np.int64), "costs": np.array(self.costs, dtype=np.float64)}

    def restore(self, state: dict[str, Any], n_costs: int) -> None:
        """Put back what ``state`` returned."""
        self.length = read_fields(state, {"length": integers((None,))})["length"].tolist()
        n = len(self.length)
        shape = (n, n_costs) if n else (0,)  # an empty log has no columns
        self.costs = list(read_fields(state, {"costs": reals(shape, unknown=True)})["costs"])


@dataclass(frozen=True, eq=False)
class Trace:
    """Record of a run: cumulative costs at checkpoints, episodes, evaluated policies, and provenance."""

    rounds: Ints  # (n,)
    cumulative: Floats  # (n, m+1) realised costs
    largest_excess: Floats  # (n, m) largest cumulative violation over all rounds so far; at least 0
    episodes: EpisodeLog
    thresholds: Floats
    cost_names: tuple[str, ...]
    provenance: dict[str, Any]
    interrupted: bool = False
    policies: PolicyLog = field(default_factory=PolicyLog)
    trajectory: RunTrajectory | None = None  # all rounds, if they were recorded

    @property
    def horizon(self) -> int:
        """Number of rounds played."""
        return int(self.rounds[-1]) if self.rounds.size else 0

    @property
    def units(self) -> Units:
        """Units of the costs, if the model has any."""
        return Units(**self.provenance.get("units", {}))

    @property
    def averages(self) -> Floats:
        """Average of every cost up to each checkpoint, (n, m+1)."""
        return np.asarray(self.cumulative / np.maximum(self.rounds, 1)[:, None])

    def window_averages(self) -> Floats:
        """Return the average of every cost between one checkpoint and the next, (n, m+1)."""
        steps = np.diff(self.rounds, prepend=0)
        return np.asarray(np.diff(self.cumulative, axis=0, prepend=0.0) / np.maximum(steps, 1)[:, None])

    def count(self, kind: str) -> int:
        """Return the number of episodes of a kind, such as ``"explore"``."""
        return self.episodes.kind.count(kind)

    def __repr__(self) -> str:
        if not self.rounds.size:
            return "Trace(0 rounds)"
        averages = self.averages[-1]
        if self.provenance.get("maximise"):
            averages[0] = -averages[0]
        shown = ", ".join(f"{n} {x:.4g}" for n, x in zip(self.cost_names, averages, strict=True))
        return f"Trace({self.horizon} rounds, {len(self.episodes)} episodes, averages: {shown})"


def checkpoint_rounds(horizon: int, spec: int | str | ArrayLike | None) -> Ints:
    """Return the rounds to record, from a number of evenly spaced rounds, ``"log"``, or the rounds themselves.

    >>> checkpoint_rounds(100, 4).tolist(), checkpoint_rounds(1000, "log").tolist()[:6]
    ([25, 50, 75, 100], [1, 2, 3, 4, 5, 6])
    """
    as_count(horizon, "horizon", ConfigError)
    if spec is None:
        spec = DEFAULT_CHECKPOINTS
    if isinstance(spec, str):
        if spec != "log":
            raise ConfigError(f"checkpoints must be a number, 'log' or a list of rounds; got {quoted(spec)}")
        grid = np.unique(np.round(np.geomspace(1, horizon, DEFAULT_CHECKPOINTS)).astype(np.int64))
    elif is_whole(spec):
        if spec < 1:
            raise ConfigError(f"checkpoints must be at least 1; got {spec}")
        points = min(int(spec), int(horizon))
        need(points * POINT_BYTES, f"a run with {points:,} checkpoints", ConfigError)
        grid = np.unique(np.round(np.linspace(0, horizon, points + 1)).astype(np.int64))[1:]
    else:
        given = np.asarray(spec)
        if given.ndim != 1 or given.size == 0 or not np.issubdtype(given.dtype, np.integer) or given.min() < 1:
            raise ConfigError(f"checkpoints must be a number, 'log' or a list of rounds from 1 on; got {quoted(spec)}")
        grid = np.unique(given.astype(np.int64))
        grid = np.append(grid[grid < horizon], horizon)
    return grid
