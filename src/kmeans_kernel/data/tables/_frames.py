"""Conversion of polars frames to tables: features with their types, labels, identifiers."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.data.tables._columns._missing import markers_in, without_markers
from kmeans_kernel.data.tables._columns._problems import Problems
from kmeans_kernel.data.tables._columns._types import type_columns
from kmeans_kernel.data.tables._csv._reader import (
    RawTable,
    bare_name,
    refuse_repeated_target,
)
from kmeans_kernel.data.tables._table import (
    DataFileError,
    Reading,
    Table,
    first_line,
    labels_from_array,
    labels_from_text,
    note_unlabelled,
    quoted_list,
)

# Name that pandas gives the row index of a frame without one of its own in Parquet.
_PANDAS_INDEX = "__index_level_0__"

# Words that are missing values among features, as for pandas, and a class among labels.
CLASS_WORDS = frozenset(["None"])

# Names that pandas gives a nameless column of CSV, which it wrote as an index before.
_SAVED_INDEX = re.compile(r"Unnamed: 0(?:\.\d+)*")


@dataclass(frozen=True)
class Roles:
    """What the columns of a file are for.

    Attributes
    ----------
    target : name of the column of labels
    labels : True requires labels, False ignores them, None reads them if `target` is given
    features : names of the features, in this order; None for all columns that have no other role
    kinds : kinds of features by name, see `read_table`
    id_column : name of the column that identifies rows
    drop : names of columns to leave out
    """

    target: str | None = None
    labels: bool | None = None
    features: Sequence[str] | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    id_column: str | None = None
    drop: Sequence[str] = ()

    @property
    def expected(self) -> set[str]:
        """The names that columns of the file should have."""
        named = [*(self.features or ()), *self.drop, *self.kinds, self.target, self.id_column]
        return {one for one in named if one is not None}


def read_parquet(content: bytes, name: str) -> RawTable:
    """Read Parquet into a frame."""
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DataFileError(f"{name} could not be read as parquet: {first_line(error)}") from error
    if len(frame) == 0:
        raise DataFileError(f"{name} has columns and no rows.")
    return RawTable(frame)


def table_from_raw(
    raw: RawTable, name: str, roles: Roles, how: Reading, *, drop_missing: bool
) -> Table:
    """Return the features, labels and identifiers of a file; see `read_table` for the options."""
    if roles.labels is False:
        unused = [roles.target] if roles.target in raw.frame.columns else []
        roles = replace(roles, target=None, drop=[*roles.drop, *filter(None, unused)])
    raw = _with_expected_names(raw, roles.expected)
    _check_roles(raw, name, roles, how)
    chosen, notes = _feature_columns(raw.frame, name, roles)
    target = roles.target
    as_trained, noted = _markers_of_training(raw.frame, chosen, how)
    _refuse_lost_markers(how.missing, raw.frame, name)
    missing = (*how.missing, *as_trained)
    frame = _without_missing(raw, missing, _known_levels(how, target))
    labels = raw.frame if raw.separator is None else frame  # "NA" in Parquet is a word
    problems = Problems(name, frame, are_fixed=roles.features is not None, ignored=target)
    unread = [column for column in chosen if roles.kinds.get(column) == "drop"]
    wanted = [*(one for one in chosen if one not in unread), *filter(None, [target])]
    typed, notation = type_columns(frame, wanted, problems, how, roles.kinds, raw.separator or ",")
    problems.raise_any()
    typed |= {column: _nothing(column, len(frame)) for column in unread}
    label = None if target is None else labels[target]
    rows, n_dropped, left_out = _rows_to_keep(typed, label, chosen, name, drop_missing=drop_missing)
    return Table(
        _frame_of(typed, chosen)[rows],
        None if label is None else labels_from_column(label.gather(rows), name),
        rows,
        n_dropped,
        None if label is None else _as_numbers(typed[label.name].gather(rows)),
        None if roles.id_column is None else raw.frame[roles.id_column].gather(rows),
        (*raw.notes, *notes, *noted, *problems.notes, *left_out),
        replace(notation, missing=missing),
    )


def _with_expected_names(raw: RawTable, expected: Collection[str]) -> RawTable:
    """Return a table with the expected names where a column differs in blanks at its ends only.

    A name that several columns have, or that several expected ones differ from so, stays.
    """
    absent, others = defaultdict(list), defaultdict(list)
    for name in set(expected) - set(raw.frame.columns):
        absent[bare_name(name)].append(name)
    for name in raw.frame.columns:
        if name not in expected:
            others[bare_name(name)].append(name)
    known = {
        others[bare][0]: names[0]
        for bare, names in absent.items()
        if len(names) == len(others[bare]) == 1 and bare not in raw.repeated
    }
    return replace(raw, frame=raw.frame.rename(known)) if known else raw


def _known_levels(how: Reading, target: str | None) -> dict[str, Collection[str]]:
    """Return the values of columns that are no missing values, however they are spelt."""
    found = {} if how.trained is None else dict(how.trained.levels)
    if target is not None:
        found[target] = CLASS_WORDS.union(found.get(target, ()))
    return found


def _without_missing(
    raw: RawTable, missing: Sequence[str], levels: Mapping[str, Collection[str]]
) -> Any:
    """Return the columns with nulls for missing values; blank cells of CSV may be a level."""
    import polars as pl

    empty = [name for name, known in levels.items() if "" in known and name in raw.frame.columns]
    filled = [pl.col(name).fill_null("") for name in empty if raw.separator is not None]
    return without_markers(raw.frame.with_columns(filled), missing, levels)


def _check_roles(raw: RawTable, name: str, roles: Roles, how: Reading) -> None:
    """Raise DataFileError for roles that no column, or more than one, can have."""
    if roles.labels and roles.target is None:
        raise DataFileError(
            f"say which column of {name} holds the labels, with --target; its columns are "
            f"{quoted_list(raw.frame.columns)}."
        )
    if roles.target is not None and roles.target == roles.id_column:
        raise DataFileError(
            f"the column {roles.target!r} of {name} cannot be both --target and --id; name another."
        )
    if how.header is False and roles.features is not None:
        _refuse_nameless(roles.features, raw.frame.columns, name)
    refuse_repeated_target(roles.target, raw.repeated, name)


def _feature_columns(frame: Any, name: str, roles: Roles) -> tuple[Sequence[str], tuple[str, ...]]:
    """Return the names of the features, and notes: `features`, else the columns without a role."""
    unread = [column for column, kind in roles.kinds.items() if kind == "drop"]
    named = [one for one in (roles.target, roles.id_column, *roles.drop) if one is not None]
    if roles.features is not None:
        read = [column for column in roles.features if column not in unread]
        _refuse_absent([*named, *read], frame.columns, name)
        needed = [column for column in read if column in (roles.target, *roles.drop)]
        if needed:
            raise DataFileError(
                f"the model needs the column {needed[0]!r} as a feature; it can be neither left "
                "out nor the target."
            )
        return roles.features, _note_ignored(frame, name, [*roles.features, *named])
    _refuse_absent([*named, *roles.kinds], frame.columns, name)
    named += unread
    chosen = [column for column in frame.columns if column not in named]
    counting = [column for column in _index_columns(frame) if column in chosen]
    empty = [column for column in chosen if _is_empty(frame[column])]
    chosen = [column for column in chosen if column not in (*counting, *empty)]
    if not chosen:
        beside = f" beside {quoted_list(named)}" if named else ", only empty ones"
        raise DataFileError(f"{name} has no column of features{beside}.")
    unnamed = [column for column in chosen if re.fullmatch(r"unnamed_\d+", column)]
    notes = []
    if counting in (["unnamed_1"], [_PANDAS_INDEX]):
        notes.append(f"the first column of {name}, which counts the rows, was left out.")
    elif counting:
        notes.append(
            f"columns of {name} that count the rows were left out: {quoted_list(counting)}."
        )
    if empty:
        notes.append(f"columns of {name} without any value were left out: {quoted_list(empty)}.")
    if unnamed:
        notes.append(
            f"columns of {name} without a name are features called {quoted_list(unnamed)}; "
            "leave them out with --drop if they are none."
        )
    return chosen, tuple(notes)


def _note_ignored(frame: Any, name: str, used: Sequence[str]) -> tuple[str, ...]:
    """Return a note of the columns that a model does not take; row indices go without saying."""
    known = {*used, *_index_columns(frame)}
    others = [column for column in frame.columns if column not in known]
    if not others:
        return ()
    one = len(others) == 1
    return (
        f"{'a column' if one else f'{len(others)} columns'} of {name} that the model does not have "
        f"{'was' if one else 'were'} ignored: {quoted_list(others)}.",
    )


def _markers_of_training(
    frame: Any, names: Sequence[str], how: Reading
) -> tuple[list[str], tuple[str, ...]]:
    """Return the texts that meant missing in training and are not named again, and notes of them.

    A note tells of a text that is in one of the columns.
    """
    usual = [] if how.trained is None else list(how.trained.missing)
    markers = [marker for marker in usual if marker not in how.missing]
    notes = []
    for marker in markers:
        found = {name: text for name in names if name in frame.columns
                 for text in markers_in(name, [marker], frame.columns)
                 if _has_value(frame[name], text)}  # fmt: skip
        notes += [
            f"{text!r} was read as a missing value in {quoted_list(list(found))}, as in training."
            for text in dict.fromkeys(found.values())
        ]
    return markers, tuple(notes)


def _refuse_lost_markers(markers: Sequence[str], frame: Any, name: str) -> None:
    """Raise DataFileError for COLUMN=TEXT of a column that is not there, unless it is a value."""
    for marker in markers:
        column, equal, text = marker.partition("=")
        known = any(marker.startswith(f"{one}=") for one in frame.columns)
        if not equal or known or not column or not text:
            continue
        if not any(_has_value(frame[one], marker.strip()) for one in frame.columns):
            raise DataFileError(
                f"--missing {marker!r} is for a column {column!r}, which {name} does not have; its "
                f"columns are {quoted_list(frame.columns)}."
            )


def _has_value(column: Any, text: str) -> bool:
    """Return whether a column of text has a value."""
    return str(column.dtype) == "String" and bool((column.str.strip_chars() == text).any())


def _refuse_nameless(wanted: Sequence[str], columns: Sequence[str], name: str) -> None:
    """Raise DataFileError if a file without names is read for a model that has some."""
    if not set(wanted) <= set(columns):
        raise DataFileError(
            f"{name} is read without a header, and the model takes its columns by name: write "
            f"{quoted_list(wanted)} in the first line, and leave out --no-header."
        )


def _refuse_absent(wanted: Iterable[str], columns: Sequence[str], name: str) -> None:
    """Raise DataFileError if the file lacks columns."""
    absent = [column for column in dict.fromkeys(wanted) if column not in columns]
    if absent:
        what = "column" if len(absent) == 1 else "columns"
        raise DataFileError(
            f"{name} has no {what} {quoted_list(absent)}; its columns are {quoted_list(columns)}."
        )


def _index_columns(frame: Any) -> list[str]:
    """Return the first columns that are row indices, which pandas writes with each saving."""
    found = [column for column in frame.columns if column == _PANDAS_INDEX]
    for k, column in enumerate(frame.columns):
        is_index = column == f"unnamed_{k + 1}" or _SAVED_INDEX.fullmatch(column)
        if not is_index or not _counts_rows(frame[column], from_start=column[0] == "u"):
            return found
        found.append(column)
    return found


def _counts_rows(column: Any, *, from_start: bool) -> bool:
    """Return whether a column counts the rows from 0 or from 1, or with gaps, as after a choice."""
    import polars as pl

    numbers = column.cast(pl.Int64, strict=False)
    first = numbers[0]
    if from_start:
        rows = None if first is None else pl.int_range(first, first + len(column), eager=True)
        return first in (0, 1) and numbers.equals(rows)
    return not numbers.null_count() and first >= 0 and bool((numbers.diff()[1:] > 0).all())


def _is_empty(column: Any) -> bool:
    import polars as pl

    if column.dtype == pl.String:
        if (column[0] or "").strip():
            return False
        column = column.str.strip_chars().replace("", None)
    return bool(column.null_count() == len(column))


def _rows_to_keep(
    typed: Mapping[str, Any], labels: Any, chosen: Sequence[str], name: str, *, drop_missing: bool
) -> tuple[npt.NDArray[np.intp], int, tuple[str, ...]]:
    """Return the rows with a label, and without missing features if these are to be dropped.

    Returns
    -------
    the indices of the rows; the number of rows dropped for missing features; notes
    """
    labelled = np.ones(len(typed[chosen[0]]), dtype=bool)
    notes: tuple[str, ...] = ()
    if labels is not None:
        labelled = ~is_missing(labels)
        notes = note_unlabelled(~labelled, name, f"a label in the column {labels.name!r}")
    keep = labelled.copy()
    for column in chosen if drop_missing else ():
        keep &= typed[column].is_not_null().to_numpy()
    if not keep.any():
        raise DataFileError(f"every row of {name} has a missing value; leave out --drop-missing.")
    return np.flatnonzero(keep), int(labelled.sum() - keep.sum()), notes


def _nothing(name: str, n_rows: int) -> Any:
    """Return a column of missing values, for one that a model does not look at."""
    import polars as pl

    return pl.Series(name, [None] * n_rows, dtype=pl.String)


def _frame_of(typed: Mapping[str, Any], chosen: Sequence[str]) -> Any:
    import polars as pl

    return pl.DataFrame({column: typed[column] for column in chosen})


def is_missing(column: Any) -> npt.NDArray[np.bool_]:
    missing = column.is_null()
    if column.dtype.is_float():
        missing = missing | column.is_nan().fill_null(True)
    return np.asarray(missing.to_numpy())


def _as_numbers(column: Any) -> npt.NDArray[np.float64] | None:
    """Return labels as numbers, None if one of them is none."""
    if not column.dtype.is_numeric() or column.null_count():
        return None
    return np.asarray(column.to_numpy(), dtype=np.float64)


def labels_from_column(column: Any, name: str) -> npt.NDArray[Any]:
    """Return a label column as booleans, as integers if all labels are integers, else as text."""
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
        return labels_from_array(column.to_numpy(), name)
    text = column.cast(pl.String)
    return labels_from_text(np.array(text.to_list(), dtype=str))
