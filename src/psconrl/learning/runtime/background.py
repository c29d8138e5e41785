"""Planning in the background: a thread plans the next episode while the agent keeps playing the previous policy.

On a real system ``act`` must answer at once, and a plan may take seconds. So an episode that has ended is followed by
an episode of an *interim policy*: the agent keeps playing the previous policy until the plan is ready. The agent learns
from an interim episode only when it is over. Until then ``begin``, in its thread, has exclusive access to counts, parts
and generators.

The state of the agent at the start of planning is kept until planning ends. A saved file holds this state and the
interim episode so far; an agent that is loaded from it starts the same planning again, with bit-for-bit the same
results. The agent also returns to this state if a plan is no longer wanted, because the thresholds have changed or the
interim episode was finished.

Results are reproducible bit for bit given the rounds in which plans are ready. By the clock these rounds differ from
run to run.
"""

import _thread
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import fields, flag, integer, maybe, read_fields, real, text
from psconrl.errors import AgentError
from psconrl.learning.runtime.contract import NO_CAP, Episode
from psconrl.learning.runtime.events import EXPLORING, EXPLORING_INTERIM, INTERIM
from psconrl.learning.runtime.running_episode import saved_policy

Memory = dict[str, Any]


class PlanningResult(NamedTuple):
    """Result of planning: an episode or an error, and the seconds it took."""

    episode: Episode | None
    error: BaseException | None
    seconds: float

    @classmethod
    def of(cls, plan: Callable[[], Episode]) -> "PlanningResult":
        """Plan, and return the result."""
        began = time.perf_counter()
        try:
            return cls(plan(), None, time.perf_counter() - began)
        except BaseException as error:  # raised later, where the plan is asked for
            return cls(None, error, time.perf_counter() - began)


class Submitted(Protocol):
    """A task submitted to an executor."""

    def done(self) -> bool:
        """Return True if the task is done."""

    def result(self) -> Any:
        """Wait until the task is done, and return its result."""


class Executor(Protocol):
    """Runs tasks concurrently in the same process, as the thread pools of ``concurrent.futures`` do."""

    def submit(self, task: Callable[[], Any]) -> Submitted:
        """Start a task."""


class Threads:
    """Executor with one thread per task. Its threads do not keep the process from ending."""

    def submit(self, task: Callable[[], Any]) -> Submitted:
        """Start a task in a new thread."""
        future: Future[Any] = Future()
        # Not threading.Thread: its start() waits for the thread, which then holds the interpreter for milliseconds.
        _thread.start_new_thread(lambda: future.set_result(task()), ())
        return future


class Background:
    """State of an agent's background planning: whether it is on, the job, and the last policy played."""

    def __init__(self) -> None:
        self.on = False
        self.executor: Executor = Threads()
        self.last: Episode | None = None  # what was played last
        self.failure: BaseException | None = None  # error of the last planning, until it is raised
        self.asked_in: int | None = None  # the state for which a plan is wanted
        self.before: Memory | None = None  # the agent's state when planning began, if it can return one
        self._job: Submitted | None = None
        self._ready = False

    @property
    def is_planning(self) -> bool:
        """True if a plan is being made."""
        return self._job is not None

    @property
    def ready(self) -> bool:
        """True if the plan was ready when ``look`` was last called."""
        return self._ready

    def switch(self, on: bool, executor: Executor | None) -> None:
        """Turn planning in the background on or off; None keeps the present executor."""
        if executor is not None and not callable(getattr(executor, "submit", None)):
            raise AgentError(f"executor must have submit(task), as concurrent.futures has it; got {quoted(executor)}")
        self.on = bool(on)
        self.executor = executor or self.executor

    def can_play_on(self, rounds: int) -> bool:
        """True if an interim episode may be played: the last policy is known, or no round was played yet."""
        return self.on and (self.last is not None or rounds == 0)

    def raise_failure(self) -> None:
        """Raise the error of the last planning, once."""
        if self.failure is not None:
            error, self.failure = self.failure, None
            raise error

    def interim(self, n_states: int, n_actions: int) -> Episode:
        """Return an episode without end that continues the last policy; before the first, the uniform policy."""
        if self.last is None:
            return Episode.uniform(n_states, n_actions, kind=EXPLORING_INTERIM)
        kind = EXPLORING_INTERIM if self.last.kind in EXPLORING else INTERIM
        return replace(self.last, max_steps=NO_CAP, visit_caps=None, kind=kind)

    def ask(self, state: int) -> None:
        """Ask for a plan from a state, unless one was asked for."""
        if self.asked_in is None:
            self.asked_in = state

    def go_on(self, plan: Callable[[int], Episode], memory: Callable[[], Memory | None]) -> None:
        """Start the planning that was asked for, unless it has started; ``memory`` returns the state before it."""
        state = self.asked_in
        if state is not None and self._job is None:
            before = memory()
            self._job, self.before = self.executor.submit(lambda: PlanningResult.of(lambda: plan(state))), before

    def look(self) -> bool:
        """Return True if the plan is ready. Called once a round; the interim episode ends when it is True."""
        self._ready = self._job is not None and self._job.done()
        return self._ready

    def wait(self) -> PlanningResult | None:
        """Wait until planning ends, clear the job, and return the result; None if there was no job."""
        if self._job is None:
            planned = None
        else:
            try:
                planned = self._job.result()
            except Exception as error:  # the job never ran: the executor has been shut down
                planned = PlanningResult(None, error, 0.0)
        self._job, self.before, self.asked_in, self._ready = None, None, None, False
        return planned

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        last = self.last
        played = None if last is None else {"policy": last.policy, "kind": last.kind, "value": last.value}
        return {"on": self.on, "asked_in": self.asked_in, "last": played}

    def restore(self, state: Any, n_states: int, n_actions: int) -> None:
        """Put back what ``state`` returned, None if nothing was saved; planning is not started."""
        self.last, self.failure, self.asked_in = None, None, None
        if state is None:
            return
        last = {"policy": saved_policy(n_states, n_actions), "kind": text(), "value": real(infinite=True, unknown=True)}
        saved = read_fields(
            state, {"on": flag, "asked_in": maybe(integer(0, n_states - 1)), "last": maybe(fields(last))}
        )
        self.on, self.asked_in = saved["on"], saved["asked_in"]
        self.last = None if saved["last"] is None else Episode(**saved["last"])
