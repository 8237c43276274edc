"""Reading tables and images from CSV, Parquet, NPZ, svmlight and IDX files.

`read_table` returns a `Table`: features with their names and types, or images, and labels if the
file has any. A file that cannot be read raises `DataFileError`, one sentence that names the file,
the problem and a remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kmeans_kernel.data.tables._arrays import (
    read_idx_images,
    read_npz,
    read_svmlight,
    table_from_arrays,
)
from kmeans_kernel.data.tables._blocks import TableBlocks
from kmeans_kernel.data.tables._content import (
    STANDARD_INPUT,
    SUFFIXES,
    Format,
    OnBytes,
    detect_format,
    read_content,
)
from kmeans_kernel.data.tables._csv._reader import read_csv
from kmeans_kernel.data.tables._frames import Roles, read_parquet, table_from_raw
from kmeans_kernel.data.tables._table import DataFileError, Notation, Reading, Table, first_line

__all__ = [
    "KINDS", "STANDARD_INPUT", "SUFFIXES", "DataFileError", "Format", "Notation", "Reading",
    "Table", "TableBlocks", "read_table",
]  # fmt: skip

# Kinds of columns that a caller may name.
KINDS = ("number", "category", "boolean", "date", "drop")


def read_table(
    source: str | Path,
    *,
    target: str | None = None,
    labels: bool | None = None,
    features: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    id_column: str | None = None,
    n_features: int | None = None,
    file_format: Format | None = None,
    reading: Reading | None = None,
    drop: Sequence[str] = (),
    drop_missing: bool = False,
    zero_based: bool = False,
    on_bytes: OnBytes | None = None,
) -> Table:
    """Read a file of labelled or unlabelled rows.

    The type of a column of text, as all of CSV are, follows from all its values: numbers in any
    notation, true and false, dates, else text. Digits with leading zeros and integers beyond 2⁵³
    are text. What can be read in two ways is refused, all columns at once.

    Parameters
    ----------
    source : path of the file, or "-" for standard input; gzip is decompressed
    target : location of the labels: a column of CSV or Parquet, an array of NPZ ("y" by default),
        or the label file of IDX images (by default the file of the same name with "labels" for
        "images"). Ignored for svmlight, whose lines start with the label
    labels : True requires labels, False ignores them, None reads them if the file has any
    features : names of the columns to read, in this order; by default all that have no other role
        and any value
    types : kinds of columns of CSV and Parquet by name: "number", "category" (text), "boolean",
        "date" or "drop"; by default they follow from the values. A target that is a category has
        no numbers; features to drop are all missing, and the file may lack them
    id_column : column that identifies rows, which is no feature
    n_features : number of features of an svmlight file, whose rows may end in zeros that are not
        written; by default the highest index in the file
    file_format : by default detected from the file's suffix, else from its first bytes
    reading : what CSV does not tell by itself, such as the decimal mark
    drop : names of columns to leave out
    drop_missing : whether to leave out rows with missing features; else they stay missing, but in
        images they are an error
    zero_based : True if the svmlight file numbers its features from 0 instead of 1
    on_bytes : progress callback, called with the bytes read and the total (None if unknown)

    Returns
    -------
    Table

    Raises
    ------
    DataFileError
        if the file cannot be read, or holds no usable rows
    ValueError
        if a kind is unknown
    """
    _check_kinds(types or {})
    content, name = read_content(source, on_bytes)
    kind = file_format or detect_format(name, content)
    if kind in (Format.csv, Format.parquet):
        how = reading or Reading()
        roles = Roles(target, labels, features, dict(types or {}), id_column, drop)
        raw = (
            read_csv(content, name, how, roles.expected)
            if kind is Format.csv
            else read_parquet(content, name)
        )
        return table_from_raw(raw, name, roles, how, drop_missing=drop_missing)
    _refuse_options_of_columns(f"{name} is {kind}", [*drop, id_column], reading)
    try:
        if kind is Format.npz:
            X, y = read_npz(content, name, target)
        elif kind is Format.svmlight:
            X, y = read_svmlight(content, name, n_features, zero_based)
        else:
            X, y = read_idx_images(content, source, name, target, labels)
    except DataFileError:
        raise
    except Exception as error:  # NumPy, SciPy and scikit-learn raise many types on a bad file
        raise DataFileError(f"{name} could not be read as {kind}: {first_line(error)}") from error
    if labels and y is None:
        where = {Format.npz: "array", Format.idx: "file"}[kind]
        raise DataFileError(
            f"{name} has no labels; name the {where} that holds them with --target."
        )
    return table_from_arrays(X, None if labels is False else y, name, drop_missing=drop_missing)


def _check_kinds(types: Mapping[str, str]) -> None:
    for column, given in types.items():
        if given not in KINDS:
            raise ValueError(
                f"the kind of column {column!r} must be one of {', '.join(map(repr, KINDS))}, got "
                f"{given!r}."
            )


def _refuse_options_of_columns(
    told: str, names: Sequence[str | None], reading: Reading | None
) -> None:
    """Raise `DataFileError` for names of columns, or for how text is read, in a file of arrays."""
    if any(name is not None for name in names):
        raise DataFileError(
            f"{told}, whose columns have no names to leave out or to identify rows by."
        )
    if reading is not None and replace(reading, trained=None) != Reading():
        raise DataFileError(
            f"{told}, which has no text; leave out --missing, --decimal, --dates, --header and "
            "--encoding."
        )
