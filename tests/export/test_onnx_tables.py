"""ONNX graphs of tables predict as the classifiers do: one input for each column, by its name."""

import json
import warnings
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest
import skl2onnx
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnxruntime import InferenceSession
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from sklearn.decomposition import KernelPCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from kmeans_kernel import KMeansKernelClassifier, TableEncoder
from kmeans_kernel.estimators.columns._columns import Column
from kmeans_kernel.estimators.columns._learning import DroppedColumnWarning
from kmeans_kernel.export.onnx import to_onnx
from kmeans_kernel.export.onnx._inputs import input_names

TOLERANCES = [(np.float64, 1e-6), (np.float32, 1e-4)]

NUMBERS = {"tensor(float)": np.float32, "tensor(double)": np.float64}


def fitted(X, y, estimator=None, **options):
    given = {"gamma": 0.5, "regularization": 1e-3, "random_state": 0, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedColumnWarning)
        return (estimator or KMeansKernelClassifier(5, **given)).fit(X, y)


def session_of(graph):
    return InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])


def inputs_of(graph):
    """Return the description of the inputs in the metadata."""
    (text,) = [prop.value for prop in graph.metadata_props if prop.key == "inputs"]
    return json.loads(text)


def values_of(frame, name):
    """Return a column as Python's own values, None where one is missing."""
    if isinstance(frame, pl.DataFrame):
        return frame[name].to_list()
    return [None if pd.isna(value) else value for value in frame[name].astype(object)]


def plain(value, missing):
    """Return what stands for a value in a tensor: a date is its seconds since 1970."""
    if value is None:
        return np.nan if missing == "NaN" else missing
    if isinstance(value, date):
        value = datetime(*value.timetuple()[:6], getattr(value, "microsecond", 0))
        return (value - datetime(1970, 1, 1)) / timedelta(seconds=1)
    return value


def feed_of(session, graph, frame):
    """Return the tensors of a frame, made by what the graph says of its inputs."""
    found = {}
    for tensor, told in zip(session.get_inputs(), inputs_of(graph), strict=True):
        assert tensor.name == told["name"]
        assert tensor.type == f"tensor({told['type']})"
        values = [
            plain(v, told["missing"]) for v in values_of(frame, told.get("column", told["name"]))
        ]
        if told["type"] == "string":
            values = np.array([str(value) for value in values], dtype=object)
        found[tensor.name] = np.array(values, dtype=NUMBERS.get(tensor.type, object))[:, None]
    return found


def run(graph, frame):
    session = session_of(graph)
    return session.run(["label", "probabilities"], feed_of(session, graph, frame))


def assert_alike(model, frame, dtype=np.float64, tolerance=1e-6):
    graph = to_onnx(model, dtype=dtype)
    labels, probabilities = run(graph, frame)
    assert probabilities.dtype == dtype
    expected = model.predict_proba(frame)
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=tolerance)
    best = np.sort(expected, axis=1)
    apart = best[:, -1] - best[:, -2] > tolerance
    assert labels[apart].tolist() == model.predict(frame)[apart].tolist()


def business(n, seed):
    """Return rows with every kind of column, and labels that depend on some of them."""
    rng = np.random.default_rng(seed)
    town = rng.choice(["Zürich", "Oslo", "Rome", "San José"], n).astype(object)
    income = rng.lognormal(10, 1, n).round(2)
    day = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 300_000_000, n), unit="s")
    frame = pd.DataFrame(
        {
            "customer id": [f"c{seed}-{k:05d}" for k in range(n)],
            "age": rng.integers(18, 80, n),
            "income": np.where(rng.random(n) < 0.1, np.nan, income),
            "town": np.where(rng.random(n) < 0.1, None, town),
            "member": rng.random(n) < 0.5,
            "since": day,
            "currency": "EUR",
        }
    )
    score = (frame["age"] > 45).astype(int) + frame["member"] + (town == "Oslo")
    return frame, score.clip(upper=2).to_numpy()


@pytest.fixture(scope="module")
def customers():
    """Return a classifier of customers, and other rows."""
    X, y = business(400, 0)
    return fitted(X, np.array(["low", "middle", "high"])[y]), business(200, 1)[0]


