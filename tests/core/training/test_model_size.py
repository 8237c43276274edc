import pytest
from sklearn.datasets import make_classification

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.report import plot_validation_curve


def test_representatives_are_doubled_while_the_loss_falls():
    X, y = make_classification(
        1500, 2, n_informative=2, n_redundant=0, n_clusters_per_class=1, random_state=3
    )
    found = KMeansKernelClassifier("auto", random_state=0).fit(X, y)
    numbers = [size.n_representatives for size in found.validation_curve_]
    assert numbers == [12 * 2**k for k in range(len(numbers))]
    assert found.n_representatives_ in numbers
    assert len(found.representatives_) == 2 * found.n_representatives_
    assert found.n_representatives_ < 400
    axes = plot_validation_curve(found).axes[0]
    assert axes.lines[0].get_xdata().tolist() == numbers
    with pytest.raises(ValueError, match="n_representatives='auto'"):
        plot_validation_curve(KMeansKernelClassifier(5).fit(X, y))


def test_the_search_ends_where_rows_memory_or_time_end(monkeypatch):
    X, y = make_classification(40, 5, random_state=0)
    found = KMeansKernelClassifier("auto", random_state=0).fit(X, y)
    assert found.validation_curve_[-1].n_representatives <= 16
    X, y = make_classification(900, 10, n_informative=9, n_redundant=0, random_state=0)
    monkeypatch.setattr("kmeans_kernel.core.training.model_size.MOST_BYTES", 24 * 48**2)
    found = KMeansKernelClassifier("auto", random_state=0).fit(X, y)
    assert [size.n_representatives for size in found.validation_curve_] == [12, 24]
    monkeypatch.setattr("kmeans_kernel.core.training.model_size.MOST_SECONDS", 0.0)
    assert len(KMeansKernelClassifier("auto", random_state=0).fit(X, y).validation_curve_) == 1
