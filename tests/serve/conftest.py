"""Shared fixtures: the slow server, and a small model file."""

import json

import pytest

from kmeans_kernel import KMeansKernelClassifier, save_model
from tests.serve.processes import SLOW, running


@pytest.fixture
def slow(tmp_path):
    """Return a function that starts the slow server with the given limits."""
    servers = []

    def start(**limits):
        (tmp_path / "begun").touch()
        server = running([*SLOW, tmp_path, json.dumps(limits)], tmp_path / "log")
        servers.append(server)
        return server.__enter__()

    yield start
    (tmp_path / "go").touch()
    for server in servers:
        server.__exit__(None, None, None)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "small.model"
    X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], [0, 0, 1, 1]
    save_model(KMeansKernelClassifier(2, random_state=0).fit(X, y), path)
    return path
