"""Hypothesis without deadlines: first calls compile, and the machine may be busy."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "psconrl",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("psconrl")
