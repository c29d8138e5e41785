"""The search for the best mixture of policies: improvement, the master problem, certificates."""
