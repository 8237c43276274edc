"""What the library promises of its speed and memory, measured on MNIST in one run.

    python -m benchmarks.targets           all rows, medians of three
    python -m benchmarks.targets --quick   small sizes

Each row sets ours against the peers and the bare limit of the machine. A row is written to
benchmarks/results/targets.json (or quick_targets.json) when it is done; a rerun measures what is
missing. docs/performance.md is made from it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.linalg import lapack
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.datasets import make_classification
from sklearn.utils import Bunch

from benchmarks import peers, plain
from benchmarks.contest import RESULTS, Work, against_bytes, against_limit, against_rivals
from experiments import rows as experiment
from kmeans_kernel import KMeansKernelClassifier, paper
from kmeans_kernel.core.arrays.execution import Run
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import PLAIN_MAP
from kmeans_kernel.core.clustering.representatives import represent
from kmeans_kernel.core.clustering.spherical_kmeans import cluster
from kmeans_kernel.core.kernels.gram import ExactGram, gram_matrix
from kmeans_kernel.core.kernels.kernels import Gaussian, Polynomial
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.solvers.conjugate_gradients import ACCEPTABLE, solve_by_conjugate_gradients
from kmeans_kernel.core.solvers.dual import solve_on_representatives
from kmeans_kernel.core.solvers.nystrom import NormalEquations, NystromBasis, whitened_blocks
from kmeans_kernel.data import load_mnist
from kmeans_kernel.estimators._patch_voting import extract_patches
from kmeans_kernel.estimators.transformers._pixels import PixelNormalizer
from kmeans_kernel.report._records import facts, in_fresh_process, read_json, version_of, write_json
from kmeans_kernel.utils.threads import ThreadExecutor

PACKAGES = ("faiss-cpu", "superkmeans", "threadpoolctl")
REPEATS = 3
REPEATS_OF_SHORT_ROWS = 9  # a second or less each

# What a user imports for the classifiers of scikit-learn itself.
SKLEARN_CLASSIFIERS = (
    "import sklearn.ensemble, sklearn.linear_model, sklearn.neighbors, sklearn.svm"
)


def kmeans_contest(X: np.ndarray, q: int, iterations: int | None) -> tuple[int, dict[str, Work]]:
    """Return K-means by ours, the peers and the bare products, the same number of iterations.

    Without a number, as many as ours takes to converge to the paper's threshold. All but
    superkmeans, which does not take any, start from the same centroids.
    """
    first = X[np.random.default_rng(0).choice(len(X), q, replace=False)]

    def ours(limit: int = 300) -> int:
        found = cluster(X, q, init="random", tol=1e-6, max_iter=limit, rng=np.random.default_rng(0))
        return found.n_iter

    n = iterations or ours()

    def by_scikit_learn() -> None:
        SklearnKMeans(q, init=first, n_init=1, max_iter=n, tol=0, algorithm="lloyd").fit(X)

    def by_faiss() -> None:
        import faiss

        peer = faiss.Kmeans(
            X.shape[1], q, niter=n, spherical=True, min_points_per_centroid=1,
            max_points_per_centroid=len(X),
        )  # fmt: skip
        peer.train(X, init_centroids=first.copy())

    def by_superkmeans() -> None:
        from superkmeans import SuperKMeans

        peer = SuperKMeans(
            q, X.shape[1], hierarchical=False, iters=n, sampling_fraction=1.0,
            max_points_per_cluster=len(X), early_termination=False, angular=True,
        )  # fmt: skip
        peer.train(X)

    def bare() -> None:
        out = np.empty((len(X), q), dtype=X.dtype)
        for _ in range(n):
            np.matmul(X, first.T, out=out)

    works: dict[str, Work] = {"ours": lambda: ours(n), "scikit-learn": by_scikit_learn}
    if version_of("faiss-cpu"):
        works["faiss"] = by_faiss
    if version_of("superkmeans"):
        works["superkmeans"] = by_superkmeans
    return n, {**works, "bare": bare}


def solve_contest(
    rows: np.ndarray, labels: np.ndarray, m: int, regularization: float = 1e-6
) -> dict[str, Work]:
    """Return the solve for m rows of pixels, and a bare float32 Cholesky of that order.

    The kernel matrix is made before the clock starts, for both.
    """
    per_class = [np.flatnonzero(labels == k)[: m // 10] for k in range(10)]
    chosen = np.concatenate(per_class)
    directions, kernel = rows[chosen], Polynomial(4)
    targets = np.eye(10)[labels[chosen]]
    executor = ThreadExecutor()
    gram = gram_matrix(directions, kernel, np.float32, executor)
    copied = gram.buffer.copy() if m <= 10_000 else None

    def prepare() -> None:
        if copied is None:  # too large to keep
            again = gram_matrix(directions, kernel, np.float32, executor)
            np.copyto(gram.buffer, again.buffer)
        else:
            np.copyto(gram.buffer, copied)

    def ours() -> None:
        solution = solve_on_representatives(
            lambda _: gram,
            ExactGram(directions, kernel, executor),
            targets,
            regularization,
            float64_up_to=0,
            executor=executor,
        )
        if solution.relative_residual > 1e-6 or solution.factored_in != "float32":
            raise RuntimeError(f"the solve missed its accuracy: {solution}")

    def bare() -> None:
        np.fill_diagonal(gram.buffer, 1 + regularization)
        _, info = lapack.spotrf(gram.buffer.T, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            raise RuntimeError("the bare factorisation failed")

    return {"prepare for ours": prepare, "ours": ours, "prepare for bare": prepare, "bare": bare}


def predict_contest(rows: np.ndarray, test: np.ndarray, m: int) -> dict[str, Work]:
    """Return the scores of the test images by m representatives, and their two bare products."""
    model = FittedModel(
        directions=rows[:m],
        representative_classes=np.zeros(m, dtype=np.intp),
        representative_counts=np.ones(m, dtype=np.intp),
        dual_coef=0.3 * np.random.default_rng(0).normal(size=(m, 10)),
        intercept=np.zeros(10),
        kernel=Polynomial(4),
        sphere_map=PLAIN_MAP,
        classes=np.arange(10),
    )
    products = np.empty((len(test), m), dtype=np.float32)
    coefficients = model.dual_coef.astype(np.float32)

    def bare() -> None:
        np.matmul(test, model.directions.T, out=products)
        products @ coefficients

    return {"ours": lambda: model.scores(test, ThreadExecutor()), "bare": bare}


def samples_contest(mnist: Bunch, q: int) -> dict[str, Work]:
    """Return the fit of q representatives a class to all images, by both solvers."""
    executor, kernel, regularization = ThreadExecutor(), Gaussian(2.0), 1e-7
    pixels = PixelNormalizer().fit_transform(mnist.X_train)
    samples = LabelledRows(pixels, mnist.y_train.astype(np.intp), np.arange(10))
    rngs = [np.random.default_rng(k) for k in range(10)]
    settings = SimpleNamespace(
        n_representatives=q, init="random", tol=1e-6, max_iter=300, fit_on="samples"
    )
    found = represent(samples, settings, rngs, Run(executor))

    def ours() -> None:
        basis = NystromBasis.of(found.directions, kernel, executor)
        fit = solve_by_conjugate_gradients(basis, samples, found.counts, regularization, executor)
        if fit.relative_residual > ACCEPTABLE:
            raise RuntimeError(f"conjugate gradients ended at {fit.relative_residual}")

    def normal() -> None:
        basis = NystromBasis.of(found.directions, kernel, executor)
        NormalEquations.of(whitened_blocks(basis, samples, executor)).solve(regularization)

    return {"ours": ours, "normal equations": normal}


def choice_contest(q: int | None, X: np.ndarray, y: np.ndarray, *names: str) -> dict[str, Work]:
    """Return a fit that chooses for itself, and one that is given what the first chose of some."""
    found = KMeansKernelClassifier(q, random_state=0).fit(X, y)
    given = {name: getattr(found, f"{name}_") for name in names}

    def fit(**options: Any) -> Work:
        return lambda: KMeansKernelClassifier(q, random_state=0, **options).fit(X, y)

    return {"ours": fit(), "bare": fit(**given)}


@dataclass
class RowsContest:
    """Ours and a support vector machine on the same rows of pixels, which say nothing of images."""

    mnist: Bunch
    quick: bool
    fitted: dict[str, Any] = field(default_factory=dict)

    def fits(self) -> dict[str, Work]:
        """Return the training of each."""
        pixels = PixelNormalizer().fit_transform(self.mnist.X_train)
        n, (k, q, *given) = len(pixels), experiment.CHOSEN
        if self.quick:
            n, q = 5000, 100
        makers: dict[str, Callable[[], Any]] = {"ours": lambda: experiment.pipeline(k, q, *given)}
        rival = "intelex SVC, degree 4"
        if not peers.installed(rival):
            rival = "SVC, degree 4"
        makers[rival] = lambda: peers.make(rival, None, 0)

        def fit(name: str) -> None:
            self.fitted[name] = makers[name]().fit(pixels[:n], self.mnist.y_train[:n])

        return {name: partial(fit, name) for name in makers}

    def predictions(self) -> dict[str, Work]:
        """Return what each says of the test images, trained first if need be."""
        if not self.fitted:
            for work in self.fits().values():
                work()
        pixels = PixelNormalizer().fit_transform(self.mnist.X_test)
        return {name: partial(model.predict, pixels) for name, model in self.fitted.items()}

    def errors(self) -> dict[str, float]:
        """Return the share of the test images that each gets wrong, in percent."""
        return {
            name: round(100 * float(np.mean(predict() != self.mnist.y_test)), 2)
            for name, predict in self.predictions().items()
        }


def program_contest(q: int, errors: dict[str, float], n_train: int = 60_000) -> dict[str, Work]:
    """Return the whole raw + FFT program by ours and as plainly as the paper reads."""

    def ours() -> None:
        mnist = load_mnist()
        model = paper.raw_fft(q, random_state=0)
        model.fit(mnist.X_train[:n_train], mnist.y_train[:n_train])
        errors["ours"] = 100 * float(np.mean(model.predict(mnist.X_test) != mnist.y_test))

    def plainly() -> None:
        errors["plain float64"] = plain.raw_fft_error(q, n_train=n_train)

    return {"ours": ours, "plain float64": plainly}


def import_contest() -> dict[str, Work]:
    """Return the import of the package and of scikit-learn's classifiers, in fresh processes."""

    def python(code: str) -> Work:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603

    return {"ours": python("from kmeans_kernel import *"), "bare": python(SKLEARN_CLASSIFIERS)}


