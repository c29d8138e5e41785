"""Planning in the best model of a confidence set: in the long run, and over a finite horizon."""
