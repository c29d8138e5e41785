"""Structure first: each end component of a model is planned on its own, and a small problem chooses among them."""
