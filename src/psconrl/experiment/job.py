"""One run of a sweep: its contents, its hash, its seeds, and what comes of it.

A job is data. It can be sent to another process or machine, and gives the same bits wherever it runs.
"""

import hashlib
import json
import platform
import socket
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.envs.registry import load
from psconrl.errors import ConfigError
from psconrl.experiment.versions import versions
from psconrl.learning.agent import Agent
from psconrl.learning.player import Player
from psconrl.learning.registry import make_agent, with_reward_hint
from psconrl.learning.sampler import Sampler
from psconrl.model.cmdp import CMDP
from psconrl.model.distance import diameter
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan
from psconrl.simulation.model_run import Simulation
from psconrl.simulation.regret import strong_regret, targets
from psconrl.simulation.trace import Trace

# Beyond, the diameter takes longer than the run.
DIAMETER_STATES = 100


@dataclass(frozen=True, eq=False)
class Job:
    """What to run: an agent on an environment, once."""

    experiment: str
    env: str
    env_options: Mapping[str, Any]
    thresholds: Mapping[str, float] | None  # other than the environment's
    label: str
    agent: str
    agent_options: Mapping[str, Any]
    known_costs: bool
    horizon: int
    checkpoints: int | str | list[int]
    emission: str
    evaluate: bool
    probe: list[int] | None
    seed: int
    replicate: int
    file: str  # digest of the model file, if it is one, as it was when the job was made

    @property
    def hash(self) -> str:
        """Of everything that the outcome depends on: the job, the model file, and the versions of the code."""
        return _digest(asdict(self) | {"env": Path(self.env).name, "versions": versions()})

    @property
    def model_key(self) -> tuple[str, str, str]:
        """What tells the models of jobs apart."""
        return Path(self.env).name, _canonical([self.env_options, self.thresholds]), self.file

    def model(self) -> CMDP:
        """The environment."""
        return _model(self.env, self.env_options, self.thresholds)

    def make_agent(self, cmdp: CMDP) -> Agent:
        """The agent, for its environment."""
        costs = cmdp.costs if self.known_costs else None
        options = dict(self.agent_options)
        if costs is None and cmdp.maximise:
            options = with_reward_hint(self.agent, -float(cmdp.costs[0].min()), options)
        seeds = self._entropy("agent", [self.agent, self.agent_options, self.known_costs])
        return make_agent(
            self.agent, cmdp.n_states, cmdp.n_actions, cmdp.thresholds, costs, seeds, self.horizon, **options
        )

    def world_seed(self) -> list[int]:
        """Of the environment's luck: the same for all agents, so that they can be compared run by run."""
        return self._entropy("world", None)

    def _entropy(self, stream: str, who: Any) -> list[int]:
        """Words for a ``SeedSequence``, from (seed, environment, agent, replicate)."""
        words = _digest([stream, Path(self.env).name, self.env_options, who])
        return [self.seed, self.replicate, *(int(words[k : k + 8], 16) for k in range(0, 32, 8))]


@dataclass(frozen=True, eq=False)
class Result:
    """What is kept of a run. ``error`` is the traceback of one that failed; then the rest is empty."""

    job: Job
    rounds: Ints
    cumulative: Floats  # (n, m+1)
    probe: Floats  # (n,) or empty
    strong: Floats  # (n, m+1) strong regret and violations if the policies were evaluated, or empty
    thresholds: list[float]
    optimum: list[float]  # the optimal averages (m+1,) of its model; empty if the limits cannot be met
    summary: dict[str, Any]  # episodes, their kinds, rounds by kind, S, A, diameter, bounds
    provenance: dict[str, Any]
    error: str = ""


def execute(job: Job) -> Result:
    """Run a job, wherever this is called. A run that raises is a result too."""
    began = time.perf_counter()
    try:
        if file_digest(job.env) != job.file:
            raise ConfigError(f"{job.env} has changed, or is missing, since the sweep began; start it again")
        cmdp, best = _planned(job)
        run = Simulation(cmdp, job.make_agent(cmdp), job.world_seed(), emission=job.emission,
                         evaluate_policies=job.evaluate)  # fmt: skip
        probe = _Probe(job.probe)
        trace = run.run(job.horizon, job.checkpoints, probe if job.probe else None)
        optimum = [] if best.infeasibility else best.costs.tolist()
        return Result(
            job,
            trace.rounds,
            trace.cumulative,
            probe.at(trace.rounds),
            _strong(trace, optimum[0]) if job.evaluate and optimum else np.empty(0),
            cmdp.thresholds.tolist(),
            optimum,
            _summary(trace) | _size(job) | _bounds(run.agent, job.horizon),
            _provenance(time.perf_counter() - began, trace),
        )
    except Exception:
        return failure(job, traceback.format_exc(), time.perf_counter() - began)


