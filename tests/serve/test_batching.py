"""Micro-batching: which requests share a batch, and the batch size."""

import asyncio
from collections import deque

import numpy as np
import pytest

from kmeans_kernel.serve import Limits, create_app
from kmeans_kernel.serve._batching import _Job, choose_batch_rows, measure_batch_sizes, take_batch
from kmeans_kernel.serve._models import to_served_model
from kmeans_kernel.serve.protocol._openapi import curl_command
from kmeans_kernel.serve.transport._compression import negotiate_encoding
from tests.serve.slow_server import Slow


def jobs(*rows):
    loop = asyncio.new_event_loop()
    made = deque(_Job(one, loop.create_future()) for one in rows)
    loop.close()
    return made


def test_a_batch_has_one_signature_and_at_most_max_rows():
    wide, narrow = np.zeros((3, 5), np.float32), np.zeros((3, 4), np.float32)
    waiting = jobs(wide, narrow, wide, wide.astype(np.float64), np.zeros((9, 5), np.float32), wide)
    first = take_batch(waiting, 9)
    assert [len(job.rows) for job in first] == [3, 3, 3]
    assert {job.signature for job in first} == {(np.dtype(np.float32), (5,))}
    assert [job.rows.shape for job in waiting] == [(3, 4), (3, 5), (9, 5)]  # order is kept
    assert [len(take_batch(waiting, 9)) for _ in range(3)] == [1, 1, 1]
    assert take_batch(waiting, 9) == []


def test_requests_that_timed_out_are_skipped():
    waiting = jobs(*np.zeros((4, 2, 2)))
    waiting[0].future.cancel()
    waiting[2].future.cancel()
    assert len(take_batch(waiting, 100)) == 2
    assert take_batch(waiting, 100) == []  # the cancelled job is dropped


@pytest.mark.parametrize(
    ("per_row", "size"),
    [
        ({1: 8.0, 2: 4.0, 4: 2.0, 8: 1.99, 16: 1.98}, 4),
        ({1: 1.0, 2: 1.0, 4: 1.1}, 1),
        ({1: 8.0, 2: 9.0, 4: 2.0}, 4),
        ({1: 1.0}, 1),
    ],
)
def test_batch_size_grows_while_the_time_per_row_falls(per_row, size):
    assert choose_batch_rows(per_row) == size


def test_batch_sizes_are_measured(tmp_path):
    sizes = measure_batch_sizes(Slow(tmp_path).predict_proba, 2)
    assert 1 <= sizes.batch_rows <= 2048
    assert sizes.chunk_rows >= sizes.batch_rows


@pytest.mark.parametrize(
    ("asked", "found"),
    [("gzip", "gzip"), ("deflate, gzip", "deflate"), ("br, gzip;q=0.5", "gzip"), ("", None),
     ("gzip;q=0", None), ("gzip; q=0.00, deflate", "deflate"), ("identity", None)],
)  # fmt: skip
def test_content_encoding_is_negotiated(asked, found):
    assert negotiate_encoding(asked) == found


def test_invalid_applications_are_rejected(tmp_path):
    model = Slow(tmp_path)
    with pytest.raises(ValueError, match="at least one model"):
        create_app({})
    with pytest.raises(ValueError, match="name of a model"):
        create_app({"a/b": model})
    with pytest.raises(TypeError, match="only fitted classifiers"):
        create_app({"a": object()})
    with pytest.raises(ValueError, match="token must be one line"):
        create_app({"a": model}, token="ä\n")
    with pytest.raises(ValueError, match="'rows' must be above 0, got 0"):
        Limits(rows=0)


def test_curl_examples_of_wide_models_are_short(tmp_path):
    model = Slow(tmp_path)
    model.n_features_in_ = 784
    served = to_served_model("a", model)
    assert len(curl_command("/v2/models/{name}/infer", "POST", served, token=False)) < 200
