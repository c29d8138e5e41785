"""Pictures of plans and, later, of experiments."""
