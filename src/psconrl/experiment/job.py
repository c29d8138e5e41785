"""One run of a sweep: its settings, its hash, its seeds and its result.

A job is plain data. It can be sent to another process or machine, and gives bit-identical results wherever it runs.
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

from psconrl.base.arrays import Floats, Ints
from psconrl.base.named_code import AGENTS, ENVIRONMENTS, digest
from psconrl.base.sizes import DIAMETER_STATES, EVALUATED_STATES
from psconrl.envs.continuing import ContinuingEnv
from psconrl.envs.registry import load_system, open_environment
from psconrl.envs.user_environments import GYM
from psconrl.errors import ConfigError
from psconrl.experiment.prior_knowledge import NOTHING, Knowledge
from psconrl.experiment.versions import versions
from psconrl.learning.advice import advice
from psconrl.learning.registry import make_agent, with_hints
from psconrl.learning.runtime.player import Player
from psconrl.learning.sampler import Sampler
from psconrl.markov.hitting_times import diameter
from psconrl.model.cmdp import CMDP
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan_model
from psconrl.simulation.gym_run import GymSimulation
from psconrl.simulation.model_run import Simulation
from psconrl.simulation.regret import strong_regret, targets
from psconrl.simulation.run import Run
from psconrl.simulation.run_trajectory import noted_trajectory
from psconrl.simulation.simulate import has_reward
from psconrl.simulation.trace import Trace
from psconrl.systems.system import System

Environment = CMDP | System | ContinuingEnv

ADVICE = "advice"  # the entry of a run's summary


@dataclass(frozen=True, eq=False)
class Job:
    """One run of an agent on an environment."""

    experiment: str
    env: str
    env_options: Mapping[str, Any]
    thresholds: Mapping[str, float] | None  # that replace the environment's
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
    file: str  # digest of the model file, if any, when the job was made
    code: str = ""  # digest of user code: of the agent, the environment and a trusted model
    env_code: str = ""  # digest of the environment's user code alone
    knowledge: Knowledge = NOTHING  # prior knowledge given to the agent
    trajectory: bool = False  # whether all rounds are stored

    @property
    def hash(self) -> str:
        """Hash of everything the result depends on: the job, the model file, and the versions of the code."""
        knowledge = asdict(self.knowledge)
        knowledge |= {key: Path(knowledge[key]).name for key in ("trust", "baseline")}
        own = asdict(self) | {"env": Path(self.env).name, "knowledge": knowledge, "versions": versions()}
        return _digest(own if self.trajectory else {key: own[key] for key in own if key != "trajectory"})

    @property
    def model_key(self) -> tuple[str, str, str]:
        """Key that identifies the model of a job."""
        return Path(self.env).name, _canonical([self.env_options, self.thresholds]), self.file + self.env_code

    def environment(self) -> Environment:
        """Build the environment: a model, or a task without one that can only be played."""
        return _environment(self.env, self.env_options, self.thresholds)

    def make_agent(self, environment: Environment) -> Player:
        """Build the agent for its environment."""
        options = dict(self.agent_options)
        if self.knowledge:
            options = self._prior_options(environment) | options
        costs, model = None, model_of(environment)
        if model is not None:
            sizes = (model.n_states, model.n_actions, model.thresholds)
            costs = model.costs if self.known_costs else None
            if self.knowledge.structure:
                costs = None  # the structure determines them
            elif costs is None:
                options = with_hints(self.agent, model, options, self.emission)
        elif isinstance(environment, ContinuingEnv):
            sizes = (environment.states.size, environment.actions.size, environment.thresholds)
        seeds = self._entropy("agent", [self.agent, self.agent_options, self.known_costs])
        return make_agent(self.agent, *sizes, costs, seeds, self.horizon, **options)

    def _prior_options(self, environment: Environment) -> dict[str, Any]:
        model = model_of(environment)
        if model is None:
            raise ConfigError(f"{self.knowledge.word} needs a model, and {self.env} has none: it can only be played")
        self.knowledge.need_believer(self.agent, self.agent_options)
        if self.knowledge.candidates:
            return {"belief": self.knowledge.finite_prior(self.env, self.env_options)}
        if self.knowledge.structure:
            return self.knowledge.options_in_system(_structure(*_environment_id(self)), model, self.agent)
        return self.knowledge.options(model, self.agent, known_costs=self.known_costs, emission=self.emission)

    def environment_seed(self) -> list[int]:
        """Seed of the environment's random draws, the same for all agents, so that runs can be compared in pairs."""
        return self._entropy("world", None)  # this word seeds the random numbers: changing it changes all results

    def _entropy(self, stream: str, who: Any) -> list[int]:
        """Return the entropy of a ``SeedSequence``, from (seed, environment, agent, replicate)."""
        words = _digest([stream, Path(self.env).name, self.env_options, who])
        return [self.seed, self.replicate, *(int(words[k : k + 8], 16) for k in range(0, 32, 8))]


@dataclass(frozen=True, eq=False)
class Result:
    """The stored result of a run. If the run failed, ``error`` is its traceback and the rest is empty."""

    job: Job
    rounds: Ints
    cumulative: Floats  # (n, m+1)
    probe: Floats  # (n,) or empty
    largest_excess: Floats  # (n, m) over all rounds so far
    strong: Floats  # (n, m+1) strong regret and violations if the policies were evaluated, or empty
    thresholds: list[float]
    optimum: list[float]  # the optimal averages (m+1,) of the model; empty if the constraints cannot be met
    summary: dict[str, Any]  # episodes, their kinds, rounds by kind, S, A, diameter, bounds, advice if any
    provenance: dict[str, Any]
    error: str = ""
    trajectory: bytes = b""  # all rounds, packed, if they are stored


