"""The application: which path is answered by what."""

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
from kmeans_kernel.cli.predict import predict
from kmeans_kernel.serve._answers import infer
from kmeans_kernel.serve._document import BASE, curl, example, extra
from kmeans_kernel.serve._gate import Application, Gate, Note, Receive, Scope, Send
from kmeans_kernel.serve._limits import Limits
from kmeans_kernel.serve._metrics import CONTENT_TYPE
from kmeans_kernel.serve._models import VERSION, ServedModel, config, metadata
from kmeans_kernel.serve._page import SECURITY_POLICY, write_page
from kmeans_kernel.serve._refusals import Refusal
from kmeans_kernel.serve._service import Service

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_TOLD = "Classify rows by the Open Inference Protocol (v2), or plainly by /predict."
_EXTENSIONS = ["binary_tensor_data", "model_configuration", "statistics"]
_INFER = re.compile(r"/v2/models/(?P<name>[^/]+)(?:/versions/(?P<version>[^/]+))?/infer")
_ONE, _OF_VERSION = "/v2/models/{name}", "/v2/models/{name}/versions/{version}"


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
    token : str, default=None
        What a request must bring as `Authorization: Bearer TOKEN`; None for no token.
    log : bool, default=True
        Whether each request is told in a line of JSON on standard error.
    join : bool, default=True
        Whether requests that wait for the same model are predicted together, up to the number of
        rows that is measured to be faster.

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
        description=_TOLD,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    endpoints = Endpoints(service, app)
    app.add_middleware(Shortcut, endpoint=_noting(endpoints.infer))
    app.add_middleware(Gate, service=service)
    app.add_exception_handler(HTTPException, _refuse_path)
    _add_routes(app, endpoints, service)
    return app


