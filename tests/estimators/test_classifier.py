import pickle
import sys
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kmeans_kernel import KMeansKernelClassifier, paper
from kmeans_kernel.core.arrays.encoding import ColumnEncoding
from kmeans_kernel.data import load_digits
from kmeans_kernel.estimators._parameters import config_of
from tests.reference import dual as naive_lssvm
from tests.reference import kernels as naive_kernels
from tests.reference import model as naive_model

PAPER = {
    "kernel": "poly",
    "degree": 4,
    "fit_on": "representatives",
    "regularization": 1e-6,
    "lift": 0.0,
    "feature_scales": None,
    "feature_transform": None,
}

# Where the choice is not what is tested.
GIVEN = {"gamma": 1.0, "regularization": 1e-3, "feature_scales": None}


@pytest.fixture(scope="module")
def table():
    return make_classification(
        600, 10, n_informative=6, n_classes=3, n_clusters_per_class=2, random_state=0
    )


def fit(X, y, n_representatives=20, **options):
    return KMeansKernelClassifier(n_representatives, random_state=0, **options).fit(X, y)


NAIVE = {"rbf": "gaussian", "laplacian": "laplacian"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": "rbf"},
        PAPER,
        {**PAPER, "kernel": "rbf", "lift": "auto", "gamma": "auto"},
        {"kernel": "poly", "degree": 3},
    ],
    ids=["default", "rbf", "paper", "on representatives", "poly"],
)
def test_attributes_define_the_scores(table, options):
    X, y = table
    found = fit(X, y, **options)
    lift = found.lift_
    transform = found.model_.sphere_map.feature_transform
    scales = found.model_.sphere_map.scales
    where = lift, scales, None if transform is None else asdict(transform)
    if isinstance(transform, ColumnEncoding):  # a mean of codes is the code of no row
        directions = found.model_.directions
    else:
        directions = np.array(naive_model.on_sphere(found.representatives_, *where))

    def kernel(cosine):
        if found.kernel == "poly":
            return naive_kernels.polynomial(cosine, found.degree)
        return getattr(naive_kernels, NAIVE[found.kernel_])(cosine, found.gamma_)

    expected = naive_model.scores(
        X[:20], directions, found.dual_coef_, found.intercept_, kernel, *where
    )
    np.testing.assert_allclose(found.decision_function(X[:20]), expected, atol=1e-6)
    if found.fit_on == "representatives":
        gram = np.array(naive_kernels.gram_matrix(directions, kernel))
        targets = np.eye(3)[np.searchsorted(found.classes_, found.representative_classes_)]
        residual = naive_lssvm.relative_residual(
            gram, targets, found.regularization_, found.dual_coef_, found.intercept_
        )
        assert residual <= 1e-6
    assert found.relative_residual_ <= (1e-2 if found.loss_ == "logistic" else 1e-6)
    assert found.n_iter_.shape == (3,)
    assert found.representative_counts_.sum() == len(X)
    stages = {"sphere", "kmeans", "kernel", "solve"}
    assert set(found.stage_seconds_) - {"search"} == stages
    assert (found.held_out_error_ is None) == ("search" not in found.stage_seconds_)


@pytest.mark.parametrize("regularization", [1e-8, 1e-4, 1.0])
def test_near_duplicate_rows_are_solved(regularization, rng):
    X = rng.normal(size=(100, 5))
    X = np.vstack([X, X + 1e-9])
    y = np.arange(200) % 2
    found = fit(X, y, 200, **{**PAPER, "regularization": regularization})
    gram = (found.representatives_ @ found.representatives_.T) ** 4
    targets = np.eye(2)[found.representative_classes_]
    residual = naive_lssvm.relative_residual(
        gram, targets, regularization, found.dual_coef_, found.intercept_
    )
    assert residual <= 1e-6


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["cat", "dog", "owl"]),
        np.array(["cat", "dog", "owl"], dtype=object),
        np.array([-5, 0, 7]),
        np.array([1.0, 2.0, 3.0]),
    ],
    ids=["str", "object", "int", "float"],
)
def test_any_label_type(table, labels):
    X, y = table
    plain, named = fit(X, y, **GIVEN), fit(X, labels[y], **GIVEN)
    np.testing.assert_array_equal(named.predict(X), labels[plain.predict(X)])
    np.testing.assert_array_equal(named.classes_, labels)
    assert named.representative_classes_.dtype == named.classes_.dtype


