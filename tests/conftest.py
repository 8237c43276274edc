"""Fixtures, and the rule that nothing skips unseen in CI."""

import os

# scikit-learn's array-API check skips itself unless SciPy was told before it is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest

# What may skip in CI, as a part of the test's name, with the reason. Empty: CI has everything.
ALLOWED_SKIPS: dict[str, str] = {}

_skipped: list[str] = []


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def mnist():
    from kmeans_kernel.data import load_mnist

    try:
        return load_mnist()
    except OSError as error:
        pytest.skip(f"MNIST cannot be had: {error}")


def pytest_runtest_logreport(report):
    if report.skipped and not any(name in report.nodeid for name in ALLOWED_SKIPS):
        _skipped.append(report.nodeid)


def pytest_sessionfinish(session, exitstatus):
    if os.environ.get("CI") == "true" and _skipped and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    if os.environ.get("CI") == "true" and _skipped:
        terminalreporter.section("skipped in CI without an entry in ALLOWED_SKIPS")
        for nodeid in _skipped:
            terminalreporter.line(nodeid)
