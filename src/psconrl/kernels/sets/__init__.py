"""Confidence sets: intervals, boxes and balls, and the best and the worst of them."""
