"""Bodies of requests and responses: the Open Inference Protocol, CSV, OpenAPI; no HTTP in here."""
