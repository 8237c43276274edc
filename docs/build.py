"""Write the generated parts of the documentation, or with --check say which are out of date.

README.md and docs/performance.md hold tables between markers, made from the result files of
experiments/ and benchmarks/; docs/api.md is made from the docstrings, docs/images from the results.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import kmeans_kernel
from benchmarks import draw
from experiments.records import read_json, write_json
from kmeans_kernel import datasets, paper

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks" / "results"
IMAGES = ROOT / "docs" / "images"
MANIFEST = IMAGES / "manifest.json"
PICTURES: dict[str, tuple[Path, Callable[[Any, Path], None]]] = {
    "peers.png": (BENCHMARKS / "peers.json", draw.draw_peers),
    "scaling.png": (BENCHMARKS / "scaling.json", draw.draw_scaling),
}
NAMES = {
    "raw": "raw pixels",
    "raw_fft": "pixels and Fourier magnitudes",
    "patches": "25 × 25 patches, majority vote",
}


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
        ROOT / "README.md": {"paper points": paper_points_table()},
        ROOT / "docs" / "performance.md": {
            "targets": targets_table(),
            "peers": peers_table(),
            "exponents": exponents_table(),
            "tried": tried_table(),
        },
    }
    files = {ROOT / "docs" / "api.md": api_page()}
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
        name for name in PICTURES if drawn.get(name) != digest(name) or not (IMAGES / name).exists()
    ]


def draw_stale_pictures() -> list[str]:
    """Draw what is out of date."""
    stale = stale_pictures()
    for name in stale:
        source, draw_picture = PICTURES[name]
        draw_picture(read_json(source)["rows"], IMAGES / name)
    if stale:
        write_json(MANIFEST, {name: digest(name) for name in PICTURES})
    return stale


def digest(name: str) -> str:
    """Return a digest of what a picture is made from: the results and the code that draws."""
    source, draw_picture = PICTURES[name]
    code = Path(inspect.getfile(draw_picture))
    return hashlib.sha256(source.read_bytes() + code.read_bytes()).hexdigest()


def fill(text: str, name: str, content: str) -> str:
    """Replace what stands between the two markers of that name."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"expected the markers of {name!r} once")
    pattern = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    return pattern.sub(lambda _: f"{begin}\n{content}\n{end}", text)


def paper_points_table() -> str:
    """Return the table of experiments/results/paper_points.json."""
    results = read_json(ROOT / "experiments" / "results" / "paper_points.json")
    rows = results["rows"]
    lines = [
        "| classifier | Q | test error, one seed | the paper's | training | peak memory |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        theirs = row["paper_error_percent"]
        lines.append(
            f"| `paper.{row['features']}({row['q']})`: {NAMES[row['features']]} | {row['q']} "
            f"| {row['error_percent']:.2f} % | {'–' if theirs is None else f'{theirs:.2f} %'} "
            f"| {row['fit_seconds']:.0f} s | {row['fit_peak_bytes'] / 1e9:.1f} GB |"
        )
    machine = rows[0]["machine"]
    lines += [
        "",
        f"MNIST, 60,000 training and 10,000 test images, {machine['cores']} cores; from "
        "`experiments/results/paper_points.json`, measured by `make experiments`. The paper's "
        "figures are means of up to 100 runs, read off its plots.",
    ]
    return "\n".join(lines)


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
    return "\n".join(
        [*lines, "", machine_note("Medians of at least three", results["rows"].values())]
    )


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
            f"| {draw.TITLES[row['data']]} | {row['method']}{size} | {row['error_percent']:.2f} % "
            f"| {row['fit_seconds']:.2f} s | {row['predict_seconds']:.3f} s "
            f"| {row['peak_bytes'] / 1e9:.2f} GB | {row['runs']} |"
        )
    note = "Median times and mean errors of the runs, each with its own seed"
    return "\n".join([*lines, "", machine_note(note, results["rows"])])


def peer_order(row: dict[str, Any]) -> tuple[int, int, int]:
    """Return what sorts rows by data set, method and size, in whatever order they were measured."""
    methods = ["ours", *draw.PEERS]
    return list(draw.TITLES).index(row["data"]), methods.index(row["method"]), row["size"] or 0


def exponents_table() -> str:
    """Return the fitted exponents of benchmarks/results/scaling.json beside the theory."""
    results = read_json(BENCHMARKS / "scaling.json")
    lines = ["| grows | stage | exponent in theory | fitted |", "|---|---|---:|---:|"]
    lines += [
        f"| {grows} | {stage} | {theory} | {fitted:.2f} |"
        for grows, stage, theory, fitted in draw.exponents(results["rows"])
    ]
    return "\n".join([*lines, "", machine_note("Medians of three", results["rows"])])


def tried_table() -> str:
    """Return the table of benchmarks/results/tried.json."""
    results = read_json(BENCHMARKS / "tried.json")
    lines = ["| idea | on | without | with | kept |", "|---|---|---:|---:|---|"]
    lines += [
        f"| {row['idea']} | {row['on']} | {row['without_seconds']:.2f} s "
        f"| {row['with_seconds']:.2f} s | {row['kept']} |"
        for row in results["rows"]
    ]
    return "\n".join([*lines, "", machine_note("Medians of three", results["rows"])])


def machine_note(how: str, rows: Iterable[dict[str, Any]]) -> str:
    """Return one line on how and where rows were measured; all in one place, or it says so."""
    machines = {json.dumps(row["machine"]): row["machine"] for row in rows}
    told = [", ".join(f"{name} {value}" for name, value in m.items()) for m in machines.values()]
    return f"{how}; {'; others: '.join(told)}."


def api_page() -> str:
    """Return the reference of the public names, from their docstrings."""
    parts = ["# Reference", "", "Made from the docstrings by `make docs`."]
    for name in kmeans_kernel.__all__:
        member = getattr(kmeans_kernel, name)
        if inspect.isclass(member):
            parts += entry(f"kmeans_kernel.{name}", member, class_signature(name, member))
            parts += methods(member)
    for module in (paper, datasets):
        for name in module.__all__:
            member = getattr(module, name)
            title = f"{module.__name__}.{name}"
            parts += entry(title, member, f"{name}{untyped(inspect.signature(member))}")
    return "\n".join(parts) + "\n"


def entry(title: str, member: object, signature: str) -> list[str]:
    """Return the lines of one name: signature and docstring."""
    doc = inspect.getdoc(member) or ""
    return ["", f"## {title}", "", "```python", signature, "```", "", "```text", doc, "```"]


def methods(member: type) -> list[str]:
    """Return one line for each method that the class brings itself."""
    lines = [""]
    for name, function in inspect.getmembers(member, inspect.isfunction):
        if name.startswith("_") or "kmeans_kernel" not in function.__module__:
            continue
        first = (inspect.getdoc(function) or "").splitlines()[0]
        lines.append(f"- `{name}{untyped(inspect.signature(function), drop_self=True)}`: {first}")
    return lines


def class_signature(name: str, member: type) -> str:
    """Return the constructor as one would call it."""
    return f"{name}{untyped(inspect.signature(member))}"


def untyped(signature: inspect.Signature, *, drop_self: bool = False) -> str:
    """Return a signature without annotations."""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    plain = plain[1:] if drop_self else plain
    return str(inspect.Signature(plain))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
