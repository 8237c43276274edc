import numpy as np
import pytest
from scipy.optimize import minimize as by_scipy
from scipy.optimize import rosen, rosen_der

from kmeans_kernel.core.solvers.lbfgs import minimize, no_pairs


def test_a_quadratic_function_is_minimised_exactly(rng):
    A = rng.normal(size=(30, 6))
    H, b = A.T @ A, rng.normal(size=6)
    x, loss, slope = minimize(lambda x: (0.5 * x @ H @ x - b @ x, H @ x - b), np.zeros(6), 0.0, 200)
    np.testing.assert_allclose(x, np.linalg.solve(H, b), atol=1e-6)
    assert loss == pytest.approx(-0.5 * b @ np.linalg.solve(H, b))
    np.testing.assert_allclose(slope, 0.0, atol=1e-4)


@pytest.mark.parametrize("start", [[-1.2, 1.0], [3.0, -2.0], [0.0, 0.0, 0.0, 0.0]])
def test_the_minimum_is_that_of_scipy(start):
    """Rosenbrock's valley, where the unit step fails and must be halved."""
    x, loss, _ = minimize(lambda x: (rosen(x), rosen_der(x)), np.array(start), 0.0, 5000)
    peer = by_scipy(rosen, start, jac=rosen_der, method="L-BFGS-B")
    assert loss <= peer.fun + 1e-8
    np.testing.assert_allclose(x, peer.x, atol=1e-3)


def test_it_stops_when_a_step_gains_little():
    calls = []

    def loss_and_slope(x):
        calls.append(x)
        return float(x @ x), 2 * x

    minimize(loss_and_slope, np.array([1.0, 1.0]), tolerance=1e6, most_steps=100)
    assert len(calls) <= 4
    at_minimum, _, _ = minimize(loss_and_slope, np.zeros(2), 1e-9, 100)
    np.testing.assert_array_equal(at_minimum, 0.0)


def test_curvature_of_a_similar_loss_saves_steps(rng):
    A = rng.normal(size=(60, 6)) * np.geomspace(1.0, 30.0, 6)
    H, b, pairs = A.T @ A, rng.normal(size=6), no_pairs()
    calls = []

    def loss_and_slope(scale, x):
        calls.append(x)
        return scale * float(0.5 * x @ H @ x - b @ x), scale * (H @ x - b)

    minimize(lambda x: loss_and_slope(1.0, x), np.zeros(6), 1e-10, 200, pairs)
    assert len(pairs) > 0
    cold = len(calls)
    x, _, _ = minimize(lambda x: loss_and_slope(1.1, x), np.zeros(6), 1e-10, 200, pairs)
    assert len(calls) - cold < cold
    np.testing.assert_allclose(x, np.linalg.solve(H, b), atol=1e-4)
