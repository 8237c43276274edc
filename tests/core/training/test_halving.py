from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest

from kmeans_kernel.core.arrays.events import CandidateTried, FitProgress
from kmeans_kernel.core.arrays.execution import Run
from kmeans_kernel.core.arrays.feature_transform import FeatureTransform
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.kernels.kernels import Gaussian, Laplacian, Polynomial
from kmeans_kernel.core.training.halving import Halving, Sizes, survivors_of, transforms_to_try
from tests.core.training.configs import OPEN

TABLE = replace(
    OPEN,
    n_representatives=1000,
    may_shrink=True,
    kernel=(Gaussian(1.0), Laplacian(1.0)),
    feature_scales="auto",
    feature_transform="auto",
    loss=None,
)


def labelled(n=300, d=4, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    X = noise * rng.normal(size=(n, d))
    X[:, 0] += 2.0 * codes
    return LabelledRows(X, codes, np.arange(2))


def search(rows, on_event=None, deadline=None, **options):
    run = Run(on_event=on_event, rng=np.random.default_rng(0), deadline=deadline)
    run = run.spanning("search", 0.0, 1.0)
    return Halving(replace(TABLE, **options), run).search(rows)


def test_held_out_rows_take_no_part_in_the_fits():
    """Labels that are drawn by lot cannot be predicted, however many candidates are tried."""
    rng = np.random.default_rng(1)
    rows = LabelledRows(rng.normal(size=(400, 5)), rng.integers(0, 2, 400), np.arange(2))
    found = search(rows)
    assert 0.4 < found.trial.error < 0.6
    for fold in found.trial.problem.folds:
        train = {row.tobytes() for row in fold.train.X}
        assert not any(row.tobytes() in train for row in fold.test.X)


def test_uninformative_features_are_scaled_down():
    """The label is the sign of a product of two features, among eight."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 8))
    rows = LabelledRows(X, (X[:, 0] * X[:, 1] > 0).astype(np.intp), np.arange(2))
    found = search(rows)
    assert found.sphere_map.scales is not None
    transform, scales = found.sphere_map.feature_transform, found.sphere_map.scales
    columns = np.arange(8) if isinstance(transform, FeatureTransform) else transform.columns
    # The distances of rows along each column, as the scales weight them.
    lengths = np.linalg.norm(
        np.ptp(transform.apply(X), axis=0) * scales * np.eye(8)[columns].T, axis=1
    )
    assert lengths[:2].min() > 2 * lengths[2:].max()
    plain = search(rows, feature_scales=None)
    assert plain.sphere_map.scales is None
    assert found.trial.mean_brier < plain.trial.mean_brier


def test_more_landmarks_are_not_asked_for_where_fewer_suffice():
    easy = search(labelled(800, noise=0.1))
    assert easy.enough_landmarks == len(easy.trial.problem.folds[0].landmarks)
    assert search(labelled(800), may_shrink=False).enough_landmarks is None
    rng = np.random.default_rng(0)  # a chess board needs many
    X = rng.uniform(0, 6, size=(1200, 2))
    rows = LabelledRows(X, (X.astype(int).sum(axis=1) % 2).astype(np.intp), np.arange(2))
    assert search(rows).enough_landmarks is None


@pytest.mark.parametrize(
    "given",
    [
        {"kernel": Gaussian(0.7)},
        {"kernel": Polynomial(4)},
        {"regularization": 1e-3},
        {"loss": "logistic"},
        {"loss": "logistic", "regularization": 1e-2},
        {"loss": "squared", "kernel": (Laplacian(1.0),)},
        {"feature_transform": "asinh"},
        {"feature_transform": None, "feature_scales": "learned"},
        {"lift": 2.5},
    ],
    ids=str,
)
def test_given_hyperparameters_are_kept(given):
    found = search(labelled(), **given)
    trial, transform = found.trial, found.sphere_map.feature_transform
    if isinstance(given.get("kernel"), (Gaussian, Polynomial)):
        assert trial.kernel == given["kernel"]
    elif "kernel" in given:
        assert trial.kernel.name == "laplacian"
    if "regularization" in given:
        assert trial.regularization == given["regularization"]
    assert trial.loss == given.get("loss", trial.loss)
    if "feature_transform" in given:
        kind = None if transform is None else transform.kind
        assert kind == given["feature_transform"]
    if given.get("feature_scales") == "learned":
        assert found.sphere_map.scales is not None
    if "lift" in given:
        assert trial.problem.folds[0].train.sphere_map.lift == 2.5


def test_a_deadline_ends_the_search_with_the_best_so_far():
    rows = labelled(600)
    events: list = []
    found = search(rows, events.append, deadline=perf_counter())
    short = len([event for event in events if isinstance(event, CandidateTried)])
    assert 0 < found.trial.error < 0.5
    events.clear()
    search(rows, events.append)
    assert short < len([event for event in events if isinstance(event, CandidateTried)]) / 2


def test_progress_never_falls():
    events: list = []
    search(labelled(), events.append)
    shares = [event.fraction for event in events if isinstance(event, FitProgress)]
    assert shares == sorted(shares)
    assert len(shares) >= 4


def test_large_tables_are_searched_on_a_sample(monkeypatch):
    module = "kmeans_kernel.core.training.halving"
    monkeypatch.setattr(f"{module}._SIZES", Sizes(200, 400, 20, 50))
    monkeypatch.setattr(f"{module}._SIZES_OF_MANY", Sizes(300, 600, 20, 60))
    for n, rows, landmarks in ((5000, 400, 50), (6000, 600, 60)):
        problem = search(labelled(n)).trial.problem
        assert max(len(fold.train) + len(fold.test) for fold in problem.folds) == rows
        assert problem.parts.n_landmarks == landmarks


@pytest.mark.parametrize(
    ("most", "share", "kind"), [(1000, 0.9, "both"), (1000, 0.0, "standard"), (1300, 0.0, "both")]
)
def test_steps_must_pay_where_rows_are_many(most, share, kind, monkeypatch):
    module = "kmeans_kernel.core.training.halving"
    monkeypatch.setattr(f"{module}._MANY_FOR_STEPS", most)
    monkeypatch.setattr(f"{module}._CLEARLY_LOWER", share)
    X = np.random.default_rng(0).normal(size=(1200, 4))
    codes = (np.floor(4 * X[:, 0]) % 2).astype(np.intp)  # abrupt changes, which steps can follow
    transform = search(LabelledRows(X, codes, np.arange(2))).sphere_map.feature_transform
    assert transform is not None
    assert transform.kind == kind


def test_folds_of_different_class_sizes_keep_their_clusters():
    """A few rows, merged with weights: the number of landmarks differs between the folds."""
    rng = np.random.default_rng(0)
    for n in (9, 13, 17, 25):
        codes = rng.permutation(np.repeat([0, 1], [n - n // 3, n // 3]))
        weights = rng.integers(1, 5, n).astype(float)
        rows = LabelledRows(rng.normal(size=(n, 6)), codes, np.arange(2), weights)
        assert 0 <= search(rows, feature_scales="learned").trial.error <= 1


def test_survivors_differ_in_kernel_and_in_scales():
    found = search(labelled(300))
    trial = found.trial
    assert survivors_of([trial]) == [trial]
    other = replace(trial, kernel=Laplacian(3.0) if trial.kernel.is_smooth else Gaussian(3.0))
    assert survivors_of([other, trial]) in ([trial, other], [other, trial])


def test_transforms_follow_the_configuration():
    rows = labelled()
    assert [one.kind for one in transforms_to_try(rows, TABLE)] == ["both", "standard"]
    for kind in ("standard", "asinh", "piecewise", "both"):
        (found,) = transforms_to_try(rows, replace(TABLE, feature_transform=kind))
        assert found.kind == kind
    assert transforms_to_try(rows, replace(TABLE, feature_transform=None)) == [None]


def test_the_encoding_follows_what_decides():
    """Values alone where a radius does, steps where thresholds of single columns do."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 8))
    radius = ((X**2).sum(axis=1) > 7.3).astype(np.intp)
    found = search(LabelledRows(X, radius, np.arange(2)))
    assert found.sphere_map.feature_transform.kind == "standard"
    X = np.exp(2 * X)  # long tails, and thresholds near the median
    thresholds = ((X[:, 0] > 1) ^ (X[:, 1] > 2)).astype(np.intp)
    found = search(LabelledRows(X, thresholds, np.arange(2)))
    assert found.sphere_map.feature_transform.kind == "both"
