"""Rows from where they are: data sets, files, blocks that do not fit into memory, Dask.

    from kmeans_kernel.data import ParquetBlocks

    classifier.fit(ParquetBlocks("rows/", target="label"))

Anything else that gives (X, y), or (X, y, sample_weight), each time it is iterated over will do as
well: a list of such blocks, or an object whose `__iter__` opens a file.
"""

from typing import TYPE_CHECKING

from kmeans_kernel.utils.contents import lazy_names

if TYPE_CHECKING:
    from kmeans_kernel.data._blocks import ArrayBlocks, ParquetBlocks, TransformedBlocks
    from kmeans_kernel.data._pipelines import fit_pipeline
    from kmeans_kernel.data.datasets import load_digits, load_fashion_mnist, load_mnist, read_idx
    from kmeans_kernel.data.tables import DataFileError, Reading, Table, read_table

__all__ = [
    "ArrayBlocks",
    "DataFileError",
    "ParquetBlocks",
    "Reading",
    "Table",
    "TransformedBlocks",
    "fit_pipeline",
    "load_digits",
    "load_fashion_mnist",
    "load_mnist",
    "read_idx",
    "read_table",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "ArrayBlocks": "_blocks",
        "DataFileError": "tables",
        "ParquetBlocks": "_blocks",
        "Reading": "tables",
        "Table": "tables",
        "TransformedBlocks": "_blocks",
        "fit_pipeline": "_pipelines",
        "load_digits": "datasets",
        "load_fashion_mnist": "datasets",
        "load_mnist": "datasets",
        "read_idx": "datasets",
        "read_table": "tables",
    },
)
