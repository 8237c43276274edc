"""Write the generated parts of the documentation, or with --check say which are out of date.

README.md holds tables between markers, made from the result files of experiments/ and
benchmarks/; docs/api.md is made from the docstrings.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path

import kmeans_kernel
from kmeans_kernel import datasets, paper

ROOT = Path(__file__).parent.parent
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
            stale.append(path.relative_to(ROOT))
            if not check:
                path.write_text(content, encoding="utf-8")
    if check and stale:
        print(f"Out of date: {', '.join(map(str, stale))}. Run `make docs` and commit the result.")
        return 1
    print("Docs are current." if check else f"Written: {', '.join(map(str, stale)) or 'nothing'}")
    return 0


def generated() -> dict[Path, str]:
    """Return the content that each generated file should have."""
    readme = ROOT / "README.md"
    performance = ROOT / "docs" / "performance.md"
    return {
        readme: fill(readme.read_text(encoding="utf-8"), "paper points", paper_points_table()),
        performance: fill(performance.read_text(encoding="utf-8"), "benchmark", benchmark_table()),
        ROOT / "docs" / "api.md": api_page(),
    }


def fill(text: str, name: str, content: str) -> str:
    """Replace what stands between the two markers of that name."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    pattern = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise SystemExit(f"expected the markers of {name!r} once")
    return pattern.sub(lambda _: f"{begin}\n{content}\n{end}", text)


def paper_points_table() -> str:
    """Return the table of experiments/results/paper_points.json."""
    path = ROOT / "experiments" / "results" / "paper_points.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
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


def benchmark_table() -> str:
    """Return the table of benchmarks/results/benchmark.json."""
    path = ROOT / "benchmarks" / "results" / "benchmark.json"
    results = json.loads(path.read_text(encoding="utf-8"))
    lines = ["| work | ours | others | ratio | target | met |", "|---|---:|---|---:|---|---|"]
    for row in results["rows"].values():
        seconds = {k: v for k, v in row["median_seconds"].items() if not k.startswith("prepare")}
        ours = seconds.pop("ours")
        others = ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
        errors = row.get("error_percent", {})
        told = "; error " + ", ".join(f"{k} {v:.2f} %" for k, v in errors.items()) if errors else ""
        lines.append(
            f"| {row['work']}{told} | {ours:.2f} s | {others} | {row['ratio']:.2f} "
            f"| {row['target']} | {'yes' if row['met'] else 'no'} |"
        )
    machine = ", ".join(f"{name} {value}" for name, value in results["machine"].items())
    note = f"Each row: medians of three, interleaved in one process. {machine}."
    return "\n".join([*lines, "", note])


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
