"""The base class of agents that plan blocks over the state and an account of the one constrained cost."""

import math
from typing import Any

from psconrl.base.saved_fields import maybe, read_fields, real
from psconrl.errors import AgentError
from psconrl.learning.account_blocks import Block, moves_and_unit, need_room, practical_cell
from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import as_count, as_fraction
from psconrl.learning.posterior.counts import Record


class AccountAgent(Agent):
    """The account, the block in progress, and both in files. A subclass plans the blocks."""

    horizon: int
    H: int  # rounds of a block
    grid: float | None  # the width of the account's grid in ranges of the constrained cost, if it is given
    account: float  # cumulative excess over the threshold, in units of the constrained cost
    _block: Block | None

    def _open_account(self, horizon: Any, H: Any, grid: Any, instead: str) -> None:
        """Check what the blocks and the grid are to be; ``instead``: other agents. Called by a constructor."""
        if self.thresholds.size != 1:
            raise AgentError(
                f"{self.name} serves models with one constraint; got {self.thresholds.size}. Use {instead}"
            )
        self.horizon = as_count(horizon, "horizon")
        self.H = math.isqrt(self.horizon) if H is None else as_count(H, "H")
        self.grid = None if grid is None else as_fraction(grid, "grid")
        self.account, self._block = 0.0, None
        reach = math.ceil(1.0 / self.cell) + 1
        if self.costs is not None:
            reach = moves_and_unit(self.costs[1], float(self.thresholds[0]), self.cell)[0].reach
        need_room(self.H, reach, self.n_states, self.cell)

    @property
    def cell(self) -> float:
        """The width of the grid, in ranges of the constrained cost."""
        return practical_cell(self.horizon) if self.grid is None else self.grid

    @property
    def longer_plan(self) -> Block | None:
        """The present block; an episode is a few steps of it."""
        return self._block

    def _limits_changed(self, playing: Record | None) -> None:
        if self._block is not None:
            self._block.step = self.H  # the present episode is the last of the block

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        saved = None if self._block is None else self._block.saved()
        return super().state() | {"account": self.account, "block": saved}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().restore(state)

        def block(saved: dict[str, Any]) -> Block:
            return Block.restored(saved, self.H, self.n_states, self.n_actions, self.cell)

        self.account, self._block = read_fields(state, {"account": real(), "block": maybe(block)}).values()
