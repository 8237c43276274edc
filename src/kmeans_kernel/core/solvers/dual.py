"""The least-squares support vector machine (LS-SVM) on representatives: one bordered system.

    [0  1ᵀ      ] [b]   [0]
    [1  Ω + εI  ] [a] = [Y]

with Ω (m, m) the kernel matrix, Y (m, K) the targets, a (m, K) the dual coefficients, b (K,) the
intercept (Suykens and Vandewalle, "Least squares support vector machine classifiers", Neural
Processing Letters 9, 1999). With H = Ω + εI and η = H⁻¹1 the system is solved by elimination:
b = 1ᵀH⁻¹Y / 1ᵀη and a = H⁻¹Y − η b. H is factored once, in place, and the solution improved by
iterative refinement against residuals of the bordered system. The functions take matrices, not
kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from kmeans_kernel.core.arrays.execution import SERIAL, Executor
from kmeans_kernel.core.arrays.matrices import FLOAT64_UP_TO, Array, IntArray
from kmeans_kernel.core.kernels.two_triangles import TwoTriangles
from kmeans_kernel.core.solvers.cholesky import factor_in_place, solve_in_place

Multiply: TypeAlias = Callable[[Array], Array]
Gram: TypeAlias = Callable[[type[np.floating[Any]]], TwoTriangles]

# The largest relative residual of the bordered system that is returned.
RESIDUAL_TOLERANCE = 1e-6

_MOST_CORRECTIONS = 20
_MOST_EXACT_RESIDUALS = 3

# Rows of the system recomputed exactly, to estimate the residual that rounding of the stored matrix
# hides.
_SAMPLED_ROWS = 64


class ExactMatrix(Protocol):
    """Ω without rounding: a product is slow, since the entries are recomputed each time."""

    def multiply(self, V: Array) -> Array:
        """Return Ω V, in float64."""

    def multiply_rows(self, V: Array, rows: IntArray) -> Array:
        """Return the given rows of Ω V, in float64."""


@dataclass(frozen=True, eq=False)
class BorderedVector:
    """K vectors of the bordered system: `body` (m, K) and `border` (K,).

    A solution has the dual coefficients as body and the intercept as border; a right-hand side has
    the targets as body and zero as border.
    """

    body: Array
    border: Array

    def __add__(self, other: BorderedVector) -> BorderedVector:
        return BorderedVector(self.body + other.body, self.border + other.border)

    def __sub__(self, other: BorderedVector) -> BorderedVector:
        return BorderedVector(self.body - other.body, self.border - other.border)

    def norms(self) -> Array:
        """Return the (K,) norms of the vectors."""
        lengths: Array = np.hypot(np.linalg.norm(self.body, axis=0), self.border)
        return lengths


@dataclass(frozen=True, eq=False)
class DualSolution:
    """The solution of the LS-SVM.

    Attributes
    ----------
    dual_coef : (m, K) float64
    intercept : (K,) float64
    relative_residual : the largest ‖residual‖ / ‖target‖ of the bordered system over the K columns,
        with an estimate of the residual that rounding of the stored matrix hides
    factored_in : precision of the Cholesky factor, "float32" or "float64"
    """

    dual_coef: Array
    intercept: Array
    relative_residual: float
    factored_in: str


def solve_on_representatives(
    gram: Gram,
    exact: ExactMatrix,
    targets: Array,
    regularization: float | Array,
    *,
    float64_up_to: int = FLOAT64_UP_TO,
    executor: Executor = SERIAL,
) -> DualSolution:
    """Solve the bordered system; arguments are trusted.

    Parameters
    ----------
    gram : makes the (m, m) kernel matrix Ω in the given type; its buffer, the only one of that
        size, is overwritten by the factor
    exact : Ω without rounding; a sample of its rows shows whether the rounding of the stored Ω
        matters, and only then is a whole product computed
    targets : (m, K) float64
    regularization : ε, at least 0; a number, or (m,) one for each representative
    float64_up_to : the largest m that is factored in float64 from the start; above it float32 is
        tried first, at half the memory and twice the speed
    executor : runs the products with Ω

    Raises
    ------
    numpy.linalg.LinAlgError
        if a float64 factor does not reach `RESIDUAL_TOLERANCE` either
    """
    precisions: list[type[np.floating[Any]]] = [np.float32, np.float64]
    if len(targets) <= float64_up_to:
        precisions = precisions[1:]
    ridge = np.broadcast_to(np.asarray(regularization, dtype=np.float64), len(targets))
    right_side = BorderedVector(targets, np.zeros(targets.shape[1]))
    reached = np.inf
    for precision in precisions:
        factored = FactoredSystem.of(gram(precision), ridge, executor)
        if factored is None:
            continue
        solution, reached = _solve_exactly(factored, exact, right_side)
        if reached <= RESIDUAL_TOLERANCE:
            return DualSolution(solution.body, solution.border, reached, np.dtype(precision).name)
        del factored  # frees its buffer before the next is allocated
    raise np.linalg.LinAlgError(
        f"the kernel system of {len(targets)} representatives is numerically singular at "
        f"regularization={float(ridge.max())!r} (relative residual {reached:.1e}, at most "
        f"{RESIDUAL_TOLERANCE:.0e} expected): raise regularization"
    )


@dataclass(frozen=True, eq=False)
class FactoredSystem:
    """H = Ω + diag(ε) and its Cholesky factor, in the two triangles of one buffer.

    Attributes
    ----------
    matrix : Ω below the diagonal, the Cholesky factor on and above it
    ridge : (m,) ε of each representative
    executor : runs the products
    """

    matrix: TwoTriangles
    ridge: Array
    executor: Executor

    @classmethod
    def of(
        cls, matrix: TwoTriangles, ridge: Array, executor: Executor = SERIAL
    ) -> FactoredSystem | None:
        """Factor Ω + diag(ε) in the buffer of Ω; None if it is not positive definite."""
        np.fill_diagonal(matrix.buffer, matrix.diagonal + ridge)
        # The transpose is the same memory in Fortran order: the factor goes to its lower triangle,
        # the upper triangle of the buffer; the kernel stays in the lower triangle of the buffer.
        positive = factor_in_place(matrix.buffer.T)
        return cls(matrix, ridge, executor) if positive else None

    def multiply(self, V: Array) -> Array:
        """Return H V, in float64, from the triangle that holds Ω."""
        return self.matrix.multiply(V, self.executor) + self.ridge[:, None] * V

    def divide(self, V: Array) -> Array:
        """Return H⁻¹ V to the accuracy of the factor; columns are scaled to length one first."""
        sizes = np.linalg.norm(V, axis=0)
        sizes[sizes == 0] = 1.0
        solved = np.asfortranarray(V / sizes, dtype=self.matrix.buffer.dtype)
        solve_in_place(self.matrix.buffer.T, solved)
        return np.asarray(solved.astype(np.float64) * sizes)

    def hidden_residual(self, body: Array) -> Array:
        """Estimate the (K,) residual norms from the rounding of the stored Ω, taken as random."""
        lengths = np.linalg.norm(body, axis=0)
        return np.asarray(self.matrix.rounding * np.sqrt(len(body)) * lengths)


def refine(
    multiply: Multiply, divide: Multiply, right_side: BorderedVector, goal: float
) -> tuple[BorderedVector, Array]:
    """Solve the bordered system by iterative refinement.

    `multiply` gives H V, and `divide` H⁻¹ V approximately. Refines until the residual is at most
    `goal` times the right-hand side in every column, or no longer halves. Returns the solution and
    the (K,) norms of its residual.
    """
    scale = right_side.norms()
    scale[scale == 0] = 1.0
    best = BorderedVector(np.zeros_like(right_side.body), np.zeros_like(right_side.border))
    residual, reached = right_side, right_side.norms()
    first = divide(np.hstack([right_side.body, np.ones((len(right_side.body), 1))]))
    step, eta = first[:, :-1], first[:, -1:]
    for _ in range(_MOST_CORRECTIONS):
        step_b = (step.sum(axis=0) - residual.border) / eta.sum()
        trial = best + BorderedVector(step - eta * step_b, step_b)
        residual = right_side - _multiply_bordered(multiply, trial)
        norms = residual.norms()
        before, now = (reached / scale).max(), (norms / scale).max()
        if not now < before:
            break
        best, reached = trial, norms
        if now <= goal or now > before / 2:
            break
        step = divide(residual.body)
    return best, reached


def _solve_exactly(
    factored: FactoredSystem, exact: ExactMatrix, right_side: BorderedVector
) -> tuple[BorderedVector, float]:
    """Solve with the stored matrix; if its rounding matters, correct by exact residuals.

    Returns the solution and its largest relative residual over the columns.
    """
    scale = right_side.norms()
    scale[scale == 0] = 1.0  # a class without representatives has zero targets
    goal = 0.1 * float(np.finfo(factored.matrix.buffer.dtype).eps)

    def multiply_exactly(V: Array) -> Array:
        return exact.multiply(V) + factored.ridge[:, None] * V

    solution, seen = refine(factored.multiply, factored.divide, right_side, goal)
    hidden = factored.hidden_residual(solution.body)
    for corrections in range(_MOST_EXACT_RESIDUALS + 1):
        sampled = _sampled_residual(factored, exact, solution, right_side)
        reached = float((np.maximum(seen + hidden, sampled) / scale).max())
        if not RESIDUAL_TOLERANCE < reached < 1 or corrections == _MOST_EXACT_RESIDUALS:
            break
        residual = right_side - _multiply_bordered(multiply_exactly, solution)
        correction, seen = refine(factored.multiply, factored.divide, residual, goal)
        # The correction is small, and so is the part of its residual that rounding hides.
        hidden = factored.hidden_residual(correction.body)
        solution = solution + correction
    return solution, reached


def _sampled_residual(
    factored: FactoredSystem,
    exact: ExactMatrix,
    solution: BorderedVector,
    right_side: BorderedVector,
) -> Array:
    """Estimate the (K,) norms of the residual from a sample of rows of the exact system.

    `hidden_residual` takes rounding errors as random. Where entries of Ω repeat, their errors
    repeat too and may add up; the sampled rows show it.
    """
    m = len(right_side.body)
    if factored.matrix.is_exact:
        return np.zeros_like(right_side.border)
    rows = np.random.default_rng(0).choice(m, min(m, _SAMPLED_ROWS), replace=False)
    product = exact.multiply_rows(solution.body, rows)
    product += factored.ridge[rows, None] * solution.body[rows] + solution.border
    off = np.linalg.norm(right_side.body[rows] - product, axis=0)
    return np.asarray(off * np.sqrt(m / len(rows)))


def _multiply_bordered(multiply: Multiply, w: BorderedVector) -> BorderedVector:
    """Return Φ w: the body H a + 1 b, the border 1ᵀ a."""
    return BorderedVector(multiply(w.body) + w.border, w.body.sum(axis=0))
