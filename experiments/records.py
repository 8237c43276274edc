"""Result files: where a figure was measured, and how a long list of measurements is resumed."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("kmeans-kernel", "numpy", "scipy", "scikit-learn")


def facts(packages: Iterable[str] = ()) -> dict[str, object]:
    """Return the versions and the machine, as far as they bear on a measurement; Linux only."""
    return {
        "python": platform.python_version(),
        **{name: found for name in (*PACKAGES, *packages) if (found := version_of(name))},
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.machine()}",
    }


def version_of(package: str) -> str | None:
    """Return the version of a package, None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def memory_bytes(*, peak: bool) -> int:
    """Return the memory that this process holds, or the most it held at once; Linux only."""
    name = "VmHWM" if peak else "VmRSS"
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])


def forget_peak() -> None:
    """Let the most memory held at once be counted from now on; Linux only."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def write_json(path: Path, content: object) -> None:
    """Write to a temporary name, then rename."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


def read_json(path: Path) -> Any:
    """Return the content of a result file."""
    return json.loads(path.read_text(encoding="utf-8"))


def in_fresh_process(module: str, job: dict[str, object]) -> dict[str, object]:
    """Run `python -m module JOB` and return the JSON that it prints last.

    A process of its own gives each measurement its own peak memory and the same start.
    """
    command = [sys.executable, "-m", module, json.dumps(job)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


def answer(measure: Callable[..., dict[str, Any]]) -> bool:
    """Do the job on the command line, if there is one, as `in_fresh_process` asks for it."""
    if len(sys.argv) != 2 or not sys.argv[1].startswith("{"):
        return False
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
    return True


def run_jobs(
    path: Path,
    jobs: Iterable[dict[str, Any]],
    measure: Callable[[dict[str, Any]], dict[str, Any]],
    packages: Iterable[str] = (),
) -> None:
    """Measure the jobs that have no row in the file yet; each row is written when it is done."""
    rows = read_json(path)["rows"] if path.exists() else []
    for job in jobs:
        if any(all(row.get(key) == value for key, value in job.items()) for row in rows):
            continue
        row = {**job, **measure(job), "machine": facts(packages)}
        rows.append(row)
        write_json(path, {"rows": rows})
        print(json.dumps(row), flush=True)
    print(f"{path.name}: {len(rows)} rows")
