import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from experiments import equation8
from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.report.reproduction import (
    FIGURES,
    compare,
    draw_figure,
    figure_jobs,
    html_report,
    markdown_table,
    paper_qs,
    read_rows,
    summary,
)
from kmeans_kernel.report.reproduction._points import paper_points

FIGURE1, FIGURE2 = FIGURES["figure1"], FIGURES["figure2"]


RESULTS = Path(__file__).parents[2] / "experiments" / "results"


def row(features, q, seed, error, **more):
    return {"features": features, "q": q, "seed": seed, "error_percent": error, **more}


def test_the_papers_points_are_known():
    assert len(paper_points()) == 43
    assert paper_points()["raw", 2500] == 1.3
    assert paper_points()["patches_25", 5000] == 0.87
    assert len(paper_qs(FIGURE1)) == 11
    assert len(paper_qs(FIGURE2)) == 21


def test_runs_are_as_many_as_promised():
    jobs = figure_jobs(FIGURE1, paper_qs(FIGURE1), runs=None, seed=0)
    assert len(jobs) == 3 * (5 * 5 + 6 * 3)
    assert len({json.dumps(job) for job in jobs}) == len(jobs)
    jobs = figure_jobs(FIGURE2, paper_qs(FIGURE2), runs=None, seed=0)
    assert len(jobs) == 2 * (2 * 5 + 16)
    assert figure_jobs(FIGURE1, [100], 2, 7, ["raw"]) == [
        {"features": "raw", "q": 100, "seed": 7}, {"features": "raw", "q": 100, "seed": 8},
    ]  # fmt: skip


def test_points_are_compared():
    rows = [row("raw", 100, 0, 3.0), row("raw", 100, 1, 3.1), row("raw_fft", 100, 0, 2.9),
            row("raw", 111, 0, 9.0)]  # fmt: skip
    points = compare(FIGURE1, rows)
    assert [(p.curve.features, p.q) for p in points] == [
        ("raw", 100), ("raw", 111), ("raw_fft", 100),
    ]  # fmt: skip
    first = points[0]
    assert first.mean == pytest.approx(3.05)
    assert first.deviation == pytest.approx(np.std([3.0, 3.1], ddof=1))
    assert first.difference == pytest.approx(0.04)
    assert points[1].difference is None
    assert points[2].deviation is None
    table = markdown_table(points)
    assert "| raw | 100 | 3.05 ± 0.07 | 2 | 3.01 | +0.04 |" in table
    assert "| raw | 111 | 9.00 | 1 | – | – |" in table
    assert summary(points)[0].startswith("raw: mean absolute difference 0.040")


def test_one_run_of_patches_gives_two_points():
    points = compare(FIGURE2, [row("patches", 1000, 0, 1.3, sum_error_percent=1.2)])
    assert [(p.curve.title, p.mean) for p in points] == [
        ("25 × 25, majority", 1.3), ("25 × 25, summed scores", 1.2),
    ]  # fmt: skip


def test_the_committed_figure1_is_near_the_papers():
    """The variant of the Fourier magnitudes that matches the paper is without the root."""
    points = compare(FIGURE1, read_rows(RESULTS / "figure1.json"))
    for features in ("raw", "raw_fft_no_root"):
        own = [point for point in points if point.curve.features == features]
        gaps = [abs(point.difference) for point in own]
        assert [point.q for point in own] == paper_qs(FIGURE1)
        assert max(gaps) <= 0.15
        assert np.mean(gaps) < 0.08
        assert all(len(point.errors) >= (5 if point.q <= 1000 else 3) for point in own)


def test_the_committed_figure2_is_near_the_papers():
    """Patches of the author's script match from Q = 1000 on; the text's reach the 0.87 %."""
    points = compare(FIGURE2, read_rows(RESULTS / "figure2.json"))
    ours = {(point.curve.title, point.q): point for point in points}
    assert {q for title, q in ours if title == "25 × 25, majority"} == set(paper_qs(FIGURE2))
    for q in paper_qs(FIGURE2):
        assert len(ours["25 × 25, majority", q].errors) >= (2 if q <= 1000 else 1)
    script = [p for (title, q), p in ours.items() if title.startswith("26 × 26") and q >= 1000]
    assert len(script) >= 18
    assert max(abs(point.difference) for point in script) <= 0.15
    headline = ours["25 × 25, majority", 5000]
    assert headline.paper == 0.87
    assert abs(headline.difference) <= 0.08


def test_the_report_is_one_page_that_needs_nothing_else():
    points = compare(FIGURE1, [row("raw", q, 0, 2.0) for q in (100, 250)])
    assert draw_figure(FIGURE1, points)[:4] == b"\x89PNG"
    page = html_report({"figure1": points}, {"python": "3.11 <b>"})
    assert "data:image/png;base64," in page
    assert "3.11 &lt;b&gt;" in page
    assert "http" not in page
    assert page.count("<tr>") == 3


def test_the_literal_rule_is_computed_as_printed(rng):
    X, y = np.abs(rng.normal(size=(30, 4))), np.arange(30) % 3
    options = {"kernel": "poly", "lift": 0.0, "feature_transform": None, "random_state": 0}
    model = KMeansKernelClassifier(3, **options).fit(X, y).model_
    found = equation8.literal_scores(model, X[:2])
    for i in range(2):
        for k in range(3):
            terms = [
                np.exp((X[i] / np.linalg.norm(X[i]) @ model.directions[q]) ** 4
                       * model.dual_coef[q, k] + model.intercept[k])
                for q in range(len(model.directions))
            ]  # fmt: skip
            assert found[i, k] == pytest.approx(sum(terms), rel=1e-6)


@pytest.mark.mnist
@pytest.mark.slow
def test_a_reproduction_that_was_killed_goes_on(mnist, tmp_path):
    """A killed run loses and repeats no row, and seeds reproduce the same numbers."""
    command = [
        sys.executable, "-m", "kmeans_kernel.cli", "reproduce", "figure1", "-q", "20",
        "--runs", "3", "--features", "raw", "--output", str(tmp_path),
    ]  # fmt: skip
    path = tmp_path / "figure1.json"
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
    while len(read_rows(path)) < 1:
        time.sleep(0.05)
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = read_rows(path)
    assert 1 <= len(before) < 3
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    after = read_rows(path)
    assert after[: len(before)] == before
    assert [found["seed"] for found in after] == [0, 1, 2]
    assert "raw | 20 |" in done.stdout
    assert {"report.html", "report.md", "figure1.png"} <= {p.name for p in tmp_path.iterdir()}
    path.unlink()
    again = [c if c != "3" else "1" for c in command]
    subprocess.run(again, check=True, capture_output=True)
    (repeated,) = read_rows(path)
    for key in ("error_percent", "iterations", "seed"):
        assert repeated[key] == after[0][key]
    assert set(repeated["stage_seconds"]) == {"sphere", "kmeans", "kernel", "solve"}
    assert repeated["peak_bytes"] > 0
    assert repeated["machine"]["cores"] >= 1
