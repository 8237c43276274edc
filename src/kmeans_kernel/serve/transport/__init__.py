"""HTTP: connections, timeouts, limits, compression, errors, logs and metrics; no model is known here."""
