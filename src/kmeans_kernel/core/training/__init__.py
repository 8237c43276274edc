"""Training: hyperparameter search, clustering of each class, fit of the coefficients."""
