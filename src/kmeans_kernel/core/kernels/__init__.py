"""Kernels as functions of the cosine, and kernel matrices."""
