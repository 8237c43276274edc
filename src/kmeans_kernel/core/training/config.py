"""The configuration of a training, a frozen record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from kmeans_kernel.core.arrays.encoding import EncodingKind
from kmeans_kernel.core.arrays.matrices import IntArray
from kmeans_kernel.core.clustering.spherical_kmeans import Init
from kmeans_kernel.core.kernels.kernels import Kernel

FitOn: TypeAlias = Literal["samples", "representatives"]
Loss: TypeAlias = Literal["squared", "logistic"]

# Up to this many features, rows count as a table, for which feature scales, a feature transform and
# several kernels are searched. Pixels and embeddings have more features, all of one kind.
MOST_FEATURES_OF_A_TABLE = 100

# Up to this many columns a table is encoded in several ways; wider ones are standardised alone.
MOST_ENCODED_COLUMNS = 300


@dataclass(frozen=True)
class TrainingConfig:
    """The validated parameters of the user; the search chooses the open ones.

    Attributes
    ----------
    n_representatives : Q, the representatives of each class
    search_size : whether to search for Q, doubling it from a small number
    may_shrink : whether the search may choose fewer than Q if they predict as well
    init, tol, max_iter : parameters of K-means
    boundary_fraction : share of the representatives that are rows near the decision boundary
    fit_on : "samples" for Nyström regression on all samples, "representatives" for the LS-SVM
    kernel : the kernel; or a tuple of kernels, of which the search chooses one and its γ
    regularization : λ (samples) or ε (representatives); None to search it
    lift : the constant appended to rows; None for their root mean square length
    feature_scales : "auto" to keep learned scales if they predict better, "learned" to keep them in
        any case, None for no scales
    feature_transform : "standard", "asinh", "piecewise" or "both", see `encoding`; "auto" for the
        one that predicts best; None for no transform
    loss : the loss of a fit to all samples; None to search it, if the regularization is searched
    n_levels : for each column its number of levels, 0 for numbers; None if all are numbers and none
        is missing
    """

    n_representatives: int
    search_size: bool
    may_shrink: bool
    init: Init
    tol: float
    max_iter: int
    boundary_fraction: float
    fit_on: FitOn
    kernel: Kernel | tuple[Kernel, ...]
    regularization: float | None
    lift: float | None
    feature_scales: Literal["auto", "learned"] | None
    feature_transform: Literal["auto"] | EncodingKind | None
    loss: Loss | None
    n_levels: tuple[int, ...] | None = None

    def with_columns(self, order: IntArray) -> TrainingConfig:
        """Return the configuration for rows with their columns in another order."""
        if self.n_levels is None:
            return self
        return replace(self, n_levels=tuple(self.n_levels[j] for j in order))

    def sees_table(self, n_features: int) -> bool:
        """Return whether rows of so many features are searched as a table."""
        return n_features <= MOST_FEATURES_OF_A_TABLE or self.n_levels is not None
