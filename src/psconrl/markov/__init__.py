"""Markov chains: closed classes, gains, biases, stationary distributions and hitting times, and how they are solved."""
