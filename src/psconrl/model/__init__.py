"""The model: a validated CMDP, what its policies do in the long run, and how its states hang together."""