def execute(job: Job) -> Result:
    """Run a job in this process. A run that raises returns a result with the traceback."""
    began = time.perf_counter()
    try:
        need_the_same(job)
        environment, best = _planned(job)
        agent = job.make_agent(environment)
        run: Run
        if not isinstance(environment, ContinuingEnv):
            evaluate = agent.n_states <= EVALUATED_STATES if job.evaluate is None else job.evaluate
            run = Simulation(
                environment, agent, job.environment_seed(), emission=job.emission, evaluate_policies=evaluate
            )
        else:
            run = GymSimulation(environment, agent, _one_number(job.environment_seed()))
        if job.trajectory:
            run.record_trajectory()
        said = advice(run.agent, job.horizon, has_reward(environment))
        probe = _Probe(job.probe)
        trace = run.run(job.horizon, job.checkpoints, probe if job.probe else None)
        rounds = b"" if trace.trajectory is None else trace.trajectory.packed()
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
            _summary(trace)
            | _size(job)
            | _bounds(run.agent, job.horizon)
            | ({ADVICE: said} if said else {})
            | noted_trajectory(rounds, trace.horizon),
            _provenance(time.perf_counter() - began, trace),
            trajectory=rounds,
        )
    except Exception:
        return failure(job, traceback.format_exc(), time.perf_counter() - began)


def need_the_same(job: Job) -> None:
    """Raise an error if the files or the code of a job are missing here or differ from where it was made."""
    known = job.knowledge.trust or job.knowledge.baseline
    for path, was in ((job.env, job.file), (known, job.knowledge.file)):
        if file_digest(path) != was:
            raise ConfigError(f"{path} has changed, or is missing, since the sweep began; start it again")
    if digest_of(code_names(job)) != job.code:
        raise ConfigError("the code of the agent or of the environment differs here; start the sweep again")


def failure(job: Job, error: str, seconds: float = 0.0) -> Result:
    """Return the result of a run that failed."""
    none, nothing, table = np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, 0))
    return Result(job, none, table, nothing, table, nothing, [], [], {}, _provenance(seconds), error)


class _Probe:
    """Records one entry of the transition probabilities that the agent has sampled."""

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
    """Combine several seeds into one number, as Gymnasium needs it."""
    return int(np.random.SeedSequence(seeds).generate_state(1)[0])


def _planned(job: Job) -> tuple[Environment, Plan | None]:
    return _planned_environment(*_environment_id(job))


def _environment_id(job: Job) -> tuple[str, str, str]:
    return job.env, _canonical([job.env_options, job.thresholds]), job.file + job.env_code


@lru_cache(maxsize=16)
def _planned_environment(env: str, options: str, digest: str) -> tuple[Environment, Plan | None]:
    environment = _environment(env, *json.loads(options))
    model = model_of(environment)
    return environment, None if model is None else plan_model(model)


def _environment(env: str, options: Mapping[str, Any], thresholds: Mapping[str, float] | None) -> Environment:
    environment = open_environment(env, **options)
    return environment.with_thresholds(thresholds) if thresholds else environment


def model_of(environment: Environment) -> CMDP | None:
    """Return the model of an environment, for a system the one with all actions in all states; None if it has none."""
    if isinstance(environment, System):
        return environment.model_for_learning()
    return environment if isinstance(environment, CMDP) else None


@lru_cache(maxsize=16)
def _structure(env: str, options: str, digest: str) -> System:
    settings, thresholds = json.loads(options)
    system = load_system(env, **settings)
    return system.with_thresholds(thresholds) if thresholds else system


def _size(job: Job) -> dict[str, Any]:
    """Return the quantities in the bounds: S, A and, for models that are not too large, the diameter."""
    return _size_of_environment(*_environment_id(job))


@lru_cache(maxsize=16)
def _size_of_environment(env: str, options: str, digest: str) -> dict[str, Any]:
    environment, _ = _planned_environment(env, options, digest)
    if isinstance(environment, ContinuingEnv):
        return {"states": environment.states.size, "actions": environment.actions.size}
    model = model_of(environment)
    assert model is not None
    size = {"states": model.n_states, "actions": model.n_actions}
    return size | {"diameter": float(diameter(model))} if model.n_states <= DIAMETER_STATES else size


def _summary(trace: Trace) -> dict[str, Any]:
    log = trace.episodes
    rounds: Counter[str] = Counter()
    for kind, length in zip(log.kind, log.length, strict=True):
        rounds[kind] += length
    return {"episodes": len(log), "kinds": dict(Counter(log.kind)), "rounds": dict(rounds)}


def _bounds(agent: Player, horizon: int) -> dict[str, float]:
    """Return the bound on the number of episodes that the theory of the agent's schedule gives."""
    if not isinstance(agent, Sampler) or "schedule" not in agent.parts:
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
    """Return the digest of a model file's contents; empty for a built-in environment."""
    path = Path(name)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.suffix and path.is_file() else ""


def code_names(job: Job) -> list[tuple[str, str]]:
    """Return the names in a job that may be user code, each with its group of entry points."""
    of_env = env_code_names(job.env, job.env_options)
    return [(job.agent, AGENTS), (job.knowledge.trust, ENVIRONMENTS), *of_env]


def env_code_names(env: str, env_options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the names in an environment's settings that may be user code, each with its group of entry points."""
    cost = [(env_options.get("cost", ""), "")] if env.startswith(GYM) else []
    return [(env, ENVIRONMENTS), *cost]


def digest_of(names: Iterable[tuple[str, str]]) -> str:
    """Return a digest of the user code among the names; empty if there is none."""
    return " ".join(part for part in (digest(name, group) for name, group in names) if part)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _digest(value: Any) -> str:
    return hashlib.sha256(_canonical(value).encode()).hexdigest()
