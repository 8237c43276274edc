"""Error and time of ours and of the classifiers a user would take instead, on the same rows.

    python -m benchmarks.peers           MNIST, Fashion-MNIST and digits
    python -m benchmarks.peers --quick   digits alone

Every job runs in a process of its own, again until it has five runs or half a minute is over, and
its median times and mean error are written when it ends; each run has its own seed, and a rerun
measures what is missing.

All see the same rows: pixels centred and of unit length. Settings are the peers' own but for those
named here, which are the customary ones for such rows; nothing was chosen by a test set.
"""

from __future__ import annotations

import io
import statistics
import warnings
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.contest import run_benchmark
from kmeans_kernel import paper
from kmeans_kernel.data import datasets
from kmeans_kernel.estimators.transformers._pixels import PixelNormalizer
from kmeans_kernel.report._records import answer, memory_bytes, version_of

PACKAGES = ("scikit-learn-intelex", "lightgbm")
NEEDS = {"intelex SVC": "scikit-learn-intelex", "LightGBM": "lightgbm"}
TITLES = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "digits": "digits, 8 × 8",
    "mnist_part": "MNIST, the first 5,000 training images",
}
TIMES = {"fit_seconds": "training, seconds", "predict_seconds": "prediction, seconds"}

SIZES = {  # our Q, Nystroem's components
    "digits": ([5, 10, 20, 50, 100], [100, 300]),
    "mnist": ([50, 100, 200, 500, 1000, 2000], [500, 1000, 3000]),
    "fashion_mnist": ([50, 100, 200, 500, 1000, 2000], [500, 1000, 3000]),
}

OURS = "#0b6e4f"
PEERS = {  # method: colour, marker
    "Nystroem + ridge, RBF": ("#8c6bb1", "s"),
    "Nystroem + ridge, degree 4": ("#8c6bb1", "v"),
    "SVC, RBF": ("#c1272d", "o"),
    "SVC, degree 4": ("#c1272d", "^"),
    "intelex SVC, RBF": ("#e08214", "o"),
    "intelex SVC, degree 4": ("#e08214", "^"),
    "LightGBM": ("#2b6cb0", "D"),
    "k nearest neighbours": ("#555555", "P"),
}
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "figure.facecolor": "white",
}


def jobs(data: str, ours: list[int], nystroem: list[int]) -> list[dict[str, Any]]:
    """Return what is measured on a data set; a peer that is not installed is left out.

    Ours and Nystroem have a size: representatives per class, and components.
    """
    found: list[dict[str, Any]] = [{"data": data, "method": "ours", "size": q} for q in ours]
    for kernel in ("RBF", "degree 4"):
        method = f"Nystroem + ridge, {kernel}"
        found += [{"data": data, "method": method, "size": m} for m in nystroem]
    others = ["k nearest neighbours", "LightGBM"]
    others += [
        f"{lib} SVC, {kernel}".strip() for lib in ("intelex", "") for kernel in ("RBF", "degree 4")
    ]
    found += [{"data": data, "method": method, "size": None} for method in others]
    return [job for job in found if installed(job["method"])]


def installed(method: str) -> bool:
    """Say whether the package that a method needs is there."""
    needed = [package for start, package in NEEDS.items() if method.startswith(start)]
    return all(map(version_of, needed))


def make(method: str, size: int | None, seed: int) -> Any:
    """Return the classifier, unfitted; its package is imported here."""
    if method == "ours":
        return paper.classifier(size or 100, random_state=seed)
    if method.startswith("Nystroem"):
        from sklearn.kernel_approximation import Nystroem
        from sklearn.linear_model import RidgeClassifier
        from sklearn.pipeline import make_pipeline

        # On unit rows γ = 1 is what SVC calls "scale".
        kernel = {"kernel": "rbf"} if method.endswith("RBF") else {"kernel": "poly", "degree": 4}
        features = Nystroem(gamma=1.0, coef0=0.0, n_components=size, random_state=seed, **kernel)
        return make_pipeline(features, RidgeClassifier(alpha=1e-3))
    if method == "k nearest neighbours":
        from sklearn.neighbors import KNeighborsClassifier

        return KNeighborsClassifier(3, algorithm="brute")
    if method == "LightGBM":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(verbose=-1, random_state=seed)
    if method.startswith("intelex"):
        from sklearnex.svm import SVC
    else:
        from sklearn.svm import SVC
    if method.endswith("RBF"):
        return SVC(C=10.0, cache_size=1000)
    return SVC(kernel="poly", degree=4, gamma=1.0, C=10.0, cache_size=1000)


