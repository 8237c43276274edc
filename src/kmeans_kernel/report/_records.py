"""Result files of measurements: environment, fresh processes, and resumable lists of jobs."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

from kmeans_kernel.utils.files import write_whole

PACKAGES = ("kmeans-kernel", "numpy", "scipy", "scikit-learn")


def facts(packages: Iterable[str] = ()) -> dict[str, object]:
    """Return the package versions and the machine of a measurement."""
    return {
        "python": platform.python_version(),
        **{name: found for name in (*PACKAGES, *packages) if (found := version_of(name))},
        "cores": available_cores(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def version_of(package: str) -> str | None:
    """Return the version of a package, None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def memory_bytes(*, peak: bool) -> int:
    """Return the resident memory of this process, or its peak; 0 on systems other than Linux."""
    name = "VmHWM" if peak else "VmRSS"
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    lines = status.read_text(encoding="ascii").splitlines()
    found = next((line for line in lines if line.startswith(name)), None)
    return 0 if found is None else 1024 * int(found.split()[1])


def write_json(path: Path, content: object) -> None:
    """Write a result file atomically."""
    write_whole(path, (json.dumps(content, indent=1) + "\n").encode())


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write a result file atomically, one line per row."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    write_whole(path, f'{{"rows": [\n{lines}\n]}}\n'.encode())


def read_json(path: Path) -> Any:
    """Return the content of a result file."""
    return json.loads(path.read_text(encoding="utf-8"))


def read_rows(path: Path, *needed: str) -> list[dict[str, Any]]:
    """Return the rows of a result file; an absent file has none.

    Raises ValueError if a row lacks one of the `needed` keys.
    """
    if not path.exists():
        return []
    try:
        rows: list[dict[str, Any]] = read_json(path)["rows"]
        if not all(isinstance(row, dict) and set(needed) <= set(row) for row in rows):
            raise TypeError
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is not a result file of ours: it has no rows, or a row lacks one of its keys. "
            "Move it away, or name another folder."
        ) from error
    return rows


def forget_peak() -> None:
    """Reset the peak of resident memory, on Linux."""
    # Writing 5 to clear_refs resets VmHWM; see proc_pid_clear_refs(5).
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def answer(measure: Callable[..., dict[str, Any]]) -> bool:
    """Run the job that `in_fresh_process` passed on the command line; return whether there is one.

    The job's row is printed as JSON. A failure prints one line and exits with code 1.
    """
    if len(sys.argv) != 2 or not sys.argv[1].startswith("{"):
        return False
    Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()
    try:
        row = measure(**json.loads(sys.argv[1]))
    except (OSError, ValueError, MemoryError, KeyboardInterrupt) as error:
        sys.stderr.write(f"{type(error).__name__}: {' '.join(str(error).split())}\n")
        sys.exit(1)
    sys.stdout.write(json.dumps(row) + "\n")
    return True


def _exit_with_parent(parent: int) -> None:
    """Exit soon after the parent process has died; a killed parent cannot stop its child."""
    while os.getppid() == parent:
        sleep(0.5)
    os._exit(1)


def in_fresh_process(
    module: str, job: dict[str, object], limit_seconds: float | None = None
) -> dict[str, object]:
    """Run `python -m module JOB` and return the JSON of its last line.

    In a process of its own a measurement has its own peak memory and no warm caches. Raises
    TimeoutError if it is not done after `limit_seconds`; the process is killed.
    """
    command = [sys.executable, "-m", module, json.dumps(job)]
    try:
        done = subprocess.run(  # noqa: S603
            command, check=False, capture_output=True, text=True, timeout=limit_seconds
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"the run {json.dumps(job)} took over {limit_seconds} s") from error
    if done.returncode != 0:
        last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise OSError(f"the run {json.dumps(job)} failed: {last}")
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


def missing_jobs(path: Path, jobs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the jobs without a row in the file."""
    rows = read_rows(path)
    return [job for job in jobs if not any(job.items() <= row.items() for row in rows)]


def run_jobs(
    path: Path,
    jobs: Iterable[dict[str, Any]],
    measure: Callable[[dict[str, Any]], dict[str, Any]],
    packages: Iterable[str] = (),
    on_row: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Measure the jobs without a row in the file, and write each row as soon as it is measured."""
    for job in missing_jobs(path, jobs):
        row = {**job, **measure(job), "machine": facts(packages)}
        write_rows(path, [*read_rows(path), row])
        (on_row or _print_row)(row)


def _print_row(row: dict[str, Any]) -> None:
    print(json.dumps(row), flush=True)  # noqa: T201
