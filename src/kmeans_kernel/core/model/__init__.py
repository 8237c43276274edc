"""The fitted model: scores, temperature scaling, AGOP."""
