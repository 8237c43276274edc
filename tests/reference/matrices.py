def paired_products(X, Y, partners):
    pairs = zip(X, partners, strict=True)
    return [sum(a * b for a, b in zip(x, Y[k], strict=True)) for x, k in pairs]


def squared_lengths(X):
    return [sum(a * a for a in x) for x in X]


def largest_entries(X):
    return [max((abs(a) for a in x), default=0.0) for x in X]


def scale_rows(X, factors):
    return [[factor * a for a in x] for x, factor in zip(X, factors, strict=True)]


def scale_columns(X, factors):
    return [[factor * a for a, factor in zip(x, factors, strict=True)] for x in X]


def append_column(X, column):
    return [[*x, last] for x, last in zip(X, column, strict=True)]


def product(X, Y):
    return [[sum(a * b for a, b in zip(x, y, strict=True)) for y in Y] for x in X]
