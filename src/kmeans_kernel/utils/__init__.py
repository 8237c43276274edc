"""Utilities of the outer folders: validation of arguments, threads, atomic writing of files."""
