"""Planning by mixing deterministic policies: policy iteration, a master problem that combines them, and a bound."""
