"""kmeans-kernel explain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kmeans_kernel.cli._input import Data, UnlabelledOptions, with_file_options
from kmeans_kernel.cli._output import Quiet, Verbose, report_errors, row_bar
from kmeans_kernel.cli.verbs.predict import (
    Output,
    check_output,
    load_model_and_data,
    with_identifiers,
    write_columns,
)
from kmeans_kernel.data.tables import STANDARD_INPUT, Table

# Rows that are explained at a time.
_BLOCK_ROWS = 256


@with_file_options
def explain(
    model: Annotated[Path, typer.Argument(help="Model file written by fit.")],
    data: Data,
    output: Output = STANDARD_INPUT,
    n: Annotated[
        int, typer.Option("--effects", "-n", min=1, help="The most columns to tell of for a row.")
    ] = 5,
    label: Annotated[
        str | None,
        typer.Option(help="The class whose score is explained; by default the predicted one."),
    ] = None,
    *,
    file: UnlabelledOptions,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Tell which columns made the score of each row.

    Each row is compared with a typical one, which has the mean of each number and the most frequent
    level of each category. The output has a line for each of the largest effects: the number of the
    row, counted from 1, the label, its score and that of the typical row; then the column, its
    value, the typical value and the effect. All effects of a row add up to the difference of the
    scores. With --id the identifier of the row is in front.

    Example:

    \b
    kmeans-kernel fit digits -q 20 -o digits.model
    kmeans-kernel explain digits.model digits -n 3 -o why.csv
    """
    with report_errors(verbose=verbose):
        check_output(output, model, data)
        estimator, table = load_model_and_data(model, data, file, quiet=quiet, labels=False)
        before, classifier = last_step(estimator)
        asked = None if label is None else known_label(label, estimator.classes_)
        lines: list[dict[str, Any]] = []
        with row_bar("explaining", len(table.X), quiet=quiet) as on_rows:
            for start in range(0, len(table.X), _BLOCK_ROWS):
                rows = table.X[start : start + _BLOCK_ROWS]
                rows = rows if before is None else before.transform(rows)
                lines += effect_lines(classifier, rows, start, n, asked)
                on_rows(min(start + _BLOCK_ROWS, len(table.X)))
        write_columns(columns_of_lines(lines, table), output)


def known_label(text: str, classes: Any) -> Any:
    """Return the class that a text names."""
    known = {str(one): one for one in classes.tolist()}
    if text not in known:
        raise ValueError(
            f"--label must be a class of the model, {', '.join(list(known)[:10])}, got {text!r}."
        )
    return known[text]


def last_step(estimator: Any) -> tuple[Any, Any]:
    """Return the steps before the classifier, None for none, and the classifier."""
    is_pipeline = hasattr(estimator, "steps")
    before = estimator[:-1] if is_pipeline and len(estimator.steps) > 1 else None
    classifier = estimator[-1] if is_pipeline else estimator
    if not hasattr(classifier, "explain"):
        raise ValueError(
            f"the model is a {type(classifier).__name__}, which does not tell of columns; train it "
            "with --features table or raw."
        )
    return before, classifier


def effect_lines(
    classifier: Any, rows: Any, start: int, n: int, label: Any
) -> list[dict[str, Any]]:
    """Return the largest effects of some rows, a line for each; `start` is the first of them."""
    found = classifier.explain(rows, label)
    return [
        {
            "place": start + k, "label": str(found.labels[k]), "score": float(found.scores[k]),
            "typical_score": float(found.baseline_scores[k]), "column": effect.column,
            "value": _text(effect.value), "typical_value": _text(effect.baseline),
            "effect": effect.effect,
        }
        for k in range(len(found))
        for effect in found.largest_effects(k, n)
    ]  # fmt: skip


def columns_of_lines(lines: list[dict[str, Any]], table: Table) -> dict[str, Any]:
    """Return lines as columns, with the number of the row, and its identifier in front if any."""
    import polars as pl

    schema = {"place": pl.Int64, "label": pl.String, "score": pl.Float64,
              "typical_score": pl.Float64, "column": pl.String, "value": pl.String,
              "typical_value": pl.String, "effect": pl.Float64}  # fmt: skip
    frame = pl.DataFrame(lines, schema=schema)
    places = frame["place"].to_numpy()
    columns: dict[str, Any] = {"row": table.rows[places] + 1}
    columns |= {name: frame[name] for name in frame.columns[1:]}
    return with_identifiers(columns, None if table.ids is None else table.ids.gather(places))


def _text(value: Any) -> str | None:
    """Return a value as text, None if it is missing."""
    if value is None:
        return None
    return f"{value:.6g}" if isinstance(value, float) else str(value)
