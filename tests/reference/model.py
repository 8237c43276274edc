import math

from tests.reference.sphere import unit_rows
from tests.reference.spherical_kmeans import dot


def scores(X, directions, dual_coef, intercept, function, lift):
    result = []
    for x in unit_rows(X, lift):
        values = [function(dot(x, direction)) for direction in directions]
        columns = zip(*dual_coef, strict=True)
        result.append([dot(values, a) + b for a, b in zip(columns, intercept, strict=True)])
    return result


def contributions(X, directions, dual_coef, columns, function, lift):
    result = []
    for x, column in zip(unit_rows(X, lift), columns, strict=True):
        values = [function(dot(x, direction)) for direction in directions]
        result.append([value * a[column] for value, a in zip(values, dual_coef, strict=True)])
    return result


def probabilities(row, temperature):
    powers = [math.exp(score / temperature) for score in row]
    return [power / sum(powers) for power in powers]