def test_booleans_and_two_classes(table):
    X, y = table
    found = fit(X, y == 1, **GIVEN)
    decision = found.decision_function(X)
    assert decision.shape == (600,)
    np.testing.assert_array_equal(found.predict(X), decision > 0)
    assert found.dual_coef_.shape == (40, 2)
    assert found.predict_proba(X).shape == (600, 2)


@pytest.mark.parametrize("options", [{}, PAPER], ids=["default", "paper"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_sum_to_one_and_order_as_the_scores(table, options, dtype):
    X, y = table[0].astype(dtype), table[1]
    found = fit(X, y, **options)
    proba = found.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    assert (proba > 0).all()
    order = np.argsort(found.decision_function(X), axis=1, kind="stable")
    np.testing.assert_array_equal(np.argsort(proba, axis=1, kind="stable"), order)


def test_classes_of_different_size_and_smaller_than_q(rng):
    X = rng.normal(size=(120, 4))
    y = np.array(["one"] + ["few"] * 5 + ["many"] * 114)
    found = fit(X, y, 30)
    sizes = {label: int((found.representative_classes_ == label).sum()) for label in set(y)}
    assert sizes == {"one": 1, "few": 5, "many": 30}


def test_many_classes(rng):
    y = np.repeat(np.arange(60), 5)
    X = np.eye(60)[y] + 0.01 * rng.normal(size=(300, 60))
    assert fit(X, y, 2, **GIVEN).score(X, y) == 1.0


def test_same_seed_same_model_and_row_order_of_classes_does_not_matter(table):
    X, y = table
    one, two = fit(X, y), fit(X, y)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    grouped = np.argsort(y, kind="stable")
    again = fit(X[grouped], y[grouped])
    np.testing.assert_array_equal(again.predict(X), one.predict(X))
    squared = fit(X, y, loss="squared"), fit(X[grouped], y[grouped], loss="squared")
    first, second = (found.decision_function(X) for found in squared)
    np.testing.assert_allclose(second, first, rtol=0, atol=1e-6)


def test_scaling_rows_changes_nothing_without_a_lift(table):
    X, y = table
    np.testing.assert_allclose(
        fit(1000 * X, y, **PAPER).decision_function(X),
        fit(X, y, **PAPER).decision_function(1000 * X),
        rtol=1e-3,
        atol=1e-3,
    )


def test_zero_and_huge_rows_give_finite_scores(table):
    X, y = table
    X = np.vstack([X, np.zeros((2, 10)), np.full((2, 10), 1e300)])
    y = np.append(y, [0, 1, 2, 0])
    for options in ({}, PAPER):
        found = fit(X, y, **options)
        assert np.isfinite(found.predict_proba(X)).all()
        assert np.isfinite(found.representatives_).all()


def test_the_defaults_suit_a_table_better_than_the_papers_settings(table):
    X, y = table

    def accuracy(**options):
        classifier = KMeansKernelClassifier(50, random_state=0, **options)
        return cross_val_score(make_pipeline(StandardScaler(), classifier), X, y).mean()

    assert accuracy() > accuracy(**PAPER) + 0.1


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_names(table, frame):
    X, y = table
    names = [f"feature {i}" for i in range(10)]
    found = fit(frame(dict(zip(names, X.T, strict=True))), y, **GIVEN)
    np.testing.assert_array_equal(found.feature_names_in_, names)
    np.testing.assert_array_equal(
        found.predict(frame(dict(zip(names, X.T, strict=True)))), fit(X, y, **GIVEN).predict(X)
    )
    shuffled = frame(dict(zip(names[::-1], X.T, strict=True)))
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(shuffled)


@pytest.mark.parametrize("series", [pd.Series, pl.Series])
def test_labels_from_frames(table, series):
    X, y = table
    labels = np.array(["x", "y", "z"])[y]
    np.testing.assert_array_equal(fit(X, series(labels), **GIVEN).classes_, ["x", "y", "z"])


def test_clone_pickle_display_and_search(table):
    X, y = table
    found = fit(X, y, **GIVEN)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.decision_function(X), found.decision_function(X))
    fresh = clone(found)
    assert fresh.get_params() == found.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert not hasattr(fresh, "classes_")
    assert "KMeansKernelClassifier" in found._repr_html_()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), KMeansKernelClassifier(random_state=0)),
        {"kmeanskernelclassifier__n_representatives": [5, 20]},
        cv=2,
    ).fit(X, y)
    assert search.best_score_ > 0.5


