"""A CMDP as a Gymnasium environment: a continuing task with constrained costs."""

from typing import Any

import gymnasium
import numpy as np

from psconrl.base.escaping import quoted
from psconrl.envs.registry import load
from psconrl.envs.rendering import as_image, as_text
from psconrl.errors import ConfigError, PolicyError, unknown_name
from psconrl.model.cmdp import CMDP
from psconrl.model.simulation_tables import Tables
from psconrl.systems.system import System


class CMDPEnv(gymnasium.Env[int, int]):
    """Any CMDP as a Gymnasium environment.

    ``model``: a CMDP; a ``System`` whose noise is known, whose rounds incur their realised costs; or the name of a
    built-in environment, whose options are the remaining keyword arguments.
    ``render_mode``: None, ``"ansi"`` (text) or ``"rgb_array"`` (a picture).

    The reward is the negative cost of the objective (the reward itself, if the model was built from rewards).
    ``info["costs"]`` holds the m constrained costs, ``info["cost"]`` their sum. The task never ends: ``terminated`` is
    always False, and so is ``truncated``, unless you ask for a ``TimeLimit``, as by ``gymnasium.make(id,
    max_episode_steps=200)``. If some actions are unavailable in some states, ``info["action_mask"]`` marks those
    available now; any other is an error. ``emission``: the distribution of costs, as in ``psconrl.simulate``. The same
    seed gives the same random outcomes as ``psconrl.simulate`` on the model.

    >>> env = CMDPEnv("counterexample", theta=0.5)
    >>> env.reset(seed=0)
    (0, {})
    >>> state, reward, terminated, truncated, info = env.step(1)
    >>> reward, info["cost"]
    (1.0, 1.0)
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        model: CMDP | System | str,
        *,
        emission: str = "deterministic",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(model, str) and options:
            raise ConfigError(f"options go with the name of an environment, not with a model; got {', '.join(options)}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ConfigError(unknown_name("render_mode", render_mode, self.metadata["render_modes"]))
        system = model if isinstance(model, System) else None
        if system is not None and emission != "deterministic":
            raise ConfigError(
                f"a system incurs realised costs, so that emission must be 'deterministic'; got {quoted(emission)}"
            )
        if isinstance(model, System):
            model = model.model_for_learning()
        self.model = model if isinstance(model, CMDP) else load(model, **options)
        self.observation_space: Any = gymnasium.spaces.Discrete(self.model.n_states)
        self.action_space: Any = gymnasium.spaces.Discrete(self.model.n_actions)
        self.render_mode = render_mode
        self._tables = Tables.of(self.model, emission) if system is None else system.tables()
        self._masked = not self.model.available.all()
        self._state: int | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start from the initial distribution of the model."""
        super().reset(seed=seed)
        self._state = int(self.np_random.choice(self.model.n_states, p=self.model.initial))
        return self._state, self._mask_info(self._state)

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Play one transition; the task never ends."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        if not self.action_space.contains(action):
            raise PolicyError(f"action must lie in 0..{self.model.n_actions - 1}; got {quoted(action)}")
        if not self.model.available[self._state, action]:
            where = f"in state {self.model.state_name(self._state)!r}"
            raise PolicyError(
                f"action {quoted(self.model.action_name(int(action)))} is not available {where}; see "
                "info['action_mask']"
            )
        tables = self._tables
        pair = self._state * self.model.n_actions + int(action)
        low, high = tables.indptr[pair], tables.indptr[pair + 1]
        k = low + np.searchsorted(tables.cdf[low:high], self.np_random.random(), side="right")
        k = min(k, high - 1)
        costs = tables.emitted(k, self.np_random.random(len(tables.outcomes) if tables.emission else 0))
        self._state = int(tables.successors[k])
        info = {"costs": costs[1:], "cost": float(costs[1:].sum())} | self._mask_info(self._state)
        return self._state, -float(costs[0]), False, False, info

    def render(self) -> Any:
        """Return the state as text (``ansi``) or as a picture (``rgb_array``)."""
        if self.render_mode is None:
            gymnasium.logger.warn("render needs a render_mode, given when the environment is made: ansi or rgb_array")
            return None
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset before render")
        draw = as_text if self.render_mode == "ansi" else as_image
        return draw(self.model, self._state)

    def _mask_info(self, state: int) -> dict[str, Any]:
        return {"action_mask": self.model.available[state].astype(np.int8)} if self._masked else {}
