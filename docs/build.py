"""Write the generated parts of the documentation, or with --check say which are out of date.

README.md, docs/performance.md, reproduction.md and paper.md hold tables between markers, made from
the result files of experiments/ and benchmarks/; docs/api.md is made from the docstrings,
docs/cli.md from the help of the command line, docs/images from the results, and the picture and
tables of docs/architecture.md from the code.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from typer.main import get_command

import kmeans_kernel
from benchmarks import defaults, draw, peers
from docs import architecture, default_fit, of_explanations, of_frames
from docs.notes import with_note
from experiments import draw as beyond_draw
from experiments import images, tables
from kmeans_kernel import data, estimators, events, export, paper, report, serve
from kmeans_kernel.cli.app import app
from kmeans_kernel.cli.verbs.plan import size as bytes_of
from kmeans_kernel.cli.verbs.plan import time as time_of
from kmeans_kernel.core.kernels.kernels import KERNELS, kernel_parameters
from kmeans_kernel.report import reproduction
from kmeans_kernel.report._records import read_json, read_rows, write_json
from kmeans_kernel.report.reproduction import _report, summary
from kmeans_kernel.report.reproduction._points import paper_points
from kmeans_kernel.utils.files import write_whole

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks" / "results"
EXPERIMENTS = ROOT / "experiments" / "results"
IMAGES = ROOT / "docs" / "images"
PACKAGE = Path(kmeans_kernel.__file__).parent
MANIFEST = IMAGES / "manifest.json"


def main(arguments: list[str]) -> int:
    """Write the files, or compare them; return the exit code."""
    check = arguments == ["--check"]
    stale = []
    for path, content in generated().items():
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            stale.append(path.name)
            if not check:
                path.write_text(content, encoding="utf-8")
    stale += stale_pictures() if check else draw_stale_pictures()
    if check and stale:
        print(f"Out of date: {', '.join(stale)}. Run `make docs` and commit the result.")
        return 1
    print("Docs are current." if check else f"Written: {', '.join(stale) or 'nothing'}")
    return 0


def generated() -> dict[Path, str]:
    """Return the content that each generated file should have."""
    parts = {
        ROOT / "docs" / "performance.md": {
            "default tables": default_fit.tables_table(),
            "default large": default_fit.large_table(),
            "default given": default_fit.given_table(),
            "default growth": default_fit.growth_part(),
            "targets": targets_table(),
            "rows": rows_table(),
            "peers": peers_table(),
            "exponents": exponents_table(),
            "tried": tried_table(),
            "serving": serving_table(),
        },
        ROOT / "README.md": {"defaults": default_fit.readme_part()},
        ROOT / "docs" / "reproduction.md": {
            "figure1": figure_table("figure1"),
            "figure2": figure_table("figure2"),
            "patch variants": patch_variants_table(),
        },
        ROOT / "docs" / "paper.md": {"equation 8": equation8_table()},
        ROOT / "docs" / "method.md": {
            "search tried": default_fit.search_tried_table(),
            "tables": tables_table(),
            "calibration": calibration_table(),
            "behaviours": of_frames.behaviours_table(),
            "explanations": of_explanations.explanations_table(),
            "frames": of_frames.frames_table(),
            "held-out frames": of_frames.held_out_frames_table(),
        },
        ROOT / "docs" / "scaling.md": {
            "beyond": beyond_table(),
            "plan": plan_table(),
            "sums": sums_table(),
        },
        ROOT / "docs" / "shipping.md": {"ships": ships_table()},
        ROOT / "docs" / "architecture.md": {
            "permissions": permissions_table(),
            "kernels": kernels_table(),
            "files": files_table(),
        },
        ROOT / "docs" / "images.md": {
            "image test": image_test_table(),
            "moved images": moved_table(),
            "images": images_table(),
        },
    }
    files = {
        ROOT / "docs" / "api.md": api_page(),
        ROOT / "docs" / "cli.md": cli_page(),
        IMAGES / "architecture.svg": architecture.picture(),
    }
    for path, contents in parts.items():
        text = path.read_text(encoding="utf-8")
        for name, content in contents.items():
            text = fill(text, name, content)
        files[path] = text
    return files


def stale_pictures() -> list[str]:
    """Return the pictures whose source has changed since they were drawn.

    Matplotlib draws a little differently from version to version, so pictures are not compared;
    what they were drawn from is, by its digest.
    """
    drawn = read_json(MANIFEST) if MANIFEST.exists() else {}
    return [
        name
        for name in measured_pictures()
        if drawn.get(name) != digest(name) or not (IMAGES / name).exists()
    ]


def measured_pictures() -> list[str]:
    """Return the pictures whose results are there."""
    return [name for name, (source, _, _) in PICTURES.items() if source.exists()]


def draw_stale_pictures() -> list[str]:
    """Draw what is out of date."""
    stale = stale_pictures()
    for name in stale:
        source, draw_picture, _ = PICTURES[name]
        write_whole(IMAGES / name, draw_picture(read_json(source)["rows"]))
    if stale:
        write_json(MANIFEST, {name: digest(name) for name in measured_pictures()})
    return stale


def digest(name: str) -> str:
    """Return a digest of what a picture is made from: the results and the code that draws."""
    source, _, module = PICTURES[name]
    code = Path(inspect.getfile(module))
    return hashlib.sha256(source.read_bytes() + code.read_bytes()).hexdigest()


def fill(text: str, name: str, content: str) -> str:
    """Replace what stands between the two markers of that name."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"expected the markers of {name!r} once")
    pattern = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    return pattern.sub(lambda _: f"{begin}\n{content}\n{end}", text)