def test_stopping_early_warns_and_names_the_class(table):
    X, y = table
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 .*for class 0, 1, 2.*Raise max_iter"):
        fit(X, y, max_iter=1)


def test_verbose_tells_of_the_stages_and_the_error(table, capsys, monkeypatch):
    X, y = table
    fit(X, y, verbose=True, **PAPER)
    said = capsys.readouterr().err.splitlines()
    assert any("clustering" in line for line in said)
    assert any("solving" in line for line in said)
    assert said[-1].startswith("fitted in ")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    found = fit(X, y, verbose=True)
    said = capsys.readouterr().err
    assert "\r" in said
    assert "best held-out error" in said
    assert said.endswith(f", held-out error {100 * found.held_out_error_:.1f} %\n")
    assert said.count("\n") == 1
    fit(X, y)
    assert capsys.readouterr().err == ""


def test_float64_copies_are_not_kept(table):
    X, y = table
    assert fit(X, y).representatives_.dtype == np.float64  # a small model
    narrow = fit(X.astype(np.float32), y, kernel="rbf", loss="squared")
    assert narrow.decision_function(X.astype(np.float32)).dtype == np.float32


def test_a_large_model_keeps_float32(rng):
    X = rng.normal(size=(2200, 6)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    found = fit(X, y, 2000, gamma=1.0, lift=1.0, regularization=1e-6, feature_scales=None)
    assert len(found.representatives_) > 2048
    assert found.model_.directions.dtype == np.float32
    assert found.relative_residual_ <= 1e-4
    assert found.score(X, y) > 0.95


BAD_PARAMETERS = [
    ("n_representatives", 0, "a whole number of at least 1, got 0"),
    ("n_representatives", 2.5, "a whole number of at least 1, got 2.5"),
    ("n_representatives", True, "a whole number of at least 1, got True"),
    ("regularization", -1e-6, "a number of at least 0 and at most 1e\\+30, got -1e-06"),
    ("regularization", "none", "a number of at least 0 and at most 1e\\+30, got 'none'"),
    ("gamma", "scale", "a number above 0 and at most 1e\\+06, got 'scale'"),
    ("fit_on", "rows", "one of 'samples', 'representatives', got 'rows'"),
    ("n_jobs", 0, "a whole number other than 0, or None, got 0"),
    ("time_budget", 0, "a number above 0 and at most 1e\\+30, got 0"),
    ("time_budget", "short", "a number above 0 and at most 1e\\+30, got 'short'"),
    (
        "feature_transform",
        True,
        "one of 'auto', 'standard', 'asinh', 'piecewise', 'both', got True",
    ),
    ("feature_scales", "yes", "one of 'auto', 'learned', got 'yes'"),
    ("class_weight", "even", "a dict from labels to weights, 'balanced' or None, got 'even'"),
    (
        "kernel",
        "linear",
        "one of 'auto', 'poly', 'rbf', 'laplacian', 'exponential_power', got 'linear'",
    ),
    ("degree", 0, "a whole number of at least 1 and at most 1000, got 0"),
    ("degree", 2.5, "a whole number of at least 1 and at most 1000, got 2.5"),
    ("gamma", 0.0, "a number above 0 and at most 1e\\+06, got 0.0"),
    ("gamma", 10**400, "a number above 0 and at most 1e\\+06, got 1000"),
    ("gamma", 1e9, "a number above 0 and at most 1e\\+06, got 1000000000.0"),
    ("lift", -1.0, "a number of at least 0 and at most 1e\\+30, got -1.0"),
    ("lift", np.inf, "a number of at least 0 and at most 1e\\+30, got inf"),
    ("init", "farthest", "one of 'random', 'k-means\\+\\+', got 'farthest'"),
    ("tol", np.nan, "a number of at least 0 and at most 1e\\+30, got nan"),
    ("max_iter", 0, "a whole number of at least 1, got 0"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD_PARAMETERS)
def test_a_bad_parameter_is_named(table, name, value, message):
    estimator = KMeansKernelClassifier(**{name: value})
    with pytest.raises(
        ValueError, match=f"The '{name}' parameter of KMeansKernelClassifier must be {message}"
    ):
        estimator.fit(*table)


def changed(X, value):
    X = X.copy()
    X[3, 2] = value
    return X


def test_bad_rows_are_explained(table):
    X, y = table
    with pytest.raises(ValueError, match=r"contains NaN \(row 3, column 2\).*SimpleImputer"):
        fit(changed(X, np.nan), y, feature_transform=None)
    with pytest.raises(ValueError, match=r"contains infinity \(row 3, column 2\).*Replace or drop"):
        fit(changed(X, np.inf), y)
    with pytest.raises(ValueError, match=r"at least two classes in y, got one class: 'a'"):
        fit(X, ["a"] * len(X))
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        fit(np.empty((0, 3)), [])
    with pytest.raises(ValueError, match="Found array with dim 3"):
        fit(X.reshape(600, 5, 2), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fit(X, y[:-1])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        fit(X, X[:, 0])
    with pytest.raises(ValueError, match="requires y to be passed"):
        KMeansKernelClassifier().fit(X, None)


def test_odd_columns_and_labels_are_explained(table):
    X, y = table
    with pytest.raises(ValueError, match="no column to learn from: 'x0' \\(constant\\)"):
        fit(np.full(X.shape, "red"), y)
    with pytest.raises(ValueError, match="X must hold numbers, got text or dates.*TableEncoder"):
        KMeansKernelClassifier().partial_fit(np.full(X.shape, "red"), y)
    with pytest.raises(ValueError, match="y must hold labels of one type.*got int, str.*astype"):
        fit(X, np.array([1, "a"] * 300, dtype=object))


def test_a_fit_that_fails_leaves_nothing_half_fitted(table):
    X, y = table
    found = fit(X, y, **GIVEN)
    with pytest.raises(ValueError, match="at least two classes"):
        found.fit(X[:, :2], np.zeros(len(X)))
    with pytest.raises(NotFittedError):
        found.predict(X[:, :2])


CONTAINERS = {
    "polars": lambda X: pl.DataFrame(X),
    "pandas": lambda X: pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])]),
    "pandas Float64": lambda X: pd.DataFrame(X).astype("Float64").rename(columns=str),
    "list": lambda X: X.tolist(),
    "object": lambda X: X.astype(object),
    "big-endian": lambda X: X.astype(">f8"),
    "longdouble": lambda X: X.astype(np.longdouble),
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_float64_is_kept_in_any_container(container):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X) * 1e40  # beyond float32
    options = {"gamma": 0.01, "regularization": 1e-8, "lift": 1e25}
    expected = fit(X, y, 50, **options).decision_function(X)
    held = container(X)
    np.testing.assert_allclose(
        fit(held, y, 50, **options).decision_function(held), expected, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize(
    "options",
    [
        {"gamma": 1e-3, "regularization": 1e-6},
        {"gamma": 1e6},
        {"kernel": "poly", "degree": 1, "lift": 0.0, "regularization": 1e-9},
        {"kernel": "poly", "degree": 1000, "lift": 0.0},
    ],
    ids=str,
)
def test_narrow_input_gets_the_scores_of_wide_input(options):
    """Where large coefficients cancel, float32 products would give noise: float64 is used."""
    digits = load_digits()
    X, y = digits.X_train.reshape(-1, 64), digits.y_train
    found = fit(X, y, 50, **options)
    expected = found.decision_function(X)
    for dtype in (np.uint8, np.float32):
        np.testing.assert_allclose(found.decision_function(X.astype(dtype)), expected, atol=5e-3)


def test_a_large_badly_conditioned_model_scores_in_float64(rng):
    X = rng.normal(size=(2400, 12))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    found = fit(
        X,
        y,
        5000,
        gamma=1e-3,
        regularization=1e-6,
        lift=1.0,
        fit_on="representatives",
        feature_scales=None,
    )
    assert found.model_.directions.dtype == np.float32
    assert found.score(X, y) > 0.9


def test_a_class_of_few_rows_is_represented_by_just_these():
    X = np.c_[np.arange(1.7e9, 1.7e9 + 40), np.arange(40.0)]
    found = fit(X, np.arange(40) % 2, 100)
    np.testing.assert_allclose(found.representatives_[:20], X[::2], rtol=1e-12, atol=1e-12)


def test_representatives_stay_finite_when_the_lift_is_lost():
    X, y = load_iris(return_X_y=True)
    assert np.isfinite(fit(X * 1e46, y, 1000).representatives_).all()
    assert np.isfinite(fit(X * 1e46, y, 5).representatives_).all()


def test_nan_in_a_frame_is_named_by_its_column(table):
    X, y = table
    frame = pd.DataFrame(changed(X, np.nan), columns=[f"c{i}" for i in range(10)])
    with pytest.raises(ValueError, match=r"row 3, column 'c2'"):
        fit(frame, y, feature_transform=None)


def test_bad_rows_at_predict_are_explained(table):
    X, y = table
    found = fit(X, y, **GIVEN, feature_transform=None)
    with pytest.raises(ValueError, match="X has 9 features, but .* is expecting 10 features"):
        found.predict(X[:, :9])
    with pytest.raises(ValueError, match=r"contains NaN \(row 3, column 2\)"):
        found.predict_proba(changed(X, np.nan))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        KMeansKernelClassifier().decision_function(X)


def test_a_singular_system_says_what_to_do():
    X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 5, axis=0)
    y = np.arange(10) % 2
    with pytest.raises(np.linalg.LinAlgError, match="raise regularization"):
        fit(X, y, regularization=0.0, fit_on="representatives", feature_scales=None)
    with pytest.raises(np.linalg.LinAlgError, match="raise regularization"):
        fit(X, y, regularization=0.0, gamma=1.0, feature_scales=None)


