"""Ours and the classifiers a user would take instead, on the same rows: error, time, memory.

    python -m benchmarks.peers           MNIST, Fashion-MNIST and digits
    python -m benchmarks.peers --quick   digits alone

Every job runs in a process of its own, again until it has five runs or half a minute is over, and
its median times and mean error are written when it ends; each run has its own seed, and a rerun
measures what is missing. All see the same rows: pixels
centred and of unit length. Settings are the peers' own but for those named here, which are the
customary ones for such rows; nothing was chosen by the test set.
"""

from __future__ import annotations

import statistics
import warnings
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.contest import run_benchmark
from experiments.records import answer, memory_bytes, version_of
from kmeans_kernel import KMeansKernelClassifier, PixelNormalizer, datasets

PACKAGES = ("scikit-learn-intelex", "lightgbm")

SIZES = {  # our Q, Nystroem's components
    "digits": ([5, 10, 20, 50, 100], [100, 300]),
    "mnist": ([50, 100, 200, 500, 1000, 2000], [500, 1000, 3000]),
    "fashion_mnist": ([50, 100, 200, 500, 1000, 2000], [500, 1000, 3000]),
}
NEEDS = {"intelex SVC": "scikit-learn-intelex", "LightGBM": "lightgbm"}

ENOUGH_RUNS, ENOUGH_SECONDS = 5, 30.0


def jobs(names: list[str]) -> list[dict[str, Any]]:
    """Return what is measured on each data set; a peer that is not installed is left out."""
    found = []
    for name in names:
        ours, nystroem = SIZES[name]
        found += [{"data": name, "method": "ours", "size": q} for q in ours]
        for kernel in ("RBF", "degree 4"):
            method = f"Nystroem + ridge, {kernel}"
            found += [{"data": name, "method": method, "size": m} for m in nystroem]
        for method in ("k nearest neighbours", "LightGBM"):
            found.append({"data": name, "method": method, "size": None})
        for library in ("intelex SVC", "SVC"):
            for kernel in ("RBF", "degree 4"):
                found.append({"data": name, "method": f"{library}, {kernel}", "size": None})
    return [job for job in found if installed(job["method"])]


def installed(method: str) -> bool:
    """Say whether the package that a method needs is there."""
    needed = [package for start, package in NEEDS.items() if method.startswith(start)]
    return all(map(version_of, needed))


def make(method: str, size: int | None, seed: int) -> Any:
    """Return the classifier, unfitted; its package is imported here."""
    if method == "ours":
        return KMeansKernelClassifier(
            size, kernel="poly", lift=0.0, regularization=1e-6, random_state=seed
        )
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


def measure(data: str, method: str, size: int | None) -> dict[str, Any]:
    """Fit and test in this process, several times over if it is quick."""
    sets = getattr(datasets, f"load_{data}")()
    pixels = PixelNormalizer().fit(sets.X_train)
    X_train, X_test = pixels.transform(sets.X_train), pixels.transform(sets.X_test)
    fits, predictions, errors = [], [], []
    begin = perf_counter()
    while not fits or (len(fits) < ENOUGH_RUNS and perf_counter() - begin < ENOUGH_SECONDS):
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


if __name__ == "__main__":
    answer(measure) or run_benchmark(
        "peers", __doc__, lambda quick: jobs(["digits"] if quick else list(SIZES)), PACKAGES
    )
