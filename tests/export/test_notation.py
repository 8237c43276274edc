"""The notation of the training file in the model file."""

import numpy as np
import pytest

from kmeans_kernel import KMeansKernelClassifier, load_model, save_model
from kmeans_kernel.export.model_file import load_with_notation, save_with_notation
from kmeans_kernel.export.model_file._file import ModelFileError
from kmeans_kernel.export.model_file._notation import build_notation

NOTATION = {
    "decimal": {"a": "comma"}, "dates": {"b": "day-first"}, "missing": ["-999"],
    "units": {"a": "kg"},
}  # fmt: skip


def test_a_notation_is_kept_beside_the_estimator(tmp_path):
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    fitted = KMeansKernelClassifier(1, random_state=0).fit(X, y)
    save_with_notation(fitted, tmp_path / "with", NOTATION)
    found, notation = load_with_notation(tmp_path / "with")
    assert notation == NOTATION
    np.testing.assert_array_equal(found.predict(X), load_model(tmp_path / "with").predict(X))
    save_model(fitted, tmp_path / "without")
    assert load_with_notation(tmp_path / "without")[1] is None


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([], "its notation is not described by its fields"),
        ({"decimal": {}}, "its notation is not described by its fields"),
        ({**NOTATION, "decimal": {"a": "dot"}}, "decimal of its notation is {'a': 'dot'}"),
        ({**NOTATION, "decimal": {"a": []}}, "decimal of its notation is"),
        ({**NOTATION, "dates": "day-first"}, "dates of its notation is 'day-first'"),
        ({**NOTATION, "missing": [1]}, r"missing of its notation is \[1\]"),
        ({**NOTATION, "units": {"a": 1}}, r"units of its notation is {'a': 1}"),
        ({**NOTATION, "units": {"a": "k" * 99}}, "units of its notation is"),
    ],
)
def test_a_notation_that_is_none_is_refused(tree, message):
    with pytest.raises(ModelFileError, match=message):
        build_notation(tree)
