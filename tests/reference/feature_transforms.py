"""The transforms of features, number by number."""

import math
from fractions import Fraction


def standardise(column, weights):
    """Transform a feature by its own mean and standard deviation; whole weights are copies."""
    copies = [Fraction(float(x)) for x, w in zip(column, weights, strict=True) for _ in range(w)]
    mean = sum(copies) / len(copies)
    deviation = math.sqrt(sum((x - mean) ** 2 for x in copies) / len(copies)) or 1.0
    return [float(Fraction(float(x)) - mean) / deviation for x in column]


def asinh(column, weights):
    """Transform a feature by its own median and width; whole weights are copies."""
    copies = sorted(x for x, w in zip(column, weights, strict=True) for _ in range(w))
    center = lower_median(copies)
    off = sorted(abs(x - center) for x in copies if x != center)
    width = 1.4826 * lower_median(off) if off else 1.0
    angles = [math.asinh((x - center) / width) for x in copies]
    mean = sum(angles) / len(angles)
    deviation = math.sqrt(sum((a - mean) ** 2 for a in angles) / len(angles)) or 1.0
    return [math.asinh((x - center) / width) / deviation for x in column]


def apply(row, kind, centers, widths, gains):
    """Transform a row, feature by feature, by a transform that was learned."""
    far = [(x - center) / width for x, center, width in zip(row, centers, widths, strict=True)]
    if kind == "asinh":
        far = [math.asinh(x) for x in far]
    # A missing number is the mean, or the median for asinh.
    return [0.0 if math.isnan(x) else gain * x for x, gain in zip(far, gains, strict=True)]


def lower_median(ordered):
    return ordered[(len(ordered) - 1) // 2]
