"""Rows of Dask arrays and frames: the work goes to where they are.

A visit is a sum over the partitions. What each needs travels once to every worker, what each gives
is added up in a tree, and no row is gathered but the few that training starts from. It runs on
whatever scheduler is active: threads, processes, a cluster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.delayed import Delayed, delayed
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from kmeans_kernel._sources import Check
from kmeans_kernel._stream import Part, T, Tell, Visitor
from kmeans_kernel._threads import one_blas_thread

# So many results are added up by one task.
_ADDED_AT_ONCE = 8

# Functions larger than this are scattered ahead of the graph.
_LARGE = 1 << 20

# What the cluster says when that happened to what was sent, or once too often to a task.
_LOSSES = {"KilledWorker", "CancelledError", "FutureCancelledError", "FuturesCancelledError"}

# How often a visit is tried when workers die.
_TRIES = 4


@dataclass(frozen=True, eq=False)
class Partitions:
    """Visits the partitions of Dask collections.

    Attributes
    ----------
    blocks : (X, y) or (X, y, sample_weight) of each, delayed
    check : what they have to pass
    """

    blocks: Sequence[tuple[Delayed, ...]]
    check: Check

    def sum(self, part: Part[T], only: frozenset[int] | None = None) -> T | None:
        """Return the sum over the partitions, or some of them, in their order."""
        chosen = [(k, one) for k, one in enumerate(self.blocks) if only is None or k in only]
        if not chosen:
            return None
        for tries_left in reversed(range(_TRIES)):
            try:
                return self._visit(part, chosen)
            except Exception as error:
                if not tries_left or not _is_loss(error):
                    raise
        return None

    def _visit(self, part: Part[T], chosen: list[tuple[int, tuple[Delayed, ...]]]) -> T | None:
        with one_blas_thread(wanted=True):
            sent = _send(part)
            look, together = delayed(_look, pure=False), delayed(_together, pure=False)
            found = [look(sent, self.check, number, *block) for number, block in chosen]
            while len(found) > 1:
                hands = range(0, len(found), _ADDED_AT_ONCE)
                found = [together(found[k : k + _ADDED_AT_ONCE]) for k in hands]
            total: T | None = dask.compute(found[0])[0]
            return total

    def telling(self, tell: Tell) -> Partitions:
        """Return the same: Dask has a dashboard of its own."""
        del tell
        return self

    def trusting(self) -> Partitions:
        """Return the same without the look at every number."""
        return replace(self, check=replace(self.check, finite=False))


def _look(part: Part[T], check: Check, number: int, *block: Any) -> T | None:
    checked = check(number, block)
    return None if checked is None else part(number, checked)


def _together(parts: list[T | None]) -> T | None:
    there = [part for part in parts if part is not None]
    return reduce(add, there) if there else None


def _send(part: Any) -> Any:
    """Return a function for the tasks of a graph: once on every worker, not in every task."""
    client = _client()
    if client is not None and _size(part) > _LARGE:
        return client.scatter(part, broadcast=True, hash=False)
    return delayed(part, traverse=False, pure=False)


def _client() -> Any:
    """Return the client whose cluster computes, if there is one."""
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        client = default_client()
    except ValueError:
        return None
    scheduler = dask.config.get("scheduler", None)
    return client if scheduler in (None, "dask.distributed", "distributed") else None


def _size(part: Any) -> int:
    """Return how many bytes the arrays in a value of ours have."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    if isinstance(part, dict):
        return sum(map(_size, part.values()))
    return sum(_size(getattr(part, one.name)) for one in fields(part)) if is_dataclass(part) else 0


def _is_loss(error: BaseException) -> bool:
    """Say whether an error is that of workers that died, so that another try may do."""
    return type(error).__name__ in _LOSSES


