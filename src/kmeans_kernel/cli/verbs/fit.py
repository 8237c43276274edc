"""kmeans-kernel fit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import typer

from kmeans_kernel.cli._estimator import (
    KINDS,
    Features,
    make_estimator,
    out_of_core_estimator,
    parse_class_weight,
    parse_column_types,
    representatives,
)
from kmeans_kernel.cli._fitted import Fitted, print_fit
from kmeans_kernel.cli._input import Data, LabelledOptions, read, with_file_options
from kmeans_kernel.cli._out_of_core import (
    block_format,
    check_options,
    fit_on_cluster,
    list_input_files,
    open_blocks,
)
from kmeans_kernel.cli._output import AsJson, Quiet, Verbose, report_errors, training_bars
from kmeans_kernel.cli._target import with_classes
from kmeans_kernel.utils.files import check_writable

if TYPE_CHECKING:
    from kmeans_kernel.data.tables import Format


STANDARD_OUTPUT = Path("/dev/stdout")


@with_file_options
def fit(
    data: Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Model file to write; - for standard output."),
    ],
    q: Annotated[
        str | None,
        typer.Option(
            "--representatives",
            "-q",
            metavar="<int|auto>",
            help="Number of representatives per class; auto doubles it while the hold-out error "
            "decreases. By default, for table, 2,000 shared among up to 20 classes, 100 each for "
            "up to 40, 4,000 shared among more; 1,000 for patterns; 100 for other features of "
            "images.",
        ),
    ] = None,
    features: Annotated[
        Features | None,
        typer.Option(
            help="Features that the classifier is trained on. table: standardised columns. For "
            "images, raw: pixels; raw_fft: pixels and Fourier magnitudes; patches: sub-images "
            "that vote; patterns: edge patterns, which have the lowest error. By default raw for "
            "images, else table."
        ),
    ] = None,
    regularization: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Regularisation strength. By default it is chosen by the hold-out error for table "
            "and patterns, and 1e-6 for other features of images.",
        ),
    ] = None,
    gamma: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Inverse width of the Gaussian kernel, for table and patterns. By default it is "
            "chosen by the hold-out error.",
        ),
    ] = None,
    boundary_fraction: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.95,
            help="Fraction of the representatives that are rows near the class boundary, not "
            "centroids. By default 0.",
        ),
    ] = None,
    lift: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Constant feature that is appended to each row before it is scaled to unit "
            "length. By default the typical length of a row for table, 0 for images.",
        ),
    ] = None,
    class_weight: Annotated[
        list[str],
        typer.Option(
            metavar="balanced|LABEL=WEIGHT",
            help="balanced gives every class the same total weight; LABEL=WEIGHT multiplies the "
            "weight of the rows of a class, and may be given repeatedly. By default every row has "
            "weight 1.",
        ),
    ] = [],  # noqa: B006
    column_type: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN=KIND",
            help=f"What a column is taken for: {', '.join(KINDS)}. May be given repeatedly. By "
            "default it follows from the values of the column.",
        ),
    ] = [],  # noqa: B006
    cut_target: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="K",
            help="Cut labels that are numbers into K classes of about equal size. By default "
            "numbers are classes, and refused if they look like a quantity.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Random seed of the initial centroids and of the hold-out rows.")
    ] = 0,
    time_budget: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Seconds after which the search for hyperparameters ends with the best found so "
            "far; the fit with them follows, and is not limited. By default there is no limit.",
        ),
    ] = None,
    blocks: Annotated[
        bool,
        typer.Option(
            "--blocks",
            help="Read a Parquet or CSV file out of core, in blocks of rows. Files too large for "
            "the memory and directories of Parquet files are always read this way.",
        ),
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File to resume an interrupted fit from. Only for data read in blocks."),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address of the scheduler of a Dask cluster, for example tcp://host:8786, whose "
            "workers read the data.",
        ),
    ] = None,
    *,
    file: LabelledOptions,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train a classifier and save it to a file.

    For your own file, name the column of labels: fit FILE.csv --target COLUMN -o my.model. For a
    data set, its training part is used.

    Example:

    \b
    kmeans-kernel fit digits -q 20 -o digits.model
    """
    with report_errors(verbose=verbose):
        import safetensors  # noqa: F401 - fail before the fit, not when the model is saved

        from kmeans_kernel.export.model_file import save_with_notation

        output = STANDARD_OUTPUT if str(output) == "-" else output
        check_writable(output, *list_input_files(data), *filter(None, [file.target]))
        given = {
            "regularization": regularization, "gamma": gamma, "lift": lift,
            "boundary_fraction": boundary_fraction, "time_budget": time_budget,
        }  # fmt: skip
        how = _Settings(
            None if q is None else representatives(q),
            features and features.value,
            seed,
            {name: value for name, value in given.items() if value is not None},
            class_weight,
            parse_column_types(column_type),
            cut_target,
        )
        large = block_format(data, file.file_format, wanted=blocks or dask is not None)
        if large is not None:
            fitted = _fit_out_of_core(data, large, file, how, dask, checkpoint, quiet=quiet)
        elif checkpoint is not None:
            raise ValueError("--checkpoint is for data read in blocks; add --blocks.")
        else:
            fitted = _fit_in_memory(data, file, how, quiet=quiet)
        save_with_notation(fitted.estimator, output, fitted.known_notation())
        print_fit(
            fitted, output, to_stderr=output == STANDARD_OUTPUT, as_json=as_json, quiet=quiet,
            verbose=verbose,
        )  # fmt: skip


