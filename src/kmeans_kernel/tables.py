"""Reading labelled rows from the files people have: CSV, Parquet, NPZ, svmlight, IDX.

A file becomes a `Table`: features with their names, or images, and labels if it has any. Whatever
cannot be read is told in one sentence that names the file, what is wrong and what to do.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt


class Format(StrEnum):
    """What a file may be."""

    csv = "csv"
    parquet = "parquet"
    npz = "npz"
    svmlight = "svmlight"
    idx = "idx"


# Told how many bytes were read, and of how many if that is known.
OnBytes: TypeAlias = Callable[[int, int | None], None]

STANDARD_INPUT = "-"
MISSING_MARKS = [
    "", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "null", "Null", "NULL", "None", "none",
    "?",
]  # fmt: skip

SEPARATORS = ",;\t|"

_BYTES_AT_A_TIME = 1 << 22

# A sparse file is read into a dense table up to this many bytes.
_LARGEST_DENSE = 4 << 30

# What is larger cannot be squared and summed.
_LARGEST_NUMBER = 1e150

_SUFFIXES: dict[str, Format] = {
    ".csv": Format.csv, ".parquet": Format.parquet, ".pq": Format.parquet, ".npz": Format.npz,
    ".svm": Format.svmlight, ".svmlight": Format.svmlight, ".libsvm": Format.svmlight,
    ".idx": Format.idx,
}  # fmt: skip


class DataFileError(ValueError):
    """A file that holds no table that can be used; the message is one sentence for the user."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to train on or to classify.

    Attributes
    ----------
    X : a polars frame of numbers, an array (n, d), or images (n, height, width)
    y : (n,) labels, or None
    rows : (n,) the number of each row in the file, from 0: rows may have been dropped
    n_dropped : how many were, for missing values
    """

    X: Any
    y: npt.NDArray[Any] | None
    rows: npt.NDArray[np.intp]
    n_dropped: int = 0

    @property
    def are_images(self) -> bool:
        """Whether the rows are images."""
        return getattr(self.X, "ndim", 2) == 3


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
    content, name = _content(source, on_bytes)
    kind = file_format or _format_of(name, content)
    if drop and kind not in (Format.csv, Format.parquet):
        raise DataFileError(f"{name} is {kind}, whose columns have no names to leave out by.")
    try:
        if kind in (Format.csv, Format.parquet):
            frame = (
                _read_parquet(content, name)
                if kind is Format.parquet
                else _read_csv(content, name, target)
            )
            return _table_of(frame, name, target, labels, features, drop, drop_missing)
        if kind is Format.npz:
            X, y = _read_npz(content, name, target)
        elif kind is Format.svmlight:
            X, y = _read_svmlight(content, name, n_features, zero_based)
        else:
            X, y = _read_images(content, source, name, target, labels)
    except DataFileError:
        raise
    except Exception as error:  # whatever a library says of a file it cannot read
        raise DataFileError(f"{name} could not be read as {kind}: {_first_line(error)}") from error
    if labels and y is None:
        where = {Format.npz: "array", Format.idx: "file"}[kind]
        raise DataFileError(
            f"{name} has no labels; name the {where} that holds them with --target."
        )
    return _table_of_arrays(X, None if labels is False else y, name, drop_missing)


def _content(source: str | Path, on_bytes: OnBytes | None) -> tuple[bytes, str]:
    """Return the bytes of a file, unpacked, and how to call it."""
    if str(source) == STANDARD_INPUT:
        if sys.stdin is None:
            raise DataFileError("standard input is closed; name a file.")
        content, name = _read_all(sys.stdin.buffer, None, on_bytes), "standard input"
    else:
        path = Path(source)
        if path.is_dir():
            raise DataFileError(f"{path} is a directory; name a file in it.")
        try:
            with path.open("rb") as file:
                content, name = _read_all(file, path.stat().st_size or None, on_bytes), str(path)
        except FileNotFoundError as error:
            raise DataFileError(f"there is no file {path}; check the name.") from error
        except OSError as error:
            raise DataFileError(f"{path} cannot be read: {error.strerror}.") from error
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise DataFileError(f"{name} is not a whole gzip file; copy it again.") from error
    if not content.strip():
        raise DataFileError(f"{name} is empty; it should hold rows to train on or to classify.")
    return content, name


def _read_all(file: BinaryIO, total: int | None, on_bytes: OnBytes | None) -> bytes:
    """Return all bytes of a stream."""
    content = bytearray()
    while block := file.read(_BYTES_AT_A_TIME):
        content += block
        if on_bytes is not None:
            on_bytes(len(content), total)
    return bytes(content)


def _format_of(name: str, content: bytes) -> Format:
    """Tell the format from the name, else from the first bytes."""
    path = Path(name.removesuffix(".gz"))
    if path.suffix in _SUFFIXES:
        return _SUFFIXES[path.suffix]
    start = content[:4096]
    if start[:4] == b"PAR1":
        return Format.parquet
    if start[:4] == b"PK\x03\x04":
        return Format.npz
    if start[:2] == b"\0\0" and len(start) > 4 and start[2] in (8, 9, 11, 12, 13, 14):
        return Format.idx
    if b"\0" in start:
        raise DataFileError(
            f"{name} is binary and of no known format; {', '.join(Format)} can be read, and "
            "--format names one."
        )
    first = start.strip().splitlines()[0]
    is_sparse = re.fullmatch(rb"\S+(\s+\d+:\S+)+(\s*#.*)?", first.strip())
    return Format.svmlight if is_sparse else Format.csv


def _read_parquet(content: bytes, name: str) -> Any:
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DataFileError(f"{name} could not be read as parquet: {_first_line(error)}") from error
    if len(frame) == 0:
        raise DataFileError(f"{name} has columns and no rows.")
    return frame


def _read_csv(content: bytes, name: str, target: str | None) -> Any:
    """Read text into a frame; the target stays text, so that 007 is not 7."""
    import polars as pl

    names, separator, text = _split_header(_text_of(content, name), name)
    twice = [part for part, count in Counter(names).items() if count > 1]
    if twice:
        raise DataFileError(f"{name} has two columns called {twice[0]!r}; rename one.")
    try:
        frame = pl.read_csv(
            io.StringIO(separator.join(map(str, range(len(names)))) + "\n" + text),
            separator=separator,
            null_values=MISSING_MARKS,
            infer_schema_length=None,
            schema_overrides={str(names.index(target)): pl.String} if target in names else None,
        )
    except pl.exceptions.PolarsError as error:
        told = _first_line(error)
        if "more fields" in told:
            told = f"a row has more fields than the {len(names)} of the first line."
        raise DataFileError(f"{name} could not be read as csv: {told}") from error
    frame.columns = names
    # Spaces around a value do not belong to it, and a value of nothing else is missing.
    stripped = pl.col(pl.String).str.strip_chars()
    frame = frame.with_columns(
        pl.when(stripped.is_in(MISSING_MARKS)).then(None).otherwise(stripped).name.keep()
    )
    if len(frame) == 0:
        raise DataFileError(f"{name} has column names and no rows.")
    return frame


def _text_of(content: bytes, name: str) -> str:
    """Return the text of a file without blank lines, its lines ended by a line feed."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataFileError(f"{name} is not text in UTF-8; save it as that.") from error
    if "\0" in text[:4096]:
        raise DataFileError(f"{name} is not text, so it is no CSV; --format names another format.")
    text = text.replace("\r\n", "\n")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    text = text.strip("\n") + "\n"
    if not re.search(r"\n[^\S\n]*\n", text):
        return text
    lines, inside = [], False  # a blank line within quotes belongs to a value
    for line in text.split("\n"):
        if line.strip() or inside:
            lines.append(line)
        inside ^= line.count('"') % 2 == 1
    return "\n".join(lines) + "\n"


