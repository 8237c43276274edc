from itertools import permutations, product

import numpy as np
import pytest

from kmeans_kernel.core.arrays.events import CandidateTried
from kmeans_kernel.core.kernels.kernels import Gaussian, Laplacian
from kmeans_kernel.core.training.search import (
    Candidate,
    downhill,
    is_significantly_lower,
    search,
    squared_losses,
)


def test_targets_of_squared_losses_are_one_and_zero():
    scores = np.array([[0.9, 0.2], [0.5, -1.0]])
    found = squared_losses(scores, np.array([0, 1]), np.ones(2))
    np.testing.assert_allclose(found, [0.1**2 + 0.2**2, 0.5**2 + 2.0**2])


def test_loss_and_error_of_a_candidate_are_weighted_means():
    scores, codes = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0]]), np.array([0, 0, 1])
    losses, weights = np.array([1.0, 2.0, 4.0]), np.array([2.0, 1.0, 5.0])
    candidate = Candidate(Gaussian(1.0), 0.1, losses, scores, codes, weights)
    assert candidate.mean_loss == pytest.approx((2 + 2 + 20) / 8)
    assert candidate.error == pytest.approx((1 + 5) / 8)


class Valley:
    """Held-out samples of known error, least at one width and one regularization."""

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


def squared_scores(scores, codes, weights):
    return (scores**2).sum(axis=1)


RBF, LAPLACIAN = Gaussian(1.0), Laplacian(1.0)


@pytest.mark.parametrize("width", [-3, 0, 2, 3, 7, 10])
@pytest.mark.parametrize("power", [-16, -9, -8, 0, 2])
def test_the_search_finds_the_valley(width, power):
    valley = Valley(width, power)
    events = []
    found = search(valley, (RBF,), None, losses=squared_scores, on_event=events.append)
    assert found.kernel == Gaussian(2.0 ** (width - 1))
    assert found.regularization == pytest.approx(10 ** (power / 2))
    assert found.mean_loss == pytest.approx(0.02)
    assert len(valley.tried) == len(events) <= abs(width - 2) + 3
    assert all(isinstance(event, CandidateTried) for event in events)
    assert [np.log2(2 * event.kernel.gamma) for event in events] == valley.tried
    # The scores of a row are equal everywhere in the valley, so its errors are everywhere the same.
    assert {event.error for event in events} == {found.error}
    near = search(valley, (RBF,), None, near=found, losses=squared_scores)
    assert (near.kernel, near.regularization) == (found.kernel, found.regularization)


class TwoValleys(Valley):
    """The same, but lower for one family."""

    def scores(self, kernel):
        at = super().scores(kernel)
        lower = 0.05 if isinstance(kernel, Laplacian) else 0.0
        return lambda regularization: at(regularization) - lower


def test_kernels_compete_and_near_keeps_its_own():
    found = search(TwoValleys(3, -6), (RBF, LAPLACIAN), None, losses=squared_scores)
    assert found.kernel == Laplacian(4.0)
    rbf = search(TwoValleys(3, -6), (RBF,), None, losses=squared_scores)
    assert rbf.kernel == Gaussian(4.0)
    near = search(TwoValleys(3, -6), (RBF, LAPLACIAN), None, losses=squared_scores, near=rbf)
    assert near.kernel == Gaussian(4.0)


def test_given_hyperparameters_are_not_searched():
    valley = Valley(5, -4)
    found = search(valley, Gaussian(1.0), None, losses=squared_scores)
    assert found.kernel == Gaussian(1.0)
    assert found.regularization == pytest.approx(0.01)
    found = search(valley, (RBF,), 1e-3, losses=squared_scores)
    assert (found.kernel, found.regularization) == (Gaussian(16.0), 1e-3)


LOWEST, N_PLACES = -2, 6


def visits(losses, start, stride):
    """Return the places that a walk over losses from `LOWEST` on tries, in their order."""
    walk, visited = downhill(start, LOWEST, LOWEST + len(losses) - 1, stride), []
    place = next(walk)
    while place is not None:
        visited.append(place)
        place = walk.send(losses[place - LOWEST])
    return visited


def expected_visits(losses, start, stride):
    """Try up from the start while the loss falls; then down, unless the first step up paid."""
    at = dict(enumerate(losses, LOWEST))
    up, down = [start], [start]
    while up[-1] + stride in at and (len(up) == 1 or at[up[-1]] < at[up[-2]]):
        up.append(up[-1] + stride)
    while down[-1] - stride in at and (len(down) == 1 or at[down[-1]] < at[down[-2]]):
        down.append(down[-1] - stride)
    paid = len(up) > 1 and at[up[1]] < at[start]
    return up if paid else up + down[1:]


STARTS = [(start, stride) for start in range(LOWEST, LOWEST + N_PLACES) for stride in (1, 2)]


@pytest.mark.parametrize(("start", "stride"), STARTS)
def test_a_walk_downhill_finds_the_bottom_of_every_valley(start, stride):
    """All sequences of distinct losses that fall to one least place and rise from there."""
    valleys = [
        losses
        for losses in permutations(range(N_PLACES))
        if (np.diff(np.sign(np.diff(losses))) >= 0).all()
    ]
    assert len(valleys) == 2 ** (N_PLACES - 1)
    first = start - (start - LOWEST) // stride * stride
    for losses in valleys:
        visited = visits(losses, start, stride)
        assert visited == expected_visits(losses, start, stride)
        assert len(set(visited)) == len(visited)  # none is tried twice
        reachable = range(first, LOWEST + N_PLACES, stride)
        best = min(reachable, key=lambda place: losses[place - LOWEST])
        assert best in visited
        assert len(visited) <= abs(best - start) // stride + 3


@pytest.mark.parametrize(("start", "stride"), STARTS)
def test_a_walk_downhill_stops_where_the_loss_does_not_fall(start, stride):
    """All sequences of three losses, with plateaus and several valleys."""
    for losses in product(range(3), repeat=N_PLACES):
        assert visits(losses, start, stride) == expected_visits(losses, start, stride)


def test_differences_within_the_noise_are_not_significant(rng):
    old = rng.random(1000)
    assert is_significantly_lower(old, old - 0.1, np.ones(1000))
    assert not is_significantly_lower(old, old, np.ones(1000))
    assert not is_significantly_lower(old, old + 0.1, np.ones(1000))
    assert not is_significantly_lower(old, rng.permutation(old), np.ones(1000))
