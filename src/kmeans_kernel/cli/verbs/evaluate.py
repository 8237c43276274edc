"""kmeans-kernel evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from kmeans_kernel.cli._input import Data, LabelledOptions, with_file_options
from kmeans_kernel.cli._output import (
    AsJson,
    Quiet,
    Verbose,
    check_picture,
    format_number,
    out,
    report_errors,
    row_bar,
    write_json,
    write_picture,
)  # fmt: skip
from kmeans_kernel.cli.verbs.predict import (
    check_output,
    load_model_and_data,
    result_columns,
    write_columns,
)
from kmeans_kernel.report._evaluation import Evaluation, evaluate_probabilities, predict_all

_MAX_TABLE_CLASSES = 30


@with_file_options
def evaluate(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    data: Data,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Also draw the confusion matrix to this .png, .svg or .pdf file. By default it is "
            "not drawn."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Also write the true label, the predicted one and its probability of each row to "
            "this .csv, .parquet or .jsonl file. By default they are not written.",
        ),
    ] = None,
    *,
    file: LabelledOptions,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compare the predictions of a model with labels.

    Shows the error rate, the balanced accuracy, the area under the ROC curve (AUC; of more than two
    classes the mean of each against the rest), the log-loss, the expected calibration error,
    precision and recall of each class, and the confusion matrix. For your own file, name the column
    of labels: evaluate my.model FILE.csv --target COLUMN. For a data set, its test part is used.

    Example:

    \b
    kmeans-kernel fit digits -q 20 -o digits.model
    kmeans-kernel evaluate digits.model digits
    """
    with report_errors(verbose=verbose):
        if picture is not None:
            check_picture(picture, model, data)
        if output is not None:
            check_output(str(output), model, data)
        estimator, table = load_model_and_data(model, data, file, quiet=quiet, labels=True)
        with row_bar("classifying", len(table.X), quiet=quiet) as on_rows:
            labels, shares = predict_all(estimator, table.X, on_rows)
        found = evaluate_probabilities(shares, np.asarray(table.y), estimator.classes_)
        if output is not None:
            classes = estimator.classes_
            rows = result_columns(table, labels, shares, classes, every_class=False)
            write_columns(rows, str(output))
        if picture is not None:
            draw_confusion(found, picture)
        if as_json:
            write_json(found.as_json())
        else:
            print_evaluation(found, quiet=quiet)


def print_evaluation(found: Evaluation, *, quiet: bool) -> None:
    """Print the scores, and the confusion matrix as a table."""
    log_loss = found.log_loss if np.isfinite(found.log_loss) else None
    out.print(f"error              {found.error_percent:.2f} % of {found.n_rows} rows")
    out.print(f"balanced accuracy  {format_number(found.balanced_accuracy)}")
    out.print(f"AUC                {format_number(found.auc)}")
    out.print(f"log-loss           {format_number(log_loss)}")
    out.print(f"calibration error  {format_number(found.calibration_error)}")
    if quiet:
        return
    classes = RichTable("class", "rows", "precision", "recall", box=None)
    sizes = found.confusion.sum(axis=1)
    for k, label in enumerate(found.labels):
        classes.add_row(
            str(label),
            str(sizes[k]),
            format_number(found.precision[k]),
            format_number(found.recall[k]),
        )
    out.print(classes)
    if len(found.labels) <= _MAX_TABLE_CLASSES:
        out.print(confusion_table(found))
    else:
        out.print(
            f"The confusion matrix of {len(found.labels)} classes is too wide for a table; use "
            "--picture or --json."
        )


def confusion_table(found: Evaluation) -> RichTable:
    """Return the confusion matrix; bold red marks confusions of over 5 % of a class."""
    names = [Text(str(label)) for label in found.labels]
    columns = [Column(header=name) for name in names]
    drawn = RichTable("true \\ given", *columns, box=None, padding=(0, 1))
    sizes = np.maximum(found.confusion.sum(axis=1), 1)
    for k in range(len(found.labels)):
        cells = []
        for j, count in enumerate(found.confusion[k]):
            share = count / sizes[k]
            style = "green" if j == k else "bold red" if share > 0.05 else "red"
            cells.append(Text(str(count) if count else "·", style=style if count else "dim"))
        drawn.add_row(names[k], *cells)
    return drawn


def draw_confusion(found: Evaluation, path: Path) -> None:
    """Draw the confusion matrix to a file."""
    from matplotlib.figure import Figure

    size = max(4.0, 0.45 * len(found.labels) + 1.5)
    figure = Figure(figsize=(size, size), layout="constrained")
    axes = figure.add_subplot()
    shares = found.confusion / np.maximum(found.confusion.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Greens", vmin=0, vmax=1)
    ticks = np.arange(len(found.labels))
    names = [str(label) for label in found.labels]
    axes.set_xticks(ticks, names, rotation=90, parse_math=False)
    axes.set_yticks(ticks, names, parse_math=False)
    axes.set(xlabel="given", ylabel="true", title=f"{found.error_percent:.2f} % error")
    for (k, j), count in np.ndenumerate(found.confusion):
        if count:
            colour = "white" if shares[k, j] > 0.5 else "black"
            axes.text(j, k, str(count), ha="center", va="center", color=colour, fontsize=8)
    write_picture(figure, path)