def _split_header(text: str, name: str) -> tuple[list[str], str, str]:
    """Return the names of the columns, what separates them, and the text after them.

    A column without a name is called unnamed_ and its number.
    """
    told = re.match(r"sep=(.)\n", text)  # as a spreadsheet may write it
    text = text[told.end() :] if told else text
    record = re.match(r'(?:[^"\n]|"(?:[^"]|"")*")*', text)
    header = record[0] if record else ""
    if text[len(header) : len(header) + 1] not in ("", "\n"):
        raise DataFileError(f"the first line of {name} has a quotation mark without its partner.")
    rest = text[len(header) + 1 :]
    separator = told[1] if told else _separator_of(header, rest.partition("\n")[0])
    (parts,) = csv.reader(io.StringIO(header, newline=""), delimiter=separator)
    parts = [part.strip().strip('"').strip() for part in parts]
    names = [part or f"unnamed_{k + 1}" for k, part in enumerate(parts)]
    return names, separator, rest


def _separator_of(header: str, row: str) -> str:
    """Tell what separates the columns: what occurs as often in the first row, else most often."""
    quoted = re.compile(r'"(?:[^"]|"")*"')
    counts = {mark: quoted.sub("", header).count(mark) for mark in SEPARATORS}
    fits = {mark: n > 0 and quoted.sub("", row).count(mark) == n for mark, n in counts.items()}
    return max(SEPARATORS, key=lambda mark: (fits[mark], counts[mark]))


