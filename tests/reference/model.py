import math

from tests.reference.sphere import unit_rows
from tests.reference.spherical_kmeans import dot
from tests.reference.squash import squashed


def on_sphere(X, lift, scales=None, squash=None):
    """Rows where the representatives are: squashed, scaled, lifted, normalised."""
    if squash is not None:
        X = [squashed(row, **squash) for row in X]
    if scales is not None:
        X = [[x * scale for x, scale in zip(row, scales, strict=True)] for row in X]
    return unit_rows(X, lift)


def scores(X, directions, dual_coef, intercept, function, lift, scales=None, squash=None):
    result = []
    for x in on_sphere(X, lift, scales, squash):
        values = [function(dot(x, direction)) for direction in directions]
        columns = zip(*dual_coef, strict=True)
        result.append([dot(values, a) + b for a, b in zip(columns, intercept, strict=True)])
    return result


def contributions(X, directions, dual_coef, columns, function, lift, scales=None, squash=None):
    result = []
    for x, column in zip(on_sphere(X, lift, scales, squash), columns, strict=True):
        values = [function(dot(x, direction)) for direction in directions]
        result.append([value * a[column] for value, a in zip(values, dual_coef, strict=True)])
    return result


def probabilities(row, temperature):
    powers = [math.exp(score / temperature) for score in row]
    return [power / sum(powers) for power in powers]
