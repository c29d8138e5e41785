"""Planning by decomposition: each end component is planned separately, and a small problem chooses among them."""
