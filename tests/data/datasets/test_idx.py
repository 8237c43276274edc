import gzip

import numpy as np
import pytest

from kmeans_kernel.data import read_idx
from kmeans_kernel.data.datasets._idx import encode_idx

IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_reads_what_was_written(tmp_path, pack):
    path = tmp_path / "images"
    path.write_bytes(pack(encode_idx(IMAGES)))
    found = read_idx(str(path))
    np.testing.assert_array_equal(found, IMAGES)
    assert found.dtype == np.uint8
    assert found.flags.writeable


@pytest.mark.parametrize(
    ("code", "dtype"), [(9, "i1"), (0x0B, "i2"), (0x0C, "i4"), (0x0D, "f4"), (0x0E, "f8")]
)
def test_every_type_is_read_into_native_order(tmp_path, code, dtype):
    values = np.array([-3, 0, 100], dtype=dtype)
    path = tmp_path / "values"
    header = bytes([0, 0, code, 1, 0, 0, 0, 3])
    path.write_bytes(header + values.astype(f">{dtype}").tobytes())
    found = read_idx(path)
    np.testing.assert_array_equal(found, values)
    assert found.dtype == np.dtype(dtype)
    assert found.dtype.isnative


GOOD = encode_idx(IMAGES)
BAD = [
    (b"", "is not an IDX file.*an empty file"),
    (b"\x00\x00\x08", "is not an IDX file.*got 00 00 08"),
    (b"\x89PNG" + GOOD, "is not an IDX file.*magic number.*got 89 50 4e 47"),
    (b"\x00\x00\x07" + GOOD[3:], "is not an IDX file.*got 00 00 07 03"),
    (b"\x00\x00\x08\x00", "is not an IDX file"),
    (b"\x00\x00\x08\x41" + bytes(260), "is not an IDX file.*up to 08, got 00 00 08 41"),
    (b"\0\0\x08\x02" + b"\xff" * 4 + bytes(4), r"holds nothing.*\(4294967295, 0\)"),
    (GOOD[:10], "cut short: it ends within its header"),
    (GOOD[:-1], r"cut short: its header announces shape \(2, 3, 4\), 24 bytes, and 23 follow"),
    (GOOD + b"\0", "is longer than it says.*24 bytes, and more follow"),
    (b"\0\0\x08\x03" + b"\xff" * 12 + b"1234", "cut short: its header announces"),
    (gzip.compress(GOOD)[:-9], "damaged or cut short"),
    (gzip.compress(GOOD[:-1]), "cut short: its header announces"),
    (b"\x1f\x8bnot gzip at all", "damaged or cut short"),
]


@pytest.mark.parametrize(("content", "message"), BAD)
def test_a_bad_file_is_explained(tmp_path, content, message):
    path = tmp_path / "some-file"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_idx(path)
    assert "some-file" in str(caught.value)


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_idx(tmp_path / "nowhere")
