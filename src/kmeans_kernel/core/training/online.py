"""Online training, for `partial_fit`: a model updated by batches of rows in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.execution import SERIAL, Executor, Run
from kmeans_kernel.core.arrays.matrices import FLOAT64_UP_TO, Array, as_counts
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import SphereMap, unit_rows
from kmeans_kernel.core.clustering.online import OnlineCentroids
from kmeans_kernel.core.clustering.representatives import Representatives
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.training.fit import fit_coefficients
from kmeans_kernel.core.training.train import TrainingResult


@dataclass(frozen=True, eq=False)
class OnlineModel:
    """The state of online training between two batches.

    Attributes
    ----------
    classes : (K,) all labels, including classes without rows so far
    centroids : the online centroids of each class
    kernel, regularization, sphere_map : hyperparameters of the model; the regularization is ε
    held_out_error : error of the search on the first batch; None if nothing was searched
    n_representatives : Q, the most centroids of a class
    """

    classes: npt.NDArray[np.generic]
    centroids: Sequence[OnlineCentroids]
    kernel: Kernel
    regularization: float
    sphere_map: SphereMap
    held_out_error: float | None = None
    n_representatives: int = 1

    @classmethod
    def empty(
        cls, batch: LabelledRows, kernel: Kernel, regularization: float, sphere_map: SphereMap
    ) -> OnlineModel:
        """Return the state before the first batch, without centroids."""
        width = batch.n_features + (sphere_map.lift > 0)
        centroids = [OnlineCentroids.empty(width) for _ in batch.classes]
        return cls(batch.classes, centroids, kernel, regularization, sphere_map)

    @classmethod
    def of(cls, model: FittedModel, regularization: float) -> OnlineModel:
        """Return a state that continues from a fitted model and its representative counts."""
        found = []
        for k in range(len(model.classes)):
            own = model.representative_classes == k
            counts = model.representative_counts[own].astype(np.float64)
            centroids = model.directions[own].astype(np.float32)
            found.append(OnlineCentroids(centroids, centroids * counts[:, None], counts))
        return cls(model.classes, found, model.kernel, regularization, model.sphere_map)

    def update(
        self, batch: LabelledRows, n_representatives: int, executor: Executor = SERIAL
    ) -> OnlineModel:
        """Return the state after a batch; a class has at most `n_representatives` centroids."""
        batch = batch.on_sphere(self.sphere_map)

        def update(k: int) -> OnlineCentroids:
            rows = np.flatnonzero(batch.codes == k)
            if not len(rows):
                return self.centroids[k]
            U = batch.directions(rows, np.float32)
            return self.centroids[k].update(U, batch.row_weights[rows], n_representatives)

        centroids = executor.map(update, range(len(self.classes)))
        return replace(self, centroids=centroids, n_representatives=n_representatives)

    def fit(self, executor: Executor = SERIAL) -> TrainingResult:
        """Fit a weighted LS-SVM to the representatives.

        The weight of a representative's squared error is its count relative to the mean count,
        which divides its ε (Suykens et al., "Weighted least squares support vector machines",
        Neurocomputing 48, 2002).
        """
        directions = np.concatenate([one.centroids for one in self.centroids])
        if len(directions) <= FLOAT64_UP_TO:
            directions = unit_rows(directions, dtype=np.float64)
        counts = np.concatenate([one.counts for one in self.centroids])
        sizes = [len(one.counts) for one in self.centroids]
        K = len(self.classes)
        basis = Representatives(
            directions=directions,
            codes=np.repeat(np.arange(K), sizes),
            counts=as_counts(counts),
            n_iter=np.ones(K, dtype=np.intp),
            deviations=np.zeros(K),
        )
        no_codes = np.empty(0, dtype=np.intp)
        no_rows = LabelledRows(np.empty((0, 1)), no_codes, self.classes, None, self.sphere_map)
        # A representative of zero weight gets the ε of the lightest other.
        penalties = self.regularization * counts.mean() / np.maximum(counts, _least(counts))
        model, solution = fit_coefficients(
            no_rows, basis, self.kernel, penalties, "representatives", "squared", Run(executor)
        )
        return TrainingResult(
            model=model,
            regularization=self.regularization,
            loss="squared",
            n_representatives=self.n_representatives,
            held_out_error=self.held_out_error,
            n_iter=basis.n_iter,
            deviations=basis.deviations,
            relative_residual=solution.relative_residual,
            sizes=(),
            seconds={},
            online=True,
        )


def _least(counts: Array) -> float:
    return float(counts[counts > 0].min(initial=1.0))
