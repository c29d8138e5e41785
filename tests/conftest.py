"""Hypothesis without deadlines: first calls compile, and the machine may be busy. Ctrl-C, wherever the tests run."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "psconrl",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("psconrl")

# In the background of a script Ctrl-C is ignored, and processes inherit that. Those of the tests must hear it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
