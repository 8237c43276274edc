"""Every benchmark once, on small sizes: that it works, not how fast."""

from functools import partial

import numpy as np
import pytest
from sklearn.utils import Bunch

from benchmarks import contest, defaults, draw, peers, plain, scaling, targets, tried
from docs import default_fit
from experiments import tables
from kmeans_kernel import PixelNormalizer
from kmeans_kernel.data import load_digits
from kmeans_kernel.report import _records as records


@pytest.fixture(scope="module")
def small(mnist):
    class Small(dict):
        __getattr__ = dict.__getitem__

    return Small(X_train=mnist.X_train[:3000], y_train=mnist.y_train[:3000])


@pytest.fixture(scope="module")
def pixels(small):
    return PixelNormalizer().fit_transform(small.X_train)


def run(works):
    return contest.median_seconds(works, 1)


def test_kmeans_against_all_peers(pixels):
    n, works = targets.kmeans_contest(pixels, 20, None)
    assert n > 1
    for package, name in (("faiss-cpu", "faiss"), ("superkmeans", "superkmeans")):
        if records.version_of(package) is None:
            pytest.skip(f"{package} is not installed")
        assert name in works
    assert {"ours", "scikit-learn", "bare"} <= set(run(works))


def test_solve_predict_and_imports_against_the_bare_work(pixels, small):
    solve = targets.solve_contest(pixels, small.y_train, 500, regularization=1e-2)
    assert {"ours", "bare"} <= set(run(solve))
    assert set(run(targets.predict_contest(pixels, pixels[:50], 400))) == {"ours", "bare"}
    assert set(run(targets.import_contest())) == {"ours", "bare"}


def test_the_whole_program_and_the_plain_one_agree(mnist):
    errors = {}
    run(targets.program_contest(20, errors, n_train=3000))
    assert abs(errors["ours"] - errors["plain float64"]) < 1.0
    assert plain.raw_fft_error(20, n_train=3000) == errors["plain float64"]


@pytest.mark.parametrize(
    "method",
    [
        "ours",
        "Nystroem + ridge, RBF",
        "Nystroem + ridge, degree 4",
        "k nearest neighbours",
        "LightGBM",
        "SVC, RBF",
        "SVC, degree 4",
        "intelex SVC, RBF",
        "intelex SVC, degree 4",
    ],
)
def test_every_peer_learns_the_digits(method):
    if not peers.installed(method):
        pytest.skip(f"the package of {method} is not installed")
    size = {"ours": 20, "Nystroem": 100}.get(method.split()[0])
    job = {"data": "digits", "method": method}
    assert any(job.items() <= found.items() for found in peers.jobs("digits", [20], [100]))
    found = peers.measure(load_digits(), method, size, enough_runs=1, enough_seconds=60)
    assert found["error_percent"] < 15
    assert found["runs"] == 1


def test_scaling_is_measured_and_fitted(mnist, monkeypatch):
    monkeypatch.setattr(scaling, "RUNS", 1)
    found = scaling.measure(2000, 20, 100)
    assert set(found["seconds"]) == {"sphere", "kmeans", "kernel", "solve", "predict"}
    assert found["bytes_above_data"] >= 0
    assert scaling.fitted_exponent([1, 2, 4], [3, 12, 48]) == pytest.approx(2)
    assert [job["q"] for job in scaling.jobs(scaling.QUICK)] == [50, 50, 50, 100, 50, 50]


@pytest.mark.parametrize(
    "idea", [tried.bounds, tried.side_by_side, tried.row_threads, tried.tail_bound]
)
def test_what_was_tried_runs(idea, small):
    for work in idea(small, "raw", 50):
        work()


def test_rows_of_pixels_run(mnist):
    part = Bunch(
        X_train=mnist.X_train[:2000], y_train=mnist.y_train[:2000],
        X_test=mnist.X_test[:500], y_test=mnist.y_test[:500],
    )  # fmt: skip
    race = targets.RowsContest(part, quick=True)
    errors = race.errors()
    assert set(errors) == set(race.predictions())
    assert max(errors.values()) < 20


def test_conjugate_gradients_run(small):
    for work in tried.conjugate_gradients(small, "raw", 300, rank=100):
        work()


