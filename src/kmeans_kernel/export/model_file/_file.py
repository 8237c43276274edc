"""Reading and writing of the model file: arrays, JSON text, and a digest of both."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.utils.files import write_whole

FORMAT = "kmeans-kernel"

# Version 5 has the columns of a table and their encoding; version 4 had feature transforms alone.
# Files of earlier versions, all from before the first release, are not read.
VERSION = 5

# NumPy kinds of the data types that a model may hold: boolean, integer, unsigned, float.
_KINDS = "biuf"


class ModelFileError(ValueError):
    """Raised for a file that is not a model of kmeans-kernel, or is damaged."""


def write(path: Path, text: str, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write the JSON text and the arrays of a model to one file, atomically."""
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "estimator": text,
        "digest": digest(text, arrays),
    }
    write_whole(path, _with_sorted_header(save(arrays, metadata)))


def read(path: Path) -> tuple[str, dict[str, npt.NDArray[Any]]]:
    """Return the JSON text and the arrays of a file; verify its header, version and digest."""
    from safetensors import SafetensorError, safe_open

    try:
        with _mappable_file(path) as place, safe_open(place, framework="np") as file:
            metadata: dict[str, str] = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise ModelFileError(
                    f"{path} is a safetensors file, but not a model of kmeans-kernel. Name a file "
                    "that save_model wrote."
                )
            if metadata.get("version") != str(VERSION):
                raise ModelFileError(
                    f"{path} is a model of format version {metadata.get('version')!r}, and this "
                    f"kmeans-kernel reads version {VERSION}. Install the kmeans-kernel that wrote "
                    "it, or save the model again with this one."
                )
            missing = {"estimator", "digest"} - set(metadata)
            if missing:
                raise damaged_error(path, f"its metadata lacks {', '.join(sorted(missing))}")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise damaged_error(path, f"no safetensors file, or a part of one ({error})") from error
    except (TypeError, AttributeError) as error:  # arrays of types that NumPy does not have
        raise damaged_error(path, f"it holds an array of an unknown type ({error})") from error
    unknown = sorted(name for name, array in arrays.items() if array.dtype.kind not in _KINDS)
    if unknown:  # ml_dtypes, if imported, adds types such as bfloat16 to NumPy
        raise damaged_error(path, f"it holds an array of an unknown type ({unknown[0]})")
    if metadata["digest"] != digest(metadata["estimator"], arrays):
        raise damaged_error(path, "its digest does not match its content")
    return metadata["estimator"], arrays


@contextmanager
def _mappable_file(path: Path) -> Iterator[Path]:
    """Yield a path that safetensors can map into memory: a pipe is copied to a temporary file."""
    if path.is_file() or not path.exists():
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "model"
        with path.open("rb") as source, copy.open("wb") as target:
            start = source.read(9)  # the 8-byte length of the header, and its first character
            target.write(start)
            if start[8:] == b"{":  # any other stream is no safetensors file, and may be endless
                shutil.copyfileobj(source, target)
        yield copy


def _with_sorted_header(content: bytes) -> bytes:
    """Return a safetensors file with the keys of its header sorted.

    safetensors writes the metadata in random order; sorted, a model always gives the same bytes.
    """
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # the format aligns the tensors to 8 bytes
    return len(header).to_bytes(8, "little") + header + content[end:]


def digest(text: str, arrays: dict[str, npt.NDArray[Any]]) -> str:
    """Return the SHA-256 digest of the text, and of the names, types, shapes and array bytes."""
    found = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        found.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


class Place:
    """The arrays of one estimator in the tree, stored under the prefix of its path.

    All places of a tree share one dict of arrays and one set of the names read from it.
    """

    def __init__(self, name: str, arrays: dict[str, npt.NDArray[Any]], used: Any = None) -> None:
        self._name = name
        self._arrays = arrays
        self._used: set[str] = set() if used is None else used

    def below(self, name: str) -> Place:
        """Return the place of a nested estimator."""
        return Place(f"{self._name}{name}.", self._arrays, self._used)

    def put(self, name: str, array: npt.NDArray[Any]) -> None:
        """Store an array of this estimator."""
        self._arrays[self._name + name] = array

    def has(self, name: str) -> bool:
        """Return whether this estimator has an array of this name."""
        return self._name + name in self._arrays

    def take(
        self, name: str, shape: tuple[int | None, ...], dtypes: tuple[str, ...]
    ) -> npt.NDArray[Any]:
        """Return an array after checking its type, shape and finiteness; None is any length."""
        full = self._name + name
        if full not in self._arrays:
            raise ModelFileError(f"the array {full!r} is missing")
        array = self._arrays[full]
        fits = len(shape) == array.ndim and all(
            expected in (None, found) for expected, found in zip(shape, array.shape, strict=True)
        )
        if not fits or array.dtype.name not in dtypes:
            raise ModelFileError(
                f"the array {full!r} should be {' or '.join(dtypes)} of shape {shape}, "
                f"got {array.dtype.name} of shape {array.shape}"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"the array {full!r} holds values that are not finite")
        self._used.add(full)
        return array

    def unused(self) -> list[str]:
        """Return the names of the arrays that were never read."""
        return sorted(set(self._arrays) - self._used)


def damaged_error(path: Path, why: str) -> ModelFileError:
    """Return the error for a file that is incomplete or inconsistent."""
    return ModelFileError(
        f"{path} is not a whole model of kmeans-kernel: {why}. Copy it again from where it came "
        "from, or save the model again."
    )
