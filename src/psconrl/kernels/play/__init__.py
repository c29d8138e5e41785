"""The play loop, and agents that learn at every round of it."""