@dataclass(frozen=True)
class _Settings:
    """What to fit: the options of `fit` beside those of its files."""

    q: int | Literal["auto"] | None
    features: str | None
    seed: int
    options: dict[str, Any]
    class_weight: Sequence[str]
    kinds: dict[str, str]
    cut_target: int | None

    def parameters(self, classes: npt.NDArray[Any] | None) -> dict[str, Any]:
        """Return the parameters of the classifier, with weights of the classes if any are given."""
        weights = parse_class_weight(self.class_weight, classes)
        return self.options if weights is None else {"class_weight": weights, **self.options}


def _fit_in_memory(data: str, file: LabelledOptions, how: _Settings, *, quiet: bool) -> Fitted:
    """Fit to a file or a data set that is read at once."""
    table = read(data, "train", file, quiet=quiet, labels=True, types=how.kinds)
    are_classes = how.kinds.get(file.target or "") == "category"
    table = with_classes(table, how.cut_target, file.target, data, are_classes=are_classes)
    if how.kinds and not table.names:
        raise ValueError(f"{data} has no names of columns; leave out --column-type.")
    kinds = {name: kind for name, kind in how.kinds.items() if name in table.names}
    classes, counts = np.unique(np.asarray(table.y), return_counts=True)
    parameters = how.parameters(classes)
    estimator = make_estimator(table, how.features, how.q, how.seed, parameters, kinds)
    with training_bars(quiet=quiet), warnings.catch_warnings():
        # print_fit tells of such columns with the options of the command line.
        warnings.filterwarnings("ignore", message=".*nearly as many levels as rows")
        estimator.fit(table.X, table.y)
    return Fitted(estimator, len(table.X), (classes, counts), table.notation)


def _fit_out_of_core(
    data: str,
    kind: Format,
    file: LabelledOptions,
    how: _Settings,
    dask: str | None,
    checkpoint: Path | None,
    *,
    quiet: bool,
) -> Fitted:
    """Fit to data read in blocks, in this process or on a cluster."""
    from kmeans_kernel.data._pipelines import fit_pipeline

    if how.features not in (None, "table"):
        raise ValueError(
            f"data read in blocks must be a table, not {how.features}; leave out --features."
        )
    drop = check_options(file, how.kinds, how.cut_target, on_cluster=dask is not None)
    if dask is not None:
        if checkpoint is not None:
            raise ValueError("--checkpoint cannot be used with --dask.")
        estimator = out_of_core_estimator(how.q, how.seed, how.parameters(None))
        with training_bars(quiet=quiet):
            n_rows = fit_on_cluster(estimator, dask, data, kind, file.target, drop)
        return Fitted(estimator, n_rows)
    rows = open_blocks(data, kind, file, drop, quiet=quiet)
    estimator = out_of_core_estimator(how.q, how.seed, how.parameters(rows.classes))
    with training_bars(quiet=quiet):
        fit_pipeline(estimator, rows, checkpoint=checkpoint)
    counts = np.asarray(rows.counts)
    return Fitted(estimator, int(counts.sum()), (rows.classes, counts), rows.notation)
