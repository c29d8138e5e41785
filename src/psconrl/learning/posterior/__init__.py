"""Knowledge of an agent: counts, priors, and the posteriors from which models are sampled."""
