"""Experiments: what to run, running it anywhere, and keeping the results."""
