"""Bag of visual words of local HOG patches, with kernel coding."""

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

# Parameters of the oriented gradients: orientations, sharpness, and stride in pixels.
ORIENTATIONS = 8
SHARPNESS = 8.0
STRIDE = 2

# Blur in pixels of the edge maps of the patterns, and of the edge maps kept as features.
FINE_BLUR = 1.0
COARSE_BLUR = 1.5

# Height and width of a local patch, in samples of the edge maps.
SIDE = 3
PATTERN_SIZE = ORIENTATIONS * SIDE**2

# Kernel of a local patch and a pattern: exp(−WIDTH (1 − cosine)).
WIDTH = 8.0

# Ridge on the kernel matrix of the patterns, before its inverse square root.
_NUGGET = 1e-3

# Blur and stride of the pooling of the codes, in samples of the edge maps.
POOL_BLUR = 2.0
POOL_STRIDE = 4

# Training of the patterns: most images, most local patches, the share of faintest patches that is
# left out, and iterations of K-means.
_MOST_IMAGES = 3000
_MOST_NEIGHBOURHOODS = 100_000
_FAINT = 0.3
_ITERATIONS = 20


class EdgePatterns(ClassNamePrefixFeaturesOutMixin, ImageTransformer):
    """Bag of visual words of local HOG patches with kernel coding, beside plain HOG features.

    Akin to one layer of a convolutional kernel network. The visual words, or patterns, are the
    spherical K-means centroids of local patches, 3 × 3 samples of `OrientedGradients` edge maps.
    The code of a patch is its Gaussian kernel with every pattern, times the square root of the norm
    of the patch, whitened by the inverse square root of the kernel matrix of the patterns (a
    Nyström feature map). Codes are pooled by a Gaussian blur and subsampling. The pooled codes and
    the plain edge maps are normalised separately and concatenated with equal weight.

    Parameters
    ----------
    n_patterns : int, default=128
        Number of patterns; fewer if there are fewer local patches.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of the sample of patches and of the initial centroids.
    image_shape : (height, width) or None, default=None
        Shape of the images, for rows of pixels of images that are not square.

    Attributes
    ----------
    patterns_ : ndarray of shape (n_patterns, 72)
        The patterns, unit rows: 8 orientations at each of 3 × 3 samples.
    n_features_in_ : int
        Number of pixels seen in `fit`.
    image_shape_ : (height, width)
        Shape of the images.

    References
    ----------
    J. Mairal, P. Koniusz, Z. Harchaoui and C. Schmid, "Convolutional kernel networks", NIPS 2014.

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
        """Set the patterns, and their whitening matrix."""
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
    """Return the constants of the features, for the JavaScript of the web page."""
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
    """Return the (n, height', width', orientations) edge maps: roots of blurred, sampled slopes."""
    return np.moveaxis(np.sqrt(sampled(slopes, blur, STRIDE)), 1, -1)


def neighbourhoods(maps: Array) -> Array:
    """Return the (n, height, width, SIDE² d) local patches of edge maps (n, height, width, d).

    The maps are padded with zeros.
    """
    margin = SIDE // 2
    padded = np.pad(maps, [(0, 0), (margin, margin), (margin, margin), (0, 0)])
    windows = sliding_window_view(padded, (SIDE, SIDE), axis=(1, 2))
    return np.ascontiguousarray(windows).reshape(*maps.shape[:3], -1)


def decorrelation(patterns: Array) -> Array:
    """Return the (J, J) inverse square root of the kernel matrix of J patterns, in float64."""
    values, axes = np.linalg.eigh(likeness(patterns.astype(np.float64), patterns))
    return np.asarray((axes / np.sqrt(np.maximum(values, 0.0) + _NUGGET)) @ axes.T)


def likeness(U: Array, patterns: Array) -> Array:
    """Return the (n, J) Gaussian kernel values of unit rows with J patterns."""
    values = np.asarray(U @ patterns.T)
    values -= 1.0
    values *= WIDTH
    return np.exp(values, out=values)


def pattern_codes(maps: Array, patterns: Array, mixing: Array) -> Array:
    """Return the (n, height', width', J) pooled codes of edge maps (n, height, width, d)."""
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
