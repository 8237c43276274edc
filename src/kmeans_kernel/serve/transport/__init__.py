"""HTTP: connections, timeouts, limits, compression, errors, logs, metrics; models are unknown."""