def test_the_paper_functions_have_the_papers_settings():
    for pipeline in (paper.raw(7), paper.raw_fft(7), paper.patches(7).classifier):
        params = pipeline[-1].get_params()
        assert {name: params[name] for name in PAPER} == PAPER
        assert (params["n_representatives"], params["tol"], params["init"]) == (7, 1e-6, "random")
    assert paper.raw_fft()[0].root is True
    assert paper.patches().patch_shape == (25, 25)
    assert paper.patches().vote == "majority"


def test_iris():
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), KMeansKernelClassifier(10, random_state=0))
    assert cross_val_score(model, X, y).mean() > 0.93


@pytest.mark.parametrize(
    ("n_classes", "each"),
    [(2, 1000), (10, 200), (20, 100), (40, 100), (100, 40), (1000, 4), (5000, 1)],
)
def test_default_representatives_are_bounded_in_total(n_classes, each):
    """100 of each of a thousand classes would take hours to fit."""
    config = config_of(KMeansKernelClassifier(), n_classes)
    assert config.n_representatives == each
    assert config_of(KMeansKernelClassifier(7), n_classes).n_representatives == 7


def test_the_logistic_loss_is_tried_for_up_to_300_classes():
    assert config_of(KMeansKernelClassifier(), 300).loss is None
    assert config_of(KMeansKernelClassifier(), 301).loss == "squared"
    assert config_of(KMeansKernelClassifier(loss="logistic"), 301).loss == "logistic"


def test_a_table_with_a_class_for_every_other_row():
    X = np.random.default_rng(0).normal(size=(700, 3))
    y = np.arange(700) // 2
    model = KMeansKernelClassifier(random_state=0).fit(X, y)
    assert model.loss_ == "squared"
    assert len(model.representatives_) <= 700
    assert model.score(X, y) > 0.3  # chance is 0.003


def test_logarithms_of_probabilities_are_finite_where_these_underflow(table):
    X, y = table
    classifier = KMeansKernelClassifier(5, random_state=0).fit(X, y)
    logarithms = classifier.predict_log_proba(X)
    np.testing.assert_allclose(np.exp(logarithms), classifier.predict_proba(X), atol=1e-12)
    sure = replace(classifier.model_, temperature=1e-6)
    scores = np.array([[1.0, 0.0]])
    assert sure.probabilities(scores)[0, 1] == 0.0
    assert sure.log_probabilities(scores)[0, 1] == pytest.approx(-1e6)