def holes(frame, columns):
    """Return a frame without every third value of some columns."""
    every = {
        name: frame[name].astype(object).where(np.arange(len(frame)) % 3 > 0, None)
        for name in columns
    }
    every |= {
        name: frame[name].where(np.arange(len(frame)) % 3 > 0)
        for name in ("age", "since")
        if name in columns
    }
    return frame.assign(**every)


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
class TestCustomers:
    def test_other_rows(self, customers, dtype, tolerance):
        model, X = customers
        assert_alike(model, X, dtype, tolerance)

    @pytest.mark.parametrize("n", [1, 2])
    def test_few_rows(self, customers, n, dtype, tolerance):
        model, X = customers
        assert_alike(model, X[:n], dtype, tolerance)

    def test_many_rows(self, customers, dtype, tolerance):
        assert_alike(customers[0], business(20_000, 2)[0], dtype, tolerance)

    def test_unknown_levels(self, customers, dtype, tolerance):
        model, X = customers
        assert_alike(model, X.assign(town="Ulm", currency="USD"), dtype, tolerance)

    def test_missing_values_in_columns_that_had_none(self, customers, dtype, tolerance):
        model, X = customers
        names = ["age", "income", "town", "member", "since"]
        assert_alike(model, holes(X, names), dtype, tolerance)

    def test_a_row_without_any_value(self, customers, dtype, tolerance):
        model, X = customers
        empty = X[:1].astype(object)
        empty.loc[:, :] = None
        assert_alike(model, empty, dtype, tolerance)

    def test_polars(self, customers, dtype, tolerance):
        X, y = business(400, 0)
        model, other = fitted(pl.from_pandas(X), y), pl.from_pandas(customers[1])
        assert_alike(model, other, dtype, tolerance)
        assert_alike(model, other.with_columns(town=pl.lit(None, pl.String)), dtype, tolerance)

    def test_a_pipeline_that_encodes_the_table_first(self, customers, dtype, tolerance):
        X, y = business(400, 0)
        last = KMeansKernelClassifier(5, gamma=0.5, regularization=1e-3, random_state=0)
        model = fitted(X, y, make_pipeline(TableEncoder(), StandardScaler(), last))
        assert_alike(model, holes(customers[1], ["age", "town", "since"]), dtype, tolerance)


def test_inputs_are_told_by_the_graph(customers):
    model, _ = customers
    graph = to_onnx(model)
    told = inputs_of(graph)
    towns = told[2].pop("levels")
    assert told == [
        {"name": "age", "kind": "number", "type": "float", "missing": "NaN"},
        {"name": "income", "kind": "number", "type": "float", "missing": "NaN"},
        {"name": "town", "kind": "category", "type": "string", "missing": ""},
        {
            "name": "member",
            "kind": "boolean",
            "type": "float",
            "levels": list(model.columns_[4].levels),
            "missing": "NaN",
        },
        {
            "name": "since",
            "kind": "date",
            "type": "double",
            "unit": "seconds since 1970-01-01 UTC",
            "missing": "NaN",
        },
    ]
    assert sorted(towns) == ["Oslo", "Rome", "San José", "Zürich"]
    session = session_of(graph)
    assert [(one.name, one.shape) for one in session.get_inputs()] == [
        (one["name"], [None, 1]) for one in told
    ]
    assert [one.type for one in session.get_outputs()] == ["tensor(string)", "tensor(float)"]
    assert {prop.key for prop in graph.metadata_props} == {"kmeans-kernel", "classes", "inputs"}


def table(n=60, **columns):
    """Return a frame of n rows, each column's values repeated, and labels by the first column."""
    frame = pd.DataFrame({name: np.resize(values, n) for name, values in columns.items()})
    first = frame.iloc[:, 0]
    return frame, np.where(first == first[0], "first", "other")


def objects(*values):
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.arange(30), "float"),
        (np.arange(30) / 10, "float"),
        (np.random.default_rng(0).normal(size=60), "float"),
        (2**24 + np.arange(30), "double"),
        (1.7e9 + np.arange(30), "double"),
        (12_345 + np.arange(30) / 100, "double"),
        (np.arange(30) * 1e38, "double"),
        (np.arange(30) * 1e-44, "double"),
    ],
)
def test_numbers_are_double_where_float32_would_change_predictions(values, expected):
    X, y = table(value=values, town=["a", "b"])
    model = fitted(X, y, loss="squared")
    told = inputs_of(to_onnx(model))
    assert told[0]["type"] == expected
    assert inputs_of(to_onnx(model, dtype=np.float64))[0]["type"] == "double"
    assert_alike(model, X, np.float32, 1e-4)


