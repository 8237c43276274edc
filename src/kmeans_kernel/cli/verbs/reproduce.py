"""kmeans-kernel reproduce figure1 | figure2 | all."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from kmeans_kernel.cli._output import (
    AsJson,
    Quiet,
    Verbose,
    fail,
    out,
    progress,
    report_errors,
    write_json,
)
from kmeans_kernel.utils.files import check_writable, write_whole


class FigureName(StrEnum):
    """Figures of the paper."""

    figure1 = "figure1"
    figure2 = "figure2"
    all = "all"


def reproduce(
    figure: Annotated[FigureName, typer.Argument(help="Figure of the paper to reproduce, or all.")],
    q: Annotated[
        list[int],
        typer.Option(
            "--representatives",
            "-q",
            min=1,
            help="Number of representatives per class (Q). May be given repeatedly. By default "
            "all values of the paper.",
        ),
    ] = [],  # noqa: B006
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of runs per point. By default 5 or 3 for figure 1, 2 or 1 for figure 2.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the first run.")] = 0,
    features: Annotated[
        list[str],
        typer.Option(
            help="Features to reproduce: raw, raw_fft, raw_fft_no_root, patches or patches_26. May "
            "be given repeatedly. By default all of the figure."
        ),
    ] = [],  # noqa: B006
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder of the results. Runs that it contains are reused."
        ),
    ] = Path("reproduction"),
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Reproduce the figures of the paper on MNIST.

    Writes a report that compares the results with the paper: an HTML page, a Markdown table and
    plots.

    An interrupted reproduction is resumed; further runs are added to the average.

    Example:

    \b
    kmeans-kernel reproduce figure1 -q 100 --runs 1 --features raw
    """
    with report_errors(verbose=verbose):
        from kmeans_kernel.data import load_mnist
        from kmeans_kernel.report.reproduction import FIGURES, figure_jobs, paper_qs

        names = list(FIGURES) if figure is FigureName.all else [str(figure)]
        known = {curve.features for name in names for curve in FIGURES[name].curves}
        unknown = [name for name in features if name not in known]
        if unknown:
            fail(f"{figure} has no features {unknown[0]!r}; use {', '.join(sorted(known))}.")
        if output.exists() and not output.is_dir():
            fail(f"{output} is a file; name a folder with --output.")
        output.mkdir(parents=True, exist_ok=True)
        check_writable(output / "report.html")
        load_mnist()  # downloads now, so that an error is reported before the progress bars start
        for name in names:
            spec = FIGURES[name]
            own = [f for f in features if f in {curve.features for curve in spec.curves}]
            if features and not own:
                continue
            jobs = figure_jobs(spec, q or paper_qs(spec), runs, seed, own)
            with progress(quiet=quiet) as bars:
                _run(output / f"{name}.json", jobs, bars)
        report(output, names, as_json=as_json)


def _run(path: Path, jobs: list[dict[str, Any]], bars: Progress) -> None:
    from kmeans_kernel.report._records import missing_jobs
    from kmeans_kernel.report.reproduction import run_figure

    missing = missing_jobs(path, jobs)
    task = bars.add_task(path.stem, total=len(missing))

    def on_row(row: dict[str, Any]) -> None:
        done = f"{path.stem}: {row['features']}, Q = {row['q']}: {row['error_percent']:.2f} %"
        bars.update(task, advance=1, description=done)

    run_figure(path, jobs, on_row)


def report(output: Path, names: list[str], *, as_json: bool) -> None:
    """Write the report as HTML, Markdown and plots, and print its summary."""
    from kmeans_kernel.report.reproduction import (
        FIGURES,
        compare,
        draw_figure,
        html_report,
        markdown_table,
        read_rows,
        summary,
    )

    results = {name: compare(FIGURES[name], read_rows(output / f"{name}.json")) for name in names}
    results = {name: points for name, points in results.items() if points}
    text = []
    for name, points in results.items():
        write_whole(output / f"{name}.png", draw_figure(FIGURES[name], points))
        text += [f"## Figure {FIGURES[name].number}", "", f"![]({name}.png)", ""]
        text += [markdown_table(points), "", *[f"- {line}" for line in summary(points)], ""]
    write_whole(output / "report.md", "\n".join(text).encode())
    machines = [row["machine"] for name in names for row in read_rows(output / f"{name}.json")]
    write_whole(output / "report.html", html_report(results, machines[-1]).encode())
    if as_json:
        write_json({
            name: [
                {"features": p.curve.title, "q": p.q, "errors": p.errors, "paper": p.paper}
                for p in points
            ]
            for name, points in results.items()
        })  # fmt: skip
        return
    for points in results.values():
        out.print(markdown_table(points))
        for line in summary(points):
            out.print(line)
    out.print(f"Report: {(output / 'report.html').resolve().as_uri()}")
