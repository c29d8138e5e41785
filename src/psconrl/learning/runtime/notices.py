"""What an agent can say of itself: advice, doubts and estimates. By default there is nothing to say."""

from psconrl.learning.posterior.counts import Record, Seen
from psconrl.learning.runtime.events import EventNames, RatioAverage


class Notices:
    """What an agent says to the user; a subclass overrides what applies to it."""

    def why_slow(self) -> str:
        """Return a line of advice if planning an episode is expected to take seconds; empty otherwise."""
        return ""

    def why_hopeless(self, maximise: bool | None) -> str:
        """Return a line of advice if the agent learns nothing, or never tries some actions; empty otherwise.

        ``maximise``: the objective is a reward; None if that is not known yet.
        """
        return ""

    def why_short_sighted(self, maximise: bool) -> str:
        """Return a line of advice if the agent may miss what is far away, as nothing says how large a reward can be."""
        return ""

    def knows_states(self) -> str:
        """Return a description of the prior knowledge of single states that the agent was given; empty if none."""
        return ""

    def doubts(self) -> tuple[str, ...] | None:
        """Return what is wrong with the structure of a system that the agent was given; None if it was given none."""
        return None

    def event_names(self) -> EventNames | None:
        """Return the names of the system that the agent was made for; None if it was made for none."""
        return None

    def estimated_means(self) -> dict[str, float] | None:
        """Return approximate posterior means of a system's unknown parameters; None if the agent was given none."""
        return None

    def ratio_averages(self, record: Record, seen: Seen) -> tuple[RatioAverage, ...]:
        """Return the ratios that a system limits, in an episode and in everything seen so far."""
        return ()
