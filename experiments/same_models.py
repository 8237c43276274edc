"""Compare the models of this checkout with those of another commit, to the last bit.

    python -m experiments.same_models 4d82369

Fits some forty classifiers, on tables, images, sparse rows, blocks and batches, with the code of
both, and compares every array and number of the models. Names of parameters that the other commit
has not are translated. Writes experiments/results/same_models.json. For changes that must not
change results.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)

import kmeans_kernel
from kmeans_kernel import KMeansKernelClassifier

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "experiments" / "results" / "same_models.json"

# Nothing of the features is searched.
PLAIN: dict[str, Any] = {"feature_scales": None, "feature_transform": None}
GIVEN: dict[str, Any] = {**PLAIN, "gamma": 0.5, "regularization": 1e-4}

# Names of today, and those before the folders of today.
BEFORE = {"boundary_fraction": "border", "feature_transform": "squash"}
VALUES_BEFORE = {"rbf": "gaussian", "laplacian": "laplace", "asinh": "learned"}

Case = Callable[[], dict[str, str]]


def classifier(q: Any = None, **options: Any) -> KMeansKernelClassifier:
    """Return a classifier, with the names of parameters that this version has."""
    known = inspect.signature(KMeansKernelClassifier.__init__).parameters
    if "boundary_fraction" not in known:
        options = {
            BEFORE.get(name, name): VALUES_BEFORE.get(value, value)
            if isinstance(value, str)
            else value
            for name, value in options.items()
        }
    return KMeansKernelClassifier(q, **{"random_state": 0, **options})


def array_blocks(*arrays: Any, rows: int) -> Any:
    """Return blocks of arrays, from where this version has them."""
    try:
        from kmeans_kernel.data import ArrayBlocks
    except ImportError:
        from kmeans_kernel.blocks import ArrayBlocks  # type: ignore[import-not-found,no-redef]
    return ArrayBlocks(*arrays, rows=rows)


def digest(array: Any) -> str:
    """Return a digest of an array: its type, shape and bytes."""
    array = np.ascontiguousarray(array)
    told = f"{array.dtype.str} {array.shape} ".encode()
    return hashlib.sha256(told + array.tobytes()).hexdigest()[:16]


def facts(found: Any, X: Any) -> dict[str, str]:
    """Return digests of all that a fitted classifier consists of, and of its scores."""
    model, scales = found.model_, found.feature_scales_
    return {
        "directions": digest(model.directions),
        "classes": digest(model.representative_classes),
        "counts": digest(np.asarray(model.representative_counts, dtype=float)),
        "dual_coef": digest(model.dual_coef),
        "intercept": digest(model.intercept),
        "scores": digest(found.decision_function(X)),
        "representatives": digest(found.representatives_),
        "scales": "none" if scales is None else digest(scales),
        "numbers": repr(
            (model.temperature, found.regularization_, found.loss_, found.held_out_error_,
             found.n_iter_.tolist(), found.relative_residual_, found.lift_)
        ),
    }  # fmt: skip


def cases() -> dict[str, Case]:
    """Return what is fitted, by name."""
    rng = np.random.default_rng(5)
    iris, wine, cancer, digits = (
        load(return_X_y=True) for load in (load_iris, load_wine, load_breast_cancer, load_digits)
    )
    tails = rng.lognormal(0, 1.5, (400, 4))
    heavy = tails, (np.log(tails[:, :2]).sum(axis=1) > 0).astype(int) + (np.log(tails[:, 2]) > 1)
    X, y = make_classification(6000, 20, n_informative=12, n_classes=4, random_state=1)
    large = X.astype(np.float32), y
    table = make_classification(2500, 8, n_informative=6, n_classes=3, random_state=2)
    weights = rng.integers(0, 4, len(wine[1])).astype(float)
    sparse = csr_matrix(np.where(digits[0] > 8, digits[0], 0)), digits[1]
    images = digits[0].reshape(-1, 8, 8)

    def fit(data: Any, q: Any = None, **options: Any) -> Case:
        return lambda: facts(classifier(q, **options).fit(*data), data[0])

    def out_of_core(data: Any, rows: int, q: int, **options: Any) -> Case:
        blocks = array_blocks(*data, rows=rows)
        return lambda: facts(classifier(q, **options).fit(blocks), data[0])

    def batches() -> dict[str, str]:
        model = classifier(15)
        for k in range(0, 2500, 500):
            model.partial_fit(table[0][k : k + 500], table[1][k : k + 500], classes=[0, 1, 2])
        return facts(model, table[0])

    def warm() -> dict[str, str]:
        model = classifier(20, warm_start=True, **GIVEN).fit(*table)
        return facts(model.fit(table[0][:2000], table[1][:2000]), table[0])

    def image_pipeline() -> dict[str, str]:
        model = kmeans_kernel.image_classifier(20, random_state=0).fit(images, digits[1])
        return facts(model[-1], model[:-1].transform(images))

    def patches() -> dict[str, str]:
        voting = kmeans_kernel.paper.patches(20, patch=6, random_state=0).fit(images, digits[1])
        return {"dual_coef": digest(voting.classifier_[-1].model_.dual_coef)}

    def spherical() -> dict[str, str]:
        found = kmeans_kernel.SphericalKMeans(30, random_state=0).fit(digits[0])
        return {"centres": digest(found.cluster_centers_), "labels": digest(found.labels_)}

    on_representatives = {"fit_on": "representatives"}
    return {
        "iris": fit(iris), "iris, seed 1": fit(iris, random_state=1), "wine": fit(wine),
        "cancer, Q = 50": fit(cancer, 50), "cancer": fit(cancer), "long tails": fit(heavy),
        "asinh and scales": fit(heavy, 20, feature_transform="asinh", feature_scales="learned"),
        "digits": fit(digits, 20), "leave-one-out": fit(large, 40, **PLAIN),
        "logistic": fit(large, 60, loss="logistic", **GIVEN), "table": fit(table, 200),
        "on representatives": fit(wine, 20, **on_representatives),
        "on representatives, given": fit(cancer, 20, kernel="rbf", **on_representatives, **GIVEN),
        "paper": lambda: facts(
            kmeans_kernel.paper.classifier(20, random_state=0).fit(*digits), digits[0]
        ),
        "poly": fit(wine, 10, kernel="poly", degree=3),
        "laplacian": fit(wine, 10, kernel="laplacian"),
        "laplacian, given": fit(cancer, 30, kernel="laplacian", **GIVEN),
        "boundary rows": fit(large, 30, boundary_fraction=0.5, **PLAIN),
        "boundary rows, given": fit(large, 60, boundary_fraction=0.7, loss="squared", **GIVEN),
        "size searched": fit(wine, "auto"),
        "size searched, given": fit(table, "auto", loss="squared", **GIVEN),
        "weights": lambda: facts(
            classifier(10).fit(*wine, sample_weight=weights), wine[0]
        ),
        "balanced": fit(cancer, 20, class_weight="balanced"), "sparse": fit(sparse, 12),
        "k-means++": fit(large, 25, init="k-means++", **GIVEN),
        "conjugate gradients": fit(large, 400, loss="squared", **GIVEN),
        "float32 factor": fit(large, 600, **on_representatives, **GIVEN),
        "out of core": out_of_core(table, 300, 20),
        "out of core, logistic": out_of_core(large, 1000, 20, loss="logistic", **GIVEN),
        "out of core, paper's fit": out_of_core(large, 1000, 20, **on_representatives, **GIVEN),
        "out of core, asinh": out_of_core(heavy, 100, 20, feature_transform="asinh"),
        "batches": batches, "warm start": warm, "images": image_pipeline, "patches": patches,
        "spherical K-means": spherical,
    }  # fmt: skip


def all_facts() -> dict[str, dict[str, str]]:
    """Fit every case with the code that is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: case() for name, case in cases().items()}


