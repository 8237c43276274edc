"""Labels that are numbers: refused if they are no classes, or cut into classes."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.data.tables import DataFileError, Table
from kmeans_kernel.data.tables._table import is_continuous

_NUMBER = r"-?(?:inf|\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_INTERVAL = re.compile(rf"[(]({_NUMBER}), ({_NUMBER})[)\]]")

# Significant digits of the ends of intervals.
_DIGITS = 6


def with_classes(table: Table, n_classes: int | None, target: str | None, data: str) -> Table:
    """Return a table whose labels are classes.

    Raises `DataFileError` for labels that are measurements of a quantity.

    Parameters
    ----------
    n_classes : number of classes that numbers are to be cut into; None leaves labels as they are
    target : name of the labels, for messages
    data : name of the file, for messages
    """
    numbers = table.y_numbers
    if n_classes is None:
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
