"""Figure 1 of the paper: raw pixels, and raw pixels with Fourier magnitudes.

    python -m experiments.figure1

At the paper's eleven values of Q: five runs up to 1000, three above. Each run is written when it
ends, so an interrupted experiment goes on where it was; docs/reproduction.md is made from the file.
"""

from __future__ import annotations

from pathlib import Path

from kmeans_kernel.report.reproduction import FIGURES, figure_jobs, paper_qs, run_figure

RESULTS = Path(__file__).parent / "results"


def main(name: str) -> None:
    """Measure the runs of a figure that are missing."""
    figure = FIGURES[name]
    run_figure(RESULTS / f"{name}.json", figure_jobs(figure, paper_qs(figure), runs=None, seed=0))


if __name__ == "__main__":
    main("figure1")
