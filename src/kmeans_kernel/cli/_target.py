"""Labels that are numbers: refused if they are no classes, or cut into classes."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.data.tables import DataFileError, Table
from kmeans_kernel.data.tables._columns._numbers import Survey
from kmeans_kernel.data.tables._table import is_continuous

_NUMBER = r"-?(?:inf|\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_INTERVAL = re.compile(rf"[(]({_NUMBER}), ({_NUMBER})[)\]]")

# Classes that are never too many, and words that may stand beside numbers.
_FEW_CLASSES, _FEW_WORDS = 20, 3

# Significant digits of the ends of intervals.
_DIGITS = 6


def with_classes(
    table: Table,
    n_classes: int | None,
    target: str | None,
    data: str,
    *,
    are_classes: bool = False,
) -> Table:
    """Return a table whose labels are classes.

    Raises `DataFileError` for labels that are measurements of a quantity, or names of single rows.

    Parameters
    ----------
    are_classes : whether the user says that each label is a class
    n_classes : number of classes that numbers are to be cut into; None leaves labels as they are
    target : name of the labels, for messages
    data : name of the file, for messages
    """
    numbers = table.y_numbers
    if n_classes is None:
        if numbers is None and not are_classes:
            _refuse_single_rows(table, target, data)
        if numbers is None or not is_continuous(numbers):
            return table
        known = f", or add --column-type {shlex.quote(f'{target}=category')} if each number is a "
        raise DataFileError(
            f"the labels{'' if target is None else f' {target!r}'} of {data} are "
            f"{len(np.unique(numbers))} different numbers, which look like a quantity and not like "
            "classes; cut them into classes of about equal size with --cut-target 3"
            f"{'' if target is None else known + 'class'}."
        )
    if numbers is None:
        raise DataFileError(
            f"--cut-target needs labels that are numbers, and those of {data} are not."
        )
    return replace(table, y=cut(numbers, quantile_edges(numbers, n_classes, data)))


def _refuse_single_rows(table: Table, target: str | None, data: str) -> None:
    """Raise `DataFileError` for labels of words most of which are single: names, dates, numbers."""
    labels, counts = np.unique(np.asarray(table.y), return_counts=True)
    n_rows, single = int(counts.sum()), int((counts == 1).sum())
    is_rare = 2 * single > len(labels) and 10 * len(labels) > n_rows
    if len(labels) <= _FEW_CLASSES or not (2 * len(labels) > n_rows or is_rare):
        return
    which = f"the labels{'' if target is None else f' {target!r}'} of {data}"
    known = f", or add --column-type {shlex.quote(f'{target}=category')} if each is a class"
    known = "" if target is None else known
    words = _words_among_numbers(labels)
    if words:
        shown = ", ".join(map(repr, words[:_FEW_WORDS]))
        prefix = "" if target is None else f"{target}="
        options = " ".join(f"--missing {shlex.quote(prefix + word)}" for word in words[:_FEW_WORDS])
        raise DataFileError(
            f"{which} are {len(labels) - len(words)} different numbers and {shown}, which look "
            f"like a quantity and not like classes; add {options} --cut-target 3 to leave those "
            f"rows out and cut the numbers into classes{known}."
        )
    raise DataFileError(
        f"{which} have {len(labels)} values in {n_rows} rows, such as {str(labels[0])!r}, which "
        f"look like names or dates and not like classes; name a column of classes{known}."
    )


def _words_among_numbers(labels: npt.NDArray[Any]) -> list[str]:
    """Return the labels that are no numbers, if they are few and nearly all others are."""
    import polars as pl

    text = pl.Series([str(label) for label in labels.tolist()])
    words: list[str] = text.filter(~Survey.of(text).is_number).to_list()
    return words if len(words) <= _FEW_WORDS else []


def quantile_edges(numbers: npt.NDArray[Any], n_classes: int, data: str) -> npt.NDArray[Any]:
    """Return the numbers that part n classes of about equal size, without equal ones."""
    quantiles = np.quantile(numbers, np.arange(1, n_classes) / n_classes)
    edges: npt.NDArray[Any] = np.unique([float(f"{edge:.{_DIGITS}g}") for edge in quantiles])
    edges = edges[(edges >= numbers.min()) & (edges < numbers.max())]
    if not len(edges):
        raise DataFileError(
            f"the labels of {data} cannot be cut into {n_classes} classes: most of them are equal."
        )
    return edges


def cut(numbers: npt.NDArray[Any], edges: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the interval of each number as text, for example (1.5, 2]."""
    ends = ["-inf", *(f"{edge:.{_DIGITS}g}" for edge in edges), "inf"]
    closing = ["]"] * len(edges) + [")"]
    names = np.array(
        [f"({low}, {high}{mark}" for low, high, mark in zip(ends, ends[1:], closing, strict=False)]
    )
    found: npt.NDArray[Any] = names[np.searchsorted(edges, numbers, side="left")]
    return found


def cut_like(table: Table, classes: npt.NDArray[Any]) -> Table:
    """Return a table whose labels, if numbers, are cut into the intervals that a model knows."""
    found = [_INTERVAL.fullmatch(str(label)) for label in classes.tolist()]
    ends = {float(end) for match in found if match is not None for end in match.groups()}
    if not all(found) or table.y_numbers is None:
        return table
    return replace(table, y=cut(table.y_numbers, np.array(sorted(ends - {-np.inf, np.inf}))))
