"""Plots of explanations and of the choice of Q; matplotlib is imported when one is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kmeans_kernel.estimators._explanation import ColumnEffect, Contribution, Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kmeans_kernel.estimators._classifier import KMeansKernelClassifier

FOR, AGAINST, QUIET = "#1b7837", "#b35806", "#6b7280"


def plot_explanation(
    explanation: Explanation,
    row: int = 0,
    *,
    n: int = 5,
    image_shape: tuple[int, int] | None = None,
) -> Figure:
    """Draw the representatives that raise and lower the score of a label most.

    Parameters
    ----------
    explanation : of `KMeansKernelClassifier.explain`
    row : which of its rows
    n : most representatives of each sign
    image_shape : height and width, to draw rows as images; they may have more features after the
        pixels. None draws bars alone

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    if not 0 <= row < len(explanation):
        raise IndexError(f"row must be one of the {len(explanation)} explained rows, got {row}.")
    if image_shape is not None:
        n_pixels = image_shape[0] * image_shape[1]
        if n_pixels > explanation.X.shape[1]:
            raise ValueError(
                f"image_shape {image_shape} has {n_pixels} pixels, and a row only "
                f"{explanation.X.shape[1]} features."
            )
    positive, negative = explanation.largest(row, n)
    title = (
        f"Why {explanation.labels[row]}: score {explanation.scores[row]:.2f} = "
        f"{explanation.intercepts[row]:+.2f} and what {len(explanation.representative_classes)} "
        "representatives add"
    )
    if image_shape is None:
        figure = Figure(
            figsize=(7, 1.4 + 0.32 * (len(positive) + len(negative))), layout="constrained"
        )
        _draw_bars(figure.subplots(), explanation, row, positive, negative)
    else:
        figure = Figure(figsize=(1.25 * (n + 1.4), 3.9), layout="constrained")
        _draw_images(figure, explanation, row, positive, negative, n, image_shape)
    figure.suptitle(title, fontsize=10, parse_math=False)
    return figure


