"""The command `kmeans-kernel` and its subcommands."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import kmeans_kernel
from kmeans_kernel.cli.verbs import data
from kmeans_kernel.cli.verbs.evaluate import evaluate
from kmeans_kernel.cli.verbs.explain import explain
from kmeans_kernel.cli.verbs.export import export
from kmeans_kernel.cli.verbs.fit import fit
from kmeans_kernel.cli.verbs.inspect import inspect
from kmeans_kernel.cli.verbs.plan import plan
from kmeans_kernel.cli.verbs.predict import predict
from kmeans_kernel.cli.verbs.reproduce import reproduce
from kmeans_kernel.cli.verbs.serve import serve

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for verb in (fit, predict, evaluate, explain, inspect, reproduce, plan, export, serve):
    app.command()(verb)
app.add_typer(data.app, name="data")


def _write_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"kmeans-kernel {kmeans_kernel.__version__}\n")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_write_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Train, evaluate, inspect and deploy kernel classifiers on K-means representatives.

    Example:

    \b
    kmeans-kernel fit digits -q 20 -o digits.model
    kmeans-kernel evaluate digits.model digits
    """
