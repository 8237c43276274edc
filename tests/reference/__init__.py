"""Slow, obvious twins of the core functions: plain loops, float64, one line per step."""
