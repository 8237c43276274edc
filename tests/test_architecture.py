"""The direction of the imports and the public names."""

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import kmeans_kernel

PACKAGE = Path(kmeans_kernel.__file__).parent

# Each module may import those of earlier floors and earlier ones of its own.
FLOORS = {
    "core": [
        "_blocks", "_workers", "_rows", "_squash", "_sphere", "_assignment", "_spherical_kmeans",
        "_triangles", "_kernels", "_blas", "_cholesky", "_lssvm", "_model", "_samples",
        "_duplicates", "_ridge", "_passes", "_conjugate", "_logistic", "_stream", "_representation",
        "_calibration", "_paths", "_holdout", "_selection", "_scales", "_stages", "_fit", "_online",
        "_choice", "_border", "_building", "_growth", "_training",
    ],
    "shell": [
        "files", "_progress", "_threads", "_lazy", "_validation", "_sources", "_settings",
        "_starts", "explanation", "classifier", "metric", "cluster", "images", "gradients",
        "patterns", "patches", "paper",
    ],
    "edges": [
        "blocks", "distributed", "planning", "persistence._file", "persistence._values",
        "persistence._estimators", "persistence", "datasets._idx", "datasets._progress",
        "datasets._sources", "datasets._loaders", "datasets", "records", "tables._table",
        "tables._content", "tables._csv", "tables._frames", "tables._arrays", "tables._blocks",
        "tables", "evaluation", "inspection", "plots", "peers", "web._arrays", "web._frame",
        "web._content", "web._html", "web._page", "web", "onnx._graph", "onnx._score",
        "onnx._steps", "onnx._transformers", "onnx._voting", "onnx._converters", "onnx",
        "serve._refusals", "serve._threads", "serve._limits", "serve._packed", "serve._tensors",
        "serve._models", "serve._csv", "serve._requests",
        "serve._batches", "serve._metrics", "serve._logs", "serve._service", "serve._gate",
        "serve._answers", "serve._document", "serve._page", "serve._app", "serve._door",
        "serve._server", "serve", "reproduction._points",
        "reproduction._measure", "reproduction._report", "reproduction", "reproduction.__main__",
        "cli", "cli._signals", "cli._output", "cli._reading", "cli._large", "cli.fit",
        "cli.predict", "cli.evaluate", "cli.inspect", "cli.data", "cli.reproduce", "cli.bench",
        "cli.plan", "cli.export", "cli.serve", "cli.app", "cli.__main__",
    ],
}  # fmt: skip
ORDER = [name for floor in FLOORS.values() for name in floor]


def imports(name):
    path = PACKAGE / (name.replace(".", "/") + ".py")
    path = path if path.exists() else PACKAGE / name / "__init__.py"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: imports are written in full"
            yield node.module


def test_every_module_has_its_floor():
    found = pkgutil.walk_packages([str(PACKAGE)], "kmeans_kernel.")
    assert {module.name.removeprefix("kmeans_kernel.") for module in found} == set(ORDER)


@pytest.mark.parametrize("name", ORDER)
def test_imports_point_inward(name):
    for imported in imports(name):
        if imported.startswith("kmeans_kernel."):
            inner = imported.removeprefix("kmeans_kernel.")
            assert ORDER.index(inner) < ORDER.index(name), f"{name} imports {inner}"
        if name in FLOORS["core"]:
            root = imported.split(".")[0]
            assert root in {"numpy", "scipy", "kmeans_kernel", *sys.stdlib_module_names}


def test_the_contents_pages_list_the_public_names():
    """A name without an underscore is either in `__all__` or a module on the way to one."""
    for name in kmeans_kernel.__all__:
        assert getattr(kmeans_kernel, name) is not None
    assert set(kmeans_kernel.__all__) <= set(dir(kmeans_kernel))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        kmeans_kernel.nonsense  # noqa: B018
    modules = {name for name in ORDER if "." not in name}
    assert public_names(kmeans_kernel) - modules == set(kmeans_kernel.__all__) - modules
    assert public_names(kmeans_kernel.data.datasets) == set(kmeans_kernel.data.datasets.__all__)
    defined = {
        name
        for name in public_names(kmeans_kernel.paper)
        if getattr(kmeans_kernel.paper, name).__module__ == "kmeans_kernel.paper"
    }
    assert defined == set(kmeans_kernel.paper.__all__)


def public_names(module):
    ours = (key for key, value in vars(module).items() if "kmeans_kernel" in home(value))
    return {key for key in ours if not key.startswith("_")}


def home(value):
    return getattr(value, "__module__", None) or getattr(value, "__name__", "")


def test_import_has_no_side_effects_and_needs_no_extra():
    code = (
        "import sys\nfrom kmeans_kernel import *\n"
        "extras = {'matplotlib', 'polars', 'typer', 'onnx', 'dask', 'fastapi', 'safetensors'}\n"
        "sys.exit(' '.join(extras & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "name",
    [
        "classifier",
        "metric",
        "cluster",
        "images",
        "gradients",
        "patterns",
        "patches",
        "persistence",
        "onnx",
        "web",
    ],
)
def test_the_examples_in_the_docstrings_run(name):
    results = doctest.testmod(importlib.import_module(f"kmeans_kernel.{name}"))
    assert results.attempted > 0
    assert results.failed == 0


def test_nothing_of_ours_unpickles():
    for path in PACKAGE.rglob("*.py"):
        assert "pickle" not in path.read_text().replace("allow_pickle=False", ""), path
