"""Checks of a sweep that are made before its first run."""

from collections.abc import Iterable
from typing import Any

from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError, PsconrlError
from psconrl.experiment.job import Environment, Job, model_of
from psconrl.model.simulation_tables import EMISSIONS
from psconrl.simulation.run_trajectory import need_storable
from psconrl.simulation.trace import checkpoint_rounds
from psconrl.systems.system import System


def check_jobs(jobs: Iterable[Job]) -> None:
    """Build every environment and agent once, so that a misspelt option fails now and not in the 40th run."""
    environments: dict[tuple[str, str, str], Environment] = {}
    seen: dict[tuple[str, str], Any] = {}
    for job in jobs:
        name = (job.experiment, job.label)
        if name in seen:
            if seen[name] != _what(job):
                raise ConfigError(
                    f"two different runs are called {quoted(job.label)} in {quoted(job.experiment)}; rename one"
                )
            continue
        seen[name] = _what(job)
        try:
            if job.model_key not in environments:
                environments[job.model_key] = job.environment()
            _check_one(job, environments[job.model_key])
        except PsconrlError as error:
            raise type(error)(f"experiment {quoted(job.experiment)}, agent {quoted(job.label)}: {error}") from None


def _what(job: Job) -> Any:
    drawn = {key: value for key, value in job.env_options.items() if key != "seed"}
    return job.env, drawn, job.thresholds, job.agent, job.agent_options, job.known_costs, job.knowledge, job.horizon


def _check_one(job: Job, environment: Environment) -> None:
    job.make_agent(environment)
    checkpoint_rounds(job.horizon, job.checkpoints)
    if job.trajectory:
        need_storable(job.horizon, environment.thresholds.size + 1)
    model = model_of(environment)
    if model is None:
        if job.emission != EMISSIONS[0] or job.evaluate or job.probe is not None:
            raise ConfigError("emission, evaluate and probe need a model; this environment can only be played")
    elif isinstance(environment, System) and job.emission != EMISSIONS[0]:
        raise ConfigError(
            f"{job.env} is a system, which incurs realised costs, so that emission must be 'deterministic'; "
            f"got {quoted(job.emission)}"
        )
    elif job.probe is not None:
        sizes = (model.n_states, model.n_actions, model.n_states)
        if any(not 0 <= k < size for k, size in zip(job.probe, sizes, strict=True)):
            raise ConfigError(f"probe {job.probe} is not within [state, action, next state] = {list(sizes)}")
