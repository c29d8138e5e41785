"""Logs: tables of what was done, and what follows from them."""
