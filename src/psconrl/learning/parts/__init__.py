"""What agents are made of: a belief, a schedule, a fallback, a radius, a ledger, each with its options."""
