"""Models away from Python: as ONNX files and as pages, beside the estimators they come from.

    python -m experiments.ships

For each pipeline: the labels and probabilities of all test rows by onnxruntime, against Python's;
the size of the file; the page with these test rows, what float16 changes in it, and how long one
more point of a stroke takes in headless Chromium, until bars and reasons are shown.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import onnxruntime
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from kmeans_kernel import KMeansKernelClassifier, OrientedGradients, image_classifier, paper
from kmeans_kernel.core.model.fitted_model import margins
from kmeans_kernel.data import load_digits, load_mnist
from kmeans_kernel.export.onnx import to_onnx
from kmeans_kernel.export.web import to_web
from kmeans_kernel.report._records import answer, in_fresh_process, run_jobs
from tests.browser import chromium

RESULTS = Path(__file__).parent / "results" / "ships.json"

PIPELINES: dict[str, Any] = {
    "raw": lambda: paper.raw(100, random_state=0),
    "Fourier": lambda: paper.raw_fft(100, random_state=0),
    "patches": lambda: paper.patches(100, random_state=0),
    "gradients": lambda: make_pipeline(
        OrientedGradients(), KMeansKernelClassifier(100, random_state=0)
    ),
    "patterns": lambda: image_classifier(100, random_state=0),
    "digits": lambda: paper.raw(20, random_state=0),
    "table": lambda: make_pipeline(StandardScaler(), KMeansKernelClassifier(random_state=0)),
}
JOBS = [{"pipeline": name} for name in PIPELINES]

# Scores this near to each other may be in either order.
NEAR = 1e-4
ROWS_AT_A_TIME = 500
N_POINTS = 60


def measure(pipeline: str) -> dict[str, Any]:
    """Train one, and compare what it becomes with what it is."""
    data = data_for(pipeline)
    estimator = PIPELINES[pipeline]().fit(data.X_train, data.y_train)
    with tempfile.TemporaryDirectory() as folder:
        return {
            "rows": len(data.y_test),
            **of_graph(estimator, data.X_test, Path(folder)),
            **of_page(estimator, data, Path(folder)),
        }


def data_for(pipeline: str) -> Bunch:
    """Return training and test rows."""
    if pipeline == "table":
        X, y = load_breast_cancer(return_X_y=True)
        split = train_test_split(X, y, random_state=0)
        return Bunch(**dict(zip(("X_train", "X_test", "y_train", "y_test"), split, strict=True)))
    return load_digits() if pipeline == "digits" else load_mnist()


def of_graph(estimator: Any, X: np.ndarray, folder: Path) -> dict[str, Any]:
    """Compare the ONNX file with the estimator on all rows."""
    path = folder / "model.onnx"
    to_onnx(estimator, path)
    session = onnxruntime.InferenceSession(path)
    rows = X.reshape(len(X), -1).astype(np.float32)
    blocks = [rows[k : k + ROWS_AT_A_TIME] for k in range(0, len(rows), ROWS_AT_A_TIME)]
    began = perf_counter()
    found = [session.run(None, {"X": block}) for block in blocks]
    onnx_seconds = perf_counter() - began
    labels, shares = (np.concatenate(parts) for parts in zip(*found, strict=True))
    began = perf_counter()
    expected = np.concatenate([estimator.predict_proba(block) for block in blocks])
    seconds = perf_counter() - began
    differ = labels != estimator.classes_[expected.argmax(axis=1)]
    return {
        "labels_that_differ": int(differ.sum()),
        "of_them_with_scores_apart": int((differ & (margins_of(estimator, rows) > NEAR)).sum()),
        "largest_difference": float(np.abs(shares - expected).max()),
        "onnx_bytes": path.stat().st_size,
        "onnx_seconds": onnx_seconds,
        "python_seconds": seconds,
    }


def margins_of(estimator: Any, rows: np.ndarray) -> np.ndarray:
    """Return how far apart the two best scores of rows are; of a vote, the shares."""
    if not hasattr(estimator, "decision_function"):
        return margins(estimator.predict_proba(rows))
    scores = estimator.decision_function(rows)
    return np.abs(scores) if scores.ndim == 1 else margins(scores)


def of_page(estimator: Any, data: Bunch, folder: Path) -> dict[str, Any]:
    """Return the size of the page, what float16 changes, and how fast it answers."""
    given = {"X": data.X_test, "y": data.y_test}
    whole = to_web(estimator, folder / "page.html", **given)
    half = to_web(estimator, folder / "half.html", **given, float16=True)
    return {
        "page_bytes": whole.size,
        "page_labels_changed": whole.changed_labels,
        "half_bytes": half.size,
        "half_labels_changed": half.changed_labels,
        "half_largest_change": half.largest_change,
        "milliseconds_a_change": answer_time(folder / "page.html"),
    }


def answer_time(path: Path) -> float:
    """Return the median of how long the page takes for one more point of a stroke, or a number."""
    with chromium() as browser:
        page = browser.new_page()
        page.goto(path.as_uri())
        page.wait_for_selector("body.ready", timeout=120_000)
        return statistics.median(page.evaluate(CHANGE, N_POINTS))


CHANGE = """async (count) => {
  const pad = document.getElementById("pad");
  const field = document.querySelector("#fields input[type=number]");
  const times = [];
  for (let k = 0; k < count; k++) {
    await new Promise(requestAnimationFrame);
    const began = performance.now();
    if (pad) {
      const box = pad.getBoundingClientRect();
      const angle = (2 * Math.PI * k) / count;
      const place = { clientX: box.left + box.width * (0.5 + 0.3 * Math.cos(angle)),
        clientY: box.top + box.height * (0.5 + 0.3 * Math.sin(angle)), pointerId: 1 };
      pad.setPointerCapture = () => {};
      pad.dispatchEvent(new PointerEvent(k ? "pointermove" : "pointerdown", place));
    } else {
      field.value = Number(field.value) * 1.001;
      field.dispatchEvent(new Event("input"));
    }
    document.body.getBoundingClientRect(); // lays the page out
    times.push(performance.now() - began);
  }
  return times;
}"""


def main() -> None:
    """Measure what is missing."""
    run_jobs(
        RESULTS,
        JOBS,
        lambda job: in_fresh_process("experiments.ships", job),
        ["onnx", "onnxruntime", "skl2onnx"],
    )


if __name__ == "__main__" and not answer(measure):
    main()