def test_levels_that_are_numbers():
    X, y = table(code=[1, 2, 3], zip=[12_345_678_901, 98_765_432_109], half=[0.5, 1.5, np.nan])
    types = dict.fromkeys(X, "category")
    model = fitted(X, y, column_types=types)
    graph = to_onnx(model)
    assert [one["type"] for one in inputs_of(graph)] == ["float", "double", "double"]
    assert inputs_of(graph)[0]["levels"] == [1, 2, 3]
    other = X.assign(code=4, half=[0.5, 7.25, np.nan] * 20)
    for frame in (X, other, X.assign(zip=np.nan)):
        assert_alike(model, frame, np.float32)


def test_booleans_with_missing_values():
    X, y = table(member=objects(True, False, None, False), age=range(13))
    model = fitted(X, y)
    assert model.columns_[0].kind == "boolean"
    for frame in (X, X.assign(member=True), X.assign(member=None)):
        assert_alike(model, frame)


def test_rare_levels_share_a_place_with_unknown_ones():
    words = objects(*"abcdefg", "", None, *["a", "b"] * 150)
    X, y = table(309, word=words, age=range(30))
    model = fitted(X, y)
    assert (model.columns_[0].levels, model.columns_[0].rare) == (("a", "b"), True)
    for frame in (X, X.assign(word="c"), X.assign(word="unheard of"), X.assign(word=None)):
        assert_alike(model, frame[frame["word"] != ""])


def test_a_column_of_rare_levels_alone():
    X, y = table(300, age=range(3), word=[f"w{k}" for k in range(100)])
    model = fitted(X, y)
    assert model.columns_[1].levels == ()
    for frame in (X, X.assign(word=None)):
        assert_alike(model, frame)


def test_another_text_is_missing_where_the_empty_one_is_a_level():
    X, y = table(word=objects("", "NaN", "x", None), age=range(7))
    model = fitted(X, y)
    graph = to_onnx(model)
    assert inputs_of(graph)[0]["missing"] == "NaNNaN"
    assert_alike(model, X)


def test_a_table_of_words_alone_in_float64():
    X, y = table(word=["a", "b", "c"], town=["u", "v", "w", "u"])
    assert_alike(fitted(X, y), X, tolerance=1e-12)


def test_an_empty_text_is_missing():
    X, y = table(word=objects("x", "y", None), age=range(7))
    model = fitted(X, y)
    graph = to_onnx(model, dtype=np.float64)
    feed = {"word": np.array([[""]], dtype=object), "age": np.array([[3.0]])}
    _, probabilities = session_of(graph).run(None, feed)
    expected = model.predict_proba(pd.DataFrame({"word": [None], "age": [3]}))
    np.testing.assert_allclose(probabilities, expected, atol=1e-9)


def test_dates_of_every_year():
    rng = np.random.default_rng(0)
    seconds = rng.uniform(-6.2e10, 2.5e11, 4000).round(rng.integers(0, 6))
    borders = [
        datetime(y, m, 1, tzinfo=UTC) for y in (1900, 1969, 1970, 2000, 2024) for m in range(1, 13)
    ]
    leaps = [datetime(y, 2, 29, 23, 59, tzinfo=UTC) for y in (1904, 2000, 2024, 2400)]
    exact = np.array([one.timestamp() for one in (*borders, *leaps)])
    seconds = np.concatenate([seconds, exact, exact - 1e-6, exact - 1, [np.nan]])
    frame = pd.DataFrame({"day": seconds, "row": np.arange(len(seconds)) % 7})
    encoder = TableEncoder("standard", column_types={"day": "date"}).fit(frame)
    assert encoder.columns_[0].parts == ("days", "month", "weekday", "hour")
    types = [("day", DoubleTensorType([None, 1])), ("row", Int64TensorType([None, 1]))]
    session = session_of(skl2onnx.to_onnx(encoder, initial_types=types))
    (found,) = session.run(None, {name: frame[[name]].to_numpy() for name in frame})
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, encoder.transform(frame), rtol=0, atol=1e-10)


def test_infinite_dates_are_missing():
    frame = pd.DataFrame({"day": np.arange(50) * 1e7, "row": np.arange(50) % 7})
    encoder = TableEncoder(column_types={"day": "date"}).fit(frame)
    types = [(name, DoubleTensorType([None, 1])) for name in frame]
    session = session_of(skl2onnx.to_onnx(encoder, initial_types=types))
    day = np.array([[np.inf], [-np.inf], [np.nan]])
    (found,) = session.run(None, {"day": day, "row": np.ones((3, 1))})
    expected = encoder.transform(pd.DataFrame({"day": [np.nan] * 3, "row": 1}))
    np.testing.assert_allclose(found, expected, atol=1e-12)


