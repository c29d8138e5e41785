"""What an agent knows: counts, priors, and the posteriors from which models are sampled."""
