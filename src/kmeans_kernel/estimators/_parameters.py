"""Validation of the classifier's parameters, and their training configuration."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from kmeans_kernel.core.kernels.kernels import KERNELS, Kernel, check_parameter, kernel_parameters
from kmeans_kernel.core.training.config import TrainingConfig
from kmeans_kernel.core.training.model_size import FIRST
from kmeans_kernel.utils.validation import (
    check_auto,
    check_count,
    check_jobs,
    check_number,
    check_option,
)

# Default number of representatives: this many in total for few classes, then this many of each
# class, and this many in total for many classes.
_FEW_CLASSES_SHARE, _OF_A_CLASS, _MANY_CLASSES_SHARE = 2000, 100, 4000

# The most classes for which loss="auto" tries the logistic loss: a step takes n m K operations.
_MOST_CLASSES_OF_LOGISTIC = 300

# The kernels that kernel="auto" chooses from, in the order in which they are tried.
_SEARCHED = ("rbf", "laplacian")


def config_of(estimator: Any, n_classes: int = 2) -> TrainingConfig:
    """Return the training configuration for `n_classes`; ValueError for an invalid parameter."""
    check_jobs(estimator)
    _time_budget(estimator)
    search_size = (
        isinstance(estimator.n_representatives, str) and estimator.n_representatives == "auto"
    )
    fit_on = check_option(estimator, "fit_on", "samples", "representatives")
    loss = check_option(estimator, "loss", "auto", "squared", "logistic")
    if loss == "logistic" and fit_on == "representatives":
        raise ValueError(
            f"{type(estimator).__name__} got loss='logistic' with fit_on='representatives', which "
            "is a fit of squares. Set fit_on='samples', or loss='squared'."
        )
    if loss == "auto" and n_classes > _MOST_CLASSES_OF_LOGISTIC:
        loss = "squared"
    return TrainingConfig(
        n_representatives=FIRST if search_size else _n_representatives(estimator, n_classes),
        search_size=search_size,
        may_shrink=estimator.n_representatives is None,
        init=check_option(estimator, "init", "random", "k-means++"),  # type: ignore[arg-type]
        tol=check_number(estimator, "tol"),
        max_iter=check_count(estimator, "max_iter"),
        boundary_fraction=check_number(estimator, "boundary_fraction", maximum=0.95),
        fit_on=fit_on,  # type: ignore[arg-type]
        kernel=_kernel(estimator),
        regularization=check_auto(estimator, "regularization"),
        lift=check_auto(estimator, "lift"),
        feature_scales=_option_or_none(estimator, "feature_scales", "auto", "learned"),
        feature_transform=_option_or_none(
            estimator, "feature_transform", "auto", "standard", "asinh", "piecewise", "both"
        ),
        loss=None if loss == "auto" else loss,  # type: ignore[arg-type]
    )


def deadline_of(estimator: Any) -> float | None:
    """Return when the search is to end if the fit starts now, on the clock of `perf_counter`."""
    budget = _time_budget(estimator)
    return None if budget is None else perf_counter() + budget


def _time_budget(estimator: Any) -> float | None:
    if estimator.time_budget is None:
        return None
    return check_number(estimator, "time_budget", above=True)


def _option_or_none(estimator: Any, name: str, *options: str) -> Any:
    return None if getattr(estimator, name) is None else check_option(estimator, name, *options)


def _n_representatives(estimator: Any, n_classes: int) -> int:
    if estimator.n_representatives is None:
        least = -(-_FEW_CLASSES_SHARE // n_classes)
        most = -(-_MANY_CLASSES_SHARE // n_classes)
        return min(max(least, _OF_A_CLASS), most)
    return check_count(estimator, "n_representatives")


def _kernel(estimator: Any) -> Kernel | tuple[Kernel, ...]:
    """Return the kernel as given, or a tuple of the kernels whose γ is searched.

    The parameters of a kernel are the parameters of the estimator with the same names, and the
    entries of `kernel_params`. A kernel in the registry is known here without further code.
    """
    name = check_option(estimator, "kernel", "auto", *KERNELS)
    gamma = check_auto(estimator, "gamma", above=True, maximum=1e6)
    given = {"gamma": 1.0 if gamma is None else gamma}
    given["degree"] = check_count(estimator, "degree", maximum=1000)
    names = _SEARCHED if name == "auto" and gamma is None else (_SEARCHED[0],)
    found = [_build(estimator, one, given) for one in (names if name == "auto" else (name,))]
    searched = gamma is None and hasattr(found[0], "gamma")
    return tuple(found) if searched else found[0]


def _build(estimator: Any, name: str, given: dict[str, Any]) -> Kernel:
    """Build a kernel from `given` parameters of the estimator and from `kernel_params`."""
    kernel = KERNELS[name]
    others = {} if estimator.kernel_params is None else estimator.kernel_params
    wanted = [one for one in kernel_parameters(kernel) if one.name not in given]
    known = {one.name for one in wanted}
    if not isinstance(others, dict) or set(others) != known:
        expected = f"a dict with {', '.join(sorted(known))}" if known else "None"
        raise ValueError(
            f"The 'kernel_params' parameter of {type(estimator).__name__} must be {expected} for "
            f"kernel={name!r}, got {estimator.kernel_params!r}."
        )
    for one in wanted:
        try:
            check_parameter(kernel, one, others[one.name])
        except ValueError as error:
            raise ValueError(f"In kernel_params: {error}.") from None
    own = {one.name: given[one.name] for one in kernel_parameters(kernel) if one.name in given}
    found: Kernel = kernel(**own, **others)
    return found
