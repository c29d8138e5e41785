"""Simulation of agents on a model or a Gymnasium environment, with an exact and small trace."""
