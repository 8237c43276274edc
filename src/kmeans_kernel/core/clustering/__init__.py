"""Spherical K-means, and the representatives of each class."""
