"""Tables of every kind, read block by block: files, data frames, relations and arrays."""
