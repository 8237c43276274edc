import math

from tests.reference.spherical_kmeans import dot


def polynomial(cosine, degree):
    value = 1.0
    for _ in range(degree):
        value *= cosine
    return value


def gaussian(cosine, gamma):
    return math.exp(-2 * gamma * (1 - cosine))


def laplacian(cosine, gamma):
    gap = 1 - cosine
    return math.exp(-2 * math.sqrt(gamma * (gap if gap > 1e-13 else 0.0)))


def kernel_values(U, directions, function):
    return [[function(dot(x, y)) for y in directions] for x in U]


def gram_matrix(directions, function):
    return kernel_values(directions, directions, function)


def gram_product(directions, function, V):
    gram = gram_matrix(directions, function)
    return [[dot(row, column) for column in zip(*V, strict=True)] for row in gram]


def exponential_power(cosine, gamma, exponent):
    gap = 1 - cosine
    return math.exp(-(math.sqrt(2 * gamma * (gap if gap > 1e-13 else 0.0)) ** exponent))
