import math


def dot(x, y):
    return math.fsum(a * b for a, b in zip(x, y, strict=True))


def assign(X, centroids):
    labels, similarities = [], []
    for x in X:
        products = [dot(x, c) for c in centroids]
        labels.append(products.index(max(products)))
        similarities.append(max(products))
    return labels, similarities


def cluster_sums(X, labels, n_clusters, weights):
    sums = [[0.0] * len(X[0]) for _ in range(n_clusters)]
    for x, label, weight in zip(X, labels, weights, strict=True):
        sums[label] = [s + weight * float(v) for s, v in zip(sums[label], x, strict=True)]
    return sums


def move_centroids(centroids, sums):
    moved = []
    for centroid, total in zip(centroids, sums, strict=True):
        length = math.sqrt(dot(total, total))
        moved.append([t / length for t in total] if length > 1e-12 else list(centroid))
    return moved


def mean_deviation(moved, centroids):
    return 1 - sum(dot(a, b) for a, b in zip(moved, centroids, strict=True)) / len(centroids)


def cluster(X, centroids, tol, max_iter, weights=None):
    """The nine steps from given first centroids; returns the labels of every iteration too."""
    weights = [1.0] * len(X) if weights is None else weights
    history = []
    for _ in range(max_iter):
        labels, _ = assign(X, centroids)
        history.append(labels)
        moved = move_centroids(centroids, cluster_sums(X, labels, len(centroids), weights))
        deviation = mean_deviation(moved, centroids)
        centroids = moved
        if deviation <= tol:
            break
    return centroids, history
