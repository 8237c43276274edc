"""Input of all commands: a file, standard input, or a named data set."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import numpy as np
import typer

from kmeans_kernel.cli._output import byte_bar, fail, note, warn
from kmeans_kernel.data.tables import DataFileError, Format, Notation, Reading, Table, read_table

if TYPE_CHECKING:
    from sklearn.utils import Bunch

DATASETS = {
    "digits": "8 × 8 digits, comes with scikit-learn",
    "mnist": "28 × 28 digits",
    "fashion-mnist": "28 × 28 pictures of clothes",
}


Data = Annotated[
    str,
    typer.Argument(
        help="The input: a CSV, Parquet, NPZ, svmlight or IDX file, also compressed with gzip; - "
        f"for standard input; or a data set ({', '.join(DATASETS)})."
    ),
]


class DecimalMark(StrEnum):
    """Decimal marks of numbers."""

    point = "point"
    comma = "comma"


class DateOrder(StrEnum):
    """Orders of day and month in dates."""

    day_first = "day-first"
    month_first = "month-first"


@dataclass(frozen=True)
class FileOptions:
    """Options of an input file, in the order of the help.

    A verb with the decorator `with_file_options` has them all, and takes them as one argument.
    """

    file_format: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="Format of the input. By default it is detected from the suffix, else from the "
            "content.",
        ),
    ] = None
    drop: Annotated[
        list[str],
        typer.Option(
            "--drop",
            metavar="COLUMN",
            help="Column that is not a feature. May be given repeatedly.",
        ),
    ] = field(default_factory=list)
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column that identifies rows. It is not a feature, and is written in front of "
            "predictions. By default there is none.",
        ),
    ] = None
    missing: Annotated[
        list[str],
        typer.Option(
            "--missing",
            metavar="TEXT",
            help="Text that stands for a missing value, beside empty values, NA, N/A, NaN, null, "
            "None, ? and the errors of spreadsheets, and among numbers -, . and words such as "
            "unknown; COLUMN=TEXT is for one column. May be given repeatedly. Texts that were "
            "given to fit are missing for predict and evaluate too; a category of the model is "
            "missing only if it is given here.",
        ),
    ] = field(default_factory=list)
    decimal: Annotated[
        DecimalMark | None,
        typer.Option(
            help="Decimal mark of numbers such as 1,234 or 1.234 in CSV. By default it follows "
            "from all numbers of the file, else from the training of the model, and is asked for "
            "where it does not."
        ),
    ] = None
    dates: Annotated[
        DateOrder | None,
        typer.Option(
            help="Order of dates such as 01/02/2020 in CSV. By default it follows from all dates "
            "of the file, else from the training of the model; where it does not, they are text. "
            "Years of two digits are 1930 to 2029."
        ),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first row of CSV has the names of the columns; without a header "
            "they are column_1, column_2 and so on. By default it must have them, and is refused "
            "if it looks like values.",
        ),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Encoding of CSV, for example cp1252, shift_jis or utf-16. By default UTF-8 or "
            "UTF-16 if the file is, else Windows-1252.",
        ),
    ] = None
    zero_based: Annotated[
        bool,
        typer.Option(
            "--zero-based", help="Count the feature indices of svmlight from 0, not from 1."
        ),
    ] = False
    target: str | None = None
    drop_missing: bool = False

    @property
    def reading(self) -> Reading:
        """What CSV does not tell by itself."""
        return Reading(
            self.encoding,
            self.header,
            None if self.decimal is None else self.decimal.value,
            None if self.dates is None else self.dates.value,
            tuple(self.missing),
        )

    @property
    def is_default(self) -> bool:
        """Whether no option was given."""
        return self == type(self)()

    def arguments(self) -> dict[str, Any]:
        """Return the options as arguments of `read_table`."""
        return {
            "target": self.target,
            "file_format": self.file_format,
            "reading": self.reading,
            "id_column": self.id_column,
            "drop": self.drop,
            "drop_missing": self.drop_missing,
            "zero_based": self.zero_based,
        }


@dataclass(frozen=True)
class LabelledOptions(FileOptions):
    """Options of an input file with labels."""

    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            help="The labels: name of a column, name of an array in an NPZ file, or an IDX file.",
        ),
    ] = None
    drop_missing: Annotated[
        bool,
        typer.Option(
            "--drop-missing",
            help="Drop rows with missing features. By default they are kept, as missing values.",
        ),
    ] = False


@dataclass(frozen=True)
class UnlabelledOptions(FileOptions):
    """Options of an input file whose labels, if it has any, are ignored."""

    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", help="Name of a column or array of labels, which is ignored."
        ),
    ] = None


def with_file_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Return a verb with the options of its argument `file`, a `FileOptions`, in its place."""
    hints = get_type_hints(verb, include_extras=True)
    kind = hints.pop("file")
    shared = _option_parameters(kind)
    parameters = []
    for parameter in inspect.signature(verb).parameters.values():
        if parameter.name == "file":
            parameters += shared
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))

    @wraps(verb)
    def run(**given: Any) -> None:
        options = {one.name: given.pop(one.name) for one in shared}
        verb(**given, file=kind(**options))

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _option_parameters(kind: type[FileOptions]) -> list[inspect.Parameter]:
    """Return the fields of options as parameters of a function, those of its own in front."""
    hints = get_type_hints(kind, include_extras=True)
    options = [one for one in fields(kind) if hasattr(hints[one.name], "__metadata__")]
    own = [one for one in options if one.name in inspect.get_annotations(kind)]
    defaults = kind()
    return [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(defaults, one.name),
            annotation=hints[one.name],
        )
        for one in [*own, *(one for one in options if one not in own)]
    ]


