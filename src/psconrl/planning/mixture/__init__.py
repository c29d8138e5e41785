"""Planning by mixing deterministic policies: Howard finds them, a master combines them, a bound proves the result."""