def test_the_tables_of_the_default_fit_are_development_tables():
    assert len(set(defaults.TABLES)) == 12
    assert set(defaults.TABLES) <= set(tables.TABLES) - set(tables.HELD_OUT)
    assert set(default_fit.README_TABLES) <= set(defaults.TABLES)
    assert [len(defaults.jobs(part, quick=False)) for part in ("tables", "large", "given")] == [
        12, 2, 2,
    ]  # fmt: skip


@pytest.fixture
def short_peers(monkeypatch):
    """Let the peers have five trees: their threads spin where other tests run beside them."""
    few = {
        "CatBoost": {"iterations": 5, "thread_count": 1},
        "LightGBM": {"n_estimators": 5, "n_jobs": 1},
        "gradient boosting": {"max_iter": 5},
    }
    for name, options in few.items():
        make = defaults.METHODS[name]
        short = partial(lambda make, options: make().set_params(**options), make, options)
        monkeypatch.setitem(defaults.METHODS, name, short)


def small_rows(part):
    """Return rows of a part on sizes of tests, with the machine as run_jobs adds it."""
    size = {"n": 200, "d": 20}
    jobs = {
        "tables": [{"table": "wine"}],
        "large": [{**size, "classes": 2}],
        "given": [{**size, "m": 40, "loss": loss} for loss in ("squared", "logistic")],
        "growth": [
            {"grows": grows, **size, "classes": 2, "method": method}
            for grows in defaults.GROWING
            for method in ("ours", "LightGBM")
            if defaults.installed(method)
        ],
    }
    for job in jobs[part]:
        job = {"part": part, **job, "repeats": 1}
        yield {**job, **defaults.measure(**job), "machine": records.facts(defaults.PACKAGES)}


@pytest.mark.usefixtures("short_peers")
@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("tables", default_fit.tables_table),
        ("large", default_fit.large_table),
        ("given", default_fit.given_table),
        ("growth", default_fit.growth_part),
    ],
)
def test_the_default_fit_is_measured_and_told(part, told, tmp_path, monkeypatch):
    monkeypatch.setattr(defaults, "RESULTS", tmp_path)
    assert told().startswith("Not measured yet")
    rows = list(small_rows(part))
    records.write_rows(defaults.result_file(part), rows)
    assert all(word in told() for word in ("ours", "scikit-learn"))
    if part == "tables":
        assert set(rows[0]["error_percent"]) == set(filter(defaults.installed, defaults.METHODS))
        assert rows[0]["error_percent"]["ours"] < 15
        assert 0 < rows[0]["ours"]["search_share"] < 1
    if part == "growth":
        assert len(draw.draw_default_growth(rows)) > 10_000


def test_readme_tells_three_tables_once_they_are_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(defaults, "RESULTS", tmp_path)
    assert default_fit.readme_part() == ""
    chosen = {"stage_seconds": {"search": 1.0}}
    rows = [
        {"table": table, "rows": 690, "features": 14, "classes": 2, "ours": chosen,
         "fit_seconds": {"ours": 2.0, "CatBoost": 4.0, "LightGBM": 1.0},
         "error_percent": {"ours": 5.0, "CatBoost": 5.0, "LightGBM": 6.0}}
        for table in defaults.TABLES
    ]  # fmt: skip
    records.write_rows(defaults.result_file("tables"), rows)
    told = default_fit.readme_part()
    assert told.count("| 690 × 14, 2 | 0.50 | **5.00**, **5.00** |") == 3
    assert "CatBoost 0.50, LightGBM 2.00" in told
    assert defaults.search_share(rows) == 0.5
    compared = defaults.comparison(rows, "LightGBM")
    assert (compared.n_faster, compared.n_tables, compared.worst) == (0, 12, 2.0)
    assert defaults.comparison(rows, "SVC, C = 10") is None


def test_larger_points_than_one_over_the_limit_are_skipped(tmp_path):
    path = tmp_path / "growth.json"
    few, many = (
        {"part": "growth", "grows": "n", "n": n, "d": 4, "classes": 2, "method": "ours",
         "repeats": 1}
        for n in (200, 400)
    )  # fmt: skip
    stopped = defaults.within_limit(path, few, limit=0.1)
    assert stopped == {"over_limit_seconds": 0.1}
    records.write_rows(path, [{**few, **stopped}])
    assert defaults.within_limit(path, many, limit=0.1)["skipped"]
    assert "over 0 s" in default_fit.growth_line("400 rows", {**many, **stopped})
    other = {**many, "method": "LightGBM"}
    assert "skipped" not in defaults.within_limit(path, other, limit=0.1)


