"""A business table with a column of every kind."""

import numpy as np
import pandas as pd
import pytest


def business(n=400, seed=0):
    """Text categories, a boolean, missing numbers, a date, an id, a constant, an empty column."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "id": [f"c{k:05d}" for k in rng.permutation(n)],
        "age": rng.integers(18, 90, n).astype(float),
        "income": np.exp(rng.normal(10, 1, n)),
        "city": rng.choice(["Rome", "Oslo", "Paris"], n, p=[0.5, 0.3, 0.2]),
        "vip": rng.random(n) < 0.3,
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), "D"),
        "version": 1,
        "empty": np.nan,
    })  # fmt: skip
    old = (frame["age"] > 50).to_numpy()
    y = np.where(old ^ (frame["city"] == "Rome").to_numpy(), "stays", "leaves")
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    frame["city"] = frame["city"].where(rng.random(n) > 0.1, None)
    return frame, y


@pytest.fixture(scope="session")
def table():
    return business()
