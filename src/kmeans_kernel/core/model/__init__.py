"""The fitted model: scores, probabilities, gradients."""
