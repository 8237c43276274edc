"""kmeans-kernel inspect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table as RichTable
from rich.text import Text

from kmeans_kernel.cli._output import (
    AsJson,
    Verbose,
    check_picture,
    fail,
    out,
    report_errors,
    size_of,
    write_json,
    write_picture,
)  # fmt: skip
from kmeans_kernel.cli.verbs.predict import model_path

_DRAWN_PER_CLASS = 12


def inspect(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Draw the representatives of a model of images to this .png, .svg or .pdf file."
        ),
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show the parameters and the representatives of a model.

    Shows its steps, kernel and regularisation, and for each class the number of representatives
    and of the rows that they represent. For images, --picture draws them.

    Example:

    \b
    kmeans-kernel fit digits -q 20 -o digits.model
    kmeans-kernel inspect digits.model --picture representatives.png
    """
    with report_errors(verbose=verbose):
        from kmeans_kernel.export.model_file import load_model
        from kmeans_kernel.report._inspection import describe, representative_images

        if picture is not None:
            check_picture(picture, model)
        model = model_path(model)
        estimator = load_model(model)
        size = model.stat().st_size if model.is_file() else None  # a pipe has no size
        found = {"file": str(model), "file_bytes": size, **describe(estimator)}
        if picture is not None:
            images = representative_images(estimator, _DRAWN_PER_CLASS)
            if images is None:
                fail(
                    f"the representatives of {model} are not images and cannot be drawn; leave "
                    "out --picture."
                )
            draw_representatives(images, [c["label"] for c in found["classes"]], picture)
        if as_json:
            write_json(found)
        else:
            print_description(found)


def print_description(found: dict[str, Any]) -> None:
    """Print the description of a model."""
    from kmeans_kernel.report._inspection import TRANSFORMS_IN_WORDS

    facts = RichTable(box=None, show_header=False)
    names = found["feature_names"]
    shown = "" if names is None else ": " + ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    size = "" if found["file_bytes"] is None else f", {size_of(found['file_bytes'])}"
    facts.add_row("file", Text(found["file"] + size))
    facts.add_row("steps", " → ".join(found["steps"]))
    facts.add_row("features", Text(f"{found['features']}{shown}"))
    facts.add_row("kernel", found["kernel"])
    facts.add_row("regularization", f"{found['regularization']:g}")
    facts.add_row("lift", f"{found['lift']:g}")
    if found["feature_scales"] is not None and len(found["feature_scales"]) == found["features"]:
        facts.add_row("feature scales", Text(_largest_scales(found)))
    if found["feature_transform"] is not None:
        told = TRANSFORMS_IN_WORDS[found["feature_transform"]]
        facts.add_row("transform", f"{found['feature_transform']}: {told}")
    if found["held_out_error"] is not None:
        facts.add_row("hold-out error", f"{100 * found['held_out_error']:.2f} %")
    facts.add_row(
        "representatives", f"{found['representatives']} in {len(found['classes'])} classes"
    )
    facts.add_row("relative residual", f"{found['relative_residual']:.1e}")
    out.print(facts)
    classes = RichTable(
        "class", "rows", "representatives", "rows each: min", "median", "max",
        "iterations", box=None,
    )  # fmt: skip
    for row, iterations in zip(found["classes"], found["iterations"], strict=True):
        classes.add_row(
            Text(str(row["label"])), f"{row['rows']:g}", str(row["representatives"]),
            f"{row['smallest']:g}", f"{row['median']:g}", f"{row['largest']:g}", str(iterations),
        )  # fmt: skip
    out.print(classes)


def _largest_scales(found: dict[str, Any], n: int = 5) -> str:
    """Return the features with the largest scales."""
    scales = found["feature_scales"]
    names = found["feature_names"] or [f"feature {k + 1}" for k in range(len(scales))]
    order = sorted(range(len(scales)), key=lambda k: -scales[k])
    listed = ", ".join(f"{names[k]} {scales[k]:.2f}" for k in order[:n])
    return f"{listed}, …" if len(scales) > n else listed


def draw_representatives(images: Any, labels: list[Any], path: Path) -> None:
    """Draw the representatives with the most rows, one line of images per class."""
    from matplotlib.figure import Figure

    n_classes, per_class = images.shape[:2]
    figure = Figure(figsize=(0.62 * per_class + 0.8, 0.62 * n_classes + 0.4), layout="constrained")
    grid = figure.subplots(n_classes, per_class, squeeze=False)
    for k, row in enumerate(grid):
        for j, axes in enumerate(row):
            axes.imshow(images[k, j], cmap="gray_r")
            axes.set(xticks=[], yticks=[])
            axes.set_frame_on(False)
        row[0].set_ylabel(str(labels[k]), rotation=0, ha="right", va="center", parse_math=False)
    write_picture(figure, path)
