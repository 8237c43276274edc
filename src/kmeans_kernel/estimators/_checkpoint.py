"""Warm starts of K-means: from an earlier fit, or from the checkpoint of an interrupted one."""

from __future__ import annotations

from io import BytesIO
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.events import CentroidsMoved, Event, OnEvent
from kmeans_kernel.core.arrays.matrices import dense
from kmeans_kernel.core.arrays.sphere import SphereMap
from kmeans_kernel.core.clustering.representatives import Start
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.training.train import StartFor
from kmeans_kernel.utils.files import check_writable, write_whole

# The least time between two writes of the checkpoint file.
_SECONDS_BETWEEN = 2.0


def start_from(model: FittedModel, classes: npt.NDArray[Any]) -> StartFor:
    """Return initial centroids from the representatives of a model, largest clusters first."""
    heaviest = np.argsort(-model.representative_counts, kind="stable")
    points, codes = model.representatives[heaviest], model.representative_classes[heaviest]
    places = {label: k for k, label in enumerate(classes.tolist())}

    def start(sphere_map: SphereMap) -> Start:
        directions = dense(sphere_map.apply(points, np.float32))
        return {
            places[label]: directions[codes == k]
            for k, label in enumerate(model.classes.tolist())
            if label in places and (codes == k).any()
        }

    return start


class Checkpoint:
    """A file with the centroids of a fit in progress: plain NumPy arrays, which cannot run code.

    Parameters
    ----------
    path : the file
    n_classes, n_features : of the fit, to recognise the checkpoint of another fit
    """

    def __init__(self, path: str | PathLike[str], n_classes: int, n_features: int) -> None:
        self.path = check_writable(Path(path))
        self._shape = [n_classes, n_features]
        self._last = -np.inf

    def start(self) -> StartFor | None:
        """Return initial centroids from the file; None if there is no file."""
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
        if shape != self._shape:
            raise ValueError(
                f"{self.path} is the checkpoint of another fit, with {shape[0]} classes and "
                f"{shape[1]} features, not {self._shape[0]} and {self._shape[1]}. Remove it to "
                "start anew."
            )

        def start(sphere_map: SphereMap) -> Start:
            width = self._shape[1] + (sphere_map.lift > 0)
            return {k: one for k, one in found.items() if one.shape[1] == width}

        return start

    def listener(self, other: OnEvent | None) -> OnEvent:
        """Return a listener that writes the file, and passes every event on to `other`."""

        def on_event(event: Event) -> None:
            if other is not None:
                other(event)
            if isinstance(event, CentroidsMoved):
                self._save(event)

        return on_event

    def _save(self, event: CentroidsMoved) -> None:
        """Write the centroids, unless the last write was less than `_SECONDS_BETWEEN` ago."""
        if monotonic() - self._last < _SECONDS_BETWEEN:
            return
        content = BytesIO()
        arrays: dict[str, Any] = {str(k): one for k, one in event.centroids.items()}
        np.savez(content, of=np.array(self._shape), **arrays)
        write_whole(self.path, content.getvalue())
        self._last = monotonic()

    def remove(self) -> None:
        """Remove the file, after the fit."""
        self.path.unlink(missing_ok=True)
