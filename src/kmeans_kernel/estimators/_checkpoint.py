"""Where K-means starts from: representatives of an earlier fit, or of one that was interrupted."""

from __future__ import annotations

from io import BytesIO
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.asinh import Squash
from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.core.arrays.samples import Placement
from kmeans_kernel.core.arrays.sparse import dense
from kmeans_kernel.core.clustering.representatives import Start
from kmeans_kernel.core.clustering.spherical_kmeans import Clustering
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.training.model_size import Step
from kmeans_kernel.core.training.train import StartFor, Watcher
from kmeans_kernel.utils.files import check_writable, write_whole

# The file is written no more often than this.
_SECONDS_BETWEEN = 2.0


def start_from(model: FittedModel, classes: npt.NDArray[Any]) -> StartFor:
    """Return what puts the representatives of a model on the sphere, the heaviest first."""
    heaviest = np.argsort(-model.representative_counts, kind="stable")
    points, owners = model.representatives[heaviest], model.representative_classes[heaviest]
    places = {label: k for k, label in enumerate(classes.tolist())}

    def start(placement: Placement, squash: Squash | None) -> Start:
        rows = points if squash is None else squash.apply(points)
        directions = dense(placement.put(rows, np.float32))
        return {
            places[label]: directions[owners == k]
            for k, label in enumerate(model.classes.tolist())
            if label in places and (owners == k).any()
        }

    return start


class Checkpoint:
    """A file of the centroids of a fit that is under way: arrays, nothing that could run."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = check_writable(Path(path))

    def start_for(self, n_classes: int, n_features: int) -> StartFor | None:
        """Return the centroids that are in the file; None if it is not there."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as arrays:
                shape = arrays["of"].tolist()
                found = {int(name): arrays[name] for name in arrays.files if name != "of"}
            if not all(one.ndim == 2 and np.isfinite(one).all() for one in found.values()):
                raise ValueError
        except Exception as error:
            raise ValueError(
                f"{self.path} is no checkpoint of ours; move it away, or name another file."
            ) from error
        if shape != [n_classes, n_features]:
            raise ValueError(
                f"{self.path} is the checkpoint of another fit, with {shape[0]} classes and "
                f"{shape[1]} features, not {n_classes} and {n_features}. Remove it to start anew."
            )

        def start(placement: Placement, squash: Squash | None) -> Start:
            del squash
            width = n_features + (placement.lift > 0)
            return {k: one for k, one in found.items() if one.shape[1] == width}

        return start

    def watching(self, watcher: Watcher, n_classes: int, n_features: int) -> Saving:
        """Return a watcher that writes the file, and tells another what it hears."""
        return Saving(watcher, self.path, (n_classes, n_features))

    def remove(self) -> None:
        """Remove the file: the fit is done."""
        self.path.unlink(missing_ok=True)


class Saving:
    """A watcher that writes the centroids to a file now and then."""

    def __init__(self, watcher: Watcher, path: Path, shape: tuple[int, int]) -> None:
        self._watcher, self._path, self._shape = watcher, path, shape
        self._last = -np.inf

    def moved(self, centroids: dict[int, Array]) -> None:
        """Write them, if it is time."""
        self._watcher.moved(centroids)
        if monotonic() - self._last < _SECONDS_BETWEEN:
            return
        content = BytesIO()
        arrays: dict[str, Any] = {str(k): one for k, one in centroids.items()}
        np.savez(content, of=np.array(self._shape), **arrays)
        write_whole(self._path, content.getvalue())
        self._last = monotonic()

    def visited(self, done: int, n_rows: int) -> None:
        """Pass it on."""
        self._watcher.visited(done, n_rows)

    def iteration(self, label: object, n_iter: int, deviation: float) -> None:
        """Pass it on."""
        self._watcher.iteration(label, n_iter, deviation)

    def class_done(self, label: object, n_rows: int, found: Clustering) -> None:
        """Pass it on."""
        self._watcher.class_done(label, n_rows, found)

    def solving(self, m: int) -> None:
        """Pass it on."""
        self._watcher.solving(m)

    def tried(self, kernel: Kernel, loss: float) -> None:
        """Pass it on."""
        self._watcher.tried(kernel, loss)

    def grown(self, step: Step) -> None:
        """Pass it on."""
        self._watcher.grown(step)
