"""Thinking that does not stop the world: the next episode is planned in a thread, while the last policy goes on.

On a real system ``act`` must answer at once, and a plan may take seconds. So an episode that has ended is followed by a
*bridge*: the policy that was played last is played on, until the plan is there. The agent learns nothing of a bridge
before it is over, so that ``begin``, in its thread, sees counts, parts and generators that nobody else touches.

What the agent remembered when the thinking began is kept until it ends. That is what a file gets, with the bridge as it
stands: whoever reads it begins the same thinking anew, with the same bits. It is also what the agent goes back to when
a plan is no longer wanted, since the limits have changed or the bridge was finished.

A schedule says after which rounds plans are ready. The same schedule gives the same bits; a clock gives another each
time.
"""

import _thread
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from psconrl.errors import AgentError
from psconrl.learning.checks import is_index
from psconrl.learning.runtime.contract import NO_CAP, Episode
from psconrl.learning.runtime.events import EXPLORING, EXPLORING_INTERIM, INTERIM
from psconrl.learning.runtime.play import checked_policy

Memory = dict[str, Any]


class Planned(NamedTuple):
    """What came of thinking: an episode or an error, and the seconds it took."""

    episode: Episode | None
    error: BaseException | None
    seconds: float

    @classmethod
    def of(cls, plan: Callable[[], Episode]) -> "Planned":
        """Think."""
        began = time.perf_counter()
        try:
            return cls(plan(), None, time.perf_counter() - began)
        except BaseException as error:  # it belongs to whoever asks for the plan
            return cls(None, error, time.perf_counter() - began)


class Job(Protocol):
    """Something that is being done elsewhere."""

    def done(self) -> bool:
        """Is it?"""

    def result(self) -> Any:
        """What came of it; waits until it is done."""


class Executor(Protocol):
    """Who does it, beside the caller and in the same process; those of ``concurrent.futures`` that have threads can."""

    def submit(self, task: Callable[[], Any]) -> Job:
        """Begin."""


class Threads:
    """A thread for every job, which does not keep the process from ending."""

    def submit(self, task: Callable[[], Any]) -> Job:
        """Begin."""
        future: Future[Any] = Future()
        # Not threading.Thread, whose start() waits for the thread: that then has Python to itself for milliseconds.
        _thread.start_new_thread(lambda: future.set_result(task()), ())
        return future


class Background:
    """Whether an agent thinks in the background, what about, and what it plays meanwhile."""

    def __init__(self) -> None:
        self.on = False
        self.executor: Executor = Threads()
        self.last: Episode | None = None  # what was played last
        self.failure: BaseException | None = None  # of the last thinking, until somebody is told
        self.asked_in: int | None = None  # the state for which a plan is wanted
        self.before: Memory | None = None  # what the agent remembered when the thinking began, if it could say so
        self._job: Job | None = None
        self._ready = False

    @property
    def is_planning(self) -> bool:
        """Is somebody at work on the agent?"""
        return self._job is not None

    @property
    def ready(self) -> bool:
        """Was the plan there when ``look`` was called last?"""
        return self._ready

    def interim(self, n_states: int, n_actions: int) -> Episode:
        """More of what was played last, without an end; at first every action alike."""
        if self.last is None:
            return Episode.uniform(n_states, n_actions, kind=EXPLORING_INTERIM)
        kind = EXPLORING_INTERIM if self.last.kind in EXPLORING else INTERIM
        return replace(self.last, max_steps=NO_CAP, visit_caps=None, kind=kind)

    def begin(self, plan: Callable[[], Episode], before: Memory | None) -> None:
        """Begin to think."""
        self._job, self.before = self.executor.submit(lambda: Planned.of(plan)), before

    def look(self) -> bool:
        """Is the plan there? Asked once a round: when the answer is yes, the bridge ends with it."""
        self._ready = self._job is not None and self._job.done()
        return self._ready

    def wait(self) -> Planned | None:
        """What came of the thinking, once it has ended, whether it is wanted or not. Nothing is being thought then."""
        if self._job is None:
            planned = None
        else:
            try:
                planned = self._job.result()
            except Exception as error:  # nobody does it: the executor has been shut down
                planned = Planned(None, error, 0.0)
        self._job, self.before, self.asked_in, self._ready = None, None, None, False
        return planned

    def state(self) -> dict[str, Any]:
        """For saving."""
        last = self.last
        told = None if last is None else {"policy": last.policy, "kind": last.kind, "value": last.value}
        return {"on": self.on, "asked_in": self.asked_in, "last": told}

    def restore(self, state: Any, n_states: int, n_actions: int) -> None:
        """Put back what ``state`` returned, if there was anything; a plan that was wanted is not begun yet."""
        self.last, self.failure, self.asked_in = None, None, None
        if state is None:
            return
        self.on, self.asked_in, told = state["on"], state["asked_in"], state["last"]
        if not isinstance(self.on, bool) or not (self.asked_in is None or is_index(self.asked_in, n_states)):
            raise AgentError("thinking that cannot be")
        if told is not None:
            policy = checked_policy(told["policy"], (n_states, n_actions))
            self.last = Episode(policy, kind=str(told["kind"]), value=float(told["value"]))
