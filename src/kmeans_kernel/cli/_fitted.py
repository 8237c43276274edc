"""What `fit` says of a model: its size, its held-out error, and what the columns were taken for."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.text import Text

from kmeans_kernel.cli._output import err, note, out, write_json
from kmeans_kernel.data.tables import Notation

# Most names that are shown of the columns of one kind.
_SHOWN = 6

# What columns of a kind are called, one of them and several.
_CALLED = {
    "number": ("number", "numbers"), "category": ("category", "categories"),
    "boolean": ("boolean", "booleans"), "date": ("date", "dates"),
    "dropped": ("left out", "left out"),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted estimator, and the rows that it was trained on.

    Attributes
    ----------
    estimator : the estimator
    n_rows : number of rows
    counts : the classes and the number of rows of each, None if they are not known
    notation : how the file was written
    """

    estimator: Any
    n_rows: int
    counts: tuple[npt.NDArray[Any], npt.NDArray[np.intp]] | None = None
    notation: Notation = field(default_factory=Notation)

    def known_notation(self) -> dict[str, Any] | None:
        """Return the notation of the columns of the model, None if the file did not show any."""
        names = {str(name) for name in getattr(self.estimator, "feature_names_in_", ())}
        found: dict[str, Any] = {
            "decimal": {k: v for k, v in self.notation.decimal.items() if k in names},
            "dates": {k: v for k, v in self.notation.dates.items() if k in names},
            "missing": list(self.notation.missing),
            "units": {k: v for k, v in self.notation.units.items() if k in names},
        }
        return found if any(found.values()) else None

    def most_frequent(self) -> tuple[Any, float] | None:
        """Return the class of most rows and the error of always guessing it, None if unknown.

        With weights of classes both are weighted, as the held-out error is.
        """
        from kmeans_kernel.utils.validation import class_factors

        if self.counts is None:
            return None
        classes, counts = self.counts
        factors = class_factors("fit", self.class_weight, classes, counts.astype(np.float64))
        weights = counts if factors is None else counts * factors
        return classes.tolist()[weights.argmax()], 1.0 - float(weights.max() / weights.sum())

    @property
    def class_weight(self) -> Any:
        """The weights of the classes, None for none."""
        from kmeans_kernel.report._inspection import classifier_of

        return getattr(classifier_of(self.estimator), "class_weight", None)

    def identifiers(self) -> list[str]:
        """Return the columns that were left out since they name the rows."""
        from kmeans_kernel.report._inspection import classifier_of

        columns = getattr(classifier_of(self.estimator), "columns_", None) or ()
        return [str(one.name) for one in columns if getattr(one, "reason", None) == "id"]

    def columns(self) -> dict[str, list[str]]:
        """Return the names of the columns by what they were taken for."""
        from kmeans_kernel.report._inspection import classifier_of

        names = {str(name) for name in getattr(self.estimator, "feature_names_in_", ())}
        found: dict[str, list[str]] = {}
        for one in getattr(classifier_of(self.estimator), "columns_", None) or ():
            if str(one.name) in names:  # the features of images have no names
                found.setdefault(str(one.kind), []).append(str(one.name))
        return found


def print_fit(
    fitted: Fitted, output: Path, *, to_stderr: bool, as_json: bool, quiet: bool, verbose: bool
) -> None:
    """Print what was fitted, and to which file it was saved."""
    from kmeans_kernel.report._inspection import classifier_of, describe

    if verbose:
        for stage, seconds in classifier_of(fitted.estimator).stage_seconds_.items():
            err.print(f"{seconds:.2f} s for {stage}")
    found = {"model": str(output), "rows": fitted.n_rows, **describe(fitted.estimator)}
    most_frequent, columns = fitted.most_frequent(), fitted.columns()
    identifiers = fitted.identifiers()
    if identifiers and not quiet:
        note(identifiers_note(identifiers))
    if as_json and not to_stderr:
        label, error = most_frequent or (None, None)
        write_json({**found, "most_frequent_class": label, "most_frequent_error": error,
                    "columns": columns})  # fmt: skip
    elif not quiet:
        lines = [
            f"{fitted.n_rows} rows, {len(found['classes'])} classes, "
            f"{found['representatives']} representatives; saved to {output}",
            error_line(
                found["held_out_error"], most_frequent, weighted=fitted.class_weight is not None
            ),
            columns_line(columns),
        ]
        for line in filter(None, lines):
            (err if to_stderr else out).print(Text(line))


def identifiers_note(names: list[str]) -> str:
    """Return what to say of columns that were left out since they name the rows."""
    drop = " ".join(f"--drop {shlex.quote(name)}" for name in names)
    keep = " ".join(f"--column-type {shlex.quote(name + '=category')}" for name in names)
    which = f"{names[0]!r} has" if len(names) == 1 else f"{', '.join(map(repr, names))} have"
    return (
        f"{which} nearly as many values as there are rows, as identifiers have, and "
        f"{'was' if len(names) == 1 else 'were'} left out; add {drop} to confirm it, or {keep}."
    )


def error_line(
    held_out: float | None, most_frequent: tuple[Any, float] | None, *, weighted: bool = False
) -> str:
    """Return the held-out error beside that of always guessing the most frequent class."""
    told = [] if held_out is None else [f"held-out error {100 * held_out:.2f} %"]
    if most_frequent is not None:
        label, error = most_frequent
        what = "the class of most weight" if weighted else "the most frequent class"
        told.append(f"always guessing {label!r}, {what}: {100 * error:.2f} %")
    if weighted and told:
        told.append("errors count each row by the weight of its class")
    return "; ".join(told)


def columns_line(columns: dict[str, list[str]]) -> str:
    """Return what the columns were taken for, such as 2 numbers: a, b; 1 date: when."""
    told = []
    for kind, names in columns.items():
        shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
        called = _CALLED.get(kind, (kind, kind))[len(names) > 1]
        told.append(f"{len(names)} {called}: {shown}")
    return "; ".join(told)