class Shortcut:
    """The way of tensors past FastAPI's routing, which takes as long as all that we do to them."""

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
    """What answers each path."""

    def __init__(self, service: Service, app: FastAPI) -> None:
        self._service = service
        self._app = app

    def _model(self, request: Request) -> ServedModel:
        """Return the model that the path names, and note it."""
        path = request.path_params
        model = self._service.model(path.get("name"), path.get("version"))
        note: Note = request.scope["note"]
        note.model = model.name
        return model

    async def infer(self, request: Request) -> Response:
        """Take tensors in JSON, or in binary behind it; give labels and probabilities."""
        return await infer(self._service, request, self._model(request))

    async def predict(self, request: Request) -> Response:
        """Take rows as JSON lists, as objects that name the features, or as CSV."""
        return await predict(self._service, request, self._model(request))

    async def live(self, _: Request) -> Response:
        """Answer as long as there is someone to answer."""
        return _json({"live": True})

    async def ready(self, _: Request) -> Response:
        """Answer 503 when the server is stopping."""
        ready = not self._service.stopping
        return _json({"ready": ready}, status=200 if ready else 503)

    async def server(self, _: Request) -> Response:
        """Tell the name, the version and the extensions of the protocol."""
        version = kmeans_kernel.__version__
        return _json({"name": "kmeans-kernel", "version": version, "extensions": _EXTENSIONS})

    async def metadata(self, request: Request) -> Response:
        """Tell what a model takes and gives."""
        return _json(metadata(self._model(request)))

    async def model_ready(self, request: Request) -> Response:
        """Answer 200 for a model that is here, and 404 for others."""
        return _json({"name": self._model(request).name, "ready": not self._service.stopping})

    async def config(self, request: Request) -> Response:
        """Tell of a model what Triton's clients ask for."""
        return _json(config(self._model(request)))

    async def statistics(self, request: Request) -> Response:
        """Tell how much a model has done, or all of them have."""
        named = "name" in request.path_params
        names = [self._model(request).name] if named else list(self._service.models)
        return _json({"model_stats": [self._done(name) for name in names]})

    def _done(self, name: str) -> dict[str, Any]:
        tally, asked = self._service.batches[name].tally, self._service.asked[name]
        return {
            "name": name,
            "version": VERSION,
            "inference_count": tally.rows,
            "execution_count": tally.batches,
            "inference_stats": {
                "success": {"count": asked.succeeded, "ns": asked.nanoseconds_succeeded},
                "fail": {"count": asked.failed, "ns": asked.nanoseconds_failed},
                "compute_infer": {"count": asked.succeeded, "ns": tally.nanoseconds},
            },
            "batch_stats": [],
        }

    async def index(self, _: Request) -> Response:
        """List the models as Triton does."""
        names = self._service.models
        return _json([{"name": name, "version": VERSION, "state": "READY"} for name in names])

    async def metrics(self, _: Request) -> Response:
        """Give the counters to Prometheus."""
        return Response(self._service.metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def home(self, request: Request) -> Response:
        """List the models and the paths, with a line for curl."""
        service, base = self._service, _base(request)
        models = list(service.models.values())
        path = "/predict" if len(models) == 1 else "/predict/{name}"
        told = {
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
            "try": curl(path, "POST", models[0], token=service.needs_token).replace(BASE, base),
            "docs": f"{base}/docs",
        }
        return _json(told, pretty=True)

    async def docs(self, request: Request) -> Response:
        """Show this page, which needs no network."""
        return Response(
            write_page(self._app.openapi(), _base(request)),
            headers={
                "content-type": "text/html; charset=utf-8",
                "content-security-policy": SECURITY_POLICY,
                "x-content-type-options": "nosniff",
            },
        )


def _add_routes(app: FastAPI, endpoints: Endpoints, service: Service) -> None:
    """Tell the application its paths; those that are asked most come first."""
    here = endpoints
    shown = example(list(service.models.values()), token=service.needs_token)
    for path, method, endpoint, summary in (
        (f"{_ONE}/infer", "POST", here.infer, "Classify tensors"),
        (f"{_OF_VERSION}/infer", "POST", here.infer, "Classify tensors"),
        ("/predict", "POST", here.predict, "Classify rows by the only model"),
        ("/predict/{name}", "POST", here.predict, "Classify rows by a model"),
        ("/v2/health/live", "GET", here.live, "Say whether the server lives"),
        ("/v2/health/ready", "GET", here.ready, "Say whether the server takes requests"),
        ("/v2", "GET", here.server, "Describe the server"),
        ("/v2/models/stats", "GET", here.statistics, "Count what all models did"),
        (_ONE, "GET", here.metadata, "Describe a model"),
        (_OF_VERSION, "GET", here.metadata, "Describe a model"),
        (f"{_ONE}/ready", "GET", here.model_ready, "Say whether a model takes requests"),
        (f"{_OF_VERSION}/ready", "GET", here.model_ready, "Say whether a model takes requests"),
        (f"{_ONE}/config", "GET", here.config, "Describe a model to Triton's clients"),
        (f"{_OF_VERSION}/config", "GET", here.config, "Describe a model to Triton's clients"),
        (f"{_ONE}/stats", "GET", here.statistics, "Count what a model did"),
        (f"{_OF_VERSION}/stats", "GET", here.statistics, "Count what a model did"),
        ("/v2/repository/index", "POST", here.index, "List the models"),
        ("/metrics", "GET", here.metrics, "Give counters to Prometheus"),
        ("/", "GET", here.home, "List what there is"),
        ("/docs", "GET", here.docs, "Show this page"),
    ):
        told = extra(path, method, shown, token=service.needs_token)
        if path == "/predict" and len(service.models) > 1:
            del told["x-codeSamples"]  # it would be refused
        app.add_api_route(
            path, _noting(endpoint), methods=[method], summary=summary,
            description=endpoint.__doc__, response_class=Response, openapi_extra=told,
            operation_id=re.sub(r"\W+", "_", f"{method.lower()}{path}").strip("_"),
        )  # fmt: skip


def _noting(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that notes its name."""
    name = endpoint.__name__

    async def noted(request: Request) -> Response:
        request.scope["note"].endpoint = name
        return await endpoint(request)

    return noted


async def _refuse_path(request: Request, error: Exception) -> Response:
    """Say that there is no such path, or that it wants another method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = (error.headers if isinstance(error, HTTPException) else None) or {}
    asked = f"{request.method} {request.url.path[:100]}"
    if status == 405:
        raise Refusal(405, f"{asked} is not offered; use {headers.get('Allow', 'another method')}.",
                      dict(headers))  # fmt: skip
    raise Refusal(status, f"There is nothing at {asked}; GET / lists what there is.")


def _base(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _json(content: Any, *, status: int = 200, pretty: bool = False) -> Response:
    option = orjson.OPT_INDENT_2 if pretty else 0
    body = orjson.dumps(content, option=option | orjson.OPT_APPEND_NEWLINE)
    return Response(body, status_code=status, headers={"content-type": "application/json"})
