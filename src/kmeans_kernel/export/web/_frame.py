"""How images lie in their frame: how large, how central, how bright; so that a drawing may too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.blocking import Array

# Fainter pixels do not count for the extent of an image; the page has the same number.
_FAINT = 0.15

# Images that are enough to see it.
_ENOUGH = 2000

# All but so many of a hundred images fit into the box.
_WITHIN = 95


@dataclass(frozen=True)
class Frame:
    """Where the images of a data set have their content.

    Attributes
    ----------
    box : height and width, in pixels, that the content fits into
    centre : whether the centre of mass or that of the content's box is always at one place
    at : that place, row and column
    low, high : the least and the greatest value of a pixel
    inverted : whether the content is dark and the ground bright
    """

    box: tuple[float, float]
    centre: Literal["mass", "box"]
    at: tuple[float, float]
    low: float
    high: float
    inverted: bool

    @classmethod
    def usual(cls, shape: tuple[int, int], low: float = 0.0, high: float = 255.0) -> Frame:
        """Return the frame of MNIST: 20 of 28 pixels, the centre of mass about in the middle."""
        height, width = shape
        side = 20 / 28 * min(shape)
        at = ((height - 1) / 2 + height / 56, (width - 1) / 2 + width / 56)
        return cls((side, side), "mass", at, low, high, inverted=False)

    @classmethod
    def of(cls, images: npt.NDArray[np.number]) -> Frame:
        """Learn it from images (n, height, width)."""
        low, high = float(images.min()), float(images.max())
        step = max(1, len(images) // _ENOUGH)
        some = images[::step].astype(np.float64)
        light = (some - low) / (high - low if high > low else 1.0)
        inverted = bool(np.median(_border(light)) > 0.5)
        ink = 1.0 - light if inverted else light
        ink = ink[(ink > _FAINT).any(axis=(1, 2))]
        if not len(ink) or low == high:
            return cls.usual(images.shape[1:])
        tops, bottoms = _ends(ink.max(axis=2) > _FAINT)
        lefts, rights = _ends(ink.max(axis=1) > _FAINT)
        boxes = np.stack([tops + bottoms, lefts + rights], axis=1) / 2
        masses = _centres_of_mass(ink)
        by_mass = masses.std(axis=0).sum() < boxes.std(axis=0).sum()
        row, column = np.median(masses if by_mass else boxes, axis=0)
        return cls(
            box=(
                float(np.percentile(bottoms - tops + 1, _WITHIN)),
                float(np.percentile(rights - lefts + 1, _WITHIN)),
            ),
            centre="mass" if by_mass else "box",
            at=(float(row), float(column)),
            low=low,
            high=high,
            inverted=inverted,
        )


def _border(images: Array) -> Array:
    """Return the pixels at the border of images."""
    sides = (images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1])
    return np.concatenate([side.ravel() for side in sides])


def _ends(lit: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the first and the last of each row that is true."""
    return lit.argmax(axis=1), lit.shape[1] - 1 - lit[:, ::-1].argmax(axis=1)


def _centres_of_mass(ink: Array) -> Array:
    total = ink.sum(axis=(1, 2))
    rows = ink.sum(axis=2) @ np.arange(ink.shape[1]) / total
    columns = ink.sum(axis=1) @ np.arange(ink.shape[2]) / total
    return np.stack([rows, columns], axis=1)
