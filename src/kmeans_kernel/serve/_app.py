"""The FastAPI application: its routes and their endpoints."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias
from urllib.parse import quote

import orjson
from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

import kmeans_kernel
from kmeans_kernel.serve._models import VERSION, ServedModel, config, metadata
from kmeans_kernel.serve._service import Service
from kmeans_kernel.serve.protocol._docs_page import SECURITY_POLICY, render_docs_page
from kmeans_kernel.serve.protocol._handlers import handle_infer, handle_predict
from kmeans_kernel.serve.protocol._openapi import (
    BASE_URL,
    curl_command,
    describe_operation,
    example_model,
)
from kmeans_kernel.serve.transport._errors import RequestError
from kmeans_kernel.serve.transport._limits import Limits
from kmeans_kernel.serve.transport._metrics import CONTENT_TYPE
from kmeans_kernel.serve.transport._middleware import (
    Application,
    Receive,
    RequestMiddleware,
    RequestRecord,
    Scope,
    Send,
)

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_DESCRIPTION = (
    "Classify tensors by the Open Inference Protocol (v2), or rows of JSON or CSV at /predict."
)
_EXTENSIONS = ["binary_tensor_data", "model_configuration", "statistics"]
_INFER = re.compile(r"/v2/models/(?P<name>[^/]+)(?:/versions/(?P<version>[^/]+))?/infer")
_MODEL_PATH, _VERSION_PATH = "/v2/models/{name}", "/v2/models/{name}/versions/{version}"


def create_app(
    models: Mapping[str, Any],
    *,
    limits: Limits | None = None,
    token: str | None = None,
    log: bool = True,
    join: bool = True,
) -> FastAPI:
    """Return an application that serves fitted classifiers, for `run` or another ASGI server.

    Parameters
    ----------
    models : mapping from names to fitted classifiers
    limits : Limits, default=Limits()
        Limits of sizes, times and concurrency.
    token : str, default=None
        Bearer token that requests must send as `Authorization: Bearer TOKEN`; None for no
        authentication.
    log : bool, default=True
        Whether to log each request as a JSON line on standard error.
    join : bool, default=True
        Whether to predict queued requests for the same model together (dynamic micro-batching), up
        to the batch size that was measured at startup to lower the time per row.

    Returns
    -------
    FastAPI
    """
    service = Service(models, limits or Limits(), token, log=log, join=join)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.stop()

    app = FastAPI(
        title="kmeans-kernel",
        version=kmeans_kernel.__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    endpoints = Endpoints(service, app)
    app.add_middleware(InferFastPath, endpoint=_recording(endpoints.infer))
    app.add_middleware(RequestMiddleware, service=service)
    app.add_exception_handler(HTTPException, _reject_path)
    _add_routes(app, endpoints, service)
    return app


class InferFastPath:
    """Middleware that routes inference requests itself.

    FastAPI's routing takes as long as everything else that the server does for a small tensor.
    """

    def __init__(self, app: Application, endpoint: Endpoint) -> None:
        self._app = app
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        found = _INFER.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if found is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        scope["path_params"] = found.groupdict()
        response = await self._endpoint(Request(scope, receive))
        await response(scope, receive, send)


class Endpoints:
    """The endpoints; their docstrings are the descriptions in OpenAPI."""

    def __init__(self, service: Service, app: FastAPI) -> None:
        self._service = service
        self._app = app

    def _model(self, request: Request) -> ServedModel:
        """Return the model of the path, and record its name."""
        path = request.path_params
        model = self._service.model(path.get("name"), path.get("version"))
        record: RequestRecord = request.scope["record"]
        record.model = model.name
        return model

    async def infer(self, request: Request) -> Response:
        """Take JSON or binary tensors, of a table one for each column; return probabilities."""
        return await handle_infer(self._service, request, self._model(request))

    async def predict(self, request: Request) -> Response:
        """Take rows as JSON lists, as JSON objects by column name, or as CSV.

        In rows of a table null is a missing value.
        """
        return await handle_predict(self._service, request, self._model(request))

    async def live(self, _: Request) -> Response:
        """Return 200 as long as the process runs."""
        return _json({"live": True})

    async def ready(self, _: Request) -> Response:
        """Return 503 during a graceful shutdown, else 200."""
        ready = not self._service.shutting_down
        return _json({"ready": ready}, status=200 if ready else 503)

    async def server(self, _: Request) -> Response:
        """Return the server's name and version, and the supported protocol extensions."""
        version = kmeans_kernel.__version__
        return _json({"name": "kmeans-kernel", "version": version, "extensions": _EXTENSIONS})

    async def metadata(self, request: Request) -> Response:
        """Return the input and output tensors of a model."""
        return _json(metadata(self._model(request)))

    async def model_ready(self, request: Request) -> Response:
        """Return 200 for a loaded model, 404 for an unknown one."""
        return _json({"name": self._model(request).name, "ready": not self._service.shutting_down})

    async def config(self, request: Request) -> Response:
        """Return the model configuration of Triton."""
        return _json(config(self._model(request)))

    async def statistics(self, request: Request) -> Response:
        """Return the counters of one model or of all models."""
        named = "name" in request.path_params
        names = [self._model(request).name] if named else list(self._service.models)
        return _json({"model_stats": [self._statistics_of(name) for name in names]})

    def _statistics_of(self, name: str) -> dict[str, Any]:
        batches = self._service.batchers[name].statistics
        requests = self._service.request_statistics[name]
        return {
            "name": name,
            "version": VERSION,
            "inference_count": batches.rows,
            "execution_count": batches.batches,
            "inference_stats": {
                "success": {"count": requests.succeeded, "ns": requests.nanoseconds_succeeded},
                "fail": {"count": requests.failed, "ns": requests.nanoseconds_failed},
                "compute_infer": {"count": requests.succeeded, "ns": batches.nanoseconds},
            },
            "batch_stats": [],
        }

    async def index(self, _: Request) -> Response:
        """Return the repository index of Triton."""
        names = self._service.models
        return _json([{"name": name, "version": VERSION, "state": "READY"} for name in names])

    async def metrics(self, _: Request) -> Response:
        """Return the metrics in the text format of Prometheus."""
        return Response(self._service.metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def home(self, request: Request) -> Response:
        """Return the models, their paths, and an example request."""
        service, base = self._service, _base(request)
        models = list(service.models.values())
        path = "/predict" if len(models) == 1 else "/predict/{name}"
        example = curl_command(path, "POST", models[0], token=service.needs_token)
        content = {
            "server": f"kmeans-kernel {kmeans_kernel.__version__}",
            "models": [
                {
                    "name": model.name,
                    "features": model.n_features,
                    "feature_names": model.feature_names,
                    "labels": model.labels.tolist(),
                    "infer": f"/v2/models/{quote(model.name)}/infer",
                    "predict": f"/predict/{quote(model.name)}",
                }
                for model in models
            ],
            "try": example.replace(BASE_URL, base),
            "docs": f"{base}/docs",
        }
        return _json(content, pretty=True)

    async def docs(self, request: Request) -> Response:
        """Return this page, which loads nothing from other servers."""
        return Response(
            render_docs_page(self._app.openapi(), _base(request)),
            headers={
                "content-type": "text/html; charset=utf-8",
                "content-security-policy": SECURITY_POLICY,
                "x-content-type-options": "nosniff",
            },
        )


def _add_routes(app: FastAPI, endpoints: Endpoints, service: Service) -> None:
    """Add all routes, the most frequent first: Starlette matches them in order."""
    example = example_model(list(service.models.values()), token=service.needs_token)
    for path, method, endpoint, summary in (
        (f"{_MODEL_PATH}/infer", "POST", endpoints.infer, "Classify tensors"),
        (f"{_VERSION_PATH}/infer", "POST", endpoints.infer, "Classify tensors"),
        ("/predict", "POST", endpoints.predict, "Classify rows with the only model"),
        ("/predict/{name}", "POST", endpoints.predict, "Classify rows with a model"),
        ("/v2/health/live", "GET", endpoints.live, "Check liveness"),
        ("/v2/health/ready", "GET", endpoints.ready, "Check readiness"),
        ("/v2", "GET", endpoints.server, "Describe the server"),
        ("/v2/models/stats", "GET", endpoints.statistics, "Show the statistics of all models"),
        (_MODEL_PATH, "GET", endpoints.metadata, "Describe a model"),
        (_VERSION_PATH, "GET", endpoints.metadata, "Describe a model"),
        (f"{_MODEL_PATH}/ready", "GET", endpoints.model_ready, "Check whether a model is ready"),
        (f"{_VERSION_PATH}/ready", "GET", endpoints.model_ready, "Check whether a model is ready"),
        (f"{_MODEL_PATH}/config", "GET", endpoints.config, "Show the configuration of a model"),
        (f"{_VERSION_PATH}/config", "GET", endpoints.config, "Show the configuration of a model"),
        (f"{_MODEL_PATH}/stats", "GET", endpoints.statistics, "Show the statistics of a model"),
        (f"{_VERSION_PATH}/stats", "GET", endpoints.statistics, "Show the statistics of a model"),
        ("/v2/repository/index", "POST", endpoints.index, "List the models"),
        ("/metrics", "GET", endpoints.metrics, "Export metrics to Prometheus"),
        ("/", "GET", endpoints.home, "List the models and paths"),
        ("/docs", "GET", endpoints.docs, "Show this page"),
    ):
        operation = describe_operation(path, method, example, token=service.needs_token)
        if path == "/predict" and len(service.models) > 1:
            del operation["x-codeSamples"]  # /predict without a name needs a single model
        app.add_api_route(
            path, _recording(endpoint), methods=[method], summary=summary,
            description=endpoint.__doc__, response_class=Response, openapi_extra=operation,
            operation_id=re.sub(r"\W+", "_", f"{method.lower()}{path}").strip("_"),
        )  # fmt: skip


def _recording(endpoint: Endpoint) -> Endpoint:
    """Wrap an endpoint to record its name, for log and metrics."""
    name = endpoint.__name__

    async def recorded(request: Request) -> Response:
        request.scope["record"].endpoint = name
        return await endpoint(request)

    return recorded


async def _reject_path(request: Request, error: Exception) -> Response:
    """Raise the error for an unknown path or a wrong method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = (error.headers if isinstance(error, HTTPException) else None) or {}
    asked = f"{request.method} {request.url.path[:100]}"
    if status == 405:
        allowed = headers.get("Allow", "another method")
        raise RequestError(405, f"{asked} is not supported; use {allowed}.", dict(headers))
    raise RequestError(status, f"No endpoint for {asked}; GET / lists the models and paths.")


def _base(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _json(content: Any, *, status: int = 200, pretty: bool = False) -> Response:
    option = orjson.OPT_INDENT_2 if pretty else 0
    body = orjson.dumps(content, option=option | orjson.OPT_APPEND_NEWLINE)
    return Response(body, status_code=status, headers={"content-type": "application/json"})
