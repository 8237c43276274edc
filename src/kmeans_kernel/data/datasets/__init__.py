"""Loaders of the 8 × 8 digits, MNIST and Fashion-MNIST, and of IDX files."""

from kmeans_kernel.data.datasets._idx import read_idx
from kmeans_kernel.data.datasets._loaders import load_digits, load_fashion_mnist, load_mnist

__all__ = ["load_digits", "load_fashion_mnist", "load_mnist", "read_idx"]
