"""kmeans-kernel plan."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table as RichTable

from kmeans_kernel.cli._output import AsJson, Quiet, Verbose, out, report_errors, write_json

if TYPE_CHECKING:
    from kmeans_kernel.report._planning import Plan


class FitOn(StrEnum):
    """Rows that the kernel coefficients are fitted to."""

    samples = "samples"
    representatives = "representatives"


def plan(
    rows: Annotated[float, typer.Option(min=1, max=1e18, help="Number of rows, for example 1e9.")],
    features: Annotated[int, typer.Option(min=1, max=10**9, help="Number of features.")],
    classes: Annotated[int, typer.Option(min=2, max=10**9, help="Number of classes.")],
    q: Annotated[
        int,
        typer.Option(
            "--representatives", "-q", min=1, max=10**9, help="Number of representatives per class."
        ),
    ] = 100,
    workers: Annotated[
        int,
        typer.Option(min=1, max=10**9, help="Number of processes, on one machine or several."),
    ] = 1,
    threads: Annotated[
        int, typer.Option(min=1, max=10**6, help="Number of cores per process.")
    ] = 1,
    memory: Annotated[
        float | None,
        typer.Option(min=0, help="Memory of each process in GB. By default it is not checked."),
    ] = None,
    iterations: Annotated[
        int, typer.Option(min=1, max=10**6, help="Number of K-means iterations.")
    ] = 30,
    network: Annotated[
        float, typer.Option(min=0.001, help="Network bandwidth between two processes in GB/s.")
    ] = 1.25,
    fit_on: Annotated[
        FitOn,
        typer.Option(
            help="Rows that the kernel coefficients are fitted to: all samples, or only the "
            "representatives."
        ),
    ] = FitOn.samples,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Estimate time, memory and network traffic of an out-of-core fit.

    The speed of one core is measured on this machine, in a few seconds; all workers are assumed to
    be as fast.

    Example:

    \b
    kmeans-kernel plan --rows 1e9 --features 768 --classes 100 -q 50 --workers 64
    """
    with report_errors(verbose=verbose):
        from kmeans_kernel.report._planning import Problem, measure_rates
        from kmeans_kernel.report._planning import plan as make_plan

        if not rows <= 1e18:
            raise ValueError(f"--rows must be a number from 1 to 1e18, got {rows}.")
        problem = Problem(
            rows, features, classes, q, workers, threads, iterations,
            on_samples=fit_on is FitOn.samples,
        )  # fmt: skip
        rates = measure_rates(problem, network * 1e9)
        found = make_plan(problem, rates, None if memory is None else memory * 1e9)
        if as_json:
            write_json(found.as_dict())
        elif not quiet:
            print_plan(found)


def print_plan(found: Plan) -> None:
    """Print the estimates as tables."""
    problem, seconds = found.problem, found.seconds
    facts = RichTable(box=None, show_header=False)
    facts.add_row("representatives", f"{problem.m:,} ({problem.q} per class)")
    facts.add_row("rows in float32", size(problem.bytes_of_rows))
    facts.add_row("memory per worker", size(problem.bytes_per_worker))
    facts.add_row("network per iteration", size(problem.network_bytes_per_iteration))
    facts.add_row("network of the fit", size(problem.network_bytes_of_fit))
    out.print(facts)
    work = RichTable("", "operations", "operations/s per core", "time", box=None)
    rates = found.rates
    iteration = f"K-means, 1 + {problem.iterations} passes"
    visits = 1 + problem.iterations
    work.add_row(iteration, count(visits * problem.kmeans_operations), count(rates.kmeans),
                 time(seconds["kmeans"]))  # fmt: skip
    work.add_row("fit, one pass", count(problem.fit_operations), count(rates.fit),
                 time(seconds["fit"]))  # fmt: skip
    work.add_row("solve, one worker", count(problem.solve_operations), count(rates.solve),
                 time(seconds["solve"]))  # fmt: skip
    work.add_row("network", "", "", time(seconds["network"]))
    work.add_row("total", "", "", time(seconds["all"]))
    out.print(work)
    out.print(f"bottleneck: {found.bottleneck}")


def size(n: float) -> str:
    """Format a number of bytes with its unit."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} PB"


def count(n: float) -> str:
    """Format a large number."""
    return f"{n:.2g}"


def time(seconds: float) -> str:
    """Format a duration with its unit."""
    for unit, length in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.2g} s"
