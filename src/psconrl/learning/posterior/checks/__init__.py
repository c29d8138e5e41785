"""Tests of a system's structure against the rounds that were observed."""
