"""The event of an episode, from the agent that plays it, a ``Player``."""

import math
from typing import Any

from psconrl.learning.posterior.counts import Counts, Seen
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.events import EXPLORING, EpisodeEvent, share_changed
from psconrl.learning.runtime.running_episode import Play


def event_of(agent: Any, played: Play, before: Episode | None, seen: Seen, *, finished: bool = True) -> EpisodeEvent:
    """Return the event of an episode.

    ``before``: the episode before it. ``seen``: everything up to its last round; the agent has learned from it if it is
    ``finished``.
    """
    record, episode = played.record, played.episode
    policy = episode.policy.view()
    policy.flags.writeable = False
    explored = record.steps if not finished and episode.kind in EXPLORING else 0
    return EpisodeEvent(
        round=int(seen.visits.sum()),
        episode=agent.episodes,
        kind=episode.kind,
        length=record.steps,
        costs=record.averages(),
        averages=seen.averages(),
        thresholds=agent.thresholds.copy(),
        value=episode.value,
        explored=agent.explored + explored,
        planning_time=played.planning_time,
        changed=math.nan if before is None else share_changed(before.policy, policy, record.pairs.sum(axis=1)),
        policy=policy,
        visits=seen.pairs.sum(axis=1),
        doubts=agent.doubts(),
        names=agent.event_names(),
        estimates=agent.estimated_means(),
        ratios=agent.ratio_averages(record, seen),
        plan=episode.plan,
        finished=finished,
    )


def event_so_far(agent: Any, playing: Play, before: Episode | None) -> EpisodeEvent:
    """Return the event of the episode in progress. The agent has not learned from it yet; totals include it."""
    seen = Counts(agent.n_states, agent.n_actions, agent.n_costs)
    seen.add(agent.counts)
    seen.add(playing.record)
    return event_of(agent, playing, before, seen, finished=False)
