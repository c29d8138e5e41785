"""The model: a validated CMDP, its transitions, costs, names and units, and its file formats."""
