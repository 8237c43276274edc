"""Checks of output paths, and atomic writing of files."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4


def check_writable(path: Path, *inputs: str | os.PathLike[str]) -> Path:
    """Return the file to write, symbolic links resolved; raise OSError if it cannot be written.

    The file must not be one of `inputs`. A pipe or a device is returned unchanged.
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


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: readers see the old content or the new, never a part.

    The content goes to a temporary file in the same directory, since only a rename within one
    file system is atomic. The temporary file is removed on failure. An existing file keeps its
    permissions.
    """
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
    """Return whether a path is a pipe, a terminal or a device, which a rename would destroy."""
    return path.exists() and not path.is_file() and not path.is_dir()
