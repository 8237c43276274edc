"""The command line: one module per command, each a thin layer over the library."""

# Exit codes: invalid usage or input, as click has it, and 128 + SIGINT, as shells have it.
BAD_USE = 2
INTERRUPTED = 130
