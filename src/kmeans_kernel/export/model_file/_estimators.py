"""Conversion of estimators to JSON and arrays, and validated construction from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from kmeans_kernel.core.arrays.encoding import ColumnEncoding
from kmeans_kernel.core.arrays.matrices import as_counts
from kmeans_kernel.core.arrays.sphere import SphereMap
from kmeans_kernel.core.kernels.kernels import kernel_to_dict
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.model.temperature import HeldOutProbabilities
from kmeans_kernel.core.training.train import TrainingResult
from kmeans_kernel.estimators._classifier import KMeansKernelClassifier
from kmeans_kernel.estimators._parameters import config_of
from kmeans_kernel.estimators._patch_voting import PatchVotingClassifier
from kmeans_kernel.estimators.columns import TableEncoder
from kmeans_kernel.estimators.columns._columns import Column, n_levels_of
from kmeans_kernel.estimators.transformers._agop_projection import AGOPProjection
from kmeans_kernel.estimators.transformers._deskewer import Deskewer
from kmeans_kernel.estimators.transformers._edge_patterns import PATTERN_SIZE, EdgePatterns
from kmeans_kernel.estimators.transformers._fourier import FourierFeatures
from kmeans_kernel.estimators.transformers._hog import OrientedGradients
from kmeans_kernel.estimators.transformers._pixels import PixelNormalizer
from kmeans_kernel.export.model_file._columns import build_columns, check_names, describe_columns
from kmeans_kernel.export.model_file._feature_maps import build_feature_map, describe_feature_map
from kmeans_kernel.export.model_file._file import ModelFileError, Place
from kmeans_kernel.export.model_file._values import (
    build_kernel,
    build_labels,
    count_of,
    describe_features,
    describe_labels,
    describe_params,
    number_of,
    params_of,
    set_features,
    shape_of,
)
from kmeans_kernel.utils.pipelines import steps_of

_FLOATS = ("float32", "float64")


def describe(estimator: Any, place: Place) -> dict[str, Any]:
    """Return the JSON tree of a fitted estimator, and store its arrays in `place`."""
    for kind, (describe, _) in _KINDS.items():
        if type(estimator) is kind:
            check_is_fitted(estimator)
            return {"kind": kind.__name__, **describe(estimator, place)}
    raise TypeError(
        f"A {type(estimator).__name__} cannot be saved or exported to a page; these estimators "
        f"can: {', '.join(kind.__name__ for kind in _KINDS)}. Apply other steps outside the model, "
        "to the rows of fit and of predict."
    )


def build(tree: Any, place: Place) -> Any:
    """Return the fitted estimator of a JSON tree and its arrays, validated."""
    if not isinstance(tree, dict):
        raise ModelFileError("an estimator is not described by an object")
    for kind, (_, build) in _KINDS.items():
        if tree.get("kind") == kind.__name__:
            return build(tree, place)
    raise ModelFileError(f"it holds an estimator of an unknown kind, {tree.get('kind')!r}")


def _describe_pipeline(pipeline: Pipeline, place: Place) -> dict[str, Any]:
    described = [
        [name, describe(step, place.below(f"steps.{k}"))]
        for k, (name, step) in enumerate(steps_of(pipeline))
    ]
    return {"steps": described}


def _build_pipeline(tree: dict[str, Any], place: Place) -> Pipeline:
    steps = [
        (str(name), build(step, place.below(f"steps.{k}")))
        for k, (name, step) in enumerate(tree["steps"])
    ]
    if not steps or not hasattr(steps[-1][1], "predict"):
        raise ModelFileError("a pipeline does not end in a classifier")
    for _, step in steps[1:]:  # they see arrays, also where fit saw frames (set_output)
        vars(step).pop("feature_names_in_", None)
    return Pipeline(steps)


def _describe_scaler(scaler: StandardScaler, place: Place) -> dict[str, Any]:
    for name, there in (("mean_", scaler.with_mean), ("scale_", scaler.with_std)):
        if there:
            place.put(name, getattr(scaler, name))
    return {
        "features": describe_features(scaler),
        "params": describe_params(scaler),
        "n_samples_seen": int(np.max(scaler.n_samples_seen_)),
    }


def _build_scaler(tree: dict[str, Any], place: Place) -> StandardScaler:
    scaler = StandardScaler(**params_of(StandardScaler, tree))
    n_features = set_features(scaler, tree)
    wanted = {"mean_": scaler.with_mean, "scale_": scaler.with_std}
    for name, there in wanted.items():
        value = place.take(name, (n_features,), ("float64",)) if there else None
        setattr(scaler, name, value)
    if scaler.scale_ is not None and (scaler.scale_ <= 0).any():
        raise ModelFileError("its scaler has scales that are not above zero")
    scaler.var_ = None if scaler.scale_ is None else scaler.scale_**2
    scaler.n_samples_seen_ = count_of(tree["n_samples_seen"])
    return scaler


def _describe_pixels(transformer: Any, place: Place) -> dict[str, Any]:  # noqa: ARG001
    shape = transformer.image_shape_
    return {
        "features": describe_features(transformer),
        "params": describe_params(transformer),
        "image_shape": None if shape is None else list(shape),
    }


def _build_pixels(kind: type) -> Callable[[dict[str, Any], Place], Any]:
    def build(tree: dict[str, Any], place: Place) -> Any:  # noqa: ARG001
        transformer = kind(**params_of(kind, tree))
        n_pixels = set_features(transformer, tree)
        shape = None if tree["image_shape"] is None else shape_of(tree["image_shape"])
        if shape is not None and shape[0] * shape[1] != n_pixels:
            raise ModelFileError("its images are not of the size that it was trained on")
        transformer.image_shape_ = shape
        return transformer

    return build


def _describe_patterns(transformer: EdgePatterns, place: Place) -> dict[str, Any]:
    place.put("patterns", transformer.patterns_)
    return _describe_pixels(transformer, place)


def _build_patterns(tree: dict[str, Any], place: Place) -> EdgePatterns:
    transformer: EdgePatterns = _build_pixels(EdgePatterns)(tree, place)
    patterns = place.take("patterns", (None, PATTERN_SIZE), ("float32",))
    _check_unit_rows("patterns", patterns)
    transformer._keep(patterns)
    return transformer


def _describe_metric(metric: AGOPProjection, place: Place) -> dict[str, Any]:
    place.put("components", metric.components_)
    return {"features": describe_features(metric), "params": describe_params(metric)}


def _build_metric(tree: dict[str, Any], place: Place) -> AGOPProjection:
    metric = AGOPProjection(**params_of(AGOPProjection, tree))
    n_features = set_features(metric, tree)
    metric.components_ = place.take("components", (n_features, None), ("float64",))
    return metric


def _describe_encoder(encoder: TableEncoder, place: Place) -> dict[str, Any]:
    return {
        "features": describe_features(encoder),
        "params": describe_params(encoder),
        "columns": describe_columns(encoder._columns),
        **describe_feature_map(encoder._encoding, place),
    }


def _build_encoder(tree: dict[str, Any], place: Place) -> TableEncoder:
    encoder = TableEncoder(**params_of(TableEncoder, tree))
    n_features, columns = set_features(encoder, tree), build_columns(tree["columns"])
    check_names(columns, encoder)
    n_levels = None if columns is None else n_levels_of(columns)
    width = n_features if n_levels is None else len(n_levels)
    encoding = build_feature_map(tree, place, width, n_levels)
    if not isinstance(encoding, ColumnEncoding):
        raise ModelFileError("its encoder has no encoding of columns")
    encoder._columns, encoder._encoding = columns, encoding
    return encoder


def _check_unit_rows(name: str, rows: npt.NDArray[Any]) -> None:
    """Raise `ModelFileError` unless all rows have unit length; rows of zeros are allowed."""
    # 1e-3 admits float16 rounding: representatives of a page may be stored in half precision.
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    if (np.abs(lengths[lengths > 0] - 1) > 1e-3).any():
        raise ModelFileError(f"its {name} are not on the unit sphere")


def _describe_classifier(classifier: KMeansKernelClassifier, place: Place) -> dict[str, Any]:
    result = classifier.result_
    model = result.model
    place.put("directions", model.directions)
    place.put("representative_classes", model.representative_classes.astype(np.int64))
    place.put("representative_counts", model.representative_counts.astype(np.float64))
    place.put("dual_coef", model.dual_coef)
    place.put("intercept", model.intercept)
    sphere_map = model.sphere_map
    if sphere_map.scales is not None:
        place.put("feature_scales", sphere_map.scales)
    if result.cosines is not None:
        place.put("training_cosines", result.cosines)
    if (held_out := result.held_out) is not None:
        place.put("held_out_probabilities", held_out.probabilities)
        place.put("held_out_codes", held_out.codes.astype(np.int64))
        place.put("held_out_weights", np.asarray(held_out.weights, dtype=np.float64))
    return {
        "features": describe_features(classifier),
        "params": describe_params(classifier),
        "classes": describe_labels(model.classes),
        "kernel": kernel_to_dict(model.kernel),
        "lift": sphere_map.lift,
        **describe_feature_map(sphere_map.feature_transform, place),
        "columns": describe_columns(classifier._columns),
        "temperature": model.temperature,
        "regularization": result.regularization,
        "online": result.online,
        "loss": result.loss,
        "held_out_error": result.held_out_error,
        "n_representatives": result.n_representatives,
        "n_iter": result.n_iter.tolist(),
        "deviations": result.deviations.tolist(),
        "relative_residual": result.relative_residual,
    }


def _build_classifier(tree: dict[str, Any], place: Place) -> KMeansKernelClassifier:
    classifier = KMeansKernelClassifier(**params_of(KMeansKernelClassifier, tree))
    config_of(classifier)  # raises for parameters that fit would refuse
    n_features, columns = set_features(classifier, tree), build_columns(tree["columns"])
    check_names(columns, classifier)
    classifier._columns = columns
    model = _build_model(tree, place, n_features, columns)
    if tree["loss"] not in ("squared", "logistic"):
        raise ModelFileError(f"its loss is {tree['loss']!r}")
    error = tree["held_out_error"]
    n_iter = np.array([count_of(n) for n in tree["n_iter"]], dtype=np.intp)
    deviations = np.array([number_of({"δ": one}, "δ", 0.0) for one in tree["deviations"]])
    if not len(n_iter) == len(deviations) == len(model.classes):
        raise ModelFileError("it does not say how many iterations each class took")
    classifier.result_ = TrainingResult(
        model=model,
        regularization=number_of(tree, "regularization", 0.0),
        loss=tree["loss"],
        n_representatives=count_of(tree["n_representatives"]),
        held_out_error=None if error is None else number_of(tree, "held_out_error", 0.0),
        n_iter=n_iter,
        deviations=deviations,
        relative_residual=number_of(tree, "relative_residual", 0.0),
        # Timings are not saved: the same model always gives the same file.
        sizes=(),
        seconds={},
        online=tree["online"] is True,
        held_out=_held_out(place, len(model.classes)),
        cosines=_cosines(place),
    )
    return classifier


def _cosines(place: Place) -> npt.NDArray[Any] | None:
    """Return the sorted cosines of training rows, validated; None if the file has none."""
    if not place.has("training_cosines"):
        return None
    cosines = place.take("training_cosines", (None,), ("float64",))
    inside = len(cosines) and (np.abs(cosines) <= 1).all()
    if not inside or (np.diff(cosines) < 0).any():
        raise ModelFileError("its cosines of training rows are not sorted cosines")
    return cosines


def _held_out(place: Place, n_classes: int) -> HeldOutProbabilities | None:
    """Return the probabilities of held-out samples, validated; None if the file has none."""
    if not place.has("held_out_probabilities"):
        return None
    chances = place.take("held_out_probabilities", (None,), ("float64",))
    codes = place.take("held_out_codes", (len(chances),), ("int64",))
    weights = place.take("held_out_weights", (len(chances),), ("float64",))
    inside = ((chances >= 0) & (chances <= 1)).all() and (weights > 0).all()
    if not inside or ((codes < 0) | (codes >= n_classes)).any():
        raise ModelFileError("its held-out samples are not of its classes")
    return HeldOutProbabilities(chances, codes.astype(np.intp, copy=False), weights)


def _build_model(
    tree: dict[str, Any], place: Place, n_features: int, columns: tuple[Column, ...] | None
) -> FittedModel:
    """Return the fitted model after checking that its arrays are consistent."""
    classes = build_labels(tree["classes"])
    lift = number_of(tree, "lift", 0.0)
    n_levels = None if columns is None else n_levels_of(columns)
    width = n_features if n_levels is None else len(n_levels)
    feature_map = build_feature_map(tree, place, width, n_levels)
    if feature_map is not None:
        width = feature_map.n_features
    directions = place.take("directions", (None, width + (lift > 0)), _FLOATS)
    m = len(directions)
    codes = place.take("representative_classes", (m,), ("int64",))
    counts = place.take("representative_counts", (m,), ("float64",))
    dual_coef = place.take("dual_coef", (m, len(classes)), ("float64",))
    inside = (codes >= 0) & (codes < len(classes))
    # A class without representatives is allowed if its coefficients are zero: partial_fit may
    # declare classes before their first rows.
    absent = np.setdiff1d(np.arange(len(classes)), codes)
    if not m or not inside.all() or dual_coef[:, absent].any() or (counts < 0).any():
        raise ModelFileError("its representatives do not belong to its classes")
    _check_unit_rows("representatives", directions)
    return FittedModel(
        directions=directions,
        representative_classes=codes.astype(np.intp, copy=False),
        representative_counts=as_counts(counts),
        dual_coef=dual_coef,
        intercept=place.take("intercept", (len(classes),), ("float64",)),
        kernel=build_kernel(tree["kernel"]),
        sphere_map=SphereMap(lift, _feature_scales(place, width), feature_map),
        classes=classes,
        temperature=number_of(tree, "temperature", np.finfo(float).tiny),
    )


def _feature_scales(place: Place, width: int) -> npt.NDArray[Any] | None:
    if not place.has("feature_scales"):
        return None
    scales = place.take("feature_scales", (width,), ("float64",))
    if (scales <= 0).any():
        raise ModelFileError("its feature scales are not above zero")
    return scales


def _describe_voting(voting: PatchVotingClassifier, place: Place) -> dict[str, Any]:
    return {
        "features": describe_features(voting),
        "vote": voting.vote,
        "image_shape": list(voting.image_shape_),
        "patch_shape": list(voting.patch_shape_),
        "score_method": voting.score_method_,
        "classifier": describe(voting.classifier_, place.below("classifier")),
    }


def _build_voting(tree: dict[str, Any], place: Place) -> PatchVotingClassifier:
    classifier = build(tree["classifier"], place.below("classifier"))
    if getattr(classifier, "_columns", None) is not None:
        raise ModelFileError("its patches are no rows of a table")
    image_shape, patch_shape = shape_of(tree["image_shape"]), shape_of(tree["patch_shape"])
    if tree["score_method"] not in ("decision_function", "predict_proba", "predict"):
        raise ModelFileError(f"its score method is {tree['score_method']!r}")
    if tree["vote"] not in ("majority", "sum"):
        raise ModelFileError(f"its vote is {tree['vote']!r}")
    voting = PatchVotingClassifier(
        clone(classifier), patch_shape=patch_shape, vote=tree["vote"], image_shape=image_shape
    )
    if set_features(voting, tree) != image_shape[0] * image_shape[1]:
        raise ModelFileError("its images are not of the size that it was trained on")
    voting.classifier_ = classifier
    voting.classes_ = classifier.classes_
    voting.image_shape_ = image_shape
    voting.patch_shape_ = patch_shape
    voting.score_method_ = tree["score_method"]
    return voting


_Describe = Callable[[Any, Place], dict[str, Any]]

_Build = Callable[[dict[str, Any], Place], Any]

_KINDS: dict[type, tuple[_Describe, _Build]] = {
    KMeansKernelClassifier: (_describe_classifier, _build_classifier),
    PatchVotingClassifier: (_describe_voting, _build_voting),
    Pipeline: (_describe_pipeline, _build_pipeline),
    PixelNormalizer: (_describe_pixels, _build_pixels(PixelNormalizer)),
    FourierFeatures: (_describe_pixels, _build_pixels(FourierFeatures)),
    Deskewer: (_describe_pixels, _build_pixels(Deskewer)),
    OrientedGradients: (_describe_pixels, _build_pixels(OrientedGradients)),
    EdgePatterns: (_describe_patterns, _build_patterns),
    AGOPProjection: (_describe_metric, _build_metric),
    StandardScaler: (_describe_scaler, _build_scaler),
    TableEncoder: (_describe_encoder, _build_encoder),
}
