import cmath
import math

import numpy as np
import scipy.linalg

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


def deskewed(image):
    height, width = len(image), len(image[0])
    bright = [(max(image[i][j], 0.0), i, j) for i in range(height) for j in range(width)]
    total = sum(v for v, _, _ in bright)
    if total == 0:
        return image
    row = sum(v * i for v, i, _ in bright) / total
    column = sum(v * j for v, _, j in bright) / total
    spread = sum(v * (i - row) ** 2 for v, i, _ in bright) / total
    together = sum(v * (i - row) * (j - column) for v, i, j in bright) / total
    slant = max(-1.0, min(1.0, together / spread)) if spread > 1e-9 else 0.0

    def pixel(i, j):
        return image[i][j] if 0 <= j < width else 0.0

    def between(i, x):
        left = math.floor(x)
        return (1 - (x - left)) * pixel(i, left) + (x - left) * pixel(i, left + 1)

    return [[between(i, j + slant * (i - row)) for j in range(width)] for i in range(height)]


def gradient_maps(image, n_orientations, blur, stride, sharpness):
    height, width = len(image), len(image[0])

    def pixel(i, j):
        return image[i][j] if 0 <= i < height and 0 <= j < width else 0.0

    def places(length):
        n = math.ceil(length / stride)
        return [(length - 1) / 2 + stride * (k - (n - 1) / 2) for k in range(n)]

    def weight(distance):
        return math.exp(-(distance**2) / (2 * blur**2)) / (math.sqrt(2 * math.pi) * blur)

    features = []
    for k in range(n_orientations):
        angle = 2 * math.pi * k / n_orientations
        for y in places(height):
            for x in places(width):
                total = 0.0
                for i in range(height):
                    for j in range(width):
                        right = pixel(i, j + 1) - pixel(i, j - 1)
                        down = pixel(i + 1, j) - pixel(i - 1, j)
                        steepness = math.hypot(right, down)
                        if steepness == 0:
                            continue
                        cosine = (math.cos(angle) * right + math.sin(angle) * down) / steepness
                        slope = steepness * max(cosine, 0.0) ** sharpness
                        total += weight(i - y) * weight(j - x) * slope
                features.append(math.sqrt(total))
    return features


def oriented_gradients(image, **options):
    return unit_rows([gradient_maps(image, **options)])[0]


def edge_patterns(image, patterns):
    height, width = len(image), len(image[0])
    settings = {"n_orientations": 8, "stride": 2, "sharpness": 8.0}
    plain = gradient_maps(image, blur=1.5, **settings)
    fine = gradient_maps(image, blur=1.0, **settings)
    high, wide = math.ceil(height / 2), math.ceil(width / 2)
    codes = {}
    for y in range(high):
        for x in range(wide):
            around = [
                fine[(k * high + y + i) * wide + x + j]
                if 0 <= y + i < high and 0 <= x + j < wide
                else 0.0
                for k in range(8)
                for i in (-1, 0, 1)
                for j in (-1, 0, 1)
            ]
            strength = math.sqrt(math.fsum(v * v for v in around))
            direction = unit_rows([around])[0]
            codes[y, x] = [
                math.sqrt(strength) * math.exp(-8.0 * (1 - np.dot(direction, pattern)))
                for pattern in patterns
            ]

    def places(length):
        n = math.ceil(length / 4)
        return [(length - 1) / 2 + 4 * (k - (n - 1) / 2) for k in range(n)]

    def weight(distance):
        return math.exp(-(distance**2) / 8) / (math.sqrt(2 * math.pi) * 2)

    alike = [[math.exp(-8.0 * (1 - np.dot(a, b))) for b in patterns] for a in patterns]
    mixing = np.linalg.inv(scipy.linalg.sqrtm(np.array(alike) + 1e-3 * np.eye(len(patterns))))
    pooled = []
    for y in places(high):
        for x in places(wide):
            total = np.zeros(len(patterns))
            for (i, j), code in codes.items():
                total += weight(i - y) * weight(j - x) * np.array(code)
            pooled.extend(total @ mixing)
    # the plain edges place by place, as the patterns are
    plain = [plain[k * high * wide + p] for p in range(high * wide) for k in range(8)]
    both = unit_rows([plain])[0] + unit_rows([pooled])[0]
    return [v / math.sqrt(2) for v in both]
