"""The first run: train the paper's classifier on real digits, show how it did, draw what it learnt.

Uses MNIST where it can be had and the bundled 8 × 8 digits otherwise, and says which. Writes a
picture, a page that classifies what you draw, and the figures as JSON to the folder named on the
command line, `build` by default.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter

import matplotlib as mpl
import numpy as np
import sklearn
import sklearn.metrics

import kmeans_kernel
from kmeans_kernel import paper
from kmeans_kernel.data import load_digits, load_mnist
from kmeans_kernel.export.web import to_web

Q = 100
PAPER_ERROR = 3.01  # the paper's Figure 1, raw pixels, Q = 100: read off the published plot


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    seconds = {}
    start = perf_counter()
    name, data = load()
    seconds["load the data"] = perf_counter() - start

    n_train, n_test = len(data.y_train), len(data.y_test)
    print(f"\nTraining the paper's raw classifier on {name}: {n_train} images, Q = {Q} per class")
    sys.stdout.flush()  # before the progress on standard error
    start = perf_counter()
    model = paper.raw(Q, random_state=0, verbose=True).fit(data.X_train, data.y_train)
    total = perf_counter() - start
    stages = model[-1].stage_seconds_
    seconds["normalise"] = total - sum(stages.values()) + stages["sphere"]
    seconds["K-means"] = stages["kmeans"]
    seconds["kernel matrix"] = stages["kernel"]
    seconds["solve"] = stages["solve"]
    start = perf_counter()
    predicted = model.predict(data.X_test)
    seconds[f"classify {n_test} images"] = perf_counter() - start

    error = 100 * float(np.mean(predicted != data.y_test))
    picture = folder / "first_run.png"
    draw(model[-1], data, predicted, f"{name}: {error:.2f} % test error, Q = {Q}", picture)
    results = {
        "data": name,
        "q": Q,
        "seed": 0,
        "error_percent": error,
        "paper_error_percent": PAPER_ERROR if name == "MNIST" else None,
        "representatives": len(model[-1].representatives_),
        "model_bytes": model_bytes(model[-1]),
        "relative_residual": model[-1].relative_residual_,
        "seconds": seconds,
        "versions": {
            "python": sys.version.split()[0],
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
            "kmeans-kernel": kmeans_kernel.__version__,
        },
    }
    (folder / "first_run.json").write_text(json.dumps(results, indent=2) + "\n")
    report(results)
    page = folder / "first_run.html"
    to_web(model, page, X=data.X_test, y=data.y_test, title=f"The paper's classifier, on {name}")
    print(f"\nPicture: {picture.resolve()}")
    print(f"Page:    {page.resolve().as_uri()}  (draw a digit, see why)")


def load() -> tuple[str, sklearn.utils.Bunch]:
    try:
        return "MNIST", load_mnist()
    except OSError as error:
        print(f"{error}\n\nUsing the bundled 8 × 8 digits instead.")
        return "the bundled digits", load_digits()


def model_bytes(classifier: kmeans_kernel.KMeansKernelClassifier) -> int:
    model = classifier.model_
    return model.directions.nbytes + model.dual_coef.nbytes + model.intercept.nbytes


def report(results: dict) -> None:
    print(f"\n  test error        {results['error_percent']:.2f} %")
    if results["paper_error_percent"] is not None:
        print(f"  the paper's       {results['paper_error_percent']:.2f} %  (mean of 100 runs)")
    else:
        print("  the paper's       none: it measured MNIST only")
    print(f"  representatives   {results['representatives']}")
    print(f"  model size        {results['model_bytes'] / 1e6:.1f} MB")
    print(f"  solve residual    {results['relative_residual']:.0e}")
    print("\n  seconds")
    for stage, spent in results["seconds"].items():
        print(f"    {stage:<24}{spent:7.2f}")


def draw(classifier, data, predicted, title: str, path: Path) -> None:
    """Draw the representatives that stand for most images, and the confusion matrix."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(13, 6.2), layout="constrained")
    figure.suptitle(title, fontsize=15)
    left, right = figure.subfigures(1, 2, width_ratios=(1.15, 1))
    draw_representatives(left, classifier, data.X_train.shape[1:])
    draw_confusion(right.subplots(), classifier.classes_, data.y_test, predicted)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_representatives(figure, classifier, image_shape: tuple[int, int], columns=14) -> None:
    figure.suptitle(f"The {columns} largest representatives of each class", fontsize=12)
    labels = classifier.classes_
    axes = figure.subplots(len(labels), columns)
    for row, label in zip(axes, labels, strict=True):
        own = np.flatnonzero(classifier.representative_classes_ == label)
        largest = own[np.argsort(-classifier.representative_counts_[own], kind="stable")]
        for axis, index in zip(row, largest, strict=False):
            image = classifier.representatives_[index].reshape(image_shape)
            axis.imshow(image, cmap="gray_r", interpolation="nearest")
        for axis in row:
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
        row[0].set_ylabel(str(label), rotation=0, labelpad=10, va="center", fontsize=11)


def draw_confusion(axis, labels, truth, predicted) -> None:
    counts = sklearn.metrics.confusion_matrix(truth, predicted, labels=labels)
    wrong = counts * (1 - np.eye(len(labels), dtype=int))
    axis.imshow(wrong, cmap="Oranges")
    for i, j in np.ndindex(*counts.shape):
        if counts[i, j]:
            dark = i != j and wrong[i, j] > wrong.max() / 2
            color = "#999999" if i == j else "white" if dark else "black"
            axis.text(j, i, counts[i, j], ha="center", va="center", color=color, fontsize=9)
    axis.set_title("Test images by true and predicted class", fontsize=12)
    axis.set(xlabel="predicted", ylabel="true")
    axis.set_xticks(range(len(labels)), labels)
    axis.set_yticks(range(len(labels)), labels)
    axis.tick_params(length=0)
    axis.spines[:].set_color("#cccccc")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("build"))
