"""Learning agents: they plan, play an episode, and plan again. They never see the true model."""
