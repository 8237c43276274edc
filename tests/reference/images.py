import cmath
import math

from tests.reference.sphere import unit_rows


def center(row):
    mean = math.fsum(row) / len(row)
    return [0.0 if min(row) == max(row) else x - mean for x in row]


def pixel_rows(X):
    return unit_rows([center(row) for row in X])


def fourier_rows(X, root):
    result = []
    for row in X:
        pixels, d = center(row), len(row)
        turn = -2j * cmath.pi / d
        bins = [
            abs(sum(x * cmath.exp(turn * k * i) for i, x in enumerate(pixels)))
            for k in range((d + 1) // 2)
        ]
        magnitudes = [math.sqrt(b) if root else b for b in bins]
        joined = unit_rows([pixels])[0] + unit_rows([center(magnitudes)])[0]
        result.append([x / math.sqrt(2) for x in joined])
    return result


def patches(images, height, width):
    result = []
    for image in images:
        for top in range(len(image) - height + 1):
            for left in range(len(image[0]) - width + 1):
                rows = [image[top + i][left : left + width] for i in range(height)]
                result.append([pixel for row in rows for pixel in row])
    return result