def facts_of(source: Path) -> dict[str, dict[str, str]]:
    """Fit every case with the code in a folder, in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--facts"]
    environment = {**os.environ, "PYTHONPATH": str(source / "src")}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)  # noqa: S603
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


def main(commit: str) -> int:
    """Compare this checkout with a commit; return the exit code."""
    from kmeans_kernel.report._records import facts as machine_facts
    from kmeans_kernel.report._records import write_json

    git = ["git", "-C", str(ROOT)]
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "other"
        subprocess.run([*git, "worktree", "add", "--quiet", str(other), commit], check=True)  # noqa: S603
        try:
            before, now = facts_of(other), facts_of(ROOT)
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", str(other)], check=True)  # noqa: S603
    different = {
        name: [part for part in now[name] if now[name][part] != before[name].get(part)]
        for name in now
        if now[name] != before[name]
    }
    print(f"{len(now)} models, {len(now) - len(different)} the same to the last bit: {different}")
    row = {"other": commit, "models": len(now), "different": different, "machine": machine_facts()}
    write_json(RESULTS, row)
    return 1 if different else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--facts"]:
        print(json.dumps(all_facts()))
    elif len(sys.argv) == 2:
        sys.exit(main(sys.argv[1]))
    else:
        sys.exit(__doc__)
