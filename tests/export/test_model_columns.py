"""The model file of classifiers that were trained on tables: columns and their encoding."""

import datetime
import json
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline

from kmeans_kernel import KMeansKernelClassifier, TableEncoder, load_model, save_model
from kmeans_kernel.core.arrays.encoding import ColumnEncoding
from kmeans_kernel.export.model_file import ModelFileError
from kmeans_kernel.export.model_file._estimators import build, describe
from kmeans_kernel.export.model_file._file import Place
from kmeans_kernel.serve._models import to_served_model
from tests.estimators.columns.conftest import business
from tests.export.test_model_file import resaved

N = 200


def people(seed=0):
    """Return rows with every kind of column, and labels that depend on two of them."""
    rng = np.random.default_rng(seed)
    missing = rng.random((3, N)) < 0.1
    X = pd.DataFrame(
        {
            "age": np.where(missing[0], np.nan, rng.integers(18, 80, N)),
            "income": rng.lognormal(10, 1, N).round(2),
            "city": pd.Series(rng.choice(["Rome", "Paris", "Köln"], N)).mask(missing[1]),
            "street": rng.choice([f"No. {k}" for k in range(40)], N),
            "vip": pd.Series(rng.choice([True, False], N), dtype=object).mask(missing[2], None),
            "since": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 70_000, N), "h"),
            "id": [f"u{k:05d}" for k in range(N)],
            "plan": pd.Categorical(rng.choice(["a", "b"], N)),
            "grade": rng.choice([1, 2, 3], N),
        }
    )
    y = np.where((X["age"].fillna(40) > 45) ^ (X["city"] == "Rome"), "yes", "no")
    return X, y


TYPES = {"grade": "category", "id": "drop"}


def fitted(**options):
    X, y = people()
    options = {"column_types": TYPES, **options}
    return KMeansKernelClassifier(5, random_state=0, **options).fit(X, y)


@pytest.fixture(scope="module")
def strange():
    """Rows with unknown levels, and missing values in every column."""
    X = people(1)[0]
    X["plan"] = X["plan"].astype(object)
    for j, name in enumerate(X):
        X.loc[j, name] = None
    X.loc[20, ["city", "street", "plan"]] = ["Bonn", "elsewhere", "c"]
    X.loc[21, ["grade", "age"]] = [9, 1e9]
    return X


