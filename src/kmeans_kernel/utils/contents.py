"""Lazy imports of the public names of a package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the module-level `__getattr__` and `__dir__` of a package (PEP 562).

    A module is imported at the first access to one of its names, so that `--help` does not wait for
    scikit-learn and an optional library is needed only where it is used.

    Parameters
    ----------
    package : the name of the package
    homes : for each public name, the module that defines it, relative to the package
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = import_module(f"{package}.{homes[name]}")
        return getattr(home, name, home)

    return get, lambda: sorted(homes)
