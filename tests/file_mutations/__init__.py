"""Saved agents and runs to damage, and ways to damage them by structure: for searches and for tests."""
