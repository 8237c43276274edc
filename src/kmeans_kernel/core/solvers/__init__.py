"""Solvers for the coefficients: the paper's LS-SVM, Nyström kernel ridge, logistic regression."""
