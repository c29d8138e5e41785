"""The highest cost of a policy in a confidence set, and policies that keep it low."""
