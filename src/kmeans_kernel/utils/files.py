"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4


def check_writable(path: Path, *inputs: str | os.PathLike[str]) -> Path:
    """Return the file that would be written, links followed, or say why it cannot be.

    It may be none of the inputs. A pipe or a device is written to as it is.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory: name a file to write to.")
    if _is_stream(path):
        return path
    path = path.resolve()
    if path.parent.exists() and not path.parent.is_dir():
        raise NotADirectoryError(f"{path.parent} is a file, not a folder: name another.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not there: make the folder, or name another.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path.parent} cannot be written to: name another folder.")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"{path} may not be changed: name another file.")
    if any(path.exists() and Path(other).exists() and path.samefile(other) for other in inputs):
        raise FileExistsError(f"{path} is what is read; name another file to write to.")
    return path


def parquet_files(path: Path) -> list[Path]:
    """Return the Parquet files of a directory, in the order of their names; or the file itself."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.suffix in (".parquet", ".pq"))


def write_whole(path: Path, content: bytes) -> None:
    """Write under a temporary name beside the file, then rename; permissions are kept."""
    path = check_writable(path)
    if _is_stream(path):
        path.write_bytes(content)
        return
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}.tmp")
    try:
        temporary.write_bytes(content)
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _is_stream(path: Path) -> bool:
    """Say whether this is a pipe, a terminal or the like: nothing to be replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()
