"""CSV in the dialects in use: encodings, separators, headers, and records as frames of text."""
