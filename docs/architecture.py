"""The folders of the package, what each may import, and a picture of what each does import.

`PERMISSIONS` is the whole architecture: `tests/test_architecture.py` fails when an import is not in
it. `picture` draws the imports that there are; `make docs` writes it to docs/images.
"""

from __future__ import annotations

import ast
import pkgutil
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import kmeans_kernel

PACKAGE = Path(kmeans_kernel.__file__).parent

_CORE = [f"core.{stage}" for stage in ("arrays", "clustering", "kernels", "model", "solvers",
                                       "training")]  # fmt: skip

# The folders in order, and which of those before it each may import.
PERMISSIONS: dict[str, list[str]] = {
    "core.arrays": [],
    "core.clustering": ["core.arrays"],
    "core.kernels": ["core.arrays"],
    "core.model": ["core.arrays", "core.kernels"],
    "core.solvers": ["core.arrays", "core.kernels"],
    "core.training": _CORE[:-1],
    "utils": ["core.arrays"],
    "data": ["core.arrays", "utils"],
    "estimators": [*_CORE, "utils", "data"],
    "report": [*_CORE, "utils", "data", "estimators"],
    "export": [*_CORE, "utils", "estimators", "report"],
    "serve": ["core.arrays", "utils", "estimators", "report", "export"],
    "cli": ["core.arrays", "utils", "data", "estimators", "report", "export", "serve"],
}

# What each folder is for, on the picture.
_TITLES = {
    "core.arrays": "rows, blocks, the sphere",
    "core.clustering": "spherical K-means",
    "core.kernels": "kernels, kernel matrices",
    "core.model": "scores, temperature, AGOP",
    "core.solvers": "LS-SVM, Nyström, logistic",
    "core.training": "cross-validation, search, fit",
    "utils": "checks, threads, files",
    "data": "data sets, tables, Dask",
    "estimators": "the scikit-learn shell",
    "report": "evaluation, plots, plans",
    "export": "model file, ONNX, web page",
    "serve": "HTTP server",
    "cli": "the program",
}

# Column and row of each box.
_PLACES = {
    "estimators": (0.9, 0), "report": (1.9, 0), "export": (2.9, 0), "serve": (3.9, 0),
    "cli": (4.9, 0), "core.training": (1, 1), "data": (3.5, 1), "core.clustering": (0, 2),
    "core.model": (1, 2), "core.solvers": (2, 2), "utils": (3.5, 2), "core.kernels": (1.5, 3),
    "core.arrays": (1.5, 4),
}  # fmt: skip

_WIDTH, _HEIGHT, _ACROSS, _DOWN = 168, 50, 182, 92


def modules() -> list[str]:
    """Return the names of all modules of the folders."""
    found = pkgutil.walk_packages([str(PACKAGE)], "kmeans_kernel.")
    top = {"kmeans_kernel.paper", "kmeans_kernel.events", "kmeans_kernel.core"}
    return sorted(module.name for module in found if module.name not in top)


def folder_of(module: str) -> str:
    """Return the folder of a module; of the package, `paper` and `events`, the estimators."""
    parts = module.split(".")[1:]
    if not parts or parts[0] in ("paper", "events"):  # names of the estimators, on the first page
        return "estimators"
    return ".".join(parts[:2]) if parts[0] == "core" else parts[0]