def plot_attributions(explanation: Explanation, row: int = 0, *, n: int = 10) -> Figure:
    """Draw how the columns lead from the score of the baseline to that of a row.

    Parameters
    ----------
    explanation : of `KMeansKernelClassifier.explain`
    row : which of its rows
    n : most columns; the others share one bar

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    if not 0 <= row < len(explanation):
        raise IndexError(f"row must be one of the {len(explanation)} explained rows, got {row}.")
    effects = explanation.largest_effects(row)
    shown, others = effects[:n], effects[n:]
    bars = [(_effect_label(one), one.effect) for one in shown]
    if others:
        bars.append((f"{len(others)} other columns", sum(one.effect for one in others)))
    figure = Figure(figsize=(7.5, 1.7 + 0.36 * len(bars)), layout="constrained")
    axes = figure.subplots()
    _draw_waterfall(axes, bars, float(explanation.baseline_scores[row]))
    before, after = explanation.baseline_scores[row], explanation.scores[row]
    axes.set_title(
        f"Why {explanation.labels[row]}: {before:.2f} for the baseline, {after:.2f} for this row",
        fontsize=10, parse_math=False,
    )  # fmt: skip
    return figure


def _effect_label(effect: ColumnEffect) -> str:
    """Return a column with its value, and that of the baseline."""
    return f"{effect.column} = {_shown(effect.value)}\n(baseline: {_shown(effect.baseline)})"


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _draw_waterfall(axes: Axes, bars: list[tuple[str, float]], start: float) -> None:
    """Draw bars that begin where the one before ended."""
    effects = np.array([effect for _, effect in bars])
    ends = start + np.cumsum(effects)
    places = np.arange(len(bars))
    colours = [FOR if effect > 0 else AGAINST for effect in effects]
    axes.use_sticky_edges = False
    axes.barh(places, effects, left=ends - effects, color=colours, height=0.6)
    for place, end, effect in zip(places, ends, effects, strict=True):
        axes.plot([end, end], [place - 0.3, place + 1.3], color="#9ca3af", linewidth=0.8)
        axes.annotate(
            f"{effect:+.3f}", (max(end, end - effect), place), xytext=(4, 0),
            textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    axes.axvline(start, color="#9ca3af", linewidth=0.8, linestyle=":")
    axes.set_yticks(places, [label for label, _ in bars], parse_math=False, fontsize=8)
    axes.set_ylim(len(bars) - 0.3, -0.7)
    axes.set_xlabel("score of the class")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.margins(x=0.14)


def plot_validation_curve(classifier: KMeansKernelClassifier) -> Figure:
    """Draw the held-out error negative the number of representatives, and the one that was chosen.

    Parameters
    ----------
    classifier : a KMeansKernelClassifier fitted with n_representatives="auto"

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    steps = classifier.validation_curve_
    if not steps:
        raise ValueError(
            "there is no validation curve: fit the classifier with n_representatives='auto'."
        )
    figure = Figure(figsize=(5.5, 3.4), layout="constrained")
    axes = figure.subplots()
    numbers = [step.n_representatives for step in steps]
    errors = [100 * step.held_out_error for step in steps]
    axes.plot(numbers, errors, "o-", color=QUIET)
    chosen = numbers.index(classifier.n_representatives_)
    axes.plot(numbers[chosen], errors[chosen], "o", color=FOR, markersize=10)
    axes.annotate(
        f"Q = {numbers[chosen]}: {errors[chosen]:.2f} %", (numbers[chosen], errors[chosen]),
        xytext=(0, 12), textcoords="offset points", ha="center", color=FOR, fontweight="bold",
    )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xticks(numbers, [str(number) for number in numbers])
    axes.set_ylim(0, 1.25 * max(errors) if max(errors) > 0 else 1.0)
    axes.set_xlabel("representatives of each class")
    axes.set_ylabel("held-out error, %")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_bars(
    axes: Axes,
    explanation: Explanation,
    row: int,
    positive: list[Contribution],
    negative: list[Contribution],
) -> None:
    shown = [*positive, *negative[::-1]]
    total = float(explanation.contributions[row].sum())
    rest = total - sum(one.value for one in shown)
    names = [f"{one.label}, stands for {one.count:g}" for one in shown]
    values = [one.value for one in shown]
    colours = [FOR if value > 0 else AGAINST for value in values]
    places = np.arange(len(values) + 1)
    axes.barh(places, [*values, rest], color=[*colours, QUIET])
    axes.set_yticks(places, [*names, "all others"], parse_math=False)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("contribution to the score")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.margins(x=0.14)
    for place, value in zip(places, [*values, rest], strict=True):
        axes.annotate(
            f"{value:+.3f}", (value, place), xytext=(3 if value >= 0 else -3, 0),
            textcoords="offset points", va="center", ha="left" if value >= 0 else "right",
            fontsize=8,
        )  # fmt: skip


def _draw_images(
    figure: Figure,
    explanation: Explanation,
    row: int,
    positive: list[Contribution],
    negative: list[Contribution],
    n: int,
    image_shape: tuple[int, int],
) -> None:
    grid = figure.add_gridspec(2, n + 1, width_ratios=[1.4, *[1.0] * n])
    own = figure.add_subplot(grid[:, 0])
    _show(own, explanation.X[row], image_shape)
    own.set_title("the row", fontsize=9)
    for line, (shown, colour, word) in enumerate(
        [(positive, FOR, "for"), (negative, AGAINST, "against")]
    ):
        for k in range(n):
            axes = figure.add_subplot(grid[line, k + 1])
            if k >= len(shown):
                axes.set_axis_off()
                continue
            one = shown[k]
            _show(axes, explanation.representatives[one.representative], image_shape)
            axes.set_title(f"{one.value:+.3f}", fontsize=9, color=colour, fontweight="bold")
            axes.set_xlabel(f"{one.label}, of {one.count:g}", fontsize=8, parse_math=False)
            if k == 0:
                axes.set_ylabel(word, fontsize=9, color=colour)


def _show(axes: Axes, values: Any, image_shape: tuple[int, int]) -> None:
    height, width = image_shape
    axes.imshow(np.asarray(values[: height * width]).reshape(height, width), cmap="gray_r")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color("#d1d5db")
