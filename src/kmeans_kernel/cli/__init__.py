"""The command line: one file per verb, each a thin layer over plain functions."""
