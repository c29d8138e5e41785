"""Runs on a known model: compiled, interruptible, and resumable bit for bit."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from psconrl.base.arrays import Ints
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import Kind, flag, in_field, integer, integers, need_that, read_fields, real, reals, text
from psconrl.errors import AgentError, ConfigError
from psconrl.kernels.play.play_loop import EpisodeInPlay, RunSoFar, play
from psconrl.kernels.play.rounds import LastRound
from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import need_all_actions
from psconrl.learning.posterior.counts import LARGEST_SUM
from psconrl.learning.registry import load_agent
from psconrl.learning.runtime.adapter import adapt
from psconrl.learning.runtime.contract import NO_CAP, Learner
from psconrl.learning.runtime.persistence import in_file
from psconrl.learning.runtime.player import Player
from psconrl.learning.runtime.random_numbers import UniformStream, saved_seed
from psconrl.learning.runtime.stepping import Stepping
from psconrl.learning.system_agent import SystemAgent
from psconrl.model.cmdp import CMDP
from psconrl.model.fingerprint import fingerprint
from psconrl.model.names import Names
from psconrl.model.simulation_tables import Tables
from psconrl.simulation.policy_values import PolicyValues
from psconrl.simulation.realised_costs import realised
from psconrl.simulation.run import Run, Snapshots
from psconrl.simulation.trace import EpisodeLog, PolicyLog
from psconrl.systems.system import System

_NO_CAPS = np.empty(0, dtype=np.int64)


class Simulation(Run):
    """A run of an agent on a model that is unknown to the agent; it can be saved and resumed.

    ``cmdp``: the model. ``emission`` and ``evaluate_policies``: as in ``psconrl.simulate``, which is this class with
    one call.

    The model's random numbers come from ``seed``, the agent's from its own seed, so that different agents meet common
    random numbers. ``agent`` may be any object with ``begin`` and ``end``; its actions are then drawn from ``seed`` as
    well. The model waits while the agent plans, even if planning in the background is on: no time passes in a
    simulation.
    """

    def __init__(
        self,
        cmdp: CMDP | System,
        agent: Player | Learner,
        seed: int | Sequence[int] | None = None,
        *,
        emission: str = "deterministic",
        evaluate_policies: bool = False,
        resumed: bool = False,
    ) -> None:
        given = cmdp
        if isinstance(given, System) and emission != "deterministic":
            raise ConfigError(
                f"a system incurs realised costs, so that emission must be 'deterministic'; got {quoted(emission)}"
            )
        cmdp = given.model_for_learning() if isinstance(given, System) else given
        player = adapt(agent, cmdp.n_states, cmdp.n_actions, cmdp.thresholds, seed)
        expected = (cmdp.n_states, cmdp.n_actions, cmdp.n_constraints)
        got = (player.n_states, player.n_actions, player.n_costs - 1)
        if expected != got:
            raise AgentError(f"the model has (S, A, m) = {expected}, the agent was made for {got}")
        need_all_actions(cmdp.available)
        _need_same_order(player, cmdp)
        super().__init__(
            player,
            cmdp.thresholds,
            cmdp.cost_names,
            {
                "seed": seed,
                "emission": emission,
                "maximise": cmdp.maximise,
                "units": cmdp.units.record(),
                "model": fingerprint(given.model() if isinstance(given, System) else cmdp),
            },
            resumed,
        )
        self.cmdp, self.seed = cmdp, seed
        self.emission, self.evaluate_policies = emission, evaluate_policies
        self._tables = given.tables() if isinstance(given, System) else Tables.of(cmdp, emission)
        self._realises_costs = isinstance(given, System)
        try:
            rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        except (TypeError, ValueError):
            raise ConfigError(f"seed must be a whole number from 0 on, or several; got {quoted(seed)}") from None
        self.state = int(rng.choice(cmdp.n_states, p=cmdp.initial))
        self._uniforms = UniformStream(rng, width=1 + (len(cmdp.costs) if self._tables.emission else 0))
        self._values = PolicyValues(cmdp) if evaluate_policies else None

    def _advance(self, horizon: int, grid: Ints, reached: int, at: Snapshots) -> tuple[int, bool]:
        """Play the episode in progress, or a new one, until one block of random numbers is used up."""
        agent = self.agent
        current = agent.play(self.state)
        episode, record = current.episode, current.record
        if record.steps == 0:
            self._note_beginning(episode, current.planning_time)
        room = horizon - self.round
        if self._values is not None:
            self._values.begin(agent, episode, record.steps == 0, self.state, self.round, horizon)
            room = min(room, self._values.room(self.round) or room)
        actions, model = agent.action_uniforms, self._uniforms
        actions.refill()
        model.refill()
        tally = record.tally
        drawn = min(len(actions.block) - actions.position, len(model.block) - model.position)
        steps = min(drawn, tally.room(), room)
        tables = self._tables
        learner = agent.learner if isinstance(agent, Stepping) else None
        last_round = None
        if isinstance(agent, Stepping) and (learner is None or self._recorder is not None):
            steps, learner = 1, (last_round := LastRound(self.cumulative.size))
        elif self._recorder is not None:
            learner = self._recorder.recorder
        rounds = EpisodeInPlay(
            state=self.state,
            step=record.steps,
            steps=steps,
            max_steps=min(episode.max_steps, NO_CAP),
            policy=episode.policy if episode.policy.ndim == 3 else episode.policy[None],
            caps=_NO_CAPS if episode.visit_caps is None else episode.visit_caps.ravel(),
            action_uniforms=actions.block[actions.position :],
            model_uniforms=model.block[model.position :],
            visits=record.visits,
            log=tally.log[tally.logged :],
            cost_sums=record.cost_sums,
        )
        run = RunSoFar(
            rounds=self.round,
            thresholds=self.thresholds,
            cumulative=self.cumulative,
            largest=self.largest_excess,
            checkpoints=grid,
            next_checkpoint=reached,
            at_checkpoints=at.cumulative,
            largest_at_checkpoints=at.largest_excess,
        )
        self.state, played, reached, ended = play(tables, rounds, run, learner)
        if isinstance(agent, Stepping):
            if last_round is None:
                agent.learned(played)
            else:
                agent.learn(*last_round.last())
                if self._recorder is not None:
                    self._recorder.note(*last_round.last())
        if self._realises_costs and isinstance(agent, SystemAgent):
            numbers = tally.log[tally.logged : tally.logged + played]
            uniforms = model.block[model.position : model.position + played, 0]
            agent.saw_costs(record, *realised(tables, numbers, uniforms, self.cmdp.n_states))
        actions.position += played
        model.position += played
        record.steps += played
        tally.logged += played
        self.round += played
        self.log.length[-1] = record.steps
        if self._values is not None:
            self._values.played(played)
        return reached, ended

    def _names(self) -> Names:
        return self.cmdp.names

    def _policies(self) -> PolicyLog:
        return PolicyLog() if self._values is None else self._values.log.copy()

    def save(self, path: Any) -> None:
        """Write agent and run to one file, from which ``resume`` continues bit for bit."""
        extra = {
            "model": _fingerprint(self.cmdp),
            "seed": self.seed,
            "emission": self.emission,
            "evaluate_policies": self.evaluate_policies,
            "state": self.state,
            "uniforms": self._uniforms.state(),
            "round": self.round,
            "cumulative": self.cumulative,
            "log": self.log.state(),
            "policies": None if self._values is None else self._values.state(),
            "seconds": self.seconds,
            "horizon": self.horizon,
            "rounds": np.array(self._rounds, dtype=np.int64),
            "costs": np.array(self._costs).reshape(-1, self.cumulative.size),
            "largest_excess": self.largest_excess,
            "excesses": np.array(self._excesses).reshape(len(self._rounds), self.largest_excess.size),
        }
        self.agent.save(path, {"simulation": extra})

    @classmethod
    def resume(cls, cmdp: CMDP | System, path: Any, agent: type[Agent] | Learner | None = None) -> "Simulation":
        """Load a run from a file, on the model it was played on.

        ``agent``: for an agent that is not part of this library, your class, or a new object to restore.
        """
        if not isinstance(cmdp, CMDP | System):
            raise ConfigError(f"resume needs the model first, then the file; got {type(cmdp).__name__}")
        player = load_agent(path, agent)
        if "simulation" not in player.extra:
            raise AgentError(f"{path}: holds an agent but no run; load it with psconrl.load_agent")
        extra = player.extra.pop("simulation")
        model = cmdp.model_for_learning() if isinstance(cmdp, System) else cmdp
        if not isinstance(extra, dict) or extra.get("model") != _fingerprint(model):
            raise AgentError(f"{path}: was played on another model, or under other thresholds")
        with in_file(path), in_field("extra"), in_field("simulation"):
            options = read_fields(extra, {"seed": saved_seed, "emission": text(), "evaluate_policies": flag})
            run = cls(cmdp, player, **options, resumed=True)
            run._restore(extra)
        return run

    def _restore(self, extra: dict[str, Any]) -> None:
        q, m = self.cumulative.size, self.largest_excess.size
        self.log = EpisodeLog()
        described: dict[str, Kind] = {
            "state": integer(0, self.cmdp.n_states - 1),
            "uniforms": self._uniforms.restore,
            "round": integer(),
            "cumulative": reals((q,), -LARGEST_SUM, LARGEST_SUM),
            "log": self.log.restore,
            "seconds": real(0.0),
            "horizon": integer(),
            "rounds": integers((None,), 1),
            "largest_excess": reals((m,), 0.0, LARGEST_SUM),
        }
        if self._values is not None:
            values = self._values
            described["policies"] = lambda saved: values.restore(saved, self.agent)
        saved = read_fields(extra, described)
        self.state, self.round, self.horizon = saved["state"], saved["round"], saved["horizon"]
        self.cumulative, self.largest_excess = saved["cumulative"], saved["largest_excess"]
        self.seconds, self._rounds = saved["seconds"], saved["rounds"].tolist()
        n = len(self._rounds)
        grids = {"costs": reals((n, q), -LARGEST_SUM, LARGEST_SUM), "excesses": reals((n, m), 0.0, LARGEST_SUM)}
        self._costs, self._excesses = map(list, read_fields(extra, grids).values())
        increasing = self._rounds == sorted({*self._rounds}) and max(self._rounds, default=0) <= self.round
        need_that(self.round <= self.horizon, "round must be at most the horizon")
        need_that(sum(self.log.length) == self.round, "round must be the sum of the lengths in the log")
        need_that(increasing, "rounds must increase, up to round")


def _need_same_order(agent: Player, cmdp: CMDP) -> None:
    """Raise an error if the agent has thresholds by name in another order than the costs of the model."""
    names, costs = agent.constraint_names, cmdp.cost_names[1:]
    if names is not None and names.names != costs and set(names.names) == set(costs):
        raise AgentError(
            f"the agent has its thresholds in the order {list(names.names)}, the model its costs in the order "
            f"{list(costs)}; make the agent with thresholds in the order of the costs"
        )


def _fingerprint(cmdp: CMDP) -> str:
    """Return a hash of everything that the simulation and the constraints depend on."""
    digest = hashlib.sha256()
    tables = Tables.of(cmdp, "deterministic")
    for places in (tables.indptr, tables.successors):
        digest.update(places.astype(np.int64).tobytes())
    for part in (tables.cdf, tables.outcomes, cmdp.initial, cmdp.thresholds):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
