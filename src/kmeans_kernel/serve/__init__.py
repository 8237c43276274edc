"""HTTP server for fitted models: Open Inference Protocol (v2), and rows as JSON or CSV."""

from __future__ import annotations

from kmeans_kernel.serve._app import create_app
from kmeans_kernel.serve.transport._limits import Limits
from kmeans_kernel.serve.transport._server import run

__all__ = ["Limits", "create_app", "run"]
