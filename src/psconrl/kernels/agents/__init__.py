"""Inner loops of single agents."""