def imports_of(module: str) -> Iterator[str]:
    """Give the modules that a module imports, anywhere in its code."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(module)
    for node in ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module is None:
                raise ValueError(f"{module}: imports are written in full")
            names = [alias.name for alias in node.names]
            if node.module == "kmeans_kernel":  # the names on its first page live in folders
                homes = kmeans_kernel._HOMES
                yield from (f"kmeans_kernel.{homes[name]}" for name in names if name in homes)
            else:
                yield node.module


def edges() -> Counter[tuple[str, str]]:
    """Count the imports between folders: from the folder that imports to the one imported."""
    found: Counter[tuple[str, str]] = Counter()
    for name in modules():
        for imported in imports_of(name):
            if imported.startswith("kmeans_kernel."):
                pair = folder_of(name), folder_of(imported)
                found[pair] += pair[0] != pair[1]
    return +found


def direct_edges() -> list[tuple[str, str]]:
    """Return the imports between folders that do not follow from others (transitive reduction)."""
    found = set(edges())
    reached: dict[str, set[str]] = {}  # all that a folder imports, through others too
    for folder in PERMISSIONS:
        own = {target for source, target in found if source == folder}
        reached[folder] = own.union(*(reached[target] for target in own))
    return sorted(
        (source, target)
        for source, target in found
        if not any(target in reached[other] for first, other in found if first == source)
    )


def picture() -> str:
    """Return the folders as boxes and their imports as arrows, as SVG."""
    width, height = 5.9 * _ACROSS + 30, 5 * _DOWN + 30
    lines = [_arrow(source, target) for source, target in direct_edges()]
    boxes = [_box(name) for name in PERMISSIONS]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" font-family="system-ui, sans-serif">',
            "<title>Folders of kmeans_kernel and the imports between them</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#0b6e4f"/></marker>'
            "</defs>",
            '<rect width="100%" height="100%" fill="white"/>',
            f'<rect x="6" y="{_DOWN + 8}" width="{3 * _ACROSS + 6}" height="{4 * _DOWN - 2}" '
            'rx="12" fill="#f1f5f3" stroke="#b9cdc4"/>',
            f'<text x="20" y="{_DOWN + 30}" font-size="12.5" fill="#374151">core</text>',
            f'<text x="20" y="{_DOWN + 47}" font-size="12.5" fill="#374151">numpy, scipy</text>',
            *lines,
            *boxes,
            *_legend(3.3 * _ACROSS, 3.6 * _DOWN),
            "</svg>\n",
        ]
    )


def _legend(x: float, y: float) -> list[str]:
    told = ["An arrow points to a folder that is imported.", "Imports that follow from others",
            "(cli imports data, say) are not drawn."]  # fmt: skip
    return [
        f'<text x="{x:.0f}" y="{y + 18 * k:.0f}" font-size="12.5" fill="#374151">{line}</text>'
        for k, line in enumerate(told)
    ]


def _corner(name: str) -> tuple[float, float]:
    column, row = _PLACES[name]
    return 16 + column * _ACROSS, 18 + row * _DOWN


def _arrow(source: str, target: str) -> str:
    """Return an arrow: sideways within a row, else from the lower edge to the upper."""
    (x1, y1), (x2, y2) = _corner(source), _corner(target)
    if y1 == y2:
        middle = y1 + _HEIGHT / 2
        path = f"M{x1:.0f} {middle:.0f}L{x2 + _WIDTH + 2:.0f} {middle:.0f}"
    else:
        # Arrows end apart from each other, on the side they come from.
        lean = max(-0.3, min(0.3, (x1 - x2) / (2 * _ACROSS)))
        start = x1 + _WIDTH * (0.5 - lean)
        end = x2 + _WIDTH * (0.5 + lean)
        path = (
            f"M{start:.0f} {y1 + _HEIGHT:.0f}C{start:.0f} {y1 + _HEIGHT + 26:.0f} "
            f"{end:.0f} {y2 - 30:.0f} {end:.0f} {y2 - 1:.0f}"
        )
    return (
        f'<path d="{path}" fill="none" stroke="#0b6e4f" stroke-width="1.6" '
        'marker-end="url(#head)"/>'
    )


def _box(name: str) -> str:
    x, y = _corner(name)
    return (
        f'<g><rect x="{x:.0f}" y="{y:.0f}" width="{_WIDTH}" height="{_HEIGHT}" rx="7" '
        f'fill="white" stroke="#374151"/><text x="{x + 10:.0f}" y="{y + 20:.0f}" font-size="13.5" '
        f'font-weight="600" fill="#111827">{name.replace(".", "/")}</text>'
        f'<text x="{x + 10:.0f}" y="{y + 38:.0f}" font-size="11" fill="#374151">'
        f"{_TITLES[name]}</text></g>"
    )
