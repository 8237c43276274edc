"""kmeans-kernel fit."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kmeans_kernel.cli._large import blocks_of, fit_on_cluster, input_files, large_kind
from kmeans_kernel.cli._output import (
    AsJson,
    Quiet,
    Verbose,
    err,
    one_sentence,
    out,
    training_bars,
    write_json,
)  # fmt: skip
from kmeans_kernel.cli._reading import (
    Data,
    Drop,
    DropMissing,
    FormatOption,
    Target,
    ZeroBased,
    how_to_read,
    read,
)  # fmt: skip
from kmeans_kernel.utils.files import check_writable

if TYPE_CHECKING:
    from kmeans_kernel.data.tables import Format, Table


STANDARD_OUTPUT = Path("/dev/stdout")


class Features(StrEnum):
    """What the classifier sees."""

    raw = "raw"
    raw_fft = "raw_fft"
    patches = "patches"
    patterns = "patterns"
    table = "table"


def fit(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The model file to write; - for stdout.")
    ],
    target: Target = None,
    q: Annotated[
        str | None,
        typer.Option(
            "--representatives",
            "-q",
            metavar="<int|auto>",
            help="Representatives per class; auto finds how many are enough. [table: 2000 shared "
            "among the classes, at least 100 of each; patterns: 1000; other images: 100]",
        ),
    ] = None,
    features: Annotated[
        Features | None,
        typer.Option(
            help="What the classifier sees: table, standardised columns; of images, raw pixels, "
            "raw_fft, pixels with Fourier magnitudes, patches, a vote of sub-images, or patterns, "
            "those of edges, for the lowest error. By default raw of images and table of anything "
            "else."
        ),
    ] = None,
    regularization: Annotated[
        float | None,
        typer.Option(
            min=0, help="The penalty. [table, patterns: chosen from the data, other images: 1e-6]"
        ),
    ] = None,
    gamma: Annotated[
        float | None,
        typer.Option(
            min=0, help="Inverse width of the Gaussian. [table, patterns: chosen from the data]"
        ),
    ] = None,
    border: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.95,
            help="The share of the representatives that are rows at the border between classes.",
        ),
    ] = None,
    lift: Annotated[
        float | None,
        typer.Option(
            min=0, help="The constant appended to a row. [table: their typical length, images: 0]"
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Decides the first centroids and what is held out.")
    ] = 0,
    blocks: Annotated[
        bool,
        typer.Option(
            "--blocks",
            help="Read a Parquet or CSV file in blocks, as is done by itself if it does not fit "
            "into memory, and for a directory of Parquet files.",
        ),
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="With blocks, a file from which an interrupted fit goes on."),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="The scheduler of a Dask cluster, tcp://host:8786, whose workers read the file.",
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
    """Train a classifier on labelled rows and save it.

    With a file of your own, name the column of the labels: fit FILE.csv --target COLUMN -o
    my.model. With a data set, its training part is used.

    Example:

    \b
    kmeans-kernel fit digits -q 20 -o digits.model
    """
    with one_sentence(verbose=verbose):
        import safetensors  # noqa: F401 - without it the work would be for nothing

        from kmeans_kernel.export.model_file import save_model
        from kmeans_kernel.report._inspection import classifier_of, describe

        output = STANDARD_OUTPUT if str(output) == "-" else output
        check_writable(output, *input_files(data), *filter(None, [target]))
        how = how_to_read(target, file_format, drop, drop_missing, zero_based)
        given = {
            "regularization": regularization, "gamma": gamma, "border": border, "lift": lift,
        }  # fmt: skip
        options = {name: value for name, value in given.items() if value is not None}
        kind = features and features.value
        n_wanted = None if q is None else representatives(q)
        large = large_kind(data, file_format, wanted=blocks or dask is not None)
        if large is not None:
            if kind not in (None, "table"):
                raise ValueError(f"rows in blocks are columns of a table, not {kind}.")
            estimator = table_estimator(n_wanted, seed, options)
            with training_bars(quiet=quiet):
                n_rows = fit_large(
                    estimator, data, large, target, drop, drop_missing, dask, checkpoint, quiet
                )
        else:
            if checkpoint is not None:
                raise ValueError("--checkpoint is for rows in blocks; with --blocks they are.")
            table = read(data, "train", how, quiet=quiet, labels=True)
            estimator, n_rows = make_estimator(table, kind, n_wanted, seed, options), len(table.X)
            with training_bars(quiet=quiet):
                estimator.fit(table.X, table.y)
        save_model(estimator, output)
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
    """Return the number of representatives that an option says."""
    if text == "auto":
        return "auto"
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise ValueError(f"--representatives must be a whole number of at least 1 or auto, got {text}.")


def fit_large(
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
    """Fit to rows in blocks, here or on a cluster; return how many there were."""
    from kmeans_kernel.data._pipelines import fit_pipeline

    if dask is not None:
        if drop_missing or checkpoint is not None:
            raise ValueError("--drop-missing and --checkpoint do not go with --dask.")
        return fit_on_cluster(estimator, dask, data, kind, target, drop)
    rows = blocks_of(data, kind, target, drop, drop_missing=drop_missing, quiet=quiet)
    fit_pipeline(estimator, rows, checkpoint=checkpoint)
    return int(estimator[-1].representative_counts_.sum())


def table_estimator(q: int | Literal["auto"] | None, seed: int, options: dict[str, Any]) -> Any:
    """Return the estimator for a table, unfitted."""
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
    """Return the estimator for a table or for images, unfitted."""
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
            f"--gamma belongs to the Gaussian kernel, and {kind} has a polynomial one."
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
    """Return the paper's patch, three pixels less than the image each way."""
    if not table.are_images:
        return 25, 25
    height, width = table.X.shape[1:]
    return max(1, height - 3), max(1, width - 3)
