"""Rows: dense or sparse, on the unit sphere, labelled, in memory or out of core."""
