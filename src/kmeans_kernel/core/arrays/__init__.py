"""Rows: dense or sparse, on the unit sphere, labelled, in blocks or out of core."""
