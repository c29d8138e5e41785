"""Experiments: specify the runs, execute them on any executor, and store the results."""
