"""Text as sparse TF-IDF rows, and embeddings: the classifier as it is, against a linear one.

    python examples/text.py

The documents are made up: each of six topics has two ways to be talked about, in words that other
topics use too. Embeddings are unit vectors of 768 numbers that vary in a few directions mostly, as
those of a language model do, several clusters to a class. Put your own rows in their place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from kmeans_kernel import KMeansKernelClassifier

N_WORDS = 3000


def documents(n: int, rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Return texts of some 60 words, and their topics."""
    words = np.array([f"word{k}" for k in range(N_WORDS)])
    common = 1.0 / np.arange(1, N_WORDS + 1)
    ways = rng.dirichlet(0.3 * common / common.mean(), size=12)  # two for each topic
    way = rng.integers(12, size=n)
    mixed = 0.4 * ways + 0.6 * common / common.sum()
    texts = [" ".join(rng.choice(words, 60, p=mixed[k])) for k in way]
    return texts, way % 6


def embeddings(n: int, rng: np.random.Generator, d: int = 768) -> tuple[np.ndarray, np.ndarray]:
    """Return unit rows in six clusters for each of ten classes, and their classes."""
    centres, axes = rng.normal(size=(60, 12)), rng.normal(size=(12, d))
    cluster = rng.integers(60, size=n)
    rows = (centres[cluster] + 0.6 * rng.normal(size=(n, 12))) @ axes + rng.normal(size=(n, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), cluster % 10


def compare(title: str, X: Any, y: np.ndarray, *steps: Any) -> None:
    """Print the errors of ours and of a linear classifier on the same rows."""
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    for name, classifier in (
        ("kmeans-kernel", KMeansKernelClassifier(random_state=0)),
        ("logistic regression", LogisticRegression(max_iter=1000)),
    ):
        model = make_pipeline(*steps, classifier).fit(X_train, y_train)
        error = 100 * (1 - model.score(X_test, y_test))
        print(f"{title}, {name}: {error:.1f} % error")


def main() -> None:
    """Compare on both kinds of rows."""
    rng = np.random.default_rng(0)
    texts, topics = documents(3000, rng)
    compare("text", texts, topics, TfidfVectorizer())  # sparse rows stay sparse
    X, y = embeddings(4000, rng)
    compare("embeddings", X, y)


if __name__ == "__main__":
    main()
