import math

from tests.reference import encoding, feature_transforms
from tests.reference.sphere import unit_rows
from tests.reference.spherical_kmeans import dot


def on_sphere(X, lift, scales=None, transform=None):
    """Rows on the sphere of the representatives: transformed, scaled, lifted, normalised."""
    if transform is not None and "n_columns" in transform:
        X = [encoding.encode(row, transform) for row in X]
    elif transform is not None:
        X = [feature_transforms.apply(row, **transform) for row in X]
    if scales is not None:
        X = [[x * scale for x, scale in zip(row, scales, strict=True)] for row in X]
    return unit_rows(X, lift)


def scores(X, directions, dual_coef, intercept, function, lift, scales=None, transform=None):
    result = []
    for x in on_sphere(X, lift, scales, transform):
        values = [function(dot(x, direction)) for direction in directions]
        columns = zip(*dual_coef, strict=True)
        result.append([dot(values, a) + b for a, b in zip(columns, intercept, strict=True)])
    return result


def contributions(X, directions, dual_coef, columns, function, lift, scales=None, transform=None):
    result = []
    for x, column in zip(on_sphere(X, lift, scales, transform), columns, strict=True):
        values = [function(dot(x, direction)) for direction in directions]
        result.append([value * a[column] for value, a in zip(values, dual_coef, strict=True)])
    return result


def probabilities(row, temperature):
    powers = [math.exp(score / temperature) for score in row]
    return [power / sum(powers) for power in powers]


def margin(row):
    """The highest score above the second."""
    ordered = sorted(row)
    return ordered[-1] - ordered[-2]