def test_other_processes_are_noticed():
    row = defaults.with_load(lambda job: {"square": job["k"] ** 2}, {"k": 3})
    assert row["square"] == 9
    assert row["other_cores"] >= 0
    assert "1.5 cores" in default_fit.busy([{"other_cores": 1.5}, {}])
    assert default_fit.busy([{"other_cores": 0.1}]) == ""


def test_a_row_is_measured_again_while_the_host_withholds_cores(monkeypatch):
    """The second of five tries is kept: the host withholds 100, 1, 50, 1000 and 1000 seconds."""
    clock = iter([0.0, 100.0, 100.0, 101.0, 101.0, 151.0] + [1000.0 * k for k in range(1, 9)])
    monkeypatch.setattr(defaults, "machine_seconds", lambda: (0.0, next(clock)))
    monkeypatch.setattr(defaults, "perf_counter", iter(float(k) for k in range(99)).__next__)
    tries = []
    row = defaults.least_stolen(lambda job: {"try": tries.append(job) or len(tries)}, {})
    assert row["try"] == 2
    assert row["stolen_cores"] == 1.0
    assert len(tries) == defaults.MOST_TRIES


def test_pictures_are_drawn():
    rng = np.random.default_rng(0)
    rows = [
        {"data": data, "method": method, "size": size, "error_percent": rng.random(),
         "fit_seconds": rng.random(), "predict_seconds": rng.random()}
        for data in ("mnist", "digits")
        for method, size in [("ours", 10), ("ours", 20), ("SVC, RBF", None)]
    ]  # fmt: skip
    assert len(peers.draw_peers(rows)) > 10_000
    stages = {"kmeans": 0.1, "kernel": 0.1, "solve": 0.1, "predict": 0.1}
    points = [
        {**job, "seconds": {stage: job[job["grows"]] * s for stage, s in stages.items()},
         "bytes_above_data": job[job["grows"]] ** 2}
        for job in scaling.jobs(scaling.GROWING)
    ]  # fmt: skip
    assert len(draw.draw_scaling(points)) > 10_000
    fitted = {(grows, stage): value for grows, stage, _, value in draw.exponents(points)}
    assert fitted["features d", "K-means"] == pytest.approx(1)
    assert fitted["training rows n", "memory"] == pytest.approx(2)


def test_rows_of_the_table_say_whether_the_goal_was_met(capsys):
    slow, quick = (lambda: sum(range(200_000))), (lambda: None)
    row = contest.against_rivals("title", {"ours": quick, "peer": slow}, 3, 2.0, ["peer", "absent"])
    assert row["met"]
    assert row["ratio"] > 2
    assert not contest.against_limit("title", {"ours": slow, "bare": quick}, 3, 1.35)["met"]
    assert contest.against_bytes("title", 13.0, 10.0, "at most 1.3", 1.3)["met"]
    assert "title" in capsys.readouterr().out


def test_a_run_that_was_interrupted_is_resumed(tmp_path):
    path, measured = tmp_path / "results.json", []

    def measure(job):
        if job["k"] == 2 and len(measured) < 3:
            measured.append("interrupted")
            raise KeyboardInterrupt
        measured.append(job["k"])
        return {"square": job["k"] ** 2}

    jobs = [{"k": k} for k in range(4)]
    with pytest.raises(KeyboardInterrupt):
        records.run_jobs(path, jobs, measure)
    assert [row["square"] for row in records.read_json(path)["rows"]] == [0, 1]
    records.run_jobs(path, jobs, measure)
    assert measured == [0, 1, "interrupted", 2, 3]
    found = records.read_json(path)
    assert [row["square"] for row in found["rows"]] == [0, 1, 4, 9]
    assert found["rows"][0]["machine"]["cores"] >= 1
    assert not list(tmp_path.glob("*.tmp"))


def test_a_fresh_process_gives_back_what_it_prints(mnist):
    job = {"n": 2000, "q": 10, "d": 50}
    assert "seconds" in records.in_fresh_process("benchmarks.scaling", job)
    assert records.version_of("no-such-package") is None
    assert records.memory_bytes(peak=True) >= records.memory_bytes(peak=False) > 1e7


def test_both_solvers_of_a_fit_to_samples_run():
    """The full size takes minutes and is rarely run; its settings have to stay complete."""
    works = targets.samples_contest(load_digits(), 5)
    for name in ("ours", "normal equations"):
        works[name]()
