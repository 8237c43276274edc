"""The score, as a table: models, rows, and what they give.

`scores.json` is what every edge is held to: the fitted model in Python, the ONNX graph, the
JavaScript of a page. What it expects comes from the slow twins in `tests/reference`.
`python -m tests.vectors` writes it anew.

Numbers are float64 unless an array names another type. "models" are fitted models of rows;
"estimators" are whole ones, as `save_model` describes them, of pixels or features; "tables" are
estimators of rows of values, in which a date is in seconds since 1970. A label is the class of the
highest probability; contributions are the terms of the winner's score. A missing value is null.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.core.arrays.encoding import ColumnEncoding
from kmeans_kernel.core.arrays.feature_transform import FeatureTransform
from kmeans_kernel.core.arrays.sphere import SphereMap
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.training.train import TrainingResult
from kmeans_kernel.export.model_file._estimators import build
from kmeans_kernel.export.model_file._file import Place
from kmeans_kernel.export.model_file._values import build_kernel
from tests.reference import estimators as twin

TABLE = Path(__file__).with_name("scores.json")


def read():
    return json.loads(TABLE.read_text())


def cases(section):
    """The cases of a section of the table, by name."""
    return {case["name"]: case for case in read()[section]}


def rows_of(case):
    """The rows of numbers of a case, NaN where a value is missing."""
    return np.array(case["rows"], dtype=float)


def table_of(case):
    """The rows of values of a case, as a frame; its dates are told in seconds since 1970."""
    columns = twin.columns_of(case["tree"])
    names = [column["name"] for column in columns]
    frame = pd.DataFrame(case["rows"], columns=names, dtype=object)
    dates = [column["name"] for column in columns if column["kind"] == "date"]
    return frame.assign(**{name: pd.to_datetime(frame[name], unit="s") for name in dates})


def feature_transform(tree):
    """The feature transform or the encoding of columns of a case, or None."""
    if tree is None:
        return None
    if "n_columns" in tree:
        arrays = {name: np.array(tree[name]) for name in tree if isinstance(tree[name], list)}
        positions = [name for name in arrays if name.endswith("_columns")]
        arrays |= {name: arrays[name].astype(np.intp) for name in positions}
        values = feature_transform(tree["values"])
        return ColumnEncoding(tree["kind"], n_columns=tree["n_columns"], values=values, **arrays)
    arrays = {name: np.array(tree[name], dtype=float) for name in ("centers", "widths", "gains")}
    return FeatureTransform(tree["kind"], **arrays)


def fitted_model(case):
    """The fitted model of a case."""
    scales = case["feature_scales"]
    return FittedModel(
        directions=np.array(case["directions"], dtype=float),
        representative_classes=np.array(case["representative_classes"], dtype=np.intp),
        representative_counts=np.array(case["representative_counts"]),
        dual_coef=np.array(case["dual_coef"], dtype=float),
        intercept=np.array(case["intercept"], dtype=float),
        kernel=build_kernel(case["kernel"]),
        sphere_map=SphereMap(
            case["lift"],
            None if scales is None else np.array(scales, dtype=float),
            feature_transform(case["feature_transform"]),
        ),
        classes=np.array(case["classes"]),
        temperature=case["temperature"],
    )


def classifier(case):
    """The fitted model of a case as an estimator."""
    model = fitted_model(case)
    found, n_classes = KMeansKernelClassifier(), len(model.classes)
    found.result_ = TrainingResult(
        model=model,
        regularization=1e-6,
        loss="squared",
        n_representatives=2,
        held_out_error=None,
        n_iter=np.ones(n_classes, dtype=np.intp),
        deviations=np.zeros(n_classes),
        relative_residual=0.0,
        sizes=(),
        seconds={},
    )
    found.n_features_in_ = len(case["rows"][0])
    return found


def arrays_of(case):
    """The arrays of an estimator's case, in their types."""
    return {
        name: np.array(array["values"], dtype=array["dtype"]).reshape(array["shape"])
        for name, array in case["arrays"].items()
    }


def estimator(case):
    """The estimator of a case, as one that is loaded from a file."""
    return build(case["tree"], Place("", arrays_of(case)))
