"""BLAS and LAPACK on tiles of a matrix, in place.

SciPy's Python wrappers copy an array that is not contiguous. The routines that SciPy exports to
Cython are the same compiled ones and take a leading dimension, so they can work on a tile of a
matrix in place. They are called here by ctypes, through the function pointers that SciPy publishes.
All arguments are trusted: the routines check no size.

Calls by ctypes release Python's global interpreter lock, those of SciPy's wrappers do not: threads
that factor matrices or solve triangular systems side by side need the functions here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

from kmeans_kernel.core.arrays.matrices import Array, blocks_of

# Columns at a time of which the upper triangle is set to zero.
_TRIANGLE = 64
_UPPER = ~np.tri(_TRIANGLE, dtype=bool)

# Order up to which a triangle is inverted, and number of columns from which that pays.
_INVERTED, _MANY_COLUMNS = 128, 32

_PREFIX = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
_REAL = {np.dtype(np.float32): ctypes.c_float, np.dtype(np.float64): ctypes.c_double}


def factor_tile(tile: Array) -> bool:
    """Replace the lower triangle of a Fortran-ordered tile by its Cholesky factor L.

    The strict upper triangle is neither read nor written. Returns False if the tile is not positive
    definite. LAPACK's potrf.
    """
    info = ctypes.c_int()
    n, lda = _int(len(tile)), _leading(tile)
    _routine("potrf", tile.dtype)(b"L", n, _pointer(tile), lda, ctypes.byref(info))
    return info.value == 0


def divide_from_right(lower: Array, panel: Array) -> None:
    """Replace a Fortran-ordered panel P by P L⁻ᵀ, with L the lower triangle of a tile: trsm."""
    m, n = panel.shape
    one = _real(1.0, panel.dtype)
    _routine("trsm", panel.dtype)(
        b"R", b"L", b"T", b"N", _int(m), _int(n), one,
        _pointer(lower), _leading(lower), _pointer(panel), _leading(panel),
    )  # fmt: skip


def divide_from_left(lower: Array, panel: Array, *, transposed: bool) -> None:
    """Replace a Fortran-ordered panel P by L⁻¹ P, or by L⁻ᵀ P if `transposed`.

    BLAS's trsm; for many columns, products with inverted diagonal blocks.
    """
    m, n = panel.shape
    if n >= _MANY_COLUMNS and not transposed:
        _divide_rows(lower, panel.T)
        return
    one = _real(1.0, panel.dtype)
    _routine("trsm", panel.dtype)(
        b"L", b"L", b"T" if transposed else b"N", b"N", _int(m), _int(n), one,
        _pointer(lower), _leading(lower), _pointer(panel), _leading(panel),
    )  # fmt: skip


def _divide_rows(lower: Array, rows: Array) -> None:
    """Replace rows P, in C order, by P L⁻ᵀ, by halving L.

    OpenBLAS's trsm is slower than its products, much slower at small orders: benchmarks/tried.py.
    Here all is products but for the inverses of small diagonal blocks, which are float64. The error
    is at most that of a triangular solve times the condition number of a diagonal block (N. J.
    Higham, "Accuracy and Stability of Numerical Algorithms", 2002, chapter 14).
    """
    m = len(lower)
    if m <= _INVERTED:
        rows[:] = rows @ invert_lower(lower.astype(np.float64)).astype(rows.dtype, copy=False).T
        return
    half = m // 2
    _divide_rows(lower[:half, :half], rows[:, :half])
    rows[:, half:] -= rows[:, :half] @ lower[half:, :half].T
    _divide_rows(lower[half:, half:], rows[:, half:])


def subtract_square(tile: Array, left: Array) -> None:
    """Subtract A Aᵀ from the lower triangle of a Fortran-ordered tile, A = `left`: syrk."""
    n, k = left.shape
    _routine("syrk", tile.dtype)(
        b"L", b"N", _int(n), _int(k), _real(-1.0, tile.dtype), _pointer(left), _leading(left),
        _real(1.0, tile.dtype), _pointer(tile), _leading(tile),
    )  # fmt: skip


def subtract_product(tile: Array, left: Array, right: Array) -> None:
    """Subtract A Bᵀ from a Fortran-ordered tile, A = `left`, B = `right`: gemm."""
    (m, k), n = left.shape, len(right)
    _routine("gemm", tile.dtype)(
        b"N", b"T", _int(m), _int(n), _int(k), _real(-1.0, tile.dtype),
        _pointer(left), _leading(left), _pointer(right), _leading(right),
        _real(1.0, tile.dtype), _pointer(tile), _leading(tile),
    )  # fmt: skip


def cholesky_lower(A: Array) -> Array | None:
    """Return the lower Cholesky factor of a symmetric matrix (m, m), in Fortran order.

    None if the matrix is not positive definite, or not finite.
    """
    # A symmetric matrix in C order is its own transpose in Fortran order: a plain copy.
    factor = np.array(A.T if A.flags.c_contiguous else A, order="F")
    if not factor_tile(factor) or not np.isfinite(factor.diagonal()).all():
        return None
    _clear_upper(factor)
    return factor


def _clear_upper(A: Array) -> None:
    """Set the strict upper triangle of a Fortran-ordered matrix to zero, in place."""
    for columns in blocks_of(len(A), _TRIANGLE):
        A[: columns.start, columns] = 0.0
        corner = A[columns, columns]
        np.copyto(corner, 0.0, where=_UPPER[: len(corner), : len(corner)])


def solve_lower(lower: Array, V: Array, *, transposed: bool = False) -> Array:
    """Return L⁻¹ V, or L⁻ᵀ V if `transposed`, in the type of L and in Fortran order."""
    out = np.array(V, dtype=lower.dtype, order="F")
    divide_from_left(np.asfortranarray(lower), out, transposed=transposed)
    return out


def invert_lower(lower: Array) -> Array:
    """Return the inverse of the lower triangle of a matrix, in Fortran order: trtri.

    The strict upper triangle of the result is zero.
    """
    inverse = np.array(lower, order="F")
    _clear_upper(inverse)
    info = ctypes.c_int()
    _routine("trtri", inverse.dtype)(
        b"L", b"N", _int(len(inverse)), _pointer(inverse), _leading(inverse), ctypes.byref(info)
    )
    return inverse


@cache
def _routine(name: str, dtype: np.dtype[Any]) -> Callable[..., None]:
    module = cython_lapack if name in ("potrf", "trtri") else cython_blas
    capsule = module.__pyx_capi__[_PREFIX[dtype] + name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None)(address)


def _pointer(tile: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(tile.ctypes.data)


def _leading(tile: Array) -> Any:
    """Return the leading dimension; NumPy's stride is arbitrary for a single column."""
    return _int(max(tile.strides[1] // tile.itemsize, len(tile), 1))


def _int(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


def _real(value: float, dtype: np.dtype[Any]) -> Any:
    return ctypes.byref(_REAL[dtype](value))
