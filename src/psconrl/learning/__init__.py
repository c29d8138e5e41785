"""Learning: agents that plan, play an episode, and plan again. They are never handed the true model."""
