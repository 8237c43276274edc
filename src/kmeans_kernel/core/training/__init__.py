"""From labelled rows to a fitted model: hyperparameter search, clustering, fit."""
