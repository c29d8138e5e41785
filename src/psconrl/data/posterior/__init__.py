"""The posterior of a log: models that agree with it, of rows or of the noise of a system."""
