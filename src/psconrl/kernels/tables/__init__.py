"""Tables: cells of CSV, dates and times."""
