"""The direction of the imports, the size of the folders, the depth of a fit, the public names."""

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

import kmeans_kernel
from docs.architecture import PERMISSIONS, folder_of, imports_of, modules

PACKAGE = Path(kmeans_kernel.__file__).parent

# Packages whose `__all__` is what a user may import, and whose names are in docs/api.md.
PUBLIC = ("", ".paper", ".events", ".data", ".estimators", ".export", ".report", ".serve")


@pytest.mark.parametrize("name", modules())
def test_imports_stay_within_the_permissions(name):
    folder = folder_of(name)
    for imported in imports_of(name):
        if imported.split(".")[0] == "kmeans_kernel":
            target = folder_of(imported)
            allowed = target == folder or target in PERMISSIONS[folder]
            assert allowed, f"{name} imports {imported}, and {folder} may not import {target}"
        elif folder.startswith("core"):
            root = imported.split(".")[0]
            assert root in {"numpy", "scipy", *sys.stdlib_module_names}, f"{name} imports {root}"


def test_the_permissions_point_one_way():
    """Each folder may import folders listed before it, so there is no cycle."""
    order = list(PERMISSIONS)
    for folder, allowed in PERMISSIONS.items():
        assert all(order.index(one) < order.index(folder) for one in allowed), folder
    assert {folder_of(name) for name in modules()} == set(order)


def test_no_import_hides_in_a_string_of_the_core_or_the_estimators():
    for folder in ("core", "estimators"):
        for path in (PACKAGE / folder).rglob("*.py"):
            names = {node.id for node in ast.walk(ast.parse(path.read_text()))
                     if isinstance(node, ast.Name)}  # fmt: skip
            assert not names & {"import_module", "__import__", "find_spec"}, path


def test_folders_are_small():
    folders = [path for path in [PACKAGE, *PACKAGE.rglob("*")] if path.is_dir()]
    for folder in folders:
        entries = [path for path in folder.iterdir() if path.name != "__pycache__"]
        assert len([path for path in entries if path.is_file()]) <= 15, folder
        if folder == PACKAGE:
            assert len(entries) <= 12


class Trace:
    """Own files, kinds of records and own frames on the stack while a function runs."""

    def __init__(self, function):
        self.files, self.records, self.depth = set(), set(), 0
        sys.setprofile(self._profile)
        try:
            function()
        finally:
            sys.setprofile(None)

    def _profile(self, frame, event, _):
        if event != "call":
            return
        code = frame.f_code
        if code.co_name in ("__init__", "__new__"):
            own = frame.f_locals
            kind = type(own["self"]) if "self" in own else own.get("_cls", own.get("cls"))
            if getattr(kind, "__module__", "").startswith("kmeans_kernel"):
                self.records.add(kind)
        if not code.co_filename.startswith(str(PACKAGE)):
            return
        self.files.add(code.co_filename)
        depth = 0
        while frame is not None:
            depth += frame.f_code.co_filename.startswith(str(PACKAGE))
            frame = frame.f_back
        self.depth = max(self.depth, depth)


def test_a_default_fit_is_shallow():
    """A reader who follows a fit of a small table meets few files, records and calls."""
    X, y = load_iris(return_X_y=True)
    classifier = kmeans_kernel.KMeansKernelClassifier(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = Trace(lambda: classifier.fit(X, y))
    assert len(fit.files) <= 32, sorted(fit.files)
    assert len(fit.records) <= 32, sorted(map(str, fit.records))
    assert fit.depth <= 22
    assert len(Trace(lambda: classifier.predict(X)).files) <= 10


def test_every_public_name_exists_and_is_in_the_reference():
    reference = (PACKAGE.parents[1] / "docs" / "api.md").read_text()
    for suffix in PUBLIC:
        module = importlib.import_module(f"kmeans_kernel{suffix}")
        assert sorted(module.__all__) == list(module.__all__), module
        assert set(module.__all__) <= set(dir(module))
        for name in module.__all__:
            value = getattr(module, name)
            assert value is not None
            top = f".{name}" in PUBLIC or suffix == ".estimators"
            assert top or f"## {module.__name__}.{name}\n" in reference, (module.__name__, name)
    assert set(kmeans_kernel.estimators.__all__) - set(kmeans_kernel.__all__) == {
        "Column", "ColumnEffect", "Contribution", "DroppedColumnWarning", "Explanation",
    }  # fmt: skip
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        kmeans_kernel.nonsense  # noqa: B018


def test_modules_below_public_packages_are_private():
    """A user finds names in contents pages; files below them have an underscore."""
    contents = {"columns", "transformers", "datasets", "tables", "model_file", "onnx", "web",
                "reproduction", "transport", "protocol"}  # fmt: skip
    for suffix in PUBLIC[3:]:
        package = importlib.import_module(f"kmeans_kernel{suffix}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            name = module.name.split(".")[-1]
            assert name.startswith("_") or name in contents, f"{suffix}.{name}"


def test_import_has_no_side_effects_and_needs_no_extra():
    code = (
        "import sys\nfrom kmeans_kernel import *\n"
        "extras = {'matplotlib', 'polars', 'typer', 'onnx', 'dask', 'fastapi', 'safetensors'}\n"
        "sys.exit(' '.join(extras & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


WITH_EXAMPLES = [name for name in modules() if ">>> " in
                 Path(importlib.util.find_spec(name).origin).read_text()]  # fmt: skip


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_in_the_docstrings_run(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


def test_nothing_of_ours_unpickles():
    for path in PACKAGE.rglob("*.py"):
        assert "pickle" not in path.read_text().replace("allow_pickle=False", ""), path
