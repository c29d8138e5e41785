"""The settings of the leaderboard that were written before any agent was run on them."""

# By name: the environment, its options, the rounds of a run, and the optimal objective.
HELD_OUT = {
    "bandit": ("garnet", {"states": 1, "actions": 20, "branching": 1, "seed": 203}, 10_000, 0.0706856702),
    "bandit-two-limits": (
        "garnet",
        {"states": 1, "actions": 30, "branching": 1, "constraints": 2, "slack": 0.2, "seed": 202},
        10_000,
        0.0599308720,
    ),
    "slow-repair": (
        "machine",
        {"wearing": 0.05, "breaking": 0.05, "repaired": 0.02, "damaged": 0.2},
        20_000,
        0.4898177921,
    ),
    "rare-breakdowns": (
        "machine",
        {"conditions": 5, "wearing": 0.1, "breaking": 0.004, "repaired": 0.2, "damage": 10.0, "damaged": 0.02},
        20_000,
        0.7995530171,
    ),
    "no-breakdown": ("machine", {"damaged": 0.0}, 10_000, 0.7142857143),
    "tight-limit": ("garnet", {"states": 15, "slack": 0.278, "seed": 302}, 10_000, 0.5253852761),
    "few-stands": ("taxicab", {"stands": 0.3}, 10_000, 10.6850000000),
    "hardly-any-stands": ("taxicab", {"stands": 0.01}, 10_000, 9.2495000000),
    "random-walk": ("random-walk", {}, 10_000, 0.2969696970),
    "long-walk": ("random-walk", {"length": 40, "drift": 0.1}, 20_000, 0.1366483701),
    "patrol": ("patrol", {}, 10_000, 0.6000000000),
    "gate": ("gate", {}, 20_000, 0.0400000000),
    "five-limits": (
        "garnet",
        {"actions": 4, "constraints": 4, "copies": 1, "slack": 0.03, "seed": 403},
        10_000,
        0.1324489768,
    ),
}
