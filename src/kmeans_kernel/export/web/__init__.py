"""A fitted classifier as one page of HTML: no server, no network, nothing but a browser.

The page holds the arrays of the model, and computes in JavaScript what `FittedModel` defines.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kmeans_kernel.export.web._page import Page, page_of
from kmeans_kernel.utils.files import check_writable, write_whole

__all__ = ["Page", "to_web"]


def to_web(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    y: Any = None,
    title: str = "A K-means kernel classifier",
    float16: bool = False,
    image_shape: tuple[int, int] | None = None,
) -> Page:
    """Write a page that classifies what you draw, or the numbers you enter, and shows why.

    Parameters
    ----------
    estimator : KMeansKernelClassifier, PatchVotingClassifier, or a Pipeline that ends in one
        Whatever `save_model` saves.
    path : path
        The file, written under a temporary name and renamed.
    X, y : rows or images that the model was not trained on, and their labels
        The page shows how they are classified, takes the ranges of its fields or the size of a
        drawing from them, and holds at most 10,000.
    title : str
        The heading.
    float16 : bool, default=False
        Store the representatives in half the space. What that changes is counted in the result.
    image_shape : (height, width) or None, default=None
        For a model whose rows are images, but that has no step which says so.

    Returns
    -------
    Page
        The content, its size, and how many labels of X are others in the page's numbers.

    Examples
    --------
    >>> import os, tempfile
    >>> from kmeans_kernel import paper
    >>> from kmeans_kernel.data import load_digits
    >>> from kmeans_kernel.export.web import to_web
    >>> digits = load_digits()
    >>> model = paper.raw(10, random_state=0).fit(digits.X_train, digits.y_train)
    >>> path = os.path.join(tempfile.mkdtemp(), "digits.html")
    >>> page = to_web(model, path, X=digits.X_test, y=digits.y_test)
    >>> page.size == os.path.getsize(path), page.changed_labels
    (True, 0)
    """
    path = check_writable(Path(path))
    page = page_of(estimator, X=X, y=y, title=title, float16=float16, image_shape=image_shape)
    write_whole(path, page.content)
    return page
