"""Markov chains: closed classes, gains, biases, stationary distributions, hitting times, and the solvers for them."""
