"""kmeans-kernel data list | fetch | where."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kmeans_kernel.cli._output import AsJson, Verbose, fail, one_sentence, out, write_json
from kmeans_kernel.cli._reading import SETS, load_set

app = typer.Typer(
    help="Data sets: list them, fetch them, see where they are.\n\n"
    "Example:\n\n\b\nkmeans-kernel data list"
)

Name = Annotated[
    str, typer.Argument(help="digits, mnist or fashion-mnist.", autocompletion=lambda: [*SETS])
]


@app.command("list")
def list_sets(as_json: AsJson = False) -> None:
    """List the data sets, and whether they are here.

    Example:

    \b
    kmeans-kernel data list
    """
    with one_sentence():
        found = [
            {"name": name, "what": what, "here": name == "digits" or is_here(name)}
            for name, what in SETS.items()
        ]
        if as_json:
            write_json(found)
            return
        for row in found:
            here = "" if row["here"] else " (not fetched yet)"
            out.print(f"{row['name']:<14} {row['what']}{here}")


@app.command()
def fetch(name: Name, verbose: Verbose = False) -> None:
    """Fetch a data set into the cache.

    Example:

    \b
    kmeans-kernel data fetch digits
    """
    with one_sentence(verbose=verbose):
        loaded = load_set(known(name))
        out.print(f"{name}: {len(loaded.X_train)} training and {len(loaded.X_test)} test images")


@app.command()
def where(
    name: Annotated[
        str | None, typer.Argument(help="A data set; none for the cache itself.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Say where a data set is kept.

    That is the platform's cache folder, or the one that $KMEANS_KERNEL_CACHE names.

    Example:

    \b
    kmeans-kernel data where
    """
    with one_sentence(verbose=verbose):
        if name is None:
            out.print(str(cache()))
        elif known(name) == "digits":
            out.print("digits come with scikit-learn")
        else:
            out.print(str(folder(name)))


def known(name: str) -> str:
    """Return the name of a data set, or fail."""
    if name not in SETS:
        fail(f"there is no data set {name!r}; there are {', '.join(SETS)}.")
    return name


def cache() -> Path:
    """Return the folder of all fetched data."""
    from kmeans_kernel.data.datasets._loaders import cache_directory

    return cache_directory()


def folder(name: str) -> Path:
    """Return the folder of a data set in the cache."""
    return cache() / name


def is_here(name: str) -> bool:
    """Say whether the four files of a data set are in the cache."""
    return folder(name).is_dir() and len(list(folder(name).glob("*-ubyte*"))) >= 4
