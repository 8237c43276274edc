"""The estimator that `fit` trains, from the options of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from kmeans_kernel.cli._input import split_pair
from kmeans_kernel.data.tables import DataFileError
from kmeans_kernel.data.tables._table import labels_from_text

if TYPE_CHECKING:
    from kmeans_kernel.data.tables import Table

# Kinds of columns that --column-type takes.
KINDS = ("number", "category", "date", "drop")

# Wider tables are standardised only if they are told to be.
_STANDARDISED_BY_DEFAULT = 100


class Features(StrEnum):
    """Features that the classifier is trained on."""

    raw = "raw"
    raw_fft = "raw_fft"
    patches = "patches"
    patterns = "patterns"
    table = "table"


def representatives(text: str) -> int | Literal["auto"]:
    """Parse the option --representatives."""
    if text == "auto":
        return "auto"
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise ValueError(f"--representatives must be a whole number of at least 1 or auto, got {text}.")


def parse_column_types(given: Sequence[str]) -> dict[str, str]:
    """Parse the option --column-type."""
    form = f"COLUMN=KIND, where KIND is {', '.join(KINDS)}"
    found = dict(split_pair("--column-type", text, form) for text in given)
    wrong = [f"{name}={kind}" for name, kind in found.items() if kind not in KINDS]
    if wrong:
        raise DataFileError(f"--column-type must be {form}, got {wrong[0]!r}.")
    return found


def parse_class_weight(
    given: Sequence[str], classes: npt.NDArray[Any] | None = None
) -> dict[Any, float] | Literal["balanced"] | None:
    """Parse the option --class-weight.

    Parameters
    ----------
    classes : the labels, of whose type those of the option become; None if they are not known
    """
    if not given:
        return None
    if list(given) == ["balanced"]:
        return "balanced"
    form = "balanced, or LABEL=WEIGHT for each class"
    pairs = [split_pair("--class-weight", text, form) for text in given]
    known = {str(label): label for label in ([] if classes is None else classes.tolist())}
    if classes is None:
        names = [name for name, _ in pairs]
        known = dict(zip(names, labels_from_text(np.array(names)).tolist(), strict=True))
    found: dict[Any, float] = {}
    for name, weight in pairs:
        if name not in known:
            raise DataFileError(
                f"--class-weight names {name!r}, which is no class of the data; its classes are "
                f"{', '.join(list(known)[:10])}{', …' if len(known) > 10 else ''}."
            )
        try:
            found[known[name]] = float(weight)
        except ValueError:
            raise DataFileError(f"--class-weight must be {form}, got {name}={weight}.") from None
    return found


def out_of_core_estimator(
    q: int | Literal["auto"] | None, seed: int, options: dict[str, Any]
) -> Any:
    """Return an unfitted estimator for a table that is read in blocks."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from kmeans_kernel import KMeansKernelClassifier

    return make_pipeline(StandardScaler(), KMeansKernelClassifier(q, random_state=seed, **options))


def make_estimator(
    table: Table,
    features: str | None,
    q: int | Literal["auto"] | None,
    seed: int,
    options: dict[str, Any],
    kinds: dict[str, str],
) -> Any:
    """Return an unfitted estimator for a table or for images.

    Parameters
    ----------
    features : see `Features`; by default raw for images, else table
    q : number of representatives, None for the default of the features
    options : further parameters of the classifier
    kinds : kinds of columns by name, for a table whose columns have names
    """
    kind = features or ("raw" if table.are_images else "table")
    if kind == "table":
        return _table_estimator(table, q, seed, options, kinds)
    words = [
        name for name, dtype in getattr(table.X, "schema", {}).items() if str(dtype) == "String"
    ]
    if words:
        raise DataFileError(
            f"--features {kind} is for pixels, and the column {words[0]!r} has words; use "
            "--features table, or leave the column out with --drop."
        )
    return _image_estimator(table, kind, q, seed, options)


def _table_estimator(
    table: Table,
    q: int | Literal["auto"] | None,
    seed: int,
    options: dict[str, Any],
    kinds: dict[str, str],
) -> Any:
    from kmeans_kernel import KMeansKernelClassifier

    if table.are_images:
        raise ValueError("images have no columns to standardise; use --features raw.")
    if table.X.shape[1] > _STANDARDISED_BY_DEFAULT:
        options = {"feature_transform": "standard", **options}
    if kinds:
        options = {"column_types": kinds, **options}
    return KMeansKernelClassifier(q, random_state=seed, **options)


def _image_estimator(
    table: Table, kind: str, q: int | Literal["auto"] | None, seed: int, options: dict[str, Any]
) -> Any:
    from kmeans_kernel import image_classifier, paper

    if kind == "patterns":
        estimator: Any = image_classifier(random_state=seed)
    elif "gamma" in options:
        raise ValueError(
            f"--gamma is for the Gaussian kernel, and {kind} has a polynomial one; leave it out, "
            "or use --features patterns."
        )
    else:
        estimator = getattr(paper, kind)(random_state=seed)
    if kind == "patches":
        estimator.set_params(patch_shape=_patch_shape(table))
    prefix = "classifier__" if kind == "patches" else ""
    given = options if q is None else {"n_representatives": q, **options}
    return estimator.set_params(
        **{f"{prefix}kmeanskernelclassifier__{name}": value for name, value in given.items()}
    )


def _patch_shape(table: Table) -> tuple[int, int]:
    """Return the patch shape of the paper: three pixels smaller than the image on each axis."""
    if not table.are_images:
        return 25, 25
    height, width = table.X.shape[1:]
    return max(1, height - 3), max(1, width - 3)