@pytest.mark.parametrize("kind", ["auto", "standard", "asinh", "piecewise", "both"])
def test_a_model_of_a_table_is_loaded(kind, strange, tmp_path):
    model = fitted(feature_transform=kind)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(strange), model.predict_proba(strange))
    assert loaded.columns_ == model.columns_
    assert loaded.get_params() == model.get_params()
    assert loaded.representatives_.tolist() == model.representatives_.tolist()
    before, after = (one.model_.sphere_map.feature_transform for one in (model, loaded))
    assert isinstance(after, ColumnEncoding)
    for name, value in vars(before).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(after, name), value)
            assert getattr(after, name).dtype == value.dtype
    save_model(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    loaded.fit(*people())


def test_a_table_of_numbers_has_no_columns(tmp_path):
    X, y = people()
    numbers = X[["age", "income"]].to_numpy()
    model = KMeansKernelClassifier(5, random_state=0).fit(numbers, y)
    assert model._columns is None
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(numbers), model.predict_proba(numbers))


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(np.arange(N) % 3),
        pd.cut(np.arange(float(N)), 4),
        pl.Series([datetime.date(2020, 1, 1 + k % 9) for k in range(N)]),
        np.array(["7", "07", "nan", ""] * (N // 4), dtype=object),
        [0.1, 2.5] * (N // 2),
        [None, True] * (N // 2),
        ["äöü", "日本", "\u202e", "'\"\\"] * (N // 4),
    ],
    ids=["whole numbers", "intervals", "dates", "text", "numbers", "one level", "letters"],
)
def test_levels_of_every_type(column, tmp_path):
    y = people()[1]
    frame = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    X = frame({"a": column, "b": np.arange(N) % 7})
    types = {"a": "category"} if isinstance(column, list) and column[0] == 0.1 else None
    model = KMeansKernelClassifier(3, random_state=0, column_types=types).fit(X, y)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.columns_ == model.columns_
    assert [type(one) for one in loaded.columns_[0].levels] == [
        type(one) for one in model.columns_[0].levels
    ]


def test_columns_survive_in_a_pipeline_with_nothing_else(tmp_path):
    X, y = people()
    model = make_pipeline("passthrough", KMeansKernelClassifier(3, random_state=0)).fit(
        X.drop(columns="id"), y
    )
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == list(X.drop(columns="id"))
    np.testing.assert_array_equal(loaded.predict_proba(X.drop(columns="id")),
                                  model.predict_proba(X.drop(columns="id")))  # fmt: skip


def test_columns_that_cannot_be_saved_are_told(tmp_path):
    half = [[word, k % 7] for k, word in enumerate(["\ud800", "b"] * (N // 2))]
    model = KMeansKernelClassifier(3, random_state=0).fit(half, people()[1])
    with pytest.raises(ValueError, match="'x0' has levels that are no levels. Rename or convert"):
        save_model(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "model"
    save_model(fitted(feature_transform="both"), path)
    return path.read_bytes()


@pytest.fixture
def saved(original, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(original)
    return path


def at(name, /, **changes):
    """Return a change of the description of a column."""

    def change(tree):
        next(one for one in tree["columns"] if one["name"] == name).update(changes)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("columns"), "KeyError"),
        (lambda t: t.update(columns=None), "encoding is of 11 columns, not of 9"),
        (lambda t: t.update(columns=[]), "no column is left"),
        (lambda t: t.update(columns={}), "not described by a list"),
        (lambda t: t.update(columns=[None] * 9), "not described by its fields"),
        (lambda t: t["columns"].pop(), "has 8 columns of 9"),
        (lambda t: t["columns"].append(t["columns"][0]), "two columns have the name 'age'"),
        (lambda t: t["columns"].reverse(), "not those of its features"),
        (lambda t: t["columns"][0].pop("levels"), "not described by its fields"),
        (lambda t: t["columns"][0].update(code="x"), "not described by its fields"),
        (at("age", name="years"), "not those of its features"),
        (at("age", name=3), "has the name 3"),
        (at("age", name="\ud800"), "has the name"),
        (at("age", kind="os.system"), "'age' is a 'os.system'"),
        (at("age", kind=["number"]), r"'age' is a \['number'\]"),
        (at("age", kind="dropped"), "11 columns, not of 10"),
        (at("age", kind="category"), "has no levels"),
        (at("age", kind="category", levels=["a"]), "levels of its encoding are not"),
        (at("age", kind="date", parts=["days"], minimum=None), "has the name|unknown|harmless"),
        (at("age", levels=["a"]), "'age', a number, has levels of another type"),
        (at("age", rare=True), "'age', a number, has rare levels"),
        (at("age", parts=["days"]), r"has the parts \['days'\]"),
        (at("age", minimum=99.0), "minimum above its maximum"),
        (at("age", minimum="18"), "minimum of the column 'age' is '18'"),
        (at("age", minimum=True), "minimum of the column 'age' is True"),
        (at("age", maximum=10**400), "OverflowError"),
        (at("age", decimals=-1), "has -1 decimals"),
        (at("age", decimals=True), "has True decimals"),
        (at("age", decimals=10**9), "has 1000000000 decimals"),
        (at("age", missing=1), "missing of the column 'age' is 1"),
        (at("age", reason="id"), "is left out because of 'id'"),
        (at("id", reason=["id"]), "is left out because of"),
        (at("id", levels=["u1"]), "has levels of another type"),
        (at("city", levels=["Rome", "Paris"]), "levels of its encoding are not those"),
        (at("city", levels=["Rome", "Rome", "Paris"]), "has a level twice"),
        (at("city", levels=["Rome", "Paris", 3]), "has levels of another type"),
        (at("city", levels=["Rome", "Paris", None]), "levels that are no levels"),
        (at("city", levels=["Rome", "Paris", ["x"]]), "levels that are no levels"),
        (at("city", levels="abc"), "levels that are no levels"),
        (at("city", levels={"a": 1}), "levels that are no levels"),
        (at("city", levels=[True, False, "x"]), "has levels of another type"),
        (at("city", rare=True), "levels of its encoding are not those"),
        (at("city", rare="yes"), "rare of the column 'city' is 'yes'"),
        (at("city", kind="number"), "has levels of another type"),
        (at("street", levels=[k + 0.5 for k in range(40)], rare=10**9), "rare of the column"),
        (at("grade", levels=[1.0, 1, 2.0]), "has a level twice"),
        (at("grade", levels=[1.0, 2.0, 10**400]), "levels that are no levels"),
        (at("grade", levels=[1.0, 2.0, True]), "has levels of another type"),
        (at("vip", levels=["yes", "no"]), "has levels of another type"),
        (at("vip", rare=True), "'vip', a boolean, has rare levels"),
        (at("since", parts=[]), r"has the parts \[\]"),
        (at("since", parts=["month", "days", "weekday", "hour"]), "has the parts"),
        (at("since", parts=["days", "days", "month", "hour"]), "has the parts"),
        (at("since", parts=["days", "century"]), "parts that no date has"),
        (at("since", parts=["days", "month"]), "11 columns, not of 9"),
        (at("since", parts=["days", ["month"]]), "parts that no date has"),
        (lambda t: t.pop("encoding"), "KeyError"),
        (lambda t: t.update(encoding=None), "feature transform is 'both'"),
        (lambda t: t.update(encoding=[1]), "not described by its fields"),
        (lambda t: t.update(encoding={"n_columns": 12}), "not described by its fields"),
        (lambda t: t["encoding"].update(n_columns=10**9), "of 1000000000 columns, not of 11"),
        (lambda t: t["encoding"].update(n_columns=-1), "at least 1"),
        (lambda t: t["encoding"].update(values="log"), "feature transform is 'log'"),
        (lambda t: t["encoding"].update(values=None), "no transform of them"),
        (lambda t: t["encoding"].update(values={}), "feature transform is {}"),
        (lambda t: t.update(feature_transform="log"), "feature transform is 'log'"),
        (lambda t: t.update(feature_transform=None), "feature transform is None"),
        (lambda t: t.update(feature_transform=["both"]), "feature transform is"),
        (lambda t: t.update(lift=0), "directions' should be .* of shape"),
        (lambda t: t["features"].update(count=10**9, names=None), "9 columns of 1000000000"),
        (lambda t: t["features"].update(names=list("abcdefghi")), "not those of its features"),
        (lambda t: t["params"].update(column_types={"items": [["a", ["b"]]]}), "column_types' is"),
        (lambda t: t["params"].update(column_types=["a"]), "column_types' is"),
    ],
)  # fmt: skip
def test_columns_that_lie_are_refused(change, message, saved):
    resaved(saved, lambda tree: change(tree) and None)
    if "harmless" in message:
        load_model(saved)
        return
    with pytest.raises(ModelFileError, match=message):
        load_model(saved)


def having(name, change):
    """Return a change of one array of the file."""
    return lambda arrays: {**arrays, name: change(arrays[name].copy())}


def put(position, value):
    def change(array):
        array[position] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("value_columns", put(0, 11), "columns that are none of its 11"),
        ("value_columns", put(0, -1), "columns that are none of its 11"),
        ("value_columns", put(0, 10**12), "columns that are none of its 11"),
        ("value_columns", lambda a: np.full_like(a, a[0]), "name a column twice|not name each"),
        ("value_columns", put(1, 0), "name a column twice|does not name each"),
        ("value_columns", lambda a: a.astype(np.float64), "should be int64"),
        ("value_columns", lambda a: a[1:].copy(), "transform_centers' should be"),
        ("transform_widths", put(0, 0.0), "widths and gains of its feature transform"),
        ("transform_gains", put(0, -1.0), "widths and gains of its feature transform"),
        ("transform_centers", put(0, np.nan), "not finite"),
        ("step_columns", put(0, 99), "columns that are none"),
        ("step_columns", put(1, 10), "step_columns are not together"),
        ("step_columns", lambda a: a[1:].copy(), "step_starts' should be"),
        ("step_starts", put(0, np.inf), "not finite"),
        ("step_starts", put(3, 1e9), "do not follow each other"),
        ("step_starts", lambda a: a[::-1].copy(), "do not follow each other"),
        ("step_widths", put(0, 0.0), "widths and gains of its steps"),
        ("step_widths", put(0, -1.0), "widths and gains of its steps"),
        ("step_widths", put(0, 1e300), "do not follow each other"),
        ("step_gains", put(0, 0.0), "widths and gains of its steps"),
        ("step_gains", lambda a: a.astype(np.float32), "should be float64"),
        ("step_means", put(0, 1.5), "step_means are not from 0 to 1"),
        ("step_means", put(0, -0.1), "step_means are not from 0 to 1"),
        ("level_columns", put(0, 0), "levels of its encoding are not those"),
        ("level_columns", lambda a: np.roll(a, 1), "level_columns are not together"),
        ("level_columns", lambda a: a + 2**62, "columns that are none"),
        ("level_codes", put(0, 1), "not the positions of levels"),
        ("level_codes", put(0, 10**9), "not the positions of levels"),
        ("level_codes", put(0, -1), "not the positions of levels"),
        ("level_codes", lambda a: a.astype(np.float64), "should be int64"),
        ("level_shares", put(0, 1.1), "level_shares are not from 0 to 1"),
        ("level_shares", put(0, -1e-9), "level_shares are not from 0 to 1"),
        ("missing_columns", put(0, 11), "columns that are none"),
        ("missing_columns", lambda a: np.full_like(a, a[0]), "missing_columns name a column twice"),
        ("missing_columns", lambda a: a[:-1], "missing_shares' should be"),
        ("missing_shares", put(0, 2.0), "missing_shares are not from 0 to 1"),
        ("feature_scales", lambda a: a[:-1], "feature_scales' should be"),
        ("feature_scales", put(0, 0.0), "scales are not above zero"),
        ("directions", lambda a: a[:, :-1].copy(), "directions' should be"),
        ("directions", lambda a: a[:0], "representative_classes' should be"),
    ],
)  # fmt: skip
def test_encodings_that_lie_are_refused(name, change, message, saved):
    resaved(saved, change_arrays=having(name, change))
    with pytest.raises(ModelFileError, match=message):
        load_model(saved)


def test_a_model_without_representatives_claims_any_number_of_features(saved, tmp_path):
    """Arrays without rows take no bytes, however wide they are."""
    X, y = people()
    path = tmp_path / "plain"
    plain = KMeansKernelClassifier(2, feature_transform=None, feature_scales=None, lift=0.0,
                                   random_state=0)  # fmt: skip
    save_model(plain.fit(X[["income"]].to_numpy(), y), path)
    empty = {
        "directions": np.empty((0, 10**12)), "representative_classes": np.empty(0, np.int64),
        "representative_counts": np.empty(0), "dual_coef": np.empty((0, 2)),
    }  # fmt: skip
    resaved(path, lambda tree: tree["features"].update(count=10**12),
            lambda arrays: {**arrays, **empty})  # fmt: skip
    with pytest.raises(ModelFileError, match="do not belong"):
        load_model(path)


def test_a_huge_claim_is_refused_without_allocating_it(saved, tmp_path):
    X, y = people()
    path = tmp_path / "numbers"
    numbers = X[["age", "income"]].to_numpy()
    save_model(KMeansKernelClassifier(5, random_state=0).fit(numbers, y), path)

    def claim(tree):
        tree["features"].update(count=10**9)
        tree["encoding"].update(n_columns=10**9)

    resaved(path, claim)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="does not name each of its 1000000000 columns"):
        load_model(path)
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()


def mutations(value):
    """Yield JSON values in place of another."""
    yield from (
        None,
        True,
        -1,
        0,
        10**9,
        10**30,
        0.5,
        1e300,
        "",
        "x",
        "\ud800",
        [],
        {},
        [None],
        [[]],
    )
    yield from ({"a": 1}, ["x"] * 3)
    if isinstance(value, list):
        yield from (value[:-1], value[::-1], value + value)
    if isinstance(value, str):
        yield value + "x"


def places(tree, path=()):
    """Yield the path of every value of a JSON tree."""
    yield path
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in entries:
        if isinstance(value, dict | list) and value:
            yield from places(value, (*path, key))
        else:
            yield (*path, key)


def changed(tree, path, value):
    tree = json.loads(json.dumps(tree))
    at = tree
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return tree


def value_at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:X has feature names")
def test_every_altered_field_is_refused_or_harmless():
    """A model with any value of its JSON replaced is refused, or can be used."""
    arrays = {}
    tree = json.loads(json.dumps(describe(fitted(feature_transform="both"), Place("", arrays))))
    altered = [
        (changed(tree, path, value), arrays)
        for path in places(tree)
        if path
        for value in mutations(value_at(tree, path))
    ]
    refused, harmless = outcomes(altered)
    assert refused > 500
    assert harmless > 100


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_altered_array_is_refused_or_harmless():
    arrays = {}
    tree = json.loads(json.dumps(describe(fitted(feature_transform="both"), Place("", arrays))))
    altered = [
        (tree, {**arrays, name: found})
        for name, array in arrays.items()
        for found in altered_arrays(array)
    ]
    refused, harmless = outcomes(altered)
    assert refused > 100
    assert harmless > 10


def altered_arrays(array):
    """Yield arrays of other types, shapes and values."""
    yield from (array.astype(np.float16), array.astype(np.int8), array.reshape(-1, 1), array.T)
    yield from (array[:0], array[1:], array[::-1], np.concatenate([array, array]))
    for value in (0, -1, 1, 7, 10**9, -(2**62)):
        yield np.full_like(array, value)
        for position in (0, -1):
            found = array.copy()
            found.flat[position] = value
            yield found
    if array.dtype.kind == "f":
        for value in (np.nan, np.inf, 5e-324, 1e300):
            found = array.copy()
            found.flat[len(found) // 2] = value
            yield found


def outcomes(altered):
    """Return how many models are refused and how many are harmless; other errors are raised."""
    X = people()[0].iloc[:3]
    refused = harmless = 0
    for tree, arrays in altered:
        place = Place("", {name: array.copy() for name, array in arrays.items()})
        try:
            model = build(tree, place)
        except (ModelFileError, KeyError, TypeError, ValueError, AttributeError, OverflowError):
            refused += 1  # load_model turns all of these into a ModelFileError
            continue
        harmless += 1
        found = model.predict_proba(X.set_axis([one.name for one in model.columns_], axis=1))
        assert found.shape == (3, 2)
        assert model.representatives_.shape[1] == 9
        assert to_served_model("model", model).table.example
    return refused, harmless


def test_a_pipeline_of_table_encoder_and_classifier_survives(tmp_path):
    X, y = business(200)
    pipeline = make_pipeline(
        TableEncoder(column_types={"id": "drop"}),
        KMeansKernelClassifier(10, feature_transform=None, random_state=0),
    ).fit(X, y)
    save_model(pipeline, tmp_path / "a.model")
    loaded = load_model(tmp_path / "a.model")
    strange = X.assign(city="Lima", age=np.nan)
    for rows in (X, strange):
        np.testing.assert_array_equal(loaded.predict_proba(rows), pipeline.predict_proba(rows))
    assert loaded[0].columns_ == pipeline[0].columns_
    assert (
        loaded[0].get_feature_names_out().tolist() == pipeline[0].get_feature_names_out().tolist()
    )
    save_model(loaded, tmp_path / "b.model")
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()