NAMES = [
    *("monthly income (€)", "größe/m²", "名前", " x ", "1st", "a b", "a_b", "a-b"),
    *("sub", "cast", "constant", "isnan", "variable", "gather_1"),
    *("label", "probabilities", "label.1"),
]


def test_inputs_have_the_names_of_the_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, len(NAMES))), columns=NAMES).assign(sub=["u", "v"] * 30)
    model = fitted(X, X["a b"] > 0)
    graph = to_onnx(model)
    clashes = {"label": "label.2", "probabilities": "probabilities.1"}
    assert [one.name for one in session_of(graph).get_inputs()] == [
        clashes.get(name, name) for name in NAMES
    ]
    assert {one["name"]: one["column"] for one in inputs_of(graph) if "column" in one} == {
        "label.2": "label",
        "probabilities.1": "probabilities",
    }
    assert_alike(model, X)


def test_inputs_of_columns_of_one_name_and_without_a_name():
    columns = [Column(name, "number") for name in ("a", "a", "", "a.1", "a", "")]
    assert input_names(columns) == ["a", "a.2", "column", "a.1", "a.3", "column.1"]


def test_arrays_of_objects_have_numbered_columns():
    X, y = table(word=["a", "b", "c"], age=range(7))
    model = fitted(X.to_numpy(dtype=object), y)
    graph = to_onnx(model, dtype=np.float64)
    _, probabilities = run(graph, X.set_axis(["x0", "x1"], axis=1))
    np.testing.assert_allclose(probabilities, model.predict_proba(X.to_numpy(object)), atol=1e-9)


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
def test_a_wide_table(dtype, tolerance):
    rng = np.random.default_rng(0)
    words = np.array(list("abcdefg"))
    X = pd.DataFrame(
        {
            f"column {k}": rng.normal(size=300) if k % 3 else words[rng.integers(0, 7, 300)]
            for k in range(150)
        }
    )
    model = fitted(X, X["column 1"] + (X["column 0"] == "a") > 0)
    assert_alike(model, X, dtype, tolerance)


@pytest.mark.parametrize("classes", [["no", "yes"], [3, 7], [False, True]])
def test_labels_of_every_type(classes):
    X, y = table(word=["a", "b", "c"], age=range(7))
    model = fitted(X, np.array(classes)[(y == "first").astype(int)])
    assert_alike(model, X)


@pytest.mark.parametrize("transform", ["standard", "asinh", "piecewise", "both"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_every_encoding(transform, kernel):
    X, y = business(200, 0)
    options = {} if kernel == "poly" else {"gamma": 0.5}
    model = fitted(
        X, y, kernel=kernel, feature_transform=transform, feature_scales="learned", **options
    )
    assert model.feature_transform_ == transform
    assert_alike(model, business(50, 1)[0])


TYPES = [
    ("town", StringTensorType([None, 1])),
    ("age", Int64TensorType([None, 1])),
    ("income", DoubleTensorType([None, 1])),
    ("member", BooleanTensorType([None, 1])),
    ("since", Int64TensorType([None, 1])),
]  # in any order


def tensors(X):
    seconds = (X["since"] - pd.Timestamp(0)) // pd.Timedelta(seconds=1)
    frame = X.assign(since=seconds, town=X["town"].fillna(""))
    kinds = {"town": object, "income": np.float64, "member": np.bool_}
    return {name: frame[[name]].to_numpy(kinds.get(name, np.int64)) for name, _ in TYPES}


@pytest.mark.parametrize("wrap", [lambda model: model, make_pipeline])
def test_skl2onnx_converts_a_classifier_of_columns(wrap, customers):
    model, X = customers
    estimator = wrap(model)
    graph = skl2onnx.to_onnx(
        estimator, initial_types=TYPES, options={id(estimator): {"zipmap": False}}
    )
    labels, found = session_of(graph).run(None, tensors(X))
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-6)
    assert labels.tolist() == model.predict(X).tolist()


def test_skl2onnx_guesses_the_inputs_from_a_frame(customers):
    X, y = business(200, 0)
    X = X.drop(columns="since")
    model = fitted(X, y)
    session = session_of(skl2onnx.to_onnx(model, X[:1], options={"zipmap": False}))
    types = {"tensor(string)": object, "tensor(bool)": np.bool_, "tensor(int64)": np.int64}
    X = X.fillna({"town": ""}).rename(columns={"customer id": "customer_id"})
    feed = {
        one.name: X[[one.name]].to_numpy(types.get(one.type, np.float64))
        for one in session.get_inputs()
    }
    assert len(feed) == 6  # skl2onnx keeps columns that the model does not use
    X = X.rename(columns={"customer_id": "customer id"}).replace({"town": {"": None}})
    np.testing.assert_allclose(session.run(None, feed)[1], model.predict_proba(X), atol=1e-6)


def test_skl2onnx_converts_an_encoder_before_another_classifier(customers):
    X, y = business(200, 0)
    model = fitted(X, y, make_pipeline(TableEncoder(), LogisticRegression(max_iter=1000)))
    graph = skl2onnx.to_onnx(model, initial_types=TYPES, options={"zipmap": False})
    _, found = session_of(graph).run(None, tensors(customers[1]))
    np.testing.assert_allclose(found, model.predict_proba(customers[1]), atol=1e-9)


def test_a_step_that_becomes_a_loop():
    X, y = business(100, 0)
    last = KMeansKernelClassifier(5, gamma=0.5, regularization=1e-3, random_state=0)
    steps = TableEncoder("standard"), KernelPCA(5, kernel="rbf", random_state=0), last
    model = fitted(X, y, make_pipeline(*steps))
    assert "Scan" in {node.op_type for node in to_onnx(model).graph.node}
    assert_alike(model, X)


@pytest.mark.parametrize("numbers", ["standard", "asinh", "piecewise", "both"])
def test_an_encoder_of_numbers(numbers):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 3)) < 0.1, np.nan, rng.normal(size=(60, 3))).astype(np.float32)
    encoder = TableEncoder(numbers).fit(X)
    (found,) = session_of(skl2onnx.to_onnx(encoder, X[:1])).run(None, {"X": X})
    assert found.dtype == encoder.transform(X).dtype
    np.testing.assert_allclose(found, encoder.transform(X), atol=1e-6)