def failure(job: Job, error: str, seconds: float = 0.0) -> Result:
    """The result of a run that came to nothing."""
    nothing = np.empty(0)
    return Result(
        job, nothing.astype(np.int64), nothing.reshape(0, 0), nothing, nothing, [], [], {}, _provenance(seconds), error
    )


class _Probe:
    """Follows one entry of the transitions that the agent has sampled."""

    def __init__(self, entry: list[int] | None) -> None:
        self._entry = entry
        self._rounds: list[int] = []
        self._values: list[float] = []

    def __call__(self, run: Simulation) -> None:
        assert self._entry is not None
        s, a, t = self._entry
        sampled = getattr(run.agent, "sampled", None)
        self._rounds.append(run.round)
        self._values.append(
            float("nan") if sampled is None else float(sampled.rows(np.array([s * run.agent.n_actions + a]))[0, t])
        )

    def at(self, rounds: Ints) -> Floats:
        if not self._entry:
            return np.empty(0)
        last = np.searchsorted(self._rounds, rounds, side="left").clip(max=len(self._rounds) - 1)
        return np.asarray(np.array(self._values)[last])


def _planned(job: Job) -> tuple[CMDP, Plan]:
    return _planned_model(*_model_id(job))


def _model_id(job: Job) -> tuple[str, str, str]:
    return job.env, _canonical([job.env_options, job.thresholds]), job.file


@lru_cache(maxsize=16)
def _planned_model(env: str, options: str, digest: str) -> tuple[CMDP, Plan]:
    cmdp = _model(env, *json.loads(options))
    return cmdp, plan(cmdp)


def _model(env: str, options: Mapping[str, Any], thresholds: Mapping[str, float] | None) -> CMDP:
    cmdp = load(env, **options)
    return cmdp.with_thresholds(thresholds) if thresholds else cmdp


def _size(job: Job) -> dict[str, Any]:
    """What bounds are made of: S, A and, for models that are not too large, the diameter."""
    return _size_of_model(*_model_id(job))


@lru_cache(maxsize=16)
def _size_of_model(env: str, options: str, digest: str) -> dict[str, Any]:
    cmdp, _ = _planned_model(env, options, digest)
    size = {"states": cmdp.n_states, "actions": cmdp.n_actions}
    return size | {"diameter": float(diameter(cmdp))} if cmdp.n_states <= DIAMETER_STATES else size


def _summary(trace: Trace) -> dict[str, Any]:
    log = trace.episodes
    rounds: Counter[str] = Counter()
    for kind, length in zip(log.kind, log.length, strict=True):
        rounds[kind] += length
    return {"episodes": len(log), "kinds": dict(Counter(log.kind)), "rounds": dict(rounds)}


def _bounds(agent: Player, horizon: int) -> dict[str, float]:
    """What the theory of its schedule has to say on the number of its episodes."""
    if not isinstance(agent, Sampler):
        return {}
    return {"most_episodes": agent.schedule.most_episodes(agent.n_states, agent.n_actions, horizon)}


def _strong(trace: Trace, optimum: float) -> Floats:
    log = trace.episodes
    return strong_regret(log.costs, log.length, targets(optimum, trace.thresholds), trace.rounds)


def _provenance(seconds: float, trace: Trace | None = None) -> dict[str, Any]:
    planning = {} if trace is None else {"planning_seconds": trace.provenance["planning_seconds"]}
    return {
        **versions(),
        "python": platform.python_version(),
        "host": socket.gethostname(),
        "finished": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
        "seconds": seconds,
        **planning,
    }


def file_digest(env: str) -> str:
    """What tells the contents of a model file apart; empty for a built-in environment."""
    path = Path(env)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.suffix and path.is_file() else ""


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _digest(value: Any) -> str:
    return hashlib.sha256(_canonical(value).encode()).hexdigest()
