"""When to stop and think again: the limits of an episode, from the counts and the length of the last one."""

from typing import Protocol

from psconrl.arrays import Ints
from psconrl.errors import ConfigError, unknown_name
from psconrl.learning.counts import Counts
from psconrl.learning.episode import NO_CAP


class Schedule(Protocol):
    """Limits (steps, visits of every pair) of the next episode."""

    def __call__(self, counts: Counts, last_length: int) -> tuple[int, Ints | None]: ...  # noqa: D102


def ouyang(counts: Counts, last_length: int) -> tuple[int, Ints | None]:
    r"""Stop once :math:`t > t_k + T_{k-1}` or :math:`N_t(s,a) > 2 N_{t_k}(s,a)` for some pair (Ouyang et al. 2017).

    So an episode is at most one step longer than the last, and a first visit ends it. The paper writes ``>=`` and turns
    the other sign round; taken literally that gives empty episodes at N = 0.
    """
    return last_length + 1, counts.pairs + 1


def doubling(counts: Counts, last_length: int) -> tuple[int, Ints | None]:
    r"""Stop once a pair has been visited :math:`\max(1, N_{t_k}(s,a))` times (Jaksch et al. 2010)."""
    return NO_CAP, counts.pairs.clip(min=1)


def every_round(counts: Counts, last_length: int) -> tuple[int, Ints | None]:
    """Stop after each step, as in the paper's Example 1."""
    return 1, None


def published(counts: Counts, last_length: int) -> tuple[int, Ints | None]:
    r"""The rule of the authors' published code: stop once a pair has been visited :math:`3 (1 + N_{t_k})` times."""
    return NO_CAP, 3 * (1 + counts.pairs)


SCHEDULES: dict[str, Schedule] = {
    "ouyang": ouyang,
    "doubling": doubling,
    "every-round": every_round,
    "published": published,
}


def schedule_named(name: str) -> Schedule:
    """A schedule by its name."""
    if not isinstance(name, str) or name not in SCHEDULES:
        raise ConfigError(unknown_name("schedule", name, SCHEDULES))
    return SCHEDULES[name]
