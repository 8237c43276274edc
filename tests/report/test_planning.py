import pytest

from kmeans_kernel.report._planning import Problem, Rates, measure_rates, plan

RATES = Rates(kmeans=1e10, fit=2e10, solve=4e10, network=1e9)


def test_operations_are_those_of_the_method():
    problem = Problem(rows=1000, features=10, classes=3, q=5)
    assert problem.m == 15
    assert problem.kmeans_operations == 2 * 1000 * 5 * 10
    assert problem.fit_operations == 2 * 1000 * 15 * (10 + 15)


def test_time_falls_with_workers_but_for_the_solve():
    one, ten = (plan(Problem(1e8, 100, 10, 100, workers=n), RATES).seconds for n in (1, 10))
    assert ten["kmeans"] == pytest.approx(one["kmeans"] / 10)
    assert ten["fit"] == pytest.approx(one["fit"] / 10)
    assert ten["solve"] == one["solve"]
    assert one["network"] == 0 < ten["network"]
    assert one["all"] == pytest.approx(one["kmeans"] + one["fit"] + one["solve"])


def test_network_is_the_representatives_out_and_the_sums_back():
    problem = Problem(1e8, 100, 10, 100, workers=4)
    assert problem.network_bytes_per_iteration == 4 * 1000 * 101 * (4 + 8)


@pytest.mark.parametrize(
    ("problem", "memory", "word"),
    [
        (Problem(1e9, 1000, 2, 10), None, "kmeans"),
        (Problem(1e7, 10, 10, 200), None, "fit"),
        (Problem(1e4, 10, 100, 200, workers=50), None, "solve"),
        (Problem(1e6, 1000, 1000, 1, workers=1000, iterations=300, on_samples=False), None,
         "network"),
        (Problem(1e6, 10, 10, 10_000), 8e9, "memory: .* q = "),
        (Problem(1e6, 10, 1_000_000, 1), 8e9, "memory: even q = 1"),
    ],
)  # fmt: skip
def test_the_bottleneck_is_named(problem, memory, word):
    import re

    assert re.match(word, plan(problem, RATES, memory).bottleneck)


def test_a_number_of_representatives_that_would_fit_does():
    for sizes, memory in (((1e6, 10, 10, 10_000), 8e9), ((1e6, 768, 100, 200), 4e9)):
        said = plan(Problem(*sizes), RATES, memory).bottleneck
        q = int(said.split("q = ")[1].split()[0])
        assert Problem(*sizes[:3], q).bytes_per_worker <= memory
        assert Problem(*sizes[:3], q + 1).bytes_per_worker > memory


def test_rates_are_those_of_a_core():
    found = measure_rates(Problem(1e6, 20, 3, 20))
    for rate in (found.kmeans, found.fit, found.solve):
        assert 1e7 < rate < 1e12
