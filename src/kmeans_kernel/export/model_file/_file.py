"""The file of a model: checked arrays and text, and a digest of the whole."""

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

VERSION = 2

# The kinds of numbers that arrays hold: booleans, whole numbers and floating-point ones.
_KINDS = "biuf"


class ModelFileError(ValueError):
    """A file that is no model of ours, or one that is damaged."""


def write(path: Path, text: str, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write the text and the arrays of a model to one file, whole or not at all."""
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "estimator": text,
        "digest": digest(text, arrays),
    }
    write_whole(path, _in_order(save(arrays, metadata)))


def read(path: Path) -> tuple[str, dict[str, npt.NDArray[Any]]]:
    """Return the text and the arrays of a file whose header and digest are sound."""
    from safetensors import SafetensorError, safe_open

    try:
        with _on_disk(path) as place, safe_open(place, framework="np") as file:
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
                raise damaged(path, f"its metadata lacks {', '.join(sorted(missing))}")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise damaged(path, f"no safetensors file, or a part of one ({error})") from error
    except (TypeError, AttributeError) as error:  # arrays of types that NumPy does not have
        raise damaged(path, f"it holds an array of an unknown type ({error})") from error
    strange = sorted(name for name, array in arrays.items() if array.dtype.kind not in _KINDS)
    if strange:  # other packages may teach NumPy more types
        raise damaged(path, f"it holds an array of an unknown type ({strange[0]})")
    if metadata["digest"] != digest(metadata["estimator"], arrays):
        raise damaged(path, "its digest does not match its content")
    return metadata["estimator"], arrays


@contextmanager
def _on_disk(path: Path) -> Iterator[Path]:
    """Give a file that can be mapped into memory: what comes through a pipe is copied to one."""
    if path.is_file() or not path.exists():
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "model"
        with path.open("rb") as source, copy.open("wb") as target:
            start = source.read(9)  # the length of the header, and its first character
            target.write(start)
            if start[8:] == b"{":  # else it is no model, and may be endless
                shutil.copyfileobj(source, target)
        yield copy


def _in_order(content: bytes) -> bytes:
    """Return a safetensors file with its header in alphabetical order, the same every time."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[end:]


def digest(text: str, arrays: dict[str, npt.NDArray[Any]]) -> str:
    """Return a digest of all that a model consists of."""
    found = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        found.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


class Place:
    """A place in the tree of estimators, and the arrays that belong there."""

    def __init__(self, name: str, arrays: dict[str, npt.NDArray[Any]], used: Any = None) -> None:
        self._name = name
        self._arrays = arrays
        self._used: set[str] = set() if used is None else used

    def below(self, name: str) -> Place:
        """Return the place of a part."""
        return Place(f"{self._name}{name}.", self._arrays, self._used)

    def put(self, name: str, array: npt.NDArray[Any]) -> None:
        """Store an array of this place."""
        self._arrays[self._name + name] = array

    def has(self, name: str) -> bool:
        """Say whether there is an array of this name here."""
        return self._name + name in self._arrays

    def take(
        self, name: str, shape: tuple[int | None, ...], dtypes: tuple[str, ...]
    ) -> npt.NDArray[Any]:
        """Return an array of this place; None in `shape` is any length."""
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
        """Return the names of the arrays that nobody took."""
        return sorted(set(self._arrays) - self._used)


def damaged(path: Path, why: str) -> ModelFileError:
    return ModelFileError(
        f"{path} is not a whole model of kmeans-kernel: {why}. Copy it again from where it came "
        "from, or save the model again."
    )
