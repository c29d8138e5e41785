"""Arithmetic with the same bits on every machine: sums in lanes, products, logarithms, sorting."""
