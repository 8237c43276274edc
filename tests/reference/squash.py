import math


def squash(column, weights):
    """One feature, number by number; whole weights are copies."""
    copies = sorted(x for x, w in zip(column, weights, strict=True) for _ in range(w))
    center = lower_median(copies)
    off = sorted(abs(x - center) for x in copies if x != center)
    width = 1.4826 * lower_median(off) if off else 1.0
    angles = [math.asinh((x - center) / width) for x in copies]
    mean = sum(angles) / len(angles)
    deviation = math.sqrt(sum((a - mean) ** 2 for a in angles) / len(angles)) or 1.0
    return [math.asinh((x - center) / width) / deviation for x in column]


def lower_median(ordered):
    return ordered[(len(ordered) - 1) // 2]
