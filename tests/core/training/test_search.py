import numpy as np
import pytest
from scipy.special import softmax

from kmeans_kernel.core.arrays.samples import Labelled, Placement, Samples
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.clustering.representatives import Representation
from kmeans_kernel.core.kernels.kernels import Gaussian, Laplacian
from kmeans_kernel.core.kernels.kernels import kernel_values
from kmeans_kernel.core.solvers.nystrom import nugget
from kmeans_kernel.core.training.cross_validation import Fold, Folds, LeaveOneOut, hold_out
from kmeans_kernel.core.arrays.execution import deal
from kmeans_kernel.core.training.regularization_path import RepresentativesPath, SamplesPath
from kmeans_kernel.core.training.search import choose, squared_losses
from tests.reference import logistic as naive_logistic
from tests.reference import lssvm as naive_lssvm
from tests.reference import ridge as naive_ridge

KERNEL = Gaussian(1.5)


def samples(rng, n, n_classes=3):
    codes = rng.integers(0, n_classes, n)
    X = np.eye(4)[codes] + 0.5 * rng.normal(size=(n, 4))
    data = Labelled(X, codes, np.arange(n_classes), 0.5 + rng.random(n))
    return Samples(data, Placement(1.0))


def basis(rng, m=10, n_classes=3):
    owners = np.sort(rng.integers(0, n_classes, m))
    directions = unit_rows(np.eye(4)[owners] + 0.5 * rng.normal(size=(m, 4)), 1.0, np.float64)
    done = np.ones(n_classes, dtype=int)
    return Representation(directions, owners, np.ones(m), done, done > 0, {})


@pytest.mark.parametrize("regularization", [1e-4, 1e-2])
def test_the_paths_equal_the_twins(regularization, rng):
    train, test, representatives = samples(rng, 40), samples(rng, 15), basis(rng)
    K = kernel_values(test.directions(), representatives.directions, KERNEL)
    omega = kernel_values(representatives.directions, representatives.directions, KERNEL)

    a, b = naive_ridge.solve(
        kernel_values(train.directions(), representatives.directions, KERNEL),
        omega, train.targets(), train.weights, regularization, nugget(10),
    )  # fmt: skip
    path = SamplesPath.of_squares(train, representatives, KERNEL)
    found = path.scores(path.features(test.directions()), regularization)
    np.testing.assert_allclose(found, K @ a + b, atol=1e-7)

    a, b = naive_lssvm.solve(omega, np.eye(3)[representatives.owners], regularization)
    path = RepresentativesPath.of(train, representatives, KERNEL)
    found = path.scores(path.features(test.directions()), regularization)
    np.testing.assert_allclose(found, K @ a + b, atol=1e-7)


def test_leaving_one_out_equals_fitting_again(rng):
    data, representatives = samples(rng, 40), basis(rng)
    left_out = np.array([3, 17, 30])
    held_out = LeaveOneOut(data, representatives, left_out)
    expected = naive_ridge.left_out_scores(
        kernel_values(data.directions(), representatives.directions, KERNEL),
        kernel_values(representatives.directions, representatives.directions, KERNEL),
        data.targets(), data.weights, 1e-3, nugget(10),
    )  # fmt: skip
    np.testing.assert_allclose(held_out.scores(KERNEL)(1e-3), expected[left_out], atol=1e-8)
    np.testing.assert_array_equal(held_out.codes, data.codes[left_out])


@pytest.mark.parametrize(
    "path_of", [SamplesPath.of_squares, SamplesPath.of_logistic, RepresentativesPath.of]
)
def test_folds_predict_each_part_by_a_fit_to_the_others(path_of, rng):
    parts = [Fold(samples(rng, 30), basis(rng), samples(rng, n)) for n in (9, 7)]
    held_out = Folds(parts, path_of)
    expected = []
    for train, representatives, test in parts:
        path = path_of(train, representatives, KERNEL)
        expected.append(path.scores(path.features(test.directions()), 0.01))
    np.testing.assert_allclose(held_out.scores(KERNEL)(0.01), np.concatenate(expected))
    assert held_out.codes.shape == held_out.weights.shape == (16,)
    for enough, n_folds in ((1, 1), (9, 1), (10, 2), (100, 2)):
        assert held_out.holding_out(enough).folds == parts[:n_folds]


def test_a_logistic_path_gives_what_its_problem_does(rng):
    train, test, representatives = samples(rng, 40), samples(rng, 15), basis(rng)
    K = kernel_values(test.directions(), representatives.directions, KERNEL)
    omega = kernel_values(representatives.directions, representatives.directions, KERNEL)
    a, b = naive_logistic.solve(
        kernel_values(train.directions(), representatives.directions, KERNEL),
        omega, train.codes, train.weights, 3, 1e-2, nugget(10),
    )  # fmt: skip
    path = SamplesPath.of_logistic(train, representatives, KERNEL)
    T = path.features(test.directions())
    path.scores(T, 1e-1)  # the next starts from here
    found = softmax(path.scores(T, 1e-2), axis=1)
    np.testing.assert_allclose(found, softmax(K @ a + b, axis=1), atol=0.02)


