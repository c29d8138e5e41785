"""The chain of a policy: averages, biases, stationary distributions, visits and costs."""