def _table_of(
    frame: Any,
    name: str,
    target: str | None,
    labels: bool | None,
    features: Sequence[str] | None,
    drop: Sequence[str],
    drop_missing: bool,
) -> Table:
    """Return the numbers and the labels of a frame."""
    import polars as pl

    if labels and target is None:
        raise DataFileError(
            f"say which column of {name} holds the labels, with --target; its columns are "
            f"{_listed(frame.columns)}."
        )
    if labels is False:
        drop = [*drop, *(column for column in frame.columns if column == target)]
        target = None
    named = [column for column in (target, *drop) if column is not None]
    absent = [column for column in (*named, *(features or ())) if column not in frame.columns]
    if absent:
        raise DataFileError(
            f"{name} has no column {absent[0]!r}; its columns are {_listed(frame.columns)}."
        )
    needed = [column for column in named if column in (features or ())]
    if needed:
        raise DataFileError(
            f"the model needs the column {needed[0]!r} as a feature; it can be neither left out "
            "nor the target."
        )
    if features is None:
        features = [column for column in frame.columns if column not in named]
        nameless = [column for column in features if re.fullmatch(r"unnamed_\d+", column)]
        if nameless:
            raise DataFileError(
                f"column {nameless[0].removeprefix('unnamed_')} of {name} has no name; if it holds "
                f"nothing of use, such as the numbers of the rows, leave it out with --drop "
                f"{nameless[0]}, else give it a name."
            )
    if not features:
        raise DataFileError(f"{name} has no column of features beside {_listed(named)}.")
    X = frame.select(_numbers(frame[column], name) for column in features)
    missing = X.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()
    if target is not None:
        missing = missing | _is_missing(frame[target])
    if missing.any() and not drop_missing:
        row = int(np.flatnonzero(missing)[0])
        empty = next((column for column in features if X[column][row] is None), target)
        raise _missing_error(missing, name, f"column {empty!r}")
    rows = np.flatnonzero(~missing)
    if len(rows) == 0:
        raise DataFileError(f"every row of {name} has a missing value; fill them first.")
    X = X[rows]
    for column in features:
        too_large = (X[column].abs() > _LARGEST_NUMBER).arg_true()
        if len(too_large):
            raise _too_large_error(
                X[column][too_large[0]], name, int(rows[too_large[0]]), f"column {column!r}"
            )
    y = None if target is None else _labels(frame[target].gather(rows), name)
    return Table(X, y, rows, int(missing.sum()))


