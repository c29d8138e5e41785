"""The algorithms, one per file. Import them from ``psconrl.agents``."""
