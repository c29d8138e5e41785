"""Graphs: successors, components, end components, attractors, and orders of elimination."""
