"""Questions about a plan: simpler policies, prices, explanations, windows, how long it takes."""
