"""From the parameters of the classifier to what training needs: what is wrong is refused here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kmeans_kernel.core.clustering.representatives import KMeans
from kmeans_kernel.core.kernels.kernels import Gaussian, Kernel, Laplacian, Polynomial
from kmeans_kernel.core.training.build import Recipe
from kmeans_kernel.core.training.model_size import FIRST
from kmeans_kernel.core.training.search import Family
from kmeans_kernel.core.training.train import Settings
from kmeans_kernel.core.training.tuning import Learned, Open
from kmeans_kernel.utils.validation import (
    check_auto,
    check_count,
    check_jobs,
    check_number,
    check_option,
)

# Representatives, unless a number is given: so many shared among the classes, or so many of each.
_SHARED, _LEAST_OF_A_CLASS = 2000, 100


def settings_of(estimator: Any, n_classes: int = 2) -> Settings:
    """Return the settings of a classifier of so many classes, or say what is wrong with them."""
    check_jobs(estimator)
    grows = isinstance(estimator.n_representatives, str) and estimator.n_representatives == "auto"
    kmeans = KMeans(
        n_representatives=FIRST if grows else _n_representatives(estimator, n_classes),
        init=check_option(estimator, "init", "random", "k-means++"),  # type: ignore[arg-type]
        tol=check_number(estimator, "tol"),
        max_iter=check_count(estimator, "max_iter"),
    )
    fit_on = check_option(estimator, "fit_on", "samples", "representatives")
    loss = check_option(estimator, "loss", "auto", "squared", "logistic")
    if loss == "logistic" and fit_on == "representatives":
        raise ValueError(
            f"{type(estimator).__name__} got loss='logistic' with fit_on='representatives', which "
            "is a fit of squares. Set fit_on='samples', or loss='squared'."
        )
    return Settings(
        Recipe(kmeans, check_number(estimator, "border", maximum=0.95), fit_on),  # type: ignore[arg-type]
        grows,
        Open(
            kernel=_kernel(estimator),
            regularization=check_auto(estimator, "regularization"),
            lift=check_auto(estimator, "lift"),
            feature_scales=_learned(estimator, "feature_scales"),
            squash=_learned(estimator, "squash"),
            loss=None if loss == "auto" else loss,  # type: ignore[arg-type]
        ),
    )


def _learned(estimator: Any, name: str) -> Learned | None:
    """Return whether something is to be learned, if it helps or in any case, or not."""
    if getattr(estimator, name) is None:
        return None
    return check_option(estimator, name, "auto", "learned")  # type: ignore[return-value]


def _n_representatives(estimator: Any, n_classes: int) -> int:
    if estimator.n_representatives is None:
        return max(_LEAST_OF_A_CLASS, -(-_SHARED // n_classes))
    return check_count(estimator, "n_representatives")


def _kernel(estimator: Any) -> Kernel | Sequence[Family]:
    """Return the kernel that is asked for, or the families to choose from."""
    name = check_option(estimator, "kernel", "auto", "gaussian", "laplace", "poly")
    gamma = check_auto(estimator, "gamma", above=True, maximum=1e6)
    degree = check_count(estimator, "degree", maximum=1000)
    if name == "poly":
        return Polynomial(degree)
    families: dict[str, Sequence[Family]] = {
        "auto": (Gaussian, Laplacian),
        "gaussian": (Gaussian,),
        "laplace": (Laplacian,),
    }
    return families[name] if gamma is None else families[name][0](gamma)
