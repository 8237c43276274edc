"""The fitted attributes of the classifier, read from the result of its training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from kmeans_kernel.core.arrays.encoding import ColumnEncoding, EncodingKind
from kmeans_kernel.core.arrays.events import SizeTried
from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.training.train import TrainingResult
from kmeans_kernel.estimators.columns._columns import Column
from kmeans_kernel.estimators.columns._table import plain_columns, rows_as_values


class FittedAttributes:
    """Attributes that end in an underscore; the class that has them keeps `result_`."""

    if TYPE_CHECKING:

        @property
        def result_(self) -> TrainingResult: ...

        @property
        def model_(self) -> FittedModel: ...

        n_features_in_: int
        _columns: tuple[Column, ...] | None

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels."""
        return self.model_.classes

    @property
    def columns_(self) -> tuple[Column, ...]:
        """What each column of X was taken for."""
        check_is_fitted(self)
        if self._columns is not None:
            return self._columns
        transform = self.model_.sphere_map.feature_transform
        return plain_columns(self, transform if isinstance(transform, ColumnEncoding) else None)

    @property
    def representatives_(self) -> npt.NDArray[Any]:
        """The representatives, (m, n_features): numbers, or values of a table as objects."""
        rows = self.model_.representatives
        return rows if self._columns is None else rows_as_values(self._columns, rows)

    @property
    def representative_classes_(self) -> npt.NDArray[Any]:
        """The label of each representative."""
        model = self.model_
        return model.classes[model.representative_classes]

    @property
    def representative_counts_(self) -> npt.NDArray[Any]:
        """The total weight of the training rows in the cluster of each representative."""
        return self.model_.representative_counts

    @property
    def dual_coef_(self) -> Array:
        """The dual coefficients, (m, n_classes)."""
        return self.model_.dual_coef

    @property
    def intercept_(self) -> Array:
        """The intercepts, (n_classes,)."""
        return self.model_.intercept

    @property
    def kernel_(self) -> str:
        """The name of the kernel."""
        return self.model_.kernel.name

    @property
    def gamma_(self) -> float | None:
        """γ of the kernel; None for a kernel without γ."""
        return getattr(self.model_.kernel, "gamma", None)

    @property
    def lift_(self) -> float:
        """The lift, as given or chosen."""
        return self.model_.sphere_map.lift

    @property
    def feature_scales_(self) -> Array | None:
        """The learned factors of the columns, (n_features,); None if no factors were kept."""
        sphere_map = self.model_.sphere_map
        scales, transform = sphere_map.scales, sphere_map.feature_transform
        if scales is None or not isinstance(transform, ColumnEncoding):
            return scales
        # The squared factor of a column is the mean over the features that are made of it.
        found = means_of_groups(scales**2, transform.columns, transform.n_columns)
        if self._columns is not None:
            widths = [len(column.n_levels) for column in self._columns]
            origin = np.repeat(np.arange(len(widths)), widths)
            found = means_of_groups(found, origin, len(widths))
        return np.sqrt(found)

    @property
    def feature_transform_(self) -> EncodingKind | None:
        """The transform of the features, "standard", "asinh", "piecewise", "both" or None."""
        transform = self.model_.sphere_map.feature_transform
        return None if transform is None else transform.kind

    @property
    def loss_(self) -> str:
        """The loss of the fit."""
        return self.result_.loss

    @property
    def regularization_(self) -> float:
        """The regularization of the fit."""
        return self.result_.regularization

    @property
    def held_out_error_(self) -> float | None:
        """The misclassification rate of held-out rows at the chosen hyperparameters."""
        return self.result_.held_out_error

    @property
    def n_representatives_(self) -> int:
        """The number of representatives of each class, as given or chosen."""
        return self.result_.n_representatives

    @property
    def validation_curve_(self) -> tuple[SizeTried, ...]:
        """The record of each number of representatives that was tried."""
        return self.result_.sizes

    @property
    def online_(self) -> bool:
        """Whether the last update came from `partial_fit`."""
        return self.result_.online

    @property
    def n_iter_(self) -> npt.NDArray[np.intp]:
        """K-means iterations of each class."""
        return self.result_.n_iter

    @property
    def relative_residual_(self) -> float:
        """The relative residual of the system that was solved for the coefficients."""
        return self.result_.relative_residual

    @property
    def stage_seconds_(self) -> dict[str, float]:
        """Seconds spent in each stage of training."""
        return self.result_.seconds


def means_of_groups(values: Array, index: npt.NDArray[np.intp], n_groups: int) -> Array:
    """Return the (n_groups,) means of the values of each group; 0 for an empty group."""
    sizes = np.bincount(index, minlength=n_groups)
    return np.asarray(np.bincount(index, values, n_groups) / np.maximum(sizes, 1))
