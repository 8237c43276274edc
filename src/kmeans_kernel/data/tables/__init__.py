"""Reading labelled rows from the files people have: CSV, Parquet, NPZ, svmlight, IDX.

A file becomes a `Table`: features with their names, or images, and labels if it has any. Whatever
cannot be read is told in one sentence that names the file, what is wrong and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kmeans_kernel.data.tables._arrays import read_images, read_npz, read_svmlight, table_of_arrays
from kmeans_kernel.data.tables._blocks import TableBlocks
from kmeans_kernel.data.tables._content import (
    STANDARD_INPUT,
    SUFFIXES,
    Format,
    OnBytes,
    content_of,
    format_of,
)
from kmeans_kernel.data.tables._csv import read_csv
from kmeans_kernel.data.tables._frames import read_parquet, table_of_frame
from kmeans_kernel.data.tables._table import DataFileError, Table, first_line

__all__ = [
    "STANDARD_INPUT", "SUFFIXES", "DataFileError", "Format", "Table", "TableBlocks",
    "read_table",
]  # fmt: skip


def read_table(
    source: str | Path,
    *,
    target: str | None = None,
    labels: bool | None = None,
    features: Sequence[str] | None = None,
    n_features: int | None = None,
    file_format: Format | None = None,
    drop: Sequence[str] = (),
    drop_missing: bool = False,
    zero_based: bool = False,
    on_bytes: OnBytes | None = None,
) -> Table:
    """Read a file.

    Parameters
    ----------
    source : the file, or "-" for standard input; it may be packed with gzip
    target : where the labels are: a column of CSV or Parquet, an array of NPZ ("y" by default), a
        file of labels for IDX (by default the one beside the images). svmlight has its own
    labels : True if there must be some, False if they are not read; by default they are read if
        there are any
    features : the columns to take, in this order; by default all but the target
    n_features : how many features a sparse row has, when the file need not show it
    file_format : by default told from the name and the first bytes
    drop : columns to leave out
    drop_missing : whether to leave out rows with missing values; else they are an error
    zero_based : whether svmlight counts its features from 0 instead of 1
    on_bytes : is told how far the reading is
    """
    content, name = content_of(source, on_bytes)
    kind = file_format or format_of(name, content)
    if drop and kind not in (Format.csv, Format.parquet):
        raise DataFileError(f"{name} is {kind}, whose columns have no names to leave out by.")
    try:
        if kind in (Format.csv, Format.parquet):
            is_csv = kind is Format.csv
            return table_of_frame(
                read_csv(content, name, target) if is_csv else read_parquet(content, name),
                name,
                target=target,
                labels=labels,
                features=features,
                drop=drop,
                drop_missing=drop_missing,
            )
        if kind is Format.npz:
            X, y = read_npz(content, name, target)
        elif kind is Format.svmlight:
            X, y = read_svmlight(content, name, n_features, zero_based)
        else:
            X, y = read_images(content, source, name, target, labels)
    except DataFileError:
        raise
    except Exception as error:  # whatever a library says of a file it cannot read
        raise DataFileError(f"{name} could not be read as {kind}: {first_line(error)}") from error
    if labels and y is None:
        where = {Format.npz: "array", Format.idx: "file"}[kind]
        raise DataFileError(
            f"{name} has no labels; name the {where} that holds them with --target."
        )
    return table_of_arrays(X, None if labels is False else y, name, drop_missing=drop_missing)
