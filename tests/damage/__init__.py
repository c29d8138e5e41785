"""Damaged files of every kind, read in processes of limited memory and time: ``make test-files``."""
