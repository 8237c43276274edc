"""kmeans-kernel data list | fetch | where."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kmeans_kernel.cli._input import DATASETS, load_dataset
from kmeans_kernel.cli._output import AsJson, Verbose, fail, out, report_errors, write_json

app = typer.Typer(
    help="List, download and locate data sets.\n\nExample:\n\n\b\nkmeans-kernel data list"
)

Name = Annotated[
    str,
    typer.Argument(
        help="Name of the data set: digits, mnist or fashion-mnist.",
        autocompletion=lambda: [*DATASETS],
    ),
]


@app.command("list")
def list_datasets(as_json: AsJson = False) -> None:
    """List the data sets, and whether each is in the cache.

    Example:

    \b
    kmeans-kernel data list
    """
    with report_errors():
        found = [
            {"name": name, "what": what, "here": name == "digits" or is_cached(name)}
            for name, what in DATASETS.items()
        ]
        if as_json:
            write_json(found)
            return
        for row in found:
            here = "" if row["here"] else " (not fetched yet)"
            out.print(f"{row['name']:<14} {row['what']}{here}")


@app.command()
def fetch(name: Name, verbose: Verbose = False) -> None:
    """Download a data set into the cache.

    Example:

    \b
    kmeans-kernel data fetch digits
    """
    with report_errors(verbose=verbose):
        loaded = load_dataset(check_name(name))
        out.print(f"{name}: {len(loaded.X_train)} training and {len(loaded.X_test)} test images")


@app.command()
def where(
    name: Annotated[
        str | None,
        typer.Argument(help="Name of the data set. By default the folder of all data sets."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Show the folder of a data set.

    It is in the cache folder of the platform, or in $KMEANS_KERNEL_CACHE if that is set.

    Example:

    \b
    kmeans-kernel data where
    """
    with report_errors(verbose=verbose):
        if name is None:
            out.print(str(cache_folder()))
        elif check_name(name) == "digits":
            out.print("digits come with scikit-learn")
        else:
            out.print(str(dataset_folder(name)))


def check_name(name: str) -> str:
    """Return the name of a data set; fail if it is unknown."""
    if name not in DATASETS:
        fail(f"there is no data set {name!r}; choose one of {', '.join(DATASETS)}.")
    return name


def cache_folder() -> Path:
    """Return the folder of all data sets."""
    from kmeans_kernel.data.datasets._loaders import cache_directory

    return cache_directory()


def dataset_folder(name: str) -> Path:
    """Return the folder of one data set."""
    return cache_folder() / name


def is_cached(name: str) -> bool:
    """Return whether images and labels of both parts, four files, are in the cache."""
    return dataset_folder(name).is_dir() and len(list(dataset_folder(name).glob("*-ubyte*"))) >= 4
