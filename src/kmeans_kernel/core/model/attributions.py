"""Attributions of a score to columns: Shapley values and integrated gradients.

Both share the difference between the score of a row x and that of a baseline b among the columns,
and add up to it. With features z after the feature transform, scales s and lift r, the cosine with
a representative ξ is

    c = (s∘z · ξ + r ξ_r) / √(‖s∘z‖² + r²),

and both sums in the fraction are sums over columns. What each column adds to them is computed once,
by a matrix product; after that a coalition of columns (Shapley) or a point of the path (integrated
gradients) costs as many operations as there are representatives, whatever the number of features.

- L. S. Shapley, "A value for n-person games", 1953; S. Lundberg and S.-I. Lee, "A unified approach
  to interpreting model predictions", NeurIPS 2017. Exact, over all 2^G coalitions of G columns.
- M. Sundararajan, A. Taly and Q. Yan, "Axiomatic attribution for deep networks", ICML 2017. Along
  the straight line between the features of the baseline and those of the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import factorial

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.matrices import Array, IntArray, Matrix, blocks_of, dense
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.model.fitted_model import FittedModel

# Most columns of exact Shapley values: 2^G coalitions are scored.
MOST_SHAPLEY_COLUMNS = 10

# Integrated gradients: nodes and weights of Gauss-Legendre quadrature on [0, 1]; the intervals at
# first; the error of an interval's sum above which it is halved, relative to the sizes of the terms
# of the score; most halvings.
_POINTS, _GAUSS = np.polynomial.legendre.leggauss(12)
_NODES, _WEIGHTS = (_POINTS + 1.0) / 2.0, _GAUSS / 2.0
_INTERVALS, _TOLERANCE, _MOST_HALVINGS = 2, 1e-11, 24

# Rows of a block, and entries of the largest temporary array.
_BLOCK_ROWS, _MOST_ENTRIES = 256, 4_000_000


@dataclass(frozen=True, eq=False)
class _Path:
    """A row and the baseline before they are divided by their lengths.

    Attributes
    ----------
    kernel : the kernel
    coefficients : (m,) kernel coefficients of the score that is explained
    base, change : (D,) scaled features of the baseline, and their change to those of the row
    base_square : the squared length of the baseline, lift included
    base_products, products : (m,) products of the baseline, lift included, and of the change with
        the representatives
    """

    kernel: Kernel
    coefficients: Array
    base: Array
    change: Array
    base_square: float
    base_products: Array
    products: Array


def _paths(
    model: FittedModel, X: Matrix, baseline: Array, classes: IntArray
) -> Iterator[tuple[_Path, Array]]:
    """Yield the path to each row, with the (m, D) representatives without their lift."""
    sphere_map = model.sphere_map
    d = model.directions.shape[1] - (sphere_map.lift > 0)
    directions = model.directions.astype(np.float64)
    features, lifts = directions[:, :d], directions[:, d:].sum(axis=1) * sphere_map.lift
    base = _scaled(model, baseline)[0]
    base_products, base_square = features @ base + lifts, float(base @ base + sphere_map.lift**2)
    for rows in blocks_of(X.shape[0], _BLOCK_ROWS):
        changes = _scaled(model, X[rows]) - base
        products = changes @ features.T
        for change, product, k in zip(changes, products, classes[rows], strict=True):
            yield (
                _Path(
                    model.kernel, model.dual_coef[:, k], base, change,
                    base_square, base_products, product,
                ),
                features,
            )  # fmt: skip


def _scaled(model: FittedModel, X: Matrix) -> Array:
    """Return the (n, D) features of rows times their scales."""
    features = np.asarray(model.sphere_map.transform(dense(X)), dtype=np.float64)
    scales = model.sphere_map.scales
    return features if scales is None else features * scales


def shapley_values(
    model: FittedModel, X: Matrix, baseline: Array, classes: IntArray, columns: IntArray
) -> Array:
    """Return the (n, G) Shapley values of the columns of each row.

    A coalition of columns has the values of the row there, and those of the baseline elsewhere. The
    cost is 2^G kernel values for each row and representative.

    Parameters
    ----------
    X : (n, d) rows, trusted
    baseline : (1, d) the row that they are compared with
    classes : (n,) position of the class whose score is explained
    columns : (D,) column of each feature, numbered from 0 to G − 1
    """
    found = np.zeros((len(classes), int(columns.max()) + 1))
    for out, (path, directions) in zip(found, _paths(model, X, baseline, classes), strict=True):
        out[:] = _shapley(path, directions, columns)
    return found


def _shapley(path: _Path, directions: Array, columns: IntArray) -> Array:
    """Return the (G,) Shapley values of one row."""
    n_columns = int(columns.max()) + 1
    products, squares = list[Array](), list[float]()
    for column in range(n_columns):
        mine = columns == column
        change = path.change[mine]
        products.append(directions[:, mine] @ change)
        squares.append(float(change @ (change + 2.0 * path.base[mine])))
    values = _coalition_scores(path, products, squares)
    sizes = _over_coalitions(np.zeros(1, dtype=np.intp), [1] * n_columns)
    shares = np.array([
        factorial(k) * factorial(n_columns - k - 1) / factorial(n_columns)
        for k in range(n_columns)
    ])  # fmt: skip
    coalitions, found = np.arange(len(values)), np.empty(n_columns)
    for column in range(n_columns):
        without = coalitions[coalitions >> column & 1 == 0]
        gains = values[without | 1 << column] - values[without]
        found[column] = shares[sizes[without]] @ gains
    return found


def _coalition_scores(path: _Path, products: list[Array], squares: list[float]) -> Array:
    """Return the (2^G,) scores of all coalitions, without the intercept; bit g is column g."""
    lengths = _lengths(_over_coalitions(np.array([path.base_square]), squares))
    scores, step = np.zeros(len(lengths)), max(1, _MOST_ENTRIES // len(lengths))
    for some in blocks_of(len(path.coefficients), step):
        cosines = _over_coalitions(path.base_products[None, some], [one[some] for one in products])
        cosines /= lengths[:, None]
        scores += _kernel_values(path.kernel, cosines) @ path.coefficients[some]
    return scores


def _over_coalitions(base: Array, terms: list[Array] | list[float] | list[int]) -> Array:
    """Return the sums of a base and the terms of each coalition."""
    for term in terms:
        base = np.concatenate([base, base + term])
    return base


def integrated_gradients(
    model: FittedModel, X: Matrix, baseline: Array, classes: IntArray, columns: IntArray
) -> Array:
    """Return the (n, G) integrated gradients of the columns of each row.

    The path is the straight line between the features of the baseline and those of the row. Its
    intervals are halved until their sums are exact up to rounding. Parameters as those of
    `shapley_values`.
    """
    n_columns = int(columns.max()) + 1
    found = np.zeros((len(classes), n_columns))
    for out, (path, directions) in zip(found, _paths(model, X, baseline, classes), strict=True):
        of_columns = np.bincount(columns, _integrate(path, directions), n_columns)
        out[:] = _with_sum(of_columns.astype(np.float64), path)
    return found


def _integrate(path: _Path, directions: Array) -> Array:
    """Return the (D,) integrated gradients of the features of one row.

    With n the length at a point t of the path, the gradient of the score along feature i of the
    change δ is δ_i (Σ κ'(c) a ξ_i / n − Σ κ'(c) c a (b_i + t δ_i) / n²).
    """
    ends = np.linspace(0.0, 1.0, _INTERVALS + 1)
    starts, widths = ends[:-1], np.diff(ends)
    weights, at_base, at_change = np.zeros(len(directions)), 0.0, 0.0
    for halvings in range(_MOST_HALVINGS + 1):
        nodes = _Nodes.of(path, starts, widths)
        done = nodes.is_exact(path, starts, widths)
        if halvings == _MOST_HALVINGS:
            done[:] = True
        kept = np.repeat(done, len(_NODES))
        steps, lengths = nodes.steps[kept], nodes.lengths[kept]
        radial = steps * nodes.towards[kept] / lengths**2
        weights += (steps / lengths) @ nodes.slopes[kept]
        at_base += float(radial.sum())
        at_change += float(radial @ nodes.points[kept])
        if done.all():
            break
        starts, widths = starts[~done], widths[~done] / 2.0
        starts, widths = np.concatenate([starts, starts + widths]), np.tile(widths, 2)
    along = weights @ directions - at_base * path.base - at_change * path.change
    return np.asarray(path.change * along)


def _with_sum(found: Array, path: _Path) -> Array:
    """Return attributions with what is left of the difference spread by their sizes.

    A kernel with a cusp is flat within rounding of it, which the gradients do not see: 1e-6 of the
    coefficient of a representative that equals the row.
    """
    before, after = _terms(path, np.array([0.0, 1.0])).sum(axis=1)
    sizes = np.abs(found)
    return found + (after - before - found.sum()) * sizes / sizes.sum() if sizes.any() else found


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Nodes of Gauss-Legendre quadrature on intervals of the path, interval after interval.

    Attributes
    ----------
    points, steps : (p,) positions on the path, and quadrature weights
    slopes : (p, m) κ'(c) a
    towards : (p,) Σ κ'(c) c a
    lengths : (p,) lengths of the rows
    """

    points: Array
    steps: Array
    slopes: Array
    towards: Array
    lengths: Array

    @classmethod
    def of(cls, path: _Path, starts: Array, widths: Array) -> _Nodes:
        """Compute them on intervals with these starts and widths."""
        points = (starts[:, None] + widths[:, None] * _NODES).ravel()
        cosines, lengths = _cosines(path, points)
        slopes = path.kernel.derivative(cosines) * path.coefficients
        steps = (widths[:, None] * _WEIGHTS).ravel()
        return cls(points, steps, slopes, (slopes * cosines).sum(axis=1), lengths)

    def is_exact(self, path: _Path, starts: Array, widths: Array) -> npt.NDArray[np.bool_]:
        """Return for each interval whether the integral of the slope is the change of the score."""
        radial = path.base @ path.change + self.points * (path.change @ path.change)
        slope = self.slopes @ path.products / self.lengths
        slope -= self.towards * radial / self.lengths**2
        found = (self.steps * slope).reshape(len(starts), -1).sum(axis=1)
        before, after = (_terms(path, ends) for ends in (starts, starts + widths))
        sizes = np.abs(before).sum(axis=1) + np.abs(after).sum(axis=1)
        change = (after - before).sum(axis=1)
        return np.asarray(np.abs(change - found) <= _TOLERANCE * (1.0 + sizes), dtype=np.bool_)


def _terms(path: _Path, points: Array) -> Array:
    """Return the (p, m) terms of the score at points of the path."""
    cosines, _ = _cosines(path, points)
    return np.asarray(_kernel_values(path.kernel, cosines) * path.coefficients)


def _cosines(path: _Path, points: Array) -> tuple[Array, Array]:
    """Return the (p, m) cosines with the representatives, and (p,) lengths."""
    squares = (
        path.base_square
        + 2.0 * points * (path.base @ path.change)
        + points**2 * (path.change @ path.change)
    )
    lengths = _lengths(squares)
    cosines = path.base_products + points[:, None] * path.products
    cosines /= lengths[:, None]
    return np.minimum(cosines, 1.0, out=cosines), lengths


def _kernel_values(kernel: Kernel, cosines: Array) -> Array:
    np.minimum(cosines, 1.0, out=cosines)
    kernel.apply(cosines)
    return cosines


def _lengths(squares: Array) -> Array:
    """Return lengths from their squares; one where there is none, whose cosines are zero."""
    lengths = np.sqrt(np.maximum(squares, 0.0))
    return np.where(lengths > 0, lengths, 1.0)
