"""Verdicts: results against thresholds, claims of the draft, and what others published."""