def _table_of_arrays(
    X: npt.NDArray[Any], y: npt.NDArray[Any] | None, name: str, drop_missing: bool
) -> Table:
    """Return a table of numbers without names."""
    flat = X.reshape(len(X), -1)
    missing = np.isnan(flat).any(axis=1) if X.dtype.kind == "f" else np.zeros(len(X), dtype=bool)
    of_labels = np.isnan(y) if y is not None and y.dtype.kind == "f" else np.zeros_like(missing)
    if (missing | of_labels).any() and not drop_missing:
        row = int(np.flatnonzero(missing | of_labels)[0])
        place = f"feature {int(np.isnan(flat[row]).argmax()) + 1}" if missing[row] else "the label"
        raise _missing_error(missing | of_labels, name, place)
    missing |= of_labels
    rows = np.flatnonzero(~missing)
    if len(rows) == 0:
        raise DataFileError(f"every row of {name} has a missing value; fill them first.")
    if X.dtype.kind == "f":
        row, feature = np.unravel_index(np.abs(flat[rows]).argmax(), flat[rows].shape)
        value = float(flat[rows][row, feature])
        if abs(value) > _LARGEST_NUMBER:
            raise _too_large_error(value, name, int(rows[row]), f"feature {int(feature) + 1}")
    y = None if y is None else _plain_labels(y[rows], name)
    return Table(X[rows], y, rows, int(missing.sum()))


def _missing_error(missing: npt.NDArray[np.bool_], name: str, place: str) -> DataFileError:
    count, first = int(missing.sum()), int(np.flatnonzero(missing)[0])
    told = "1 row has" if count == 1 else f"{count} rows have"
    return DataFileError(
        f"{told} a missing value among the {len(missing)} of {name}, the first in data row "
        f"{first + 1}, {place}; fill them, or leave such rows out with --drop-missing."
    )


def _too_large_error(value: float, name: str, row: int, place: str) -> DataFileError:
    what = "infinite" if np.isinf(value) else f"{value:g}, too large to be used"
    return DataFileError(f"data row {row + 1} of {name} is {what} in {place}; replace it.")


def _numbers(column: Any, name: str) -> Any:
    """Return a column as float64, NaN as missing; or say that it holds no numbers."""
    import polars as pl

    kind = column.dtype
    if column.null_count() == len(column):
        return column.cast(pl.Float64, strict=False)
    if kind in (pl.String, pl.Categorical, pl.Enum):
        text = column.cast(pl.String)
        lowered = text.str.to_lowercase()
        if lowered.drop_nulls().is_in(["true", "false"]).all():
            return (lowered == "true").cast(pl.Float64).alias(column.name)
        numbers = text.cast(pl.Float64, strict=False)
        wrong = (numbers.is_null() & text.is_not_null()).arg_true()
        if len(wrong):
            raise DataFileError(_not_a_number(column.name, name, text[wrong[0]], wrong[0]))
        return numbers.fill_nan(None)
    if not (kind.is_numeric() or kind == pl.Boolean):
        raise DataFileError(
            f"the column {column.name!r} of {name} holds {str(kind).split('(')[0].lower()}, not "
            f"numbers; encode it as numbers first, or leave it out with --drop {column.name!r}."
        )
    return column.cast(pl.Float64).fill_nan(None)


def _not_a_number(column: str, name: str, value: str, row: int) -> str:
    told = f"the column {column!r} of {name} holds text, {value!r} in data row {row + 1}"
    if re.fullmatch(r"-?\d+,\d+", value):
        return f"{told}; write numbers with a point."
    return f"{told}; encode it as numbers first, or leave it out with --drop {column!r}."


def _is_missing(column: Any) -> npt.NDArray[np.bool_]:
    missing = column.is_null()
    if column.dtype.is_float():
        missing = missing | column.is_nan().fill_null(True)
    return np.asarray(missing.to_numpy())


def _labels(column: Any, name: str) -> npt.NDArray[Any]:
    """Return labels as whole numbers where they are such, as booleans, else as text."""
    import polars as pl

    kind = column.dtype
    if kind == pl.Boolean:
        return np.asarray(column.to_numpy())
    if kind.is_nested() or kind == pl.Binary:
        raise DataFileError(
            f"the column {column.name!r} of {name} is {str(kind).split('(')[0].lower()}, which is "
            "no label."
        )
    if kind.is_float():
        return _plain_labels(column.to_numpy(), name)
    text = column.cast(pl.String)
    return parse_labels(np.array(text.to_list(), dtype=str))


