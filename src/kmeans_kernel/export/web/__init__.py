"""Export of a fitted classifier as one HTML file that runs in a browser, without a network.

The page holds the arrays of the model, and computes its scores in JavaScript as `FittedModel` does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kmeans_kernel.export.web._page import Page, make_page
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
    """Write a page that classifies a drawing, or the values of a form, and explains the result.

    The form of a table has a control for each column by its kind: a list of levels, a number, a
    date, yes or no. Every value can be missing.

    Parameters
    ----------
    estimator : KMeansKernelClassifier, PatchVotingClassifier, or a Pipeline that ends in one
        Any estimator that `save_model` saves.
    path : path
        The file to write, atomically.
    X, y : test rows or images, which the model was not trained on, and their labels
        The page shows their classification, at most 10,000 of them, and they can be loaded into the
        form. Their values set the ranges of plain numbers, or the size and position of a drawing.
    title : str
        The heading.
    float16 : bool, default=False
        Store the representatives in half precision. The result counts the labels that change.
    image_shape : (height, width) or None, default=None
        Shape of the images of a model without an image step, whose rows are pixels.

    Returns
    -------
    Page
        The content, its size, and the number of labels of X that the page's rounding changes.

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
    page = make_page(estimator, X=X, y=y, title=title, float16=float16, image_shape=image_shape)
    write_whole(path, page.content)
    return page
