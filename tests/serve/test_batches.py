"""Which requests are joined, and up to which size."""

import asyncio
from collections import deque

import numpy as np
import pytest

from kmeans_kernel.serve import Limits, create_app
from kmeans_kernel.serve._batches import _Job, choose_joined, measure_sizes, take_batch
from kmeans_kernel.serve._document import curl
from kmeans_kernel.serve._models import serve_model
from kmeans_kernel.serve._packed import accepted_encoding
from tests.serve.slow_server import Slow


def jobs(*rows):
    loop = asyncio.new_event_loop()
    made = deque(_Job(one, loop.create_future()) for one in rows)
    loop.close()
    return made


def test_only_rows_of_a_kind_are_joined_and_no_more_than_fit():
    wide, narrow = np.zeros((3, 5), np.float32), np.zeros((3, 4), np.float32)
    waiting = jobs(wide, narrow, wide, wide.astype(np.float64), np.zeros((9, 5), np.float32), wide)
    first = take_batch(waiting, 9)
    assert [len(job.rows) for job in first] == [3, 3, 3]
    assert {job.kind for job in first} == {(np.dtype(np.float32), (5,))}
    assert [job.rows.shape for job in waiting] == [(3, 4), (3, 5), (9, 5)]  # in their order
    assert [len(take_batch(waiting, 9)) for _ in range(3)] == [1, 1, 1]
    assert take_batch(waiting, 9) == []


def test_what_was_given_up_is_left_out():
    waiting = jobs(*np.zeros((4, 2, 2)))
    waiting[0].future.cancel()
    waiting[2].future.cancel()
    assert len(take_batch(waiting, 100)) == 2
    assert take_batch(waiting, 100) == []  # the cancelled one is dropped when its turn comes


@pytest.mark.parametrize(
    ("per_row", "size"),
    [
        ({1: 8.0, 2: 4.0, 4: 2.0, 8: 1.99, 16: 1.98}, 4),
        ({1: 1.0, 2: 1.0, 4: 1.1}, 1),
        ({1: 8.0, 2: 9.0, 4: 2.0}, 4),
        ({1: 1.0}, 1),
    ],
)
def test_batches_grow_as_long_as_it_is_worth_it(per_row, size):
    assert choose_joined(per_row) == size


def test_sizes_are_measured(tmp_path):
    sizes = measure_sizes(Slow(tmp_path).predict_proba, 2)
    assert 1 <= sizes.joined <= 2048
    assert sizes.piece >= sizes.joined


@pytest.mark.parametrize(
    ("asked", "found"),
    [("gzip", "gzip"), ("deflate, gzip", "deflate"), ("br, gzip;q=0.5", "gzip"), ("", None),
     ("gzip;q=0", None), ("gzip; q=0.00, deflate", "deflate"), ("identity", None)],
)  # fmt: skip
def test_answers_are_packed_as_the_client_likes(asked, found):
    assert accepted_encoding(asked) == found


def test_what_cannot_be_an_application(tmp_path):
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


def test_examples_of_wide_models_are_short(tmp_path):
    model = Slow(tmp_path)
    model.n_features_in_ = 784
    assert len(curl("/v2/models/{name}/infer", "POST", serve_model("a", model), token=False)) < 200
