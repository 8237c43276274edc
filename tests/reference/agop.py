import numpy as np


def squared_gradients(scores, X, step=1e-5):
    """Central differences of every score with respect to every feature, squared and added up."""
    found = np.zeros(X.shape)
    for j in range(X.shape[1]):
        shift = np.zeros(X.shape[1])
        shift[j] = step
        slopes = (scores(X + shift) - scores(X - shift)) / (2 * step)
        found[:, j] = (slopes**2).sum(axis=1)
    return found


def average_gradient_outer_product(scores, X, weights, step=1e-5):
    """The outer products of the same differences, summed over classes, averaged over rows."""
    d = X.shape[1]
    slopes = [(scores(X + step * e) - scores(X - step * e)) / (2 * step) for e in np.eye(d)]
    found = np.zeros((d, d))
    for i in range(d):
        for j in range(d):
            products = (slopes[i] * slopes[j]).sum(axis=1)
            found[i, j] = sum(w * p for w, p in zip(weights, products, strict=True)) / sum(weights)
    return found


def learn_scales(scores, X, weights):
    """Root-mean-square gradients, at least a thousandth of the largest, of mean square one."""
    roots = np.sqrt(np.diag(average_gradient_outer_product(scores, X, weights)))
    kept = [max(root, 1e-3 * max(roots)) for root in roots]
    return np.array(kept) / np.sqrt(sum(scale**2 for scale in kept) / len(kept))