def targets_table() -> str:
    """Return the table of benchmarks/results/targets.json."""
    results = read_json(BENCHMARKS / "targets.json")
    lines = ["| work | ours | others | ratio | target | met |", "|---|---:|---|---:|---|---|"]
    for row in results["rows"].values():
        unit = "s" if "seconds" in row else "GB"
        measured = dict(row.get("seconds") or row["gigabytes"])
        ours = measured.pop("ours")
        others = ", ".join(
            f"{name} {value:.2f} {unit}"
            for name, value in measured.items()
            if not name.startswith("prepare")
        )
        errors = row.get("error_percent", {})
        told = "; error " + ", ".join(f"{k} {v:.2f} %" for k, v in errors.items()) if errors else ""
        lines.append(
            f"| {row['work']}{told} | {ours:.2f} {unit} | {others} | {row['ratio']:.2f} "
            f"| {row['target']} | {'yes' if row['met'] else 'no'} |"
        )
    note = "Medians of at least three; one run where it takes minutes"
    return with_note(lines, note, results["rows"].values())


def peers_table() -> str:
    """Return the table of benchmarks/results/peers.json."""
    results = read_json(BENCHMARKS / "peers.json")
    lines = [
        "| data | classifier | test error | training | prediction | peak memory | runs |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in sorted(results["rows"], key=peer_order):
        letter = "Q" if row["method"] == "ours" else "m"
        size = "" if row["size"] is None else f", {letter} = {row['size']}"
        lines.append(
            f"| {peers.TITLES[row['data']]} | {row['method']}{size} | {row['error_percent']:.2f} % "
            f"| {row['fit_seconds']:.2f} s | {row['predict_seconds']:.3f} s "
            f"| {row['peak_bytes'] / 1e9:.2f} GB | {row['runs']} |"
        )
    note = "Median times and mean errors of the runs, each with its own seed"
    return with_note(lines, note, results["rows"])


def peer_order(row: dict[str, Any]) -> tuple[int, int, int]:
    """Return what sorts rows by data set, method and size, in whatever order they were measured."""
    methods = ["ours", *peers.PEERS]
    return list(peers.TITLES).index(row["data"]), methods.index(row["method"]), row["size"] or 0


def serving_table() -> str:
    """Return the table of benchmarks/results/serving.json."""
    rows = read_rows(BENCHMARKS / "serving.json")
    lines = [
        "| rows of a request | type | `predict`, rows/s | server, rows/s | ratio | goal "
        "| ratio without joining | latency: p50, p95, p99 |",
        "|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        served = row["joined"]
        times = ", ".join(f"{served[f'p{share}_ms']:.1f}" for share in (50, 95, 99))
        lines.append(
            f"| {row['rows']} | {row['datatype']} | {row['in_process']['rows_per_second']:,.0f} "
            f"| {served['rows_per_second']:,.0f} | {row['ratio']:.2f} | {row['goal']} "
            f"| {row['ratio_without_joining']:.2f} | {times} ms |"
        )
    return with_note(lines, "`python -m benchmarks.serving`", rows)


def exponents_table() -> str:
    """Return the fitted exponents of benchmarks/results/scaling.json beside the theory."""
    results = read_json(BENCHMARKS / "scaling.json")
    lines = ["| grows | stage | exponent in theory | fitted |", "|---|---|---:|---:|"]
    lines += [
        f"| {grows} | {stage} | {theory} | {fitted:.2f} |"
        for grows, stage, theory, fitted in draw.exponents(results["rows"])
    ]
    return with_note(lines, "Medians of three", results["rows"])


def tried_table() -> str:
    """Return the table of benchmarks/results/tried.json."""
    results = read_json(BENCHMARKS / "tried.json")
    lines = ["| idea | on | without | with | kept |", "|---|---|---:|---:|---|"]
    lines += [
        f"| {row['idea']} | {row['on']} | {row['without_seconds']:.2f} s "
        f"| {row['with_seconds']:.2f} s | {row['kept']} |"
        for row in results["rows"]
    ]
    return with_note(lines, "Medians of three", results["rows"])


def figure_table(name: str) -> str:
    """Return how near a figure came to the paper's, and its points."""
    points = reproduction.compare(reproduction.FIGURES[name], figure_rows(name))
    near = [f"- {sentence}" for sentence in summary(points)]
    return "\n".join([*near, "", reproduction.markdown_table(points)])


def patch_variants_table() -> str:
    """Return the errors of experiments/results/patch_variants.json beside those of Figure 2."""
    stopped = reproduction.read_rows(EXPERIMENTS / "patch_variants.json")
    qs = sorted({row["q"] for row in stopped})
    known = {q: e for (features, q), e in paper_points().items() if features == "patches_25"}
    runs = {
        f"25 × 25, K-means after {n} iteration{'' if n == 1 else 's'}": [
            row for row in stopped if row["max_iter"] == n
        ]
        for n in (1, 3)
    }
    for features, title in (("patches", "25 × 25"), ("patches_26", "26 × 26")):
        own = [row for row in figure_rows("figure2") if row["features"] == features]
        runs[f"{title}, as in the figure"] = own
    table = [["the paper's Figure 2", *(f"{known[q]:.2f}" for q in qs)]]
    table += [
        [f"{title}, {vote}", *(mean_of(error, rows, q) for q in qs)]
        for title, rows in runs.items()
        for error, vote in (("error_percent", "majority"), ("sum_error_percent", "summed"))
    ]
    lines = [["test error, %", *(f"Q = {q}" for q in qs)], ["---", *["---:"] * len(qs)], *table]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def mean_of(error: str, rows: list[dict[str, Any]], q: int) -> str:
    """Return the mean error of the runs with that Q, if there are any."""
    errors = [row[error] for row in rows if row["q"] == q]
    return f"{statistics.fmean(errors):.2f}" if errors else "–"


def figure_rows(name: str) -> list[dict[str, Any]]:
    """Return the runs of a figure."""
    return reproduction.read_rows(EXPERIMENTS / f"{name}.json")


def draw_reproduced(name: str) -> Callable[[Any], bytes]:
    """Return what draws a figure from its runs."""
    figure = reproduction.FIGURES[name]
    return lambda rows: reproduction.draw_figure(figure, reproduction.compare(figure, rows))


def equation8_table() -> str:
    """Return the table of experiments/results/equation8.json."""
    results = read_json(EXPERIMENTS / "equation8.json")
    lines = ["| Q | eq. 8 read literally | the exponential of the sum |", "|---:|---:|---:|"]
    lines += [
        f"| {row['q']} | {row['literal_error_percent']:.2f} % | {row['error_percent']:.2f} % |"
        for row in results["rows"]
    ]
    return with_note(lines, "MNIST, raw pixels, one run", results["rows"])


def table_means(key: str) -> dict[str, dict[str, float]]:
    """Return the mean over the runs of each table and method."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in read_json(EXPERIMENTS / "tables.json")["rows"]:
        if key in row:
            found.setdefault(row["table"], {}).setdefault(row["method"], []).append(row[key])
    return {
        table: {method: statistics.mean(values) for method, values in methods.items()}
        for table, methods in found.items()
    }


def beyond_table() -> str:
    """Return what was measured beyond memory and beyond one process."""
    rows = read_rows(EXPERIMENTS / "beyond.json")
    found = {row["what"]: row for row in rows if row["what"] not in ("same", "plan")}
    lines = ["| what | |", "|---|---|"]
    for row in rows:
        if row["what"] == "same":
            for way, one in row["ways"].items():
                lines.append(
                    f"| {row['data']}: {way}, against rows in memory | of {row['test_rows']} test "
                    f"rows {one['labels_that_differ']} get another label; the largest difference "
                    f"of float32 scores is {one['largest_difference_of_scores']:.1g} |"
                )
    file, words = found["file"], found["sparse"]
    lines += [
        f"| a file of {file['gigabytes']:.0f} GB, {file['rows']:,} rows | at most "
        f"{file['peak_gigabytes']:.2f} GB of memory |",
        f"| sparse, 20,000 × 50,000: rows {words['megabytes_of_the_rows']:.0f} MB, representatives "
        f"{words['megabytes_of_the_representatives']:.0f} MB | {words['megabytes_taken']} MB "
        f"taken; dense rows would be {words['megabytes_if_dense']:,} MB |",
        f"| two processes against one, a thread each, {found['workers']['rows']:,} rows | "
        f"{found['workers']['times_faster']:.2f} times faster |",
        f"| `partial_fit`, MNIST in batches of 1000, Q = 100 | "
        f"{found['stream']['error_percent']:.2f} % error; all at once, the paper's fit: "
        f"{found['stream']['error_percent_of_all_at_once']:.2f} % |",
    ]
    return with_note(lines, "`python -m experiments.beyond`", rows)


def ships_table() -> str:
    """Return what models are away from Python."""
    rows = read_rows(EXPERIMENTS / "ships.json")
    lines = [
        "| pipeline | test rows | labels that differ (apart) | largest difference of a probability "
        "| ONNX file | page | with float16: page, labels changed | page answers in |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['pipeline']} | {row['rows']:,} "
        f"| {row['labels_that_differ']} ({row['of_them_with_scores_apart']}) "
        f"| {row['largest_difference']:.1e} | {row['onnx_bytes'] / 1e6:.2f} MB "
        f"| {row['page_bytes'] / 1e6:.2f} MB "
        f"| {row['half_bytes'] / 1e6:.2f} MB, {row['half_labels_changed']} "
        f"| {row['milliseconds_a_change']:.0f} ms |"
        for row in rows
    ]
    return with_note(lines, "`python -m experiments.ships`", rows)


def plan_table() -> str:
    """Return what was planned, and what it took."""
    rows = [row for row in read_rows(EXPERIMENTS / "beyond.json") if row["what"] == "plan"]
    lines = [
        "| rows | features | classes | Q | K-means: said, took | fit: said, took | took / said |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        said, taken = row["seconds_said"], row["seconds_taken"]
        lines.append(
            f"| {row['rows']:,} | {row['features']} | {row['classes']} | {row['q']} "
            f"| {said['kmeans']:.1f}, {taken['kmeans']:.1f} s "
            f"| {said['fit']:.1f}, {taken['fit']:.1f} s | {row['taken_in_said']:.2f} |"
        )
    return with_note(lines, "`python -m experiments.beyond`", rows)


def sums_table() -> str:
    """Return what fits to more and more rows take."""
    rows = read_rows(EXPERIMENTS / "beyond.json")
    counts = beyond_draw.WORKERS
    lines = [
        "| rows | in float32 | operations, K-means iteration | fit | memory of a worker | network, "
        f"iteration, {max(counts)} workers | "
        + " | ".join(f"time, {n} {'core' if n == 1 else 'workers'}" for n in counts)
        + f" | most of it, {max(counts)} workers |",
        "|---:" * (6 + len(counts)) + "|---|",
    ]
    for n in beyond_draw.ROWS:
        found = beyond_draw.plans(rows, n)
        most = found[max(counts)]
        problem = most.problem
        times = " | ".join(time_of(one.seconds["all"]) for one in found.values())
        lines.append(
            f"| {n:,.0f} | {bytes_of(problem.bytes_of_rows)} | {problem.kmeans_operations:.1e} "
            f"| {problem.fit_operations:.1e} | {bytes_of(problem.bytes_per_worker)} "
            f"| {bytes_of(problem.network_bytes_per_iteration)} | {times} "
            f"| {most.bottleneck.split(':')[0]} |"
        )
    return with_note(lines, "`python -m experiments.beyond`", rows[-1:])


def tables_table() -> str:
    """Return the errors of all methods on all tables."""
    means = table_means("error_percent")
    names = {
        "ours": "ours", "CatBoost": "CatBoost", "LightGBM": "LightGBM", "SVC": "SVC",
        "SVC, C = 10": "C = 10", "random forest": "forest", "gradient boosting": "boosting",
    }  # fmt: skip
    lines = [
        f"| test error, % | {' | '.join(names.values())} |",
        "| --- |" + " ---: |" * len(names),
    ]
    for title, some in (("development", False), ("held out", True)):
        chosen = [
            table
            for table, of in means.items()
            if (table in tables.HELD_OUT) == some and set(names) <= set(of)
        ]
        if not chosen:
            continue
        lines += [marked(table, [means[table][method] for method in names]) for table in chosen]
        average = [statistics.mean(means[table][method] for table in chosen) for method in names]
        lines.append(marked(f"**mean, {title}**", average))
        ratios = [
            statistics.geometric_mean(
                (means[table][method] + 0.1) / (means[table]["ours"] + 0.1) for table in chosen
            )
            for method in names
        ]
        lines.append(marked(f"**geometric mean of error ratios, method / ours, {title}**", ratios))
    rows = read_json(EXPERIMENTS / "tables.json")["rows"]
    return with_note(lines, "`python -m experiments.tables`", rows)


def marked(name: str, values: list[float]) -> str:
    """Return a row of a table, its least value in bold."""
    told = [f"**{v:.2f}**" if v == min(values) else f"{v:.2f}" for v in values]
    return f"| {name} | {' | '.join(told)} |"


def calibration_table() -> str:
    """Return log-loss and calibration error of the methods that have probabilities."""
    losses, gaps = table_means("log_loss"), table_means("calibration_error_percent")
    lines = ["| | log-loss | calibration error, % |", "| --- | ---: | ---: |"]
    methods = (
        "ours", "CatBoost", "LightGBM", "SVC, calibrated", "random forest", "gradient boosting",
    )  # fmt: skip
    for method in methods:
        loss = statistics.mean(of[method] for of in losses.values())
        gap = statistics.mean(of[method] for of in gaps.values())
        lines.append(f"| {method} | {loss:.3f} | {gap:.2f} |")
    return "\n".join(lines)


def image_test_table() -> str:
    """Return what `image_classifier` came to on the test images."""
    rows = read_json(EXPERIMENTS / "images_test.json")["rows"]
    lines = [
        "| data | test error | training | prediction of 10,000 | γ | λ |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {peers.TITLES[row['data']]} | {row['error_percent']:.2f} % "
        f"| {row['fit_seconds']:.0f} s | {row['predict_seconds']:.0f} s "
        f"| {row['gamma']:g} | {row['regularization']:.1e} |"
        for row in rows
    ]
    return with_note(lines, "`python -m experiments.images --test`", rows)


def moved_table() -> str:
    """Return what moved copies of the training images came to."""
    rows = read_rows(EXPERIMENTS / "images_moved.json")
    lines = [
        "| data | Q | copies of each | test error | training |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {peers.TITLES[row['data']]} | {row['q']} | {row['copies']} "
        f"| {row['error_percent']:.2f} % | {row['fit_seconds']:.0f} s |"
        for row in rows
    ]
    return with_note(lines, "`python -m experiments.images --moved`", rows)


def images_table() -> str:
    """Return what was looked at in images, and the validation error it came to."""
    found: dict[tuple[str, bool, int, float], dict[str, dict[str, Any]]] = {}
    rows = read_json(EXPERIMENTS / "images.json")["rows"]
    for row in rows:
        key = row["features"], row["upright"], row["q"], row["boundary_fraction"]
        found.setdefault(key, {})[row["data"]] = row
    lines = [
        "| | upright | Q | boundary rows | features | MNIST, % | Fashion-MNIST, % | training |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (features, upright, q, boundary_fraction), of in found.items():
        if len(of) < len(images.LOADERS):
            continue
        errors = " | ".join(f"{of[data]['error_percent']:.2f}" for data in images.LOADERS)
        seconds = max(row["fit_seconds"] for row in of.values())
        lines.append(
            f"| {features} | {'yes' if upright else 'no'} | {q} | {boundary_fraction:.0%} "
            f"| {of['mnist']['n_features']} "
            f"| {errors} | {seconds:.0f} s |"
        )
    note = "Validation error; training is the longer of the two"
    return with_note(lines, note, rows)


def rows_table() -> str:
    """Return what MNIST as plain rows came to on the validation split."""
    rows = read_json(EXPERIMENTS / "rows.json")["rows"]
    lines = [
        "| directions | Q | boundary rows | γ | ε | validation error | training | prediction |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {row['n_components'] or 'all pixels'} | {row['q']} | {row['boundary_fraction']:.0%} "
        f"| {row['gamma']:g} | {row['epsilon']:g} | {row['error_percent']:.2f} % "
        f"| {row['fit_seconds']:.1f} s | {row['predict_seconds']:.2f} s |"
        for row in sorted(rows, key=lambda row: row["error_percent"], reverse=True)
    ]
    return with_note(lines, "`python -m experiments.rows`", rows)


def permissions_table() -> str:
    """Return the folders and what each may import."""
    lines = ["| folder | may import |", "| --- | --- |"]
    for folder, allowed in architecture.PERMISSIONS.items():
        told = ", ".join(f"`{one.replace('.', '/')}`" for one in allowed) or "numpy, scipy"
        lines.append(f"| `{folder.replace('.', '/')}` | {told} |")
    return "\n".join(lines)


def files_table() -> str:
    """Return the files of each folder with the first line of their docstring or comment."""
    lines = []
    for folder in [PACKAGE, *sorted(path for path in PACKAGE.rglob("*") if path.is_dir())]:
        files = sorted(path for path in folder.glob("*") if path.suffix in (".py", ".js"))
        if not files:
            continue
        lines += ["", f"**`{folder.relative_to(PACKAGE.parent)}/`**", ""]
        lines += [f"- `{path.name}`: {first_line(path)}" for path in files]
    return "\n".join(lines[1:])


def first_line(path: Path) -> str:
    """Return the first sentence of a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".js":
        told = re.match(r"(?:// .*\n)*", text)[0].replace("// ", "").replace("\n", " ")
        return told.split(". ")[0].strip().rstrip(".") + "."
    return (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0].replace("\n", " ")


def kernels_table() -> str:
    """Return the registered kernels, with their formula and parameters."""
    lines = ["| name | class | formula | parameters |", "| --- | --- | --- | --- |"]
    for name, kernel in KERNELS.items():
        formula = (inspect.getdoc(kernel) or "").split(",")[0].rstrip(".")
        ranges = [
            f"`{one.name}` {'above' if one.metadata['above'] else 'from'} "
            f"{one.metadata['least']:g} to {one.metadata['most']:g}"
            for one in kernel_parameters(kernel)
        ]
        lines.append(f"| `{name}` | `{kernel.__name__}` | {formula} | {', '.join(ranges)} |")
    return "\n".join(lines)


def api_page() -> str:
    """Return the reference of the public names, from their docstrings."""
    parts = ["# Reference", "", "Made from the docstrings by `make docs`."]
    told: dict[int, str] = {}
    for module in (kmeans_kernel, estimators, paper, data, events, export, report, serve):
        for name in module.__all__:
            member = getattr(module, name)
            title = f"{module.__name__}.{name}"
            if inspect.ismodule(member):
                continue
            if id(member) in told:
                if module is not estimators:
                    parts += ["", f"## {title}", "", f"The same as `{told[id(member)]}`."]
                continue
            told[id(member)] = title
            parts += entry(title, member, signature(name, member))
            if isinstance(member, type) and issubclass(member, BaseEstimator):
                parts += methods(member)
    return "\n".join(parts) + "\n"


def cli_page() -> str:
    """Return the reference of the command line, from its own help."""
    parts = ["# Command line", "", "Made from the help of `kmeans-kernel` by `make docs`.", ""]
    for path, command in verbs(get_command(app), "kmeans-kernel"):
        told = inspect.cleandoc(command.help or "").replace("\f", "")
        text, _, example = told.partition("Example:")
        example = example.replace("\b", "").strip()
        parts += [f"## {path}", "", text.strip(), "", "```sh", example, "```", ""]
        options = [option_line(parameter) for parameter in command.params]
        parts += [*[line for line in options if line], ""]
    return "\n".join(parts).rstrip() + "\n"


def verbs(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Give every verb of the command line with its full name."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
    for name, verb in (inner or {}).items():
        yield from verbs(verb, f"{path} {name}")


def option_line(parameter: Any) -> str:
    """Return one line on an argument or option."""
    if parameter.param_type_name == "argument":
        names = parameter.name.upper()
    else:
        names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    told = getattr(parameter, "help", None)
    return "" if told is None else f"- `{names}`: {told}"


def entry(title: str, member: object, called: str) -> list[str]:
    """Return the lines of one name: signature and docstring."""
    doc = inspect.getdoc(member) or ""
    return ["", f"## {title}", "", "```python", called, "```", "", "```text", doc, "```"]


def methods(member: type) -> list[str]:
    """Return one line for each method that the class brings itself."""
    lines = [""]
    for name, function in inspect.getmembers(member, inspect.isfunction):
        if name.startswith("_") or "kmeans_kernel" not in function.__module__:
            continue
        first = (inspect.getdoc(function) or "").splitlines()[0]
        lines.append(f"- `{name}{untyped(inspect.signature(function), drop_self=True)}`: {first}")
    return lines


def signature(name: str, member: Any) -> str:
    """Return a class or function as one would call it; an exception by its name alone."""
    if isinstance(member, type) and issubclass(member, Exception):
        return name
    return f"{name}{untyped(inspect.signature(member))}"


def untyped(found: inspect.Signature, *, drop_self: bool = False) -> str:
    """Return a signature without annotations."""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    plain = plain[1:] if drop_self else plain
    return str(inspect.Signature(plain))


# For each picture the results it is drawn from, what draws it, and where that is written.
PICTURES: dict[str, tuple[Path, Callable[[Any], bytes], Any]] = {
    "peers.png": (BENCHMARKS / "peers.json", peers.draw_peers, peers),
    "default_growth.png": (
        defaults.result_file("growth"),
        draw.draw_default_growth,
        draw,
    ),
    "scaling.png": (BENCHMARKS / "scaling.json", draw.draw_scaling, draw),
    "beyond.png": (EXPERIMENTS / "beyond.json", beyond_draw.draw_beyond, beyond_draw),
    "figure1.png": (EXPERIMENTS / "figure1.json", draw_reproduced("figure1"), _report),
    "figure2.png": (EXPERIMENTS / "figure2.json", draw_reproduced("figure2"), _report),
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
