"""Pictures of plans and runs, and of a sweep's results: figures, tables with their statistics, and one page."""
