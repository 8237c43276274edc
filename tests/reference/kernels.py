import math

from tests.reference.spherical_kmeans import dot


def polynomial(cosine, degree):
    value = 1.0
    for _ in range(degree):
        value *= cosine
    return value


def gaussian(cosine, gamma):
    return math.exp(-2 * gamma * (1 - cosine))


def gram_matrix(directions, function):
    return [[function(dot(x, y)) for y in directions] for x in directions]


def gram_product(directions, function, V):
    gram = gram_matrix(directions, function)
    return [[dot(row, column) for column in zip(*V, strict=True)] for row in gram]