def swapped(name, kind):
    return [(one, kind if one == name else given) for one, given in TYPES]


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (TYPES[1:], "'town' is not among .*'age', 'income'.*by name|by name.*'town' is not among"),
        ([("X", FloatTensorType([None, 7]))], "'age', 'income', 'town'.* are not among \\['X'\\]"),
        (swapped("town", FloatTensorType([None, 1])), "column 'town' as StringTensorType of shape"),
        (swapped("age", StringTensorType([None, 1])), "column 'age' as FloatTensorType of shape"),
        (
            swapped("since", FloatTensorType([None, 1])),
            "'since' as DoubleTensorType or Int64.*seconds",
        ),
        (
            swapped("income", FloatTensorType([None, 2])),
            "column 'income'.*shape \\[None, 1\\], got",
        ),
    ],
)
def test_other_inputs_are_refused(types, message, customers):
    with pytest.raises(TypeError, match=message):
        skl2onnx.to_onnx(customers[0], initial_types=types, options={"zipmap": False})


def test_a_table_after_another_step_is_refused():
    X, y = business(100, 0)
    model = fitted(X, y, make_pipeline(FunctionTransformer(), KMeansKernelClassifier(3, gamma=0.5)))
    with pytest.raises(TypeError, match="step 2, 'kmeanskernelclassifier'.*columns of a table"):
        to_onnx(model)


MISSING = st.none()
CELLS = {
    "number": st.floats(-1e6, 1e6, width=32) | st.integers(-5, 5) | MISSING,
    "word": st.sampled_from(["a", "b", "c", "ä ö", "7"]) | MISSING,
    "flag": st.booleans() | MISSING,
    "day": st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)) | MISSING,
}


@st.composite
def tables(draw):
    """Return two tables of the same columns, and labels of the first."""
    kinds = draw(st.lists(st.sampled_from([*CELLS]), min_size=1, max_size=4))

    def frame(rows):
        columns = {}
        for k, kind in enumerate(kinds):
            values = draw(st.lists(CELLS[kind], min_size=rows, max_size=rows))
            columns[f"{kind} {k}"] = objects(*values)
        return pd.DataFrame(columns)

    return frame(draw(st.integers(12, 30))), frame(6)


@settings(max_examples=25, deadline=None)
@given(tables())
def test_random_tables(frames):
    X, other = frames
    assume(any(X[name].nunique() > 1 for name in X))
    y = np.arange(len(X)) % 2
    model = fitted(X, y, feature_transform="both")
    for frame in (X, other):
        assert_alike(model, frame)
