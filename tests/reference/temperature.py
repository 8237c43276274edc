import math

from tests.reference.model import probabilities


def log_loss(scores, codes, weights, temperature):
    """The weighted mean of −log of the probability of the own class, sample by sample."""
    total = 0.0
    for row, code, weight in zip(scores, codes, weights, strict=True):
        total -= weight * math.log(probabilities(row, temperature)[code])
    return total / sum(weights)


def brier_losses(scores, codes, temperature):
    """The squared error of the probabilities of each sample."""
    losses = []
    for row, code in zip(scores, codes, strict=True):
        errors = [p - (k == code) for k, p in enumerate(probabilities(row, temperature))]
        losses.append(sum(error**2 for error in errors))
    return losses
