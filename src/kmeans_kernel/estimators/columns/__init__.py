"""Columns of a table as it comes: their types, and their conversion to the numbers of the core."""

from kmeans_kernel.estimators.columns._columns import Column
from kmeans_kernel.estimators.columns._encoder import TableEncoder
from kmeans_kernel.estimators.columns._learning import DroppedColumnWarning

__all__ = ["Column", "DroppedColumnWarning", "TableEncoder"]