def open_blocks(X: Any, y: Any, sample_weight: Any, check: Check) -> Visitor:
    """Return the way to the partitions of an array or a frame and of its labels."""
    if isinstance(y, str):
        if not hasattr(X, "columns") or y not in X.columns:
            raise ValueError(f"y={y!r} must be a column of X, or labels.")
        X, y = X.drop(columns=y), X[y]
    if y is None:
        raise ValueError(
            f"{check.owner} requires y to be passed, but the target y is None: labels as a Dask "
            "array or series, or the name of a column of the frame."
        )
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, rows and features, got {X.ndim}.")
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    columns = [_partitions(X)]
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        if values is not None:
            columns.append(_aligned(name, values, X, len(columns[0])))
    return Partitions(list(zip(*columns, strict=True)), check)


def column_names(X: Any, y: Any) -> list[str] | None:
    """Return the names of the columns of a frame that are features."""
    if not hasattr(X, "columns"):
        return None
    return [name for name in X.columns if not (isinstance(y, str) and name == y)]


def apply(function: Any, X: Any, example: npt.NDArray[Any]) -> da.Array:
    """Return a function of rows, of which `example` is what it gives for one, for all, lazily."""
    if isinstance(X, da.Array):
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        sizes = X.chunks[0]
    else:
        sizes = (math.nan,) * X.npartitions
    call = delayed(function, traverse=False, pure=False)
    parts = [
        da.from_delayed(call(part), (size, *example.shape[1:]), dtype=example.dtype)
        for part, size in zip(_partitions(X), sizes, strict=True)
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _partitions(X: Any) -> list[Delayed]:
    return list(np.ravel(X.to_delayed()))


def _aligned(name: str, values: Any, X: Any, n_blocks: int) -> list[Delayed]:
    """Return the labels or weights of each partition of X."""
    sizes = X.chunks[0] if isinstance(X, da.Array) else (math.nan,)
    known = not any(map(math.isnan, sizes))
    if not hasattr(values, "to_delayed"):
        if not known:
            raise ValueError(
                f"{name} is in memory, and how many rows each block of X has is not known. Give "
                f"{name} as a Dask array or series too, or call X.compute_chunk_sizes() first."
            )
        values = np.asarray(values)
        if len(values) != sum(sizes):
            raise ValueError(f"X has {sum(sizes)} rows, {name} has {len(values)}.")
        values = da.from_array(values, chunks=(sizes,))
    elif isinstance(values, da.Array):
        values = values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values
        theirs = values.chunks[0]
        if known and not any(map(math.isnan, theirs)) and theirs != sizes:
            if sum(theirs) != sum(sizes):
                raise ValueError(f"X has {sum(sizes)} rows, {name} has {sum(theirs)}.")
            values = values.rechunk((sizes,))
    found = _partitions(values)
    if len(found) != n_blocks:
        raise ValueError(
            f"X has {n_blocks} blocks of rows and {name} has {len(found)}, and how long they are "
            f"is not known. Make both from one frame, or call compute_chunk_sizes() of both first."
        )
    return found


def fit_pipeline(pipeline: Pipeline, X: Any, y: Any, **options: Any) -> Pipeline:
    """Fit StandardScaler and our classifier to rows of Dask, scaled where they are."""
    scaler, classifier = (step for _, step in pipeline.steps)
    names = column_names(X, y)
    if isinstance(y, str):
        X, y = X.drop(columns=y), X[y]
    values = X if isinstance(X, da.Array) else X.to_dask_array()
    values = values.astype(np.float64)
    mean, deviation = dask.compute(values.mean(axis=0), values.std(axis=0))
    # Two rows that have the mean and the deviation of all.
    rows: Any = np.vstack([mean - deviation, mean + deviation])
    if names is not None:
        import pandas as pd

        rows = pd.DataFrame(rows, columns=names)
    scaler.fit(rows)
    bare = StandardScaler().fit(np.asarray(rows))  # partitions come without names
    classifier.fit(values.map_blocks(bare.transform, dtype=np.float64), y, **options)
    return pipeline
