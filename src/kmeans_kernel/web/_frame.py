"""How images lie in their frame: how large, how central, how bright; so that a drawing may too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from kmeans_kernel._blocks import Array

# Fainter pixels do not count for the extent of an image; the page has the same number.
_FAINT = 0.15

# Images that are enough to see it.
_ENOUGH = 2000


@dataclass(frozen=True)
class Frame:
    """Where the images of a data set have their content.

    Attributes
    ----------
    box : the longer side of the content, as a share of the shorter side of the image
    centre : whether the centre of mass or that of the content's box is always at one place
    at : that place, row and column
    ink : the brightest value
    """

    box: float
    centre: Literal["mass", "box"]
    at: tuple[float, float]
    ink: float

    @classmethod
    def usual(cls, shape: tuple[int, int]) -> Frame:
        """Return the frame of MNIST: 20 of 28 pixels, the centre of mass in the middle."""
        return cls(20 / 28, "mass", (shape[0] / 2, shape[1] / 2), 255.0)

    @classmethod
    def of(cls, images: npt.NDArray[np.number]) -> Frame:
        """Learn it from images (n, height, width)."""
        bright = float(images.max())
        step = max(1, len(images) // _ENOUGH)
        ink = np.maximum(images[::step].astype(np.float64), 0.0) / (bright if bright > 0 else 1.0)
        ink = ink[(ink > _FAINT).any(axis=(1, 2))]
        if not len(ink):
            return cls.usual(images.shape[1:])
        tops, bottoms = _ends(ink.max(axis=2) > _FAINT)
        lefts, rights = _ends(ink.max(axis=1) > _FAINT)
        longer = np.maximum(bottoms - tops, rights - lefts) + 1
        boxes = np.stack([tops + bottoms, lefts + rights], axis=1) / 2
        masses = _centres_of_mass(ink)
        by_mass = masses.std(axis=0).sum() < boxes.std(axis=0).sum()
        row, column = np.median(masses if by_mass else boxes, axis=0)
        return cls(
            box=float(np.median(longer)) / min(images.shape[1:]),
            centre="mass" if by_mass else "box",
            at=(float(row), float(column)),
            ink=bright,
        )


def _ends(lit: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the first and the last of each row that is true."""
    return lit.argmax(axis=1), lit.shape[1] - 1 - lit[:, ::-1].argmax(axis=1)


def _centres_of_mass(ink: Array) -> Array:
    total = ink.sum(axis=(1, 2))
    rows = ink.sum(axis=2) @ np.arange(ink.shape[1]) / total
    columns = ink.sum(axis=1) @ np.arange(ink.shape[2]) / total
    return np.stack([rows, columns], axis=1)
