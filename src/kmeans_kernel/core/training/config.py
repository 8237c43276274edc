"""The configuration of a training: one frozen record goes in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from kmeans_kernel.core.clustering.spherical_kmeans import Init
from kmeans_kernel.core.kernels.kernels import Kernel

FitOn: TypeAlias = Literal["samples", "representatives"]
Loss: TypeAlias = Literal["squared", "logistic"]


@dataclass(frozen=True)
class TrainingConfig:
    """What the user decided, validated; the search chooses what is left open.

    Attributes
    ----------
    n_representatives : Q, the representatives of each class
    search_size : whether to search Q instead, from a small number on
    init, tol, max_iter : of K-means
    boundary_fraction : the share of the representatives that are rows near the decision boundary
    fit_on : whether the coefficients are fitted to all samples or to the representatives
    kernel : the kernel; or several, of which the search chooses one and its γ
    regularization : λ or ε; None to search it
    lift : the constant that is appended to rows; None for their typical length
    feature_scales : "auto" to learn scales if they predict better, "learned" in any case, or None
    feature_transform : the same for the asinh transform: "auto", "asinh" or None; "auto" only if
        there is anything else to search
    loss : None to search it, which needs a regularization that is searched
    """

    n_representatives: int
    search_size: bool
    init: Init
    tol: float
    max_iter: int
    boundary_fraction: float
    fit_on: FitOn
    kernel: Kernel | tuple[Kernel, ...]
    regularization: float | None
    lift: float | None
    feature_scales: Literal["auto", "learned"] | None
    feature_transform: Literal["auto", "asinh"] | None
    loss: Loss | None