def load_dataset(name: str) -> Bunch:
    """Load a data set by name."""
    from kmeans_kernel.data import datasets

    found: Bunch = getattr(datasets, f"load_{name.replace('-', '_')}")()
    return found


def read(
    data: str,
    part: Literal["train", "test"],
    file: FileOptions,
    *,
    quiet: bool,
    trained: Notation | None = None,
    **needed: Any,
) -> Table:
    """Read a file, or one part of a data set; a file takes precedence over a data set.

    Parameters
    ----------
    file : options of the input file
    trained : how the file was written that the model was trained on
    needed : further arguments of `read_table`
    """
    if data not in DATASETS or Path(data).exists():
        how = {**file.arguments(), "reading": replace(file.reading, trained=trained), **needed}
        with byte_bar(f"reading {data}", quiet=quiet) as on_bytes:
            table = read_table(data, on_bytes=on_bytes, **how)
        if not quiet:
            for told in table.notes:
                note(told)
        if table.n_dropped and not quiet:
            rows = "1 row was" if table.n_dropped == 1 else f"{table.n_dropped} rows were"
            warn(f"{rows} dropped for missing values.")
        return table
    if not file.is_default:
        fail(
            f"{data} is a data set with its own labels; leave out --target, --format, --drop and "
            "all other options that are for files."
        )
    found = load_dataset(data)
    X, y = found[f"X_{part}"], found[f"y_{part}"]
    return Table(X, y, np.arange(len(X)))


def kinds_of(estimator: Any) -> dict[str, str] | None:
    """Return the kinds of the columns that a fitted estimator takes, None for rows without names.

    In a pipeline they are those of its first step.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return None
    kinds = dict.fromkeys(map(str, names), "number")
    for column in columns_of(estimator):
        if str(column.name) in kinds:
            kinds[str(column.name)] = "drop" if column.kind == "dropped" else str(column.kind)
    return kinds


def trained_notation(estimator: Any, saved: Any, target: str | None) -> Notation:
    """Return how the training data of a model were written, with the values that it knows.

    Parameters
    ----------
    saved : the notation in the file of the model, None if it has none
    target : name of the column of labels, None if there is none
    """
    known = {
        str(column.name): _words(column.levels)
        for column in columns_of(estimator)
        if column.kind == "category"
    }
    if target is not None:
        known[target] = _words(estimator.classes_.tolist())
    levels = {name: words for name, words in known.items() if words}
    return replace(Notation(**(saved or {})), levels=levels)


def _words(levels: Iterable[Any]) -> frozenset[str]:
    """Return the levels that are text."""
    return frozenset(level for level in levels if isinstance(level, str))


def columns_of(estimator: Any) -> tuple[Any, ...]:
    """Return the columns that a fitted estimator takes, those of the first step of a pipeline."""
    from kmeans_kernel.export.web._table import columns_of as columns_of_page

    return columns_of_page(estimator)


def split_pair(option: str, text: str, form: str) -> tuple[str, str]:
    """Return the two sides of the last equals sign in the value of an option."""
    name, equals, value = text.rpartition("=")
    if not equals or not name or not value:
        raise DataFileError(f"{option} must be {form}, got {text!r}.")
    return name, value
