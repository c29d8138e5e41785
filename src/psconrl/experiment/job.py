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
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.envs.continuing import ContinuingEnv
from psconrl.envs.outside import GYM
from psconrl.envs.registry import open_environment
from psconrl.errors import ConfigError
from psconrl.experiment.prior_knowledge import NOTHING, Knowledge
from psconrl.experiment.versions import versions
from psconrl.learning.registry import make_agent, with_hints
from psconrl.learning.runtime.player import Player
from psconrl.learning.sampler import Sampler
from psconrl.markov.hitting_times import diameter
from psconrl.model.cmdp import CMDP
from psconrl.named_code import AGENTS, ENVIRONMENTS, digest
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan
from psconrl.simulation.gym_run import GymSimulation
from psconrl.simulation.model_run import Simulation
from psconrl.simulation.policy_values import EVALUATED_STATES
from psconrl.simulation.regret import strong_regret, targets
from psconrl.simulation.run import Run
from psconrl.simulation.trace import Trace

Environment = CMDP | ContinuingEnv

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
    evaluate: bool | None  # None: on models of up to EVALUATED_STATES
    probe: list[int] | None
    seed: int
    replicate: int
    file: str  # digest of the model file, if it is one, as it was when the job was made
    code: str = ""  # digest of code of the user's own: of the agent, the environment and a model that is trusted
    env_code: str = ""  # of the environment alone
    knowledge: Knowledge = NOTHING  # what the agent is told beforehand

    @property
    def hash(self) -> str:
        """Of everything that the outcome depends on: the job, the model file, and the versions of the code."""
        told = asdict(self.knowledge)
        told |= {key: Path(told[key]).name for key in ("trust", "baseline")}
        return _digest(asdict(self) | {"env": Path(self.env).name, "knowledge": told, "versions": versions()})

    @property
    def model_key(self) -> tuple[str, str, str]:
        """What tells the models of jobs apart."""
        return Path(self.env).name, _canonical([self.env_options, self.thresholds]), self.file + self.env_code

    def environment(self) -> Environment:
        """The environment: a model, or a task that can only be played."""
        return _environment(self.env, self.env_options, self.thresholds)

    def make_agent(self, environment: Environment) -> Player:
        """The agent, for its environment."""
        options = dict(self.agent_options)
        if self.knowledge:
            options = self._prior_options(environment, options) | options
        costs = None
        if isinstance(environment, CMDP):
            sizes = (environment.n_states, environment.n_actions, environment.thresholds)
            costs = environment.costs if self.known_costs else None
            if costs is None:
                options = with_hints(self.agent, environment, options)
        else:
            sizes = (environment.states.size, environment.actions.size, environment.thresholds)
        seeds = self._entropy("agent", [self.agent, self.agent_options, self.known_costs])
        return make_agent(self.agent, *sizes, costs, seeds, self.horizon, **options)

    def _prior_options(self, environment: Environment, options: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(environment, CMDP):
            raise ConfigError(f"{self.knowledge.word} needs a model, and {self.env} has none: it can only be played")
        self.knowledge.need_believer(self.agent, self.agent_options)
        return self.knowledge.options(environment, self.agent)

    def environment_seed(self) -> list[int]:
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
    largest_excess: Floats  # (n, m) of all rounds so far
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
        need_the_same(job)
        environment, best = _planned(job)
        agent = job.make_agent(environment)
        run: Run
        if isinstance(environment, CMDP):
            evaluate = environment.n_states <= EVALUATED_STATES if job.evaluate is None else job.evaluate
            run = Simulation(
                environment, agent, job.environment_seed(), emission=job.emission, evaluate_policies=evaluate
            )
        else:
            run = GymSimulation(environment, agent, _one_number(job.environment_seed()))
        probe = _Probe(job.probe)
        trace = run.run(job.horizon, job.checkpoints, probe if job.probe else None)
        optimum = [] if best is None or best.infeasibility else best.costs.tolist()
        return Result(
            job,
            trace.rounds,
            trace.cumulative,
            probe.at(trace.rounds),
            trace.largest_excess,
            _strong(trace, optimum[0] if optimum else np.nan),
            environment.thresholds.tolist(),
            optimum,
            _summary(trace) | _size(job) | _bounds(run.agent, job.horizon),
            _provenance(time.perf_counter() - began, trace),
        )
    except Exception:
        return failure(job, traceback.format_exc(), time.perf_counter() - began)


def need_the_same(job: Job) -> None:
    """Refuse a job whose files or code are not here, or are others than where it was made."""
    for path, was in ((job.env, job.file), (job.knowledge.trust, job.knowledge.file)):
        if file_digest(path) != was:
            raise ConfigError(f"{path} has changed, or is missing, since the sweep began; start it again")
    if digest_of(code_names(job)) != job.code:
        raise ConfigError("the code of the agent or of the environment is another one here; start the sweep again")


def failure(job: Job, error: str, seconds: float = 0.0) -> Result:
    """The result of a run that came to nothing."""
    nothing = np.empty(0)
    return Result(
        job, nothing.astype(np.int64), nothing.reshape(0, 0), nothing, nothing.reshape(0, 0), nothing, [], [], {},
        _provenance(seconds), error,
    )  # fmt: skip


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


def _one_number(seeds: list[int]) -> int:
    """One seed of several, as Gymnasium wants it."""
    return int(np.random.SeedSequence(seeds).generate_state(1)[0])


def _planned(job: Job) -> tuple[Environment, Plan | None]:
    return _planned_environment(*_environment_id(job))


def _environment_id(job: Job) -> tuple[str, str, str]:
    return job.env, _canonical([job.env_options, job.thresholds]), job.file + job.env_code


@lru_cache(maxsize=16)
def _planned_environment(env: str, options: str, digest: str) -> tuple[Environment, Plan | None]:
    environment = _environment(env, *json.loads(options))
    return environment, plan(environment) if isinstance(environment, CMDP) else None


def _environment(env: str, options: Mapping[str, Any], thresholds: Mapping[str, float] | None) -> Environment:
    environment = open_environment(env, **options)
    return environment.with_thresholds(thresholds) if thresholds else environment


def _size(job: Job) -> dict[str, Any]:
    """What bounds are made of: S, A and, for models that are not too large, the diameter."""
    return _size_of_environment(*_environment_id(job))


@lru_cache(maxsize=16)
def _size_of_environment(env: str, options: str, digest: str) -> dict[str, Any]:
    environment, _ = _planned_environment(env, options, digest)
    if not isinstance(environment, CMDP):
        return {"states": environment.states.size, "actions": environment.actions.size}
    size = {"states": environment.n_states, "actions": environment.n_actions}
    return size | {"diameter": float(diameter(environment))} if environment.n_states <= DIAMETER_STATES else size


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
    log = trace.policies
    if not len(log):
        return np.empty(0)
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


def file_digest(name: str) -> str:
    """What tells the contents of a model file apart; empty for a built-in environment."""
    path = Path(name)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.suffix and path.is_file() else ""


def code_names(job: Job) -> list[tuple[str, str]]:
    """What a job names that may be code of the user's own, with the group of entry points that it may be of."""
    of_env = env_code_names(job.env, job.env_options)
    return [(job.agent, AGENTS), (job.knowledge.trust, ENVIRONMENTS), *of_env]


def env_code_names(env: str, env_options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The same of its environment alone."""
    cost = [(env_options.get("cost", ""), "")] if env.startswith(GYM) else []
    return [(env, ENVIRONMENTS), *cost]


def digest_of(names: Iterable[tuple[str, str]]) -> str:
    """What tells code of the user's own apart; empty if there is none."""
    return " ".join(part for part in (digest(name, group) for name, group in names) if part)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _digest(value: Any) -> str:
    return hashlib.sha256(_canonical(value).encode()).hexdigest()