def test_squared_losses_are_those_of_one_and_zero():
    scores = np.array([[0.9, 0.2], [0.5, -1.0]])
    found = squared_losses(scores, np.array([0, 1]), np.ones(2))
    np.testing.assert_allclose(found, [0.1**2 + 0.2**2, 0.5**2 + 2.0**2])


class Valley:
    """Held-out samples whose error is known: least at one width and one regularisation."""

    codes = np.zeros(4, dtype=int)
    weights = np.ones(4)

    def __init__(self, width, power):
        self.width, self.power, self.tried = width, power, []

    def scores(self, kernel):
        k = np.log2(2 * kernel.gamma)
        self.tried.append(k)

        def at(regularization):
            off = abs(k - self.width) + abs(2 * np.log10(regularization) - self.power)
            return np.full((4, 2), 0.1 + off)

        return at


def lengths(scores, codes, weights):
    return (scores**2).sum(axis=1)


FAMILY = [Gaussian]


@pytest.mark.parametrize("width", [-3, 0, 2, 3, 7, 10])
@pytest.mark.parametrize("power", [-16, -9, -8, 0, 2])
def test_the_walk_finds_the_valley(width, power):
    valley = Valley(width, power)
    heard = []
    found = choose(
        valley, FAMILY, None, losses=lengths,
        on_trial=lambda kernel, loss: heard.append((kernel, loss)),
    )  # fmt: skip
    assert found.kernel == Gaussian(2.0 ** (width - 1))
    assert found.regularization == pytest.approx(10 ** (power / 2))
    assert found.mean_loss == pytest.approx(0.02)
    assert len(valley.tried) == len(heard) <= abs(width - 2) + 3
    near = choose(valley, FAMILY, None, near=found, losses=lengths)
    assert (near.kernel, near.regularization) == (found.kernel, found.regularization)


class TwoValleys(Valley):
    """The same, but lower for one family."""

    def scores(self, kernel):
        at = super().scores(kernel)
        lower = 0.05 if isinstance(kernel, Laplacian) else 0.0
        return lambda regularization: at(regularization) - lower


def test_families_compete_and_near_stays_in_its_own():
    found = choose(TwoValleys(3, -6), [Gaussian, Laplacian], None, losses=lengths)
    assert found.kernel == Laplacian(4.0)
    alone = choose(TwoValleys(3, -6), [Gaussian], None, losses=lengths)
    assert alone.kernel == Gaussian(4.0)
    near = choose(TwoValleys(3, -6), [Gaussian, Laplacian], None, losses=lengths, near=alone)
    assert near.kernel == Gaussian(4.0)


def test_what_is_given_is_not_tried():
    valley = Valley(5, -4)
    found = choose(valley, Gaussian(1.0), None, losses=lengths)
    assert found.kernel == Gaussian(1.0)
    assert found.regularization == pytest.approx(0.01)
    found = choose(valley, FAMILY, 1e-3, losses=lengths)
    assert (found.kernel, found.regularization) == (Gaussian(16.0), 1e-3)


def test_dealing_is_even_in_every_class(rng):
    codes = rng.permutation(np.repeat([0, 1, 2, 3], [30, 7, 1, 2]))
    folds = list(deal(codes, 3, rng))
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(40))
    for code in range(4):
        counts = [int((codes[fold] == code).sum()) for fold in folds]
        assert max(counts) - min(counts) <= 1
    assert [len(fold) for fold in deal(np.array([0, 1]), 3, rng)] == [1, 1]


@pytest.mark.parametrize("weights", [None, "whole", "any"])
def test_every_copy_is_held_out_once(weights, rng):
    codes = np.repeat([0, 1], [12, 9])
    if weights is not None:
        weights = rng.integers(1, 5, 21) * 0.5 if weights == "whole" else rng.random(21) + 0.5
        weights[[0, 12]] = 0.5
    data = Labelled(np.arange(21.0)[:, None], codes, np.arange(2), weights)
    total = np.zeros(21)
    for rest, held in hold_out(data, 3, rng):
        both = np.zeros(21)
        for part in (rest, held):
            rows = part.X[:, 0].astype(int)
            assert (part.weight_of_each > 0).all()
            np.testing.assert_array_equal(part.codes, codes[rows])
            both[rows] += part.weight_of_each
            if part is held:
                total[rows] += part.weight_of_each
        np.testing.assert_allclose(both, data.weight_of_each)
    np.testing.assert_allclose(total, data.weight_of_each)


def test_copies_are_what_weighs_as_much_as_several():
    codes, classes = np.array([0, 0, 0, 1, 1]), np.arange(2)
    data = Labelled(np.zeros((5, 1)), codes, classes, np.array([0.5, 1.0, 50.0, 1.0, 1.5]))
    assert data.copies.tolist() == [1, 2, 30, 2, 3]
    odd = Labelled(np.zeros((5, 1)), codes, classes, np.array([0.5, 1.0, 2.0, 1.0, 1.01]))
    assert odd.copies.tolist() == [1, 2, 4, 1, 1]
    assert Labelled(np.zeros((5, 1)), codes, classes).copies.tolist() == [1] * 5
