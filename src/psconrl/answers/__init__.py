"""Analysis of plans: simpler policies, shadow prices, explanations, windows, planning time."""
