"""The function ``simulate``, which plays an agent on a model or a Gymnasium environment.

It chooses the loop: ``model_run`` plays models and systems, ``gym_run`` Gymnasium environments.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import gymnasium
from numpy.typing import ArrayLike

from psconrl.base.escaping import quoted
from psconrl.errors import AdviceWarning, ConfigError, SlowWarning
from psconrl.learning.advice import advice
from psconrl.learning.argument_checks import is_whole
from psconrl.learning.runtime.contract import Learner, is_learner
from psconrl.learning.runtime.player import Player
from psconrl.model.cmdp import CMDP
from psconrl.simulation.gym_run import GymSimulation
from psconrl.simulation.model_run import Simulation
from psconrl.simulation.run import Progress, Run
from psconrl.simulation.trace import Trace, checkpoint_rounds
from psconrl.systems.system import System


def simulate(
    env: CMDP | Any,
    agent: Player | Learner,
    horizon: int,
    seed: int | Sequence[int] | None = None,
    *,
    checkpoints: int | str | ArrayLike | None = None,
    emission: str = "deterministic",
    evaluate_policies: bool = False,
    trajectory: bool = False,
    progress: Progress | None = None,
) -> Trace:
    """Play an agent for a number of rounds on a CMDP (compiled) or a Gymnasium environment, and return its trace.

    ``env``: a CMDP; a ``System`` whose noise is known, where every round incurs its realised costs; or a Gymnasium
    environment with finite spaces; episodic environments become continuing tasks, as by ``psconrl.continuing``.
    ``agent``: an agent of the library, or any object with ``begin(state)``, which returns a ``psconrl.Episode``, and
    ``end(record)``. ``horizon``: the number of rounds. ``seed``: of the environment; the agent has its own.

    ``checkpoints``: the number of rounds to record, evenly spaced; ``"log"``; or the rounds. ``emission``: the
    distribution of costs around their means: ``"deterministic"``; ``"uniform"``, the mean plus a uniform number between
    -u/2 and u/2, where u is the range of the cost in the model (a cost that is the same everywhere stays exact);
    ``"two-point"``, the smallest or the largest value of the cost in the model; ``"bernoulli"``, 0 or 1;
    ``"poisson"``, counts. ``evaluate_policies``: also record the exact averages of every episode's policy in the true
    model. ``trajectory``: also record all rounds, as the ``trajectory`` of the trace; a round takes 8 bytes for each of
    its state, action and costs. ``progress``: called with the run after every episode.

    Ctrl-C reaches the caller as a KeyboardInterrupt whose ``trace`` holds the run so far
    (``psconrl.simulation.interrupt.Interrupted``).

    >>> import psconrl
    >>> model = psconrl.load("counterexample")
    >>> agent = psconrl.PSConRL(2, 2, model.thresholds, model.costs, seed=0)
    >>> psconrl.simulate(model, agent, horizon=1000, seed=0).horizon
    1000
    """
    if not isinstance(agent, Player) and not is_learner(agent):
        hint = ": give its .agent" if hasattr(agent, "agent") else "; psconrl agents lists them"
        raise ConfigError(f"simulate needs an agent, such as PSConRL; got {type(agent).__name__}{hint}")
    if isinstance(env, CMDP | System):
        run: Run = Simulation(env, agent, seed, emission=emission, evaluate_policies=evaluate_policies)
    elif isinstance(env, gymnasium.Env):
        if emission != "deterministic" or evaluate_policies:
            raise ConfigError("emission and evaluate_policies need a CMDP; a Gymnasium environment keeps its model")
        if seed is not None and not is_whole(seed):
            raise ConfigError(f"a Gymnasium environment takes one number as seed; got {quoted(seed)}")
        run = GymSimulation(env, agent, None if seed is None else int(seed))
    else:
        raise ConfigError(f"env must be a CMDP or a Gymnasium environment; got {type(env).__name__}")
    checkpoint_rounds(horizon, checkpoints)  # raises an error on invalid arguments, before any advice
    slow = run.agent.why_slow()
    for line in advice(run.agent, horizon, has_reward(env)):
        warnings.warn(line, SlowWarning if line == slow else AdviceWarning, stacklevel=2)
    if trajectory:
        run.record_trajectory()
    return run.run(horizon, checkpoints, progress)


def has_reward(env: Any) -> bool:
    """Return whether the objective is a reward; that of a Gymnasium environment always is."""
    if isinstance(env, CMDP):
        return env.maximise
    return env.statement.maximises if isinstance(env, System) else True