def _plain_labels(y: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return labels of an array: numbers that are not whole become text."""
    if y.dtype.kind != "f":
        return y
    if not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise DataFileError(f"a label of {name} is {y[row]}; labels are numbers or text.")
    if (y == np.rint(y)).all() and (np.abs(y) < 2**53).all():
        return y.astype(np.int64)
    return np.array([str(label) for label in y.tolist()])


def parse_labels(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return text as whole numbers if every label is one, as numbers are written: 7, not 007."""
    if all(re.fullmatch(r"(0|-?[1-9]\d{0,17})(\.0+)?", label) for label in np.unique(labels)):
        return np.array([int(label.partition(".")[0]) for label in labels.tolist()], dtype=np.int64)
    return labels


def _read_npz(
    content: bytes, name: str, target: str | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        found = {key: file[key] for key in file.files}
    arrays = {key: array for key, array in found.items() if isinstance(array, np.ndarray)}
    label_name = target or "y"
    if target is not None and target not in arrays:
        raise DataFileError(f"{name} has no array {target!r}; it has {_listed(list(arrays))}.")
    y = arrays.pop(label_name, None)
    X = arrays.get("X") if "X" in arrays else None
    if X is None:
        if len(arrays) != 1:
            raise DataFileError(
                f"{name} should hold an array 'X' of rows and an array {label_name!r} of labels; "
                f"it has {_listed([*arrays, *([label_name] if y is not None else [])])}."
            )
        X = next(iter(arrays.values()))
    if X.ndim not in (2, 3) or X.size == 0 or X.dtype.kind not in "biuf":
        raise DataFileError(
            f"the array of rows in {name} should be numbers of shape (rows, features) or (images, "
            f"height, width), got {X.dtype} of shape {X.shape}."
        )
    if y is not None and y.shape != (len(X),):
        raise DataFileError(f"{name} has {len(X)} rows, and labels of shape {y.shape}.")
    if y is not None and y.dtype.kind not in "biufU":
        raise DataFileError(f"the labels in {name} are {y.dtype}; they should be numbers or text.")
    return X, y


def _read_svmlight(
    content: bytes, name: str, n_features: int | None, zero_based: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(io.BytesIO(content), zero_based=True)  # counted as written
    if not zero_based:
        if X[:, 0].nnz:
            raise DataFileError(
                f"{name} has a feature 0; say --zero-based if its features are counted from 0."
            )
        X = X[:, 1:]
    if n_features is not None and X.shape[1] > n_features:
        raise DataFileError(f"{name} has {X.shape[1]} features, and the model knows {n_features}.")
    width = X.shape[1] if n_features is None else n_features
    if 8 * X.shape[0] * width > _LARGEST_DENSE:
        raise DataFileError(
            f"{name} has {X.shape[0]} rows of {width} features, too many to be held dense."
        )
    dense = np.zeros((X.shape[0], width))
    dense[:, : X.shape[1]] = X.toarray()
    return dense, y


def _read_images(
    content: bytes, source: str | Path, name: str, target: str | None, labels: bool | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    from kmeans_kernel.datasets import read_idx
    from kmeans_kernel.datasets._idx import decode_idx

    images = decode_idx(content, name)
    if images.ndim != 3:
        raise DataFileError(f"{name} holds no images, but an array of shape {images.shape}.")
    path = Path(source)
    beside = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
    if labels is False or (target is None and (beside == path or not beside.exists())):
        return images, None
    where = beside if target is None else Path(target)
    y = read_idx(where)
    if y.shape != images.shape[:1]:
        raise DataFileError(f"{name} has {len(images)} images, and {where} labels of {y.shape}.")
    return images, y


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown or "none"


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") + "." if lines else type(error).__name__ + "."
