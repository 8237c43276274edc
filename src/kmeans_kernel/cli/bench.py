"""kmeans-kernel bench."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as RichTable

from kmeans_kernel.cli._output import (
    AsJson,
    Quiet,
    Verbose,
    check_picture,
    one_sentence,
    out,
    progress,
    write_json,
)
from kmeans_kernel.files import write_whole

if TYPE_CHECKING:
    from sklearn.utils import Bunch

N_TRAIN, N_TEST = 5_000, 2_000
OURS, NYSTROEM = [50, 100, 200, 500], [500, 1000]
OURS_ON_DIGITS, NYSTROEM_ON_DIGITS = [10, 20, 50, 100], [100, 300]


def bench(
    digits: Annotated[
        bool, typer.Option("--digits", help="On the bundled 8 × 8 digits instead of MNIST.")
    ] = False,
    picture: Annotated[
        Path, typer.Option("--picture", "-o", help="Where to draw the result.")
    ] = Path("bench.png"),
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Race ours against the installed peers, in two minutes.

    Example:

    \b
    kmeans-kernel bench --digits
    """
    with one_sentence(verbose=verbose):
        from kmeans_kernel import peers
        from kmeans_kernel.records import facts

        check_picture(picture)
        sets, jobs = contest(digits=digits)
        rows: list[dict[str, Any]] = []
        with progress(quiet=quiet) as bars:
            task = bars.add_task("racing", total=len(jobs))
            for job in jobs:
                bars.update(task, description=job["method"])
                found = peers.measure(
                    sets, job["method"], job["size"], enough_runs=3, enough_seconds=2.0
                )
                del found["peak_bytes"]  # of all that ran before, too
                rows.append({**job, **found})
                bars.advance(task)
        write_whole(picture, peers.draw_peers(rows, picture.suffix.lstrip(".").lower()))
        if as_json:
            write_json({"machine": facts(peers.PACKAGES), "rows": rows})
        else:
            print_rows(rows)
            out.print(f"The picture: {picture.resolve().as_uri()}")


def contest(*, digits: bool) -> tuple[Bunch, list[dict[str, Any]]]:
    """Return the data and what is measured on it."""
    from sklearn.utils import Bunch

    from kmeans_kernel import peers
    from kmeans_kernel.datasets import load_digits, load_mnist

    if digits:
        return load_digits(), peers.jobs("digits", OURS_ON_DIGITS, NYSTROEM_ON_DIGITS)
    mnist = load_mnist()
    part = Bunch(
        X_train=mnist.X_train[:N_TRAIN],
        y_train=mnist.y_train[:N_TRAIN],
        X_test=mnist.X_test[:N_TEST],
        y_test=mnist.y_test[:N_TEST],
    )
    return part, peers.jobs("mnist_part", OURS, NYSTROEM)


def print_rows(rows: list[dict[str, Any]]) -> None:
    """Write the table."""
    table = RichTable("classifier", "error, %", "training, s", "prediction, s", box=None)
    for row in rows:
        size = "" if row["size"] is None else f", {row['size']}"
        table.add_row(
            f"{row['method']}{size}",
            f"{row['error_percent']:.2f}",
            f"{row['fit_seconds']:.3f}",
            f"{row['predict_seconds']:.3f}",
            style="bold green" if row["method"] == "ours" else None,
        )
    out.print(table)
