"""Systems described by their owner: variables, noise, a step, costs and limits, of which the library makes a model."""
