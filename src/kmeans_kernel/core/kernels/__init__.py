"""Kernels as functions of the cosine, and kernel (Gram) matrices."""