def measure(
    sets: Any, method: str, size: int | None, *, enough_runs: int, enough_seconds: float
) -> dict[str, Any]:
    """Fit and test in this process, several times over if it is quick, each time with a new seed.

    Returns the median times and the mean error.
    """
    pixels = PixelNormalizer().fit(sets.X_train)
    X_train, X_test = pixels.transform(sets.X_train), pixels.transform(sets.X_test)
    fits: list[float] = []
    predictions: list[float] = []
    errors: list[float] = []
    begin = perf_counter()
    while not fits or (len(fits) < enough_runs and perf_counter() - begin < enough_seconds):
        classifier = make(method, size, seed=len(fits))
        start = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier.fit(X_train, sets.y_train)
            fitted = perf_counter()
            predicted = classifier.predict(X_test)
        predictions.append(perf_counter() - fitted)
        errors.append(100 * float(np.mean(predicted != sets.y_test)))
        fits.append(fitted - start)
    return {
        "error_percent": round(statistics.fmean(errors), 4),
        "fit_seconds": round(statistics.median(fits), 4),
        "predict_seconds": round(statistics.median(predictions), 4),
        "runs": len(fits),
        "peak_bytes": memory_bytes(peak=True),
    }


def draw_peers(rows: list[dict[str, Any]], kind: str = "png") -> bytes:
    """Draw the error against training and prediction time, one row of panels for each data set."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    names = [name for name in TITLES if any(row["data"] == name for row in rows)]
    with mpl.rc_context(STYLE):
        size = (10.5, 3.6 * len(names) + 0.7)
        figure = Figure(figsize=size)
        grid = figure.subplots(len(names), 2, squeeze=False)
        for name, panels in zip(names, grid, strict=True):
            for axes, (time, label) in zip(panels, TIMES.items(), strict=True):
                _draw_methods(axes, [row for row in rows if row["data"] == name], time)
                axes.set(xscale="log", xlabel=label, ylabel="test error, %")
                axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
                axes.xaxis.set_minor_formatter(NullFormatter())
            panels[0].set_title(TITLES[name], loc="left", fontweight="bold")
            panels[1].sharey(panels[0])
        legend: dict[str, Any] = {}
        for axes in grid[:, 0]:
            drawn, labels = axes.get_legend_handles_labels()
            legend.update(zip(labels, drawn, strict=True))
        handles = list(legend.values())
        figure.legend(handles, list(legend), loc="upper center", ncols=4, frameon=False)
        figure.tight_layout(rect=(0, 0, 1, 1 - 0.75 / size[1]))
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, dpi=110)
    return buffer.getvalue()


def _draw_methods(axes: Any, rows: list[dict[str, Any]], time: str) -> None:
    curve = [row for row in rows if row["method"] == "ours"]
    axes.plot(
        [row[time] for row in curve], [row["error_percent"] for row in curve],
        "o-", color=OURS, linewidth=2, label="ours, Q as written", zorder=3,
    )  # fmt: skip
    for row in curve:
        at = (row[time], row["error_percent"])
        axes.annotate(
            f"{row['size']}", at, (4, 5), textcoords="offset points", color=OURS, fontsize=8
        )
    for method, (colour, marker) in PEERS.items():
        found = [row for row in rows if row["method"] == method]
        if found:
            axes.plot(
                [row[time] for row in found], [row["error_percent"] for row in found],
                marker=marker, color=colour, linewidth=1, linestyle=":", label=method,
            )  # fmt: skip
    axes.set_ylim(0)


def measure_job(data: str, method: str, size: int | None) -> dict[str, Any]:
    """Measure one classifier on one data set, in this process."""
    sets = getattr(datasets, f"load_{data}")()
    return measure(sets, method, size, enough_runs=5, enough_seconds=30.0)


def _jobs(quick: bool) -> list[dict[str, Any]]:
    names = ["digits"] if quick else list(SIZES)
    return [job for name in names for job in jobs(name, *SIZES[name])]


if __name__ == "__main__":
    answer(measure_job) or run_benchmark("peers", __doc__, _jobs, PACKAGES)
