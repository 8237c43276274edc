"""The command line: one file per verb, each a thin layer over plain functions."""

# Exit codes.
BAD_USE = 2
INTERRUPTED = 130
