"""Simulation: plays an agent's episodes on a model or a Gymnasium environment, and keeps an exact, small trace."""
