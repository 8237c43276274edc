"""Images as patterns of edges, learned from images."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state

from kmeans_kernel.core.arrays.lazy import LazyRows
from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.clustering.spherical_kmeans import cluster
from kmeans_kernel.estimators.transformers._base import ImageTransformer
from kmeans_kernel.estimators.transformers._hog import (
    n_sampled,
    oriented_slopes,
    sampled,
    sampling,
)
from kmeans_kernel.utils.threads import threads_for
from kmeans_kernel.utils.validation import RandomState, check_count

# The edges: so many directions, told apart so sharply, sampled every so many pixels.
ORIENTATIONS = 8
SHARPNESS = 8.0
STRIDE = 2

# The blur of the edges that patterns are made of, and of those that stand beside them.
FINE_BLUR = 1.0
COARSE_BLUR = 1.5

# A neighbourhood: so many samples high and wide.
SIDE = 3
PATTERN_SIZE = ORIENTATIONS * SIDE**2

# How alike a neighbourhood is to a pattern: exp(−width (1 − cosine)).
WIDTH = 8.0

# What is added to the kernel matrix of the patterns before its inverse root is taken.
_NUGGET = 1e-3

# The blur of the patterns, and how far they are sampled, in samples of the edges.
POOL_BLUR = 2.0
POOL_STRIDE = 4

# What patterns are learned from: so many images, and so many neighbourhoods of them. The faintest
# are left out.
_MOST_IMAGES = 3000
_MOST_NEIGHBOURHOODS = 100_000
_FAINT = 0.3
_ITERATIONS = 20


class EdgePatterns(ClassNamePrefixFeaturesOutMixin, ImageTransformer):
    """How much of each of some typical patterns of edges there is, in each part of the image.

    The edges of each direction are sampled as `OrientedGradients` does. Every neighbourhood of
    3 × 3 samples is compared, by a Gaussian kernel of the cosine, with typical ones: the centroids
    of cosine K-means over those of the training images. How alike they are, times the root of how
    strong the edges are, is made independent of how alike the patterns are to each other, blurred
    and sampled. Patterns and plain edges stand side by side, and weigh the same.

    Parameters
    ----------
    n_patterns : int, default=128
        Patterns, at most; there may be fewer neighbourhoods.
    random_state : int, RandomState instance or None, default=None
        Decides what patterns are learned from, and where K-means begins.
    image_shape : (height, width) or None, default=None
        For rows of pixels that are no squares.

    Attributes
    ----------
    patterns_ : ndarray of shape (n_patterns, 72)
        The patterns, unit rows: 8 directions at each of 3 × 3 places.
    n_features_in_ : int
        Number of pixels seen in `fit`.
    image_shape_ : (height, width)

    Examples
    --------
    >>> from kmeans_kernel import EdgePatterns
    >>> from kmeans_kernel.data import load_digits
    >>> EdgePatterns(random_state=0).fit_transform(load_digits().X_train).shape
    (1257, 256)
    """

    def __init__(
        self,
        n_patterns: int = 128,
        *,
        random_state: RandomState = None,
        image_shape: tuple[int, int] | None = None,
    ) -> None:
        self.n_patterns = n_patterns
        self.random_state = random_state
        self.image_shape = image_shape

    def _check_parameters(self) -> None:
        check_count(self, "n_patterns")

    def _learn(self, X: npt.NDArray[Any] | LazyRows) -> None:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.default_rng(seed)
        some = np.sort(rng.choice(len(X), min(len(X), _MOST_IMAGES), replace=False))
        slopes = self._slopes(X[some].astype(np.float32))
        found = neighbourhoods(edges(slopes, FINE_BLUR)).reshape(-1, PATTERN_SIZE)
        strengths = np.linalg.norm(found, axis=1)
        found = found[(strengths > 0) & (strengths >= np.quantile(strengths, _FAINT))]
        if len(found) > _MOST_NEIGHBOURHOODS:
            found = found[np.sort(rng.choice(len(found), _MOST_NEIGHBOURHOODS, replace=False))]
        with threads_for(2.0 * _ITERATIONS * self.n_patterns * found.size):
            clustering = cluster(
                unit_rows(found), self.n_patterns, init="random", tol=0.0, max_iter=_ITERATIONS,
                rng=rng,
            )  # fmt: skip
        self._keep(clustering.centroids)

    def _keep(self, patterns: Array) -> None:
        """Take patterns for those that were learned."""
        self.patterns_ = patterns
        self._mixing = decorrelation(patterns)

    def _slopes(self, X: Array) -> Array:
        return oriented_slopes(self._images(X), ORIENTATIONS, SHARPNESS)

    @property
    def _n_features_out(self) -> int:
        samples = [n_sampled(length, STRIDE) for length in self.image_shape_]
        pooled = [n_sampled(length, POOL_STRIDE) for length in samples]
        return ORIENTATIONS * int(np.prod(samples)) + len(self.patterns_) * int(np.prod(pooled))

    def _write_features(self, X: Array, out: Array) -> None:
        slopes = self._slopes(X.astype(out.dtype, copy=False))
        plain = edges(slopes, COARSE_BLUR).reshape(len(X), -1)
        n_plain = plain.shape[1]
        codes = pattern_codes(
            edges(slopes, FINE_BLUR),
            self.patterns_.astype(out.dtype, copy=False),
            self._mixing.astype(out.dtype, copy=False),
        )
        out[:, :n_plain] = unit_rows(plain, dtype=out.dtype)
        out[:, n_plain:] = unit_rows(codes.reshape(len(X), -1), dtype=out.dtype)
        out *= np.sqrt(0.5)


def edge_settings() -> dict[str, float]:
    """Return the constants, for whoever computes the same in another language."""
    return {
        "orientations": ORIENTATIONS,
        "sharpness": SHARPNESS,
        "stride": STRIDE,
        "fine_blur": FINE_BLUR,
        "coarse_blur": COARSE_BLUR,
        "side": SIDE,
        "width": WIDTH,
        "pool_blur": POOL_BLUR,
        "pool_stride": POOL_STRIDE,
    }


def edges(slopes: Array, blur: float) -> Array:
    """Return the (n, height', width', orientations) roots of slopes, blurred and sampled."""
    return np.moveaxis(np.sqrt(sampled(slopes, blur, STRIDE)), 1, -1)


def neighbourhoods(maps: Array) -> Array:
    """Return the (n, height, width, side² d) neighbourhoods of maps (n, height, width, d).

    Beyond the border all is zero.
    """
    margin = SIDE // 2
    padded = np.pad(maps, [(0, 0), (margin, margin), (margin, margin), (0, 0)])
    windows = sliding_window_view(padded, (SIDE, SIDE), axis=(1, 2))
    return np.ascontiguousarray(windows).reshape(*maps.shape[:3], -1)


def decorrelation(patterns: Array) -> Array:
    """Return the (J, J) inverse root of the kernel matrix of unit rows, in float64."""
    values, axes = np.linalg.eigh(likeness(patterns.astype(np.float64), patterns))
    return np.asarray((axes / np.sqrt(np.maximum(values, 0.0) + _NUGGET)) @ axes.T)


def likeness(U: Array, patterns: Array) -> Array:
    """Return the (n, J) kernel of unit rows with patterns."""
    values = np.asarray(U @ patterns.T)
    values -= 1.0
    values *= WIDTH
    return np.exp(values, out=values)


def pattern_codes(maps: Array, patterns: Array, mixing: Array) -> Array:
    """Return the (n, height', width', J) pooled codes of edges (n, height, width, d)."""
    n, height, width = maps.shape[:3]
    rows = neighbourhoods(maps).reshape(-1, patterns.shape[1])
    strengths = np.linalg.norm(rows, axis=1)
    rows /= np.where(strengths > 0, strengths, 1)[:, None]
    codes = likeness(rows, patterns)
    codes *= np.sqrt(strengths)[:, None]
    down = sampling(height, POOL_BLUR, POOL_STRIDE).astype(maps.dtype)
    right = sampling(width, POOL_BLUR, POOL_STRIDE).astype(maps.dtype)
    pooled = (down @ codes.reshape(n, height, -1)).reshape(n, len(down), width, -1)
    return np.asarray(right @ pooled @ mixing)
