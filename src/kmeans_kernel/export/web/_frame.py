"""Size, position and brightness of the content of images, to normalize a drawing likewise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.matrices import Array

# Least ink of a pixel that counts for the extent of the content; the same as in page/framing.js.
_FAINT = 0.15

# Approximate number of images that the frame is estimated from.
_SAMPLE = 2000

# Percentile of heights and widths that gives the box, so that a few outliers do not enlarge it.
_PERCENTILE = 95


@dataclass(frozen=True)
class Frame:
    """Size, position and brightness of the content of a data set's images.

    Attributes
    ----------
    box : height and width, in pixels, of the content's bounding box
    centre : "mass" if the images are aligned by their centre of mass, "box" if by the centre of
        their bounding box
    at : row and column of that centre
    low, high : least and greatest value of a pixel
    inverted : True if the content is dark on a bright background
    """

    box: tuple[float, float]
    centre: Literal["mass", "box"]
    at: tuple[float, float]
    low: float
    high: float
    inverted: bool

    @classmethod
    def default(cls, shape: tuple[int, int], low: float = 0.0, high: float = 255.0) -> Frame:
        """Return MNIST's frame, scaled: a 20 × 20 box in 28 × 28, centre of mass at (14, 14)."""
        height, width = shape
        side = 20 / 28 * min(shape)
        at = ((height - 1) / 2 + height / 56, (width - 1) / 2 + width / 56)
        return cls((side, side), "mass", at, low, high, inverted=False)

    @classmethod
    def from_images(cls, images: npt.NDArray[np.number]) -> Frame:
        """Estimate the frame from images (n, height, width)."""
        low, high = float(images.min()), float(images.max())
        step = max(1, len(images) // _SAMPLE)
        some = images[::step].astype(np.float64)
        light = (some - low) / (high - low if high > low else 1.0)
        inverted = bool(np.median(_border(light)) > 0.5)
        ink = 1.0 - light if inverted else light
        ink = ink[(ink > _FAINT).any(axis=(1, 2))]
        if not len(ink) or low == high:
            return cls.default(images.shape[1:])
        tops, bottoms = _first_and_last(ink.max(axis=2) > _FAINT)
        lefts, rights = _first_and_last(ink.max(axis=1) > _FAINT)
        boxes = np.stack([tops + bottoms, lefts + rights], axis=1) / 2
        masses = _centres_of_mass(ink)
        by_mass = masses.std(axis=0).sum() < boxes.std(axis=0).sum()
        row, column = np.median(masses if by_mass else boxes, axis=0)
        return cls(
            box=(
                float(np.percentile(bottoms - tops + 1, _PERCENTILE)),
                float(np.percentile(rights - lefts + 1, _PERCENTILE)),
            ),
            centre="mass" if by_mass else "box",
            at=(float(row), float(column)),
            low=low,
            high=high,
            inverted=inverted,
        )


def _border(images: Array) -> Array:
    """Return the border pixels of all images."""
    sides = (images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1])
    return np.concatenate([side.ravel() for side in sides])


def _first_and_last(lit: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the index of the first and of the last True of each row."""
    return lit.argmax(axis=1), lit.shape[1] - 1 - lit[:, ::-1].argmax(axis=1)


def _centres_of_mass(ink: Array) -> Array:
    total = ink.sum(axis=(1, 2))
    rows = ink.sum(axis=2) @ np.arange(ink.shape[1]) / total
    columns = ink.sum(axis=1) @ np.arange(ink.shape[2]) / total
    return np.stack([rows, columns], axis=1)
