"""What every result file says about where it was measured."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version


def facts() -> dict[str, object]:
    """Return the versions and the machine, as far as they bear on a measurement; Linux only."""
    packages = ("kmeans-kernel", "numpy", "scipy", "scikit-learn")
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.machine()}",
    }


def peak_memory_bytes() -> int:
    """Return the most memory this process held at once; Linux only."""
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123
        line = next(line for line in status if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])
