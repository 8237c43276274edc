"""kmeans-kernel fit."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kmeans_kernel.cli._input import (
    Data,
    Drop,
    DropMissing,
    FormatOption,
    Target,
    ZeroBased,
    read,
    read_options,
)  # fmt: skip
from kmeans_kernel.cli._out_of_core import (
    block_format,
    fit_on_cluster,
    list_input_files,
    open_blocks,
)
from kmeans_kernel.cli._output import (
    AsJson,
    Quiet,
    Verbose,
    err,
    out,
    report_errors,
    training_bars,
    write_json,
)  # fmt: skip
from kmeans_kernel.utils.files import check_writable

if TYPE_CHECKING:
    from kmeans_kernel.data.tables import Format, Table


STANDARD_OUTPUT = Path("/dev/stdout")


class Features(StrEnum):
    """Features that the classifier is trained on."""

    raw = "raw"
    raw_fft = "raw_fft"
    patches = "patches"
    patterns = "patterns"
    table = "table"


def fit(
    data: Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Model file to write; - for standard output."),
    ],
    target: Target = None,
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
    file_format: FormatOption = None,
    drop: Drop = [],  # noqa: B006
    drop_missing: DropMissing = False,
    zero_based: ZeroBased = False,
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

        from kmeans_kernel.export.model_file import save_model

        output = STANDARD_OUTPUT if str(output) == "-" else output
        check_writable(output, *list_input_files(data), *filter(None, [target]))
        how = read_options(target, file_format, drop, drop_missing, zero_based)
        given = {
            "regularization": regularization, "gamma": gamma, "lift": lift,
            "boundary_fraction": boundary_fraction, "time_budget": time_budget,
        }  # fmt: skip
        options = {name: value for name, value in given.items() if value is not None}
        kind = features and features.value
        n_representatives = None if q is None else representatives(q)
        large = block_format(data, file_format, wanted=blocks or dask is not None)
        if large is not None:
            if kind not in (None, "table"):
                raise ValueError(
                    f"data read in blocks must be a table, not {kind}; leave out --features."
                )
            estimator = table_estimator(n_representatives, seed, options)
            with training_bars(quiet=quiet):
                n_rows = fit_out_of_core(
                    estimator, data, large, target, drop, drop_missing, dask, checkpoint, quiet
                )
        else:
            if checkpoint is not None:
                raise ValueError("--checkpoint is for data read in blocks; add --blocks.")
            table = read(data, "train", how, quiet=quiet, labels=True)
            estimator = make_estimator(table, kind, n_representatives, seed, options)
            n_rows = len(table.X)
            with training_bars(quiet=quiet):
                estimator.fit(table.X, table.y)
        save_model(estimator, output)
        print_fit(estimator, n_rows, output, as_json=as_json, quiet=quiet, verbose=verbose)


def print_fit(
    estimator: Any, n_rows: int, output: Path, *, as_json: bool, quiet: bool, verbose: bool
) -> None:
    """Print what was fitted, and to which file it was saved."""
    from kmeans_kernel.report._inspection import classifier_of, describe

    if verbose:
        for stage, seconds in classifier_of(estimator).stage_seconds_.items():
            err.print(f"{seconds:.2f} s for {stage}")
    found = {"model": str(output), "rows": n_rows, **describe(estimator)}
    if as_json and output != STANDARD_OUTPUT:
        write_json(found)
    elif not quiet:
        (err if output == STANDARD_OUTPUT else out).print(
            f"{n_rows} rows, {len(found['classes'])} classes, "
            f"{found['representatives']} representatives; saved to {output}"
        )


def representatives(text: str) -> int | Literal["auto"]:
    """Parse the option --representatives."""
    if text == "auto":
        return "auto"
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise ValueError(f"--representatives must be a whole number of at least 1 or auto, got {text}.")


def fit_out_of_core(
    estimator: Any,
    data: str,
    kind: Format,
    target: str | None,
    drop: list[str],
    drop_missing: bool,
    dask: str | None,
    checkpoint: Path | None,
    quiet: bool,
) -> int:
    """Fit out of core, in this process or on a cluster; return the number of rows."""
    from kmeans_kernel.data._pipelines import fit_pipeline

    if dask is not None:
        if drop_missing or checkpoint is not None:
            raise ValueError("--drop-missing and --checkpoint cannot be used with --dask.")
        return fit_on_cluster(estimator, dask, data, kind, target, drop)
    rows = open_blocks(data, kind, target, drop, drop_missing=drop_missing, quiet=quiet)
    fit_pipeline(estimator, rows, checkpoint=checkpoint)
    return int(estimator[-1].representative_counts_.sum())


def table_estimator(q: int | Literal["auto"] | None, seed: int, options: dict[str, Any]) -> Any:
    """Return an unfitted estimator for a table."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from kmeans_kernel import KMeansKernelClassifier

    return make_pipeline(StandardScaler(), KMeansKernelClassifier(q, random_state=seed, **options))


def make_estimator(
    table: Table,
    features: str | None,
    q: int | Literal["auto"] | None,
    seed: int,
    options: dict[str, Any],
) -> Any:
    """Return an unfitted estimator for a table or for images."""
    from kmeans_kernel import image_classifier, paper

    kind = features or ("raw" if table.are_images else "table")
    if kind == "table":
        if table.are_images:
            raise ValueError("images have no columns to standardise; use --features raw.")
        return table_estimator(q, seed, options)
    if kind == "patterns":
        estimator: Any = image_classifier(random_state=seed)
    elif "gamma" in options:
        raise ValueError(
            f"--gamma is for the Gaussian kernel, and {kind} has a polynomial one; leave it out, "
            "or use --features patterns."
        )
    else:
        estimator = getattr(paper, kind)(random_state=seed)
    if kind == "patches":
        estimator.set_params(patch_shape=_patch_shape(table))
    prefix = "classifier__" if kind == "patches" else ""
    given = options if q is None else {"n_representatives": q, **options}
    return estimator.set_params(
        **{f"{prefix}kmeanskernelclassifier__{name}": value for name, value in given.items()}
    )


def _patch_shape(table: Table) -> tuple[int, int]:
    """Return the patch shape of the paper: three pixels smaller than the image on each axis."""
    if not table.are_images:
        return 25, 25
    height, width = table.X.shape[1:]
    return max(1, height - 3), max(1, width - 3)
