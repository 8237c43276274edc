"""Rows that do not fit into memory, for `KMeansKernelClassifier.fit`.

    from kmeans_kernel.blocks import ParquetBlocks

    classifier.fit(ParquetBlocks("rows/", target="label"))

Anything else that gives (X, y), or (X, y, sample_weight), each time it is iterated over will do as
well: a list of them, or an object whose `__iter__` opens a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from kmeans_kernel._sources import BLOCK_BYTES, ArrayBlocks, refuse_one_shot
from kmeans_kernel.files import parquet_files

__all__ = ["ArrayBlocks", "ParquetBlocks", "Transformed", "fit_pipeline"]


class ParquetBlocks:
    """Blocks of the rows of Parquet files; it needs polars.

    Parameters
    ----------
    path : a file, or a directory whose files are read in the order of their names
    target : the column of the labels
    weight : the column of the weights, if there is one
    drop : columns that are no features
    drop_missing : whether to leave out rows with missing values; else they are an error
    rows : how many make a block; about 32 MB of them by default

    Attributes
    ----------
    feature_names : the columns that are features, in the order of the first file
    """

    def __init__(
        self,
        path: str | PathLike[str],
        target: str,
        *,
        weight: str | None = None,
        drop: Sequence[str] = (),
        drop_missing: bool = False,
        rows: int | None = None,
    ) -> None:
        self.path, self.target, self.weight = Path(path), target, weight
        self.drop_missing = drop_missing
        self.files = parquet_files(self.path)
        if not self.files or not self.files[0].exists():
            raise FileNotFoundError(f"{self.path} is no Parquet file, nor a directory of some.")
        columns = self._columns(self.files[0])
        for name in filter(None, [target, weight, *drop]):
            if name not in columns:
                raise ValueError(
                    f"{self.files[0]} has no column {name!r}; it has {', '.join(columns[:20])}."
                )
        others = {target, weight, *drop}
        self.feature_names = [name for name in columns if name not in others]
        if not self.feature_names:
            raise ValueError(f"{self.files[0]} has no column that is a feature.")
        self.rows = rows or max(1, BLOCK_BYTES // (8 * len(self.feature_names)))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        import polars as pl

        needed = [*self.feature_names, self.target, *filter(None, [self.weight])]
        for file in self.files:
            missing = [name for name in needed if name not in self._columns(file)]
            if missing:
                raise ValueError(f"{file} has no column {missing[0]!r}, which {self.files[0]} has.")
            frame = pl.scan_parquet(file).select(needed)
            n_rows = frame.select(pl.len()).collect().item()
            for start in range(0, n_rows, self.rows):
                yield self._block(file, start, frame.slice(start, self.rows).collect())

    def _block(self, file: Path, start: int, block: Any) -> tuple[Any, ...]:
        types = zip(block.columns, block.dtypes, strict=True)
        features = set(self.feature_names)
        words = [name for name, kind in types if name in features and not _is_number(kind)]
        if words:
            raise ValueError(
                f"{file} has columns that are no numbers: {', '.join(words[:5])}. Encode them, or "
                "name them in drop."
            )
        if self.drop_missing:
            block = block.drop_nulls().drop_nans()
        unlabelled = block[self.target].is_null()
        if unlabelled.any():
            raise ValueError(
                f"{file} has no label in column {self.target!r} at row "
                f"{start + unlabelled.arg_max()}. Leave such rows out; drop_missing does."
            )
        weights = None if self.weight is None else block[self.weight].to_numpy()
        return block.select(self.feature_names), block[self.target].to_numpy(), weights

    @staticmethod
    def _columns(file: Path) -> list[str]:
        import polars as pl

        names: list[str] = pl.scan_parquet(file).collect_schema().names()
        return names


def _is_number(kind: Any) -> bool:
    import polars as pl

    return bool(kind.is_numeric() or kind == pl.Boolean)


class Transformed:
    """Blocks that go through a function on their way.

    Parameters
    ----------
    blocks : re-iterable, of (X, y) or (X, y, sample_weight)
    function : of the rows of a block
    """

    def __init__(self, blocks: Iterable[Any], function: Callable[[Any], Any]) -> None:
        self.blocks, self.function = blocks, function

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for X, *others in self.blocks:
            if len(others[0]):
                yield self.function(X), *others


def fit_pipeline(pipeline: Pipeline, blocks: Iterable[Any], **options: Any) -> Pipeline:
    """Fit a pipeline that ends in our classifier to rows that come in blocks.

    The steps before it must have `partial_fit`, as StandardScaler does. `options` are for the fit
    of the classifier.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kmeans_kernel import KMeansKernelClassifier
    >>> from kmeans_kernel.blocks import ArrayBlocks, fit_pipeline
    >>> X, y = np.arange(40.0).reshape(20, 2), np.arange(20) // 10
    >>> model = make_pipeline(StandardScaler(), KMeansKernelClassifier(2, random_state=0))
    >>> fit_pipeline(model, ArrayBlocks(X, y, rows=8)).score(X, y)
    1.0
    """
    refuse_one_shot("fit_pipeline", blocks)
    for name, step in pipeline.steps[:-1]:
        if step is None or step == "passthrough":
            continue
        if not hasattr(step, "partial_fit"):
            raise ValueError(
                f"step {name!r} of the pipeline, {type(step).__name__}, cannot be fitted block by "
                "block: it has no partial_fit."
            )
        fresh = clone(step)
        for X, y, *_ in blocks:
            if len(y):
                fresh.partial_fit(X)
        step.__dict__.update(vars(fresh))
        blocks = Transformed(blocks, step.transform)
    pipeline.steps[-1][1].fit(blocks, **options)
    return pipeline
