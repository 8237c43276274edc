"""Contents pages whose names are imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package whose names live in its modules.

    A module is imported when a name of it is first asked for, so that `--help` does not wait for
    scikit-learn and no optional library is needed before it is used.

    Parameters
    ----------
    package : the name of the package
    homes : the module, relative to the package, that defines each public name
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = import_module(f"{package}.{homes[name]}")
        return getattr(home, name, home)

    return get, lambda: sorted(homes)
