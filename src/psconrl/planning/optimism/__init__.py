"""Optimistic planning in the best model of a confidence set: for the long-run average and for a finite horizon."""
