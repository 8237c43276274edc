"""Rows that do not fit into memory, for `KMeansKernelClassifier.fit`.

    from kmeans_kernel.blocks import ParquetBlocks

    classifier.fit(ParquetBlocks("rows/", target="label"))

Anything else that gives (X, y), or (X, y, sample_weight), each time it is iterated over will do as
well: a list of them, or an object whose `__iter__` opens a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kmeans_kernel._sources import BLOCK_BYTES, ArrayBlocks

__all__ = ["ArrayBlocks", "ParquetBlocks"]


class ParquetBlocks:
    """Blocks of the rows of Parquet files; it needs polars.

    Parameters
    ----------
    path : a file, or a directory whose files are read in the order of their names
    target : the column of the labels
    weight : the column of the weights, if there is one
    drop : columns that are no features
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
        rows: int | None = None,
    ) -> None:
        self.path, self.target, self.weight = Path(path), target, weight
        self.files = sorted(self.path.glob("*.parquet")) if self.path.is_dir() else [self.path]
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
        self.rows = rows or max(1, BLOCK_BYTES // (8 * max(1, len(self.feature_names))))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        import polars as pl

        for file in self.files:
            missing = {self.target, *self.feature_names} - set(self._columns(file))
            if missing:
                raise ValueError(
                    f"{file} has no column {min(missing)!r}, which {self.files[0]} has."
                )
            frame = pl.scan_parquet(file)
            n_rows = frame.select(pl.len()).collect().item()
            for start in range(0, n_rows, self.rows):
                yield self._block(file, frame.slice(start, self.rows).collect())

    def _block(self, file: Path, block: Any) -> tuple[Any, ...]:
        try:
            X = block.select(self.feature_names).to_numpy()
            if X.dtype.kind not in "fiub":
                raise ValueError
        except ValueError:
            words = [n for n in self.feature_names if not block[n].dtype.is_numeric()]
            raise ValueError(
                f"{file} has columns that are no numbers: {', '.join(words[:5])}. Encode them, or "
                "name them in drop."
            ) from None
        weights = None if self.weight is None else block[self.weight].to_numpy()
        return np.ascontiguousarray(X), block[self.target].to_numpy(), weights

    @staticmethod
    def _columns(file: Path) -> list[str]:
        import polars as pl

        names: list[str] = pl.scan_parquet(file).collect_schema().names()
        return names
