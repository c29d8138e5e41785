"""Reports: figures of plans and runs, and figures, tables with statistics and an HTML page of a sweep's results."""
