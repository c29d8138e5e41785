"""The base class of this library's agents: known costs, parts, and the random generator used for planning.

Playing is in ``player``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.caps import memory_gb
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import Kind, read_fields, reals
from psconrl.errors import AgentError
from psconrl.learning.argument_checks import as_costs, as_ranges
from psconrl.learning.constructor_arguments import check_arguments
from psconrl.learning.part import Part, argument_names, arguments
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.runtime import persistence
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.cost_scale import CostScale, ObjectiveRange
from psconrl.learning.runtime.episode_plan import EpisodePlan
from psconrl.learning.runtime.player import Player
from psconrl.learning.runtime.random_numbers import restored_generator, seed_sequences
from psconrl.learning.runtime.running_episode import Play

PER_TABLE_ENTRY = 1e-7  # rough planning time in seconds per (s, a, s'), for agents that keep full tables


class Agent(Player):
    """Base class of this library's agents. A subclass implements ``begin``.

    Constructor arguments are kept as attributes of the same names. An agent that keeps more than the counts also
    extends ``end``, ``state`` and ``restore``.
    """

    parts: ClassVar[Mapping[str, Part | None]] = {}  # the slots and their default parts
    theory: ClassVar[type[Part] | None] = None  # the confidence radius of its theory, if any
    theory_constants: ClassVar[tuple[str, ...]] = ()  # options for what its theory assumes to be known of the model
    table_bytes: ClassVar[float] = 0.0  # bytes per (s, a, s'), for agents that keep full tables
    # Whether ``ranges`` must hold noisy costs, as for confidence bounds; to scale costs, those of the means are enough.
    ranges_include_noise: ClassVar[bool] = True
    keeps_multipliers: ClassVar[bool] = False  # one per threshold, initially 0, which are saved with the agent
    multipliers: Floats
    # If costs are learned: an objective that counts as one observation of every pair, and guesses with their weight.
    optimistic_cost: float | None = None
    guessed_costs: Floats | None = None
    cost_weight: float | Floats | None = 0.0
    # Of agents that scale costs to [0, 1]: what the caller said of their ranges, and the scale.
    ranges: Floats | None = None
    _scale: CostScale

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._trusted = _is_ours(cls)  # checking an episode takes 30 µs, a fifth of its time
        if not cls._trusted and "name" not in cls.__dict__:
            cls.name = cls.__name__  # a saved file must not confuse it with the class it extends

    def __new__(cls, *given: Any, **options: Any) -> Self:
        """Check the arguments before Python does: its message on a missing one does not say what to write."""
        if given or options:  # copies are made without arguments
            check_arguments(cls, given, options)
        return super().__new__(cls)

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, seed)
        if self.table_bytes:
            most = int((1e9 * memory_gb() / self.table_bytes / self.n_actions) ** 0.5)
            why = f" that keeps tables of all (s, a, s'), as {quoted(self.name)} does, for {most:,} states at most,"
            self._need(self.table_bytes * self.n_states**2 * self.n_actions, why)
        self.costs: Floats | None = None
        if costs is not None:
            self.costs = self._as_costs(costs, "costs")
        if self.keeps_multipliers:
            self.multipliers = np.zeros(self.thresholds.size)
        self.rng = np.random.Generator(np.random.PCG64(seed_sequences(seed)[0]))

    def why_slow(self) -> str:
        """Return a line on slow planning, estimated from the size of its tables; empty if planning is fast."""
        seconds = PER_TABLE_ENTRY * self.n_states**2 * self.n_actions if self.table_bytes else 0.0
        if seconds < 1.0:
            return ""
        return (
            f"a plan may take {seconds:.0f} s: {quoted(self.name)} keeps tables of all (s, a, s'). 'psconrl' and "
            "the other posterior samplers are made for models of this size"
        )

    def why_short_sighted(self, maximise: bool) -> str:
        """Return a line of advice if rewards are learned without a bound on how large they can be."""
        if not maximise or not self._lacks_bounds:
            return ""
        options = argument_names(type(self))
        if "optimistic_cost" in options:
            remedy = "optimistic_cost, minus the largest reward of a round"
        elif "ranges" in options:
            remedy = "ranges, the lowest and highest value of every cost; those of a reward are negative"
        else:
            return ""
        return (
            "the objective is a reward that is learned, and nothing says how large it can be: a large one far away may "
            f"never be looked for. Give {remedy}"
        )

    @property
    def _lacks_bounds(self) -> bool:
        """True if costs are learned, and nothing says how low the objective can be."""
        bounded = self.ranges is not None or self.guessed_costs is not None or self.optimistic_cost is not None
        return self._learns_costs and not bounded

    @property
    def _learns_costs(self) -> bool:
        """True if costs are learned pair by pair."""
        return self.costs is None

    def _as_costs(self, given: ArrayLike, what: str) -> Floats:
        """Return a checked copy of costs (m+1, S, A) given by the caller."""
        costs, shape = as_costs(given, what).copy(), (self.n_costs, self.n_states, self.n_actions)
        if costs.shape != shape:
            raise AgentError(f"{what} must be finite and have shape (m+1, S, A) = {shape}; got {costs.shape}")
        return costs

    def _scale_costs(self, ranges: ArrayLike | None) -> None:
        """Scale costs to [0, 1] by given ranges (m+1, 2), the known costs, or as they are; called by a constructor."""
        self.ranges = None if ranges is None else as_ranges(ranges, self.n_costs)
        self._scale = CostScale.of(self.costs, self.ranges, self.n_costs)

    def _set_out(self, episode: Episode, planning_time: float = 0.0, interim: bool = False) -> Play:
        if self.keeps_multipliers and episode.plan is None:
            episode = replace(episode, plan=EpisodePlan(targets=self.thresholds, prices=self.multipliers.copy()))
        return super()._set_out(episode, planning_time, interim)

    def _objective_range(self, seen: Counts | None = None) -> ObjectiveRange:
        """Return the range of the objective that was given or known; else one that grows with what was met.

        ``seen``: what was met, by default so far.
        """
        counts = self.counts if seen is None else seen
        tried = counts.pairs > 0
        if self.costs is not None or self.ranges is not None or not tried.any():
            lowest, highest, units = self._scale
            return ObjectiveRange(float(lowest[0]), float(highest[0]), float(units[0]))
        return ObjectiveRange.grown(counts.mean_costs()[0][tried])

    def _part(self, slot: str, given: Part | None) -> Any:
        """Return a private copy of the part for a slot, or of the default part if none is given."""
        chosen = self.parts[slot] if given is None else given
        if chosen is None:
            return None
        part = Part.kinds[slot].checked(chosen).made_for(self.n_states, self.n_actions, self.thresholds.size)
        if not _is_ours(type(part)):
            self._trusted = False
        return part

    def _known_or_mean_costs(self) -> Floats:
        """Return the known costs, or their means."""
        if self.costs is not None:
            return self.costs
        weight = 1.0 if self.cost_weight is None else self.cost_weight
        return self.counts.mean_costs(self.optimistic_cost, self.guessed_costs, weight)

    def _known_or_hopeful_costs(self) -> Floats:
        """Return the known costs, or their means, with an objective for untried pairs that makes the agent try them."""
        if self.costs is not None:
            return self.costs
        return self.counts.hopeful_costs(self.optimistic_cost)

    def _known_or_bold_costs(self) -> Floats:
        """Return the known costs, or their means, with an objective for untried pairs better than all rewards met.

        Where no reward was met, untried pairs are free: for agents with a bonus, which tries them as well.
        """
        means = self._known_or_mean_costs()
        return means if self.costs is not None or means[0].min() >= 0.0 else self._known_or_hopeful_costs()

    def _known_or_lowest_costs(self) -> Floats:
        """Return the known costs, or their means, with the lowest costs of the scale for untried pairs."""
        if self.costs is not None:
            return self.costs
        lowest = self._scale.lowest.copy()
        lowest[0] = self._objective_range().lowest
        return np.where(self.counts.pairs > 0, self.counts.mean_costs(), lowest[:, None, None])

    def config(self) -> dict[str, Any]:
        """Return the constructor arguments, except the seed, as plain data."""
        return arguments(self)

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction: numbers, arrays and generators."""
        remembered = {slot: part.state() for slot, part in self._filled().items()}
        multipliers = {"multipliers": self.multipliers} if self.keeps_multipliers else {}
        return super().state() | {"rng": self.rng.bit_generator.state, "parts": remembered} | multipliers

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().restore(state)
        described: dict[str, Kind] = {"rng": restored_generator, "parts": self._restore_parts}
        if self.keeps_multipliers:
            described["multipliers"] = reals(self.thresholds.shape, 0.0)
        saved = read_fields(state, described)
        self.rng = saved["rng"]
        if self.keeps_multipliers:
            self.multipliers = saved["multipliers"]

    def _restore_parts(self, state: Any) -> None:
        parts = self._filled()
        read_fields(
            state,
            {slot: part.restore for slot, part in parts.items()},
            may_be_missing=[slot for slot, part in parts.items() if not part.state()],
        )

    def _filled(self) -> dict[str, Part]:
        parts = {slot: getattr(self, slot) for slot in self.parts}
        return {slot: part for slot, part in parts.items() if part is not None}

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load a saved agent, which continues bit for bit. ``extra`` holds what was saved with it."""
        return persistence.rebuilt(cls, persistence.read_saved(path), path)


def _is_ours(cls: type) -> bool:
    """Whether a class is part of this library. Its episodes then need no check before a compiled loop plays them."""
    return cls.__module__.startswith("psconrl.learning.")