def rows(mnist: Bunch, *, quick: bool) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Give the name of each row and a function that measures it."""
    threes = mnist.X_train[mnist.y_train == 3]

    def kmeans(title: str, images: np.ndarray, q: int, goal: float) -> dict[str, Any]:
        pixels = PixelNormalizer().fit_transform(images)
        n, works = kmeans_contest(pixels, q, 5 if quick else None)
        name = f"K-means, {title}, k = {q}, {n} iterations"
        short = len(images) < 10_000 and not quick
        repeats = REPEATS_OF_SHORT_ROWS if short else REPEATS
        return against_rivals(name, works, repeats, goal, ["scikit-learn", "faiss"])

    def solve(m: int) -> dict[str, Any]:
        pixels = PixelNormalizer().fit_transform(mnist.X_train)
        works = solve_contest(pixels, mnist.y_train, m)
        return against_limit(f"solve, m = {m:,}", works, REPEATS, 1.35)

    def predict(m: int) -> dict[str, Any]:
        pixels = PixelNormalizer().fit(mnist.X_train)
        works = predict_contest(
            pixels.transform(mnist.X_train[:m]), pixels.transform(mnist.X_test), m
        )
        title = f"predict 10,000 images, m = {m:,}"
        return against_limit(title, works, REPEATS_OF_SHORT_ROWS, 1.25)

    def program(q: int) -> dict[str, Any]:
        errors: dict[str, float] = {}
        title = f"raw + FFT, Q = {q:,}, from the files to the error"
        works = program_contest(q, errors, n_train=10_000 if quick else 60_000)
        row = against_rivals(title, works, REPEATS, 6.0, ["plain float64"])
        return {**row, "error_percent": {name: round(e, 2) for name, e in errors.items()}}

    def conjugate(q: int) -> dict[str, Any]:
        title = f"fit to 60,000 images, m = {10 * q:,}, by conjugate gradients"
        works = samples_contest(mnist, q)
        return against_rivals(title, works, 1, 3.0, ["normal equations"])

    def choice(n: int) -> dict[str, Any]:
        title = f"fit of {n:,} images, Q = 100, all chosen; bare: all given"
        pixels = PixelNormalizer().fit_transform(mnist.X_train[:n])
        works = choice_contest(100, pixels, mnist.y_train[:n], "gamma", "regularization", "loss")
        return against_limit(title, works, REPEATS, 10.0)

    def table_choice(n: int) -> dict[str, Any]:
        title = f"fit of a table of {n:,} rows, defaults; bare: γ and λ given"
        X, y = make_classification(n, 20, n_informative=8, n_classes=4, flip_y=0.05, random_state=0)
        works = choice_contest(None, X, y, "kernel", "gamma", "regularization")
        return against_limit(title, works, REPEATS, 10.0)

    def imports() -> dict[str, Any]:
        title = "import of the package; bare: of scikit-learn's classifier modules"
        return against_limit(title, import_contest(), 3 if quick else 7, 1.5)

    contest = RowsContest(mnist, quick)

    def rows_fit() -> dict[str, Any]:
        works = contest.fits()
        rivals = [name for name in works if name != "ours"]
        row = against_rivals("fit to rows of pixels", works, 1, 2.0, rivals)
        return {**row, "error_percent": contest.errors()}

    def rows_predict() -> dict[str, Any]:
        works = contest.predictions()
        rivals = [name for name in works if name != "ours"]
        return against_rivals("predict 10,000 rows of pixels", works, REPEATS, 5.0, rivals)

    for q, goal in ((100, 1.0), (1000, 2.0), (2500, 1.8)):
        yield f"kmeans class {q}", lambda q=q, goal=goal: kmeans("one class", threes, q, goal)
    for m in (4000,) if quick else (10_000, 25_000):
        yield f"solve {m}", lambda m=m: solve(m)
    yield "predict", lambda: predict(4000 if quick else 10_000)
    yield "program", lambda: program(100 if quick else 1000)
    yield "conjugate gradients", lambda: conjugate(200 if quick else 1000)
    yield "choice", lambda: choice(3000 if quick else 60_000)
    yield "table choice", lambda: table_choice(500 if quick else 2000)
    yield "rows fit", rows_fit
    yield "rows predict", rows_predict
    yield "imports", imports
    if quick:
        return
    yield "kmeans all", lambda: kmeans("all 60,000 × 784", mnist.X_train, 1000, 1.7)
    patches = extract_patches(threes, (25, 25))[:90_000]
    yield "kmeans patches", lambda: kmeans("90,000 patches × 625", patches, 1000, 1.7)
    yield "memory raw 2500", raw_memory
    yield from (("memory solve 50000", solve_memory), ("memory patches 5000", patches_memory))


def raw_memory() -> dict[str, Any]:
    """Measure the memory of paper.raw(2500) above the data."""
    job = {"features": "raw", "q": 2500, "seed": 0}
    found: Any = in_fresh_process("kmeans_kernel.report.reproduction", job)
    used = found["fit_peak_bytes"] - found["loaded_bytes"]
    target = "at most 1.3 times one float32 m × m matrix"
    title = "peak memory of the fit above the data, raw, Q = 2500"
    row = against_bytes(title, used, 4 * 25_000**2, target, 1.3)
    return {**row, "error_percent": {"ours": found["error_percent"]}}


def patches_5000() -> dict[str, Any]:
    """Train and test the paper's largest classifier in a process of its own, or read what it did.

    This takes the better part of an hour; both rows that need it share one run.
    """
    path = RESULTS / "patches_5000.json"
    if not path.exists():
        job = {"features": "patches", "q": 5000, "seed": 0}
        measured = in_fresh_process("kmeans_kernel.report.reproduction", job)
        write_json(path, {"machine": facts(), **job, **measured})
    found: dict[str, Any] = read_json(path)
    return found


def solve_memory() -> dict[str, Any]:
    """Return the memory of a fit with 50,000 representatives, data and all."""
    found = patches_5000()
    title = "peak memory of a fit with m = 50,000, data and all"
    return against_bytes(title, found["fit_peak_bytes"], 13e9, "at most 13 GB", 1.0)


def patches_memory() -> dict[str, Any]:
    """Return the memory of training and testing the paper's largest classifier."""
    found = patches_5000()
    title = "peak memory of patches, Q = 5000, fit and test"
    row = against_bytes(title, found["peak_bytes"], 16e9, "at most 16 GB", 1.0)
    return {**row, "error_percent": {"ours": found["error_percent"]}}


def main() -> None:
    """Measure the rows that are missing and write each as it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, measured anew")
    parser.add_argument("--only", help="measure this row alone, anew")
    options = parser.parse_args()
    path = RESULTS / ("quick_targets.json" if options.quick else "targets.json")
    done = read_json(path)["rows"] if path.exists() and not options.quick else {}
    wanted = dict(rows(load_mnist(), quick=options.quick))
    if options.only is not None:
        if options.only not in wanted:
            parser.error(f"no row {options.only!r}; there are {', '.join(wanted)}")
        done.pop(options.only, None)
        wanted = {options.only: wanted[options.only]}
    for name, measure in wanted.items():
        if name not in done:
            done[name] = {**measure(), "machine": facts(PACKAGES)}
            write_json(path, {"rows": done})
    print(f"Written: {path.name}")


if __name__ == "__main__":
    main()
