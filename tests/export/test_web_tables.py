"""The page of a table as it comes, in a real browser: its form, its rows, and its words."""

import datetime
from importlib.resources import files

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline

from kmeans_kernel import KMeansKernelClassifier, TableEncoder
from kmeans_kernel.estimators.columns import DroppedColumnWarning
from kmeans_kernel.export.model_file._columns import describe_columns
from kmeans_kernel.export.model_file._feature_maps import describe_feature_map
from kmeans_kernel.export.model_file._file import Place
from kmeans_kernel.export.web import to_web
from kmeans_kernel.export.web._table import (
    cells_of,
    columns_of,
    representative_cells,
    takes_missing,
)
from tests.browser import Opened, chromium

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{DroppedColumnWarning.__module__}.{DroppedColumnWarning.__name__}"
)

# Largest difference of a probability between page and Python.
NEAR = 1e-6

CITIES = ["Lisbon", "Porto", 'the "far" north <east>', "Faro", ""]


def customers(n, seed=0):
    """An ordinary business table: an id, words, a boolean, numbers, dates, values missing."""
    rng = np.random.default_rng(seed)
    since = pd.Timestamp("1965-01-01") + pd.to_timedelta(rng.integers(0, 20_000, n), unit="D")
    seen = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 525_600, n), unit="min")
    table = pd.DataFrame(
        {
            "customer": [f"C-{k:05d}" for k in range(n)],
            "city": rng.choice(CITIES, n, p=[0.4, 0.2, 0.2, 0.1, 0.1]),
            "plan": pd.Categorical(rng.choice(["basic", "pro", "all"], n)),
            "age": rng.normal(40, 12, n).round().clip(18, 90),
            "income": rng.lognormal(10, 0.6, n).round(2),
            "vip": (rng.random(n) < 0.3).astype(object),
            "since": since,
            "last seen": seen,
            "shipped": since.normalize() + pd.Timedelta(hours=12),
            "country": "PT",
        }
    )
    for name, share in (("age", 0.1), ("city", 0.1), ("vip", 0.1), ("since", 0.1)):
        table.loc[rng.random(n) < share, name] = None
    told = (table["age"].fillna(40) - 40) / 12 + 1.5 * (table["plan"] == "pro")
    told += table["vip"].eq(True) - 2.0 * (table["city"] == "Porto")
    told += 1.0 * (table["last seen"].dt.hour < 8)
    return table, np.where(told + rng.normal(size=n) / 2 > 0.7, "leaves", "stays")


def classifier_of_features():
    return KMeansKernelClassifier(5, feature_transform=None, random_state=0)


def script_of(*names):
    folder = files("kmeans_kernel.export.web") / "scripts"
    return "\n".join((folder / f"{name}.js").read_text() for name in names)


def fitted(X, y, **options):
    return KMeansKernelClassifier(20, random_state=0, **options).fit(X, y)


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A model, its page, and test rows with levels that training has not seen."""
    X, y = customers(500)
    model = fitted(X[:380], y[:380])
    X_test = X[380:].reset_index(drop=True)
    X_test["city"] = X_test["city"].astype(object)
    X_test.loc[[3, 7], "city"] = "Atlantis"
    X_test.loc[5, "income"] = np.nan  # which training has not seen missing
    path = tmp_path_factory.mktemp("shop") / "shop.html"
    return model, path, X_test, to_web(model, path, X=X_test, y=y[380:], title="Customers")


def listen(page):
    """Keep the probabilities of the last classification."""
    page.evaluate(
        """() => {
          const { estimator } = kmeansKernel;
          const classify = estimator.classify.bind(estimator);
          estimator.classify = (row) => { globalThis.last = classify(row); return last; };
        }"""
    )


def probabilities(page):
    return page.evaluate("Array.from(last.probabilities)")


def field(page, name):
    """The identifier of the control of a column."""
    return page.evaluate(
        "(name) => `#feature-${kmeansKernel.columns.findIndex((one) => one.name === name)}`", name
    )


def enter(page, name, kind, value):
    """Set a control by hand."""
    control = field(page, name)
    if kind == "category":
        known = None if value is None else page.locator(control).locator("option")
        label = "(missing)" if known is None else value or "(empty)"
        if known is not None and label not in known.all_inner_texts():
            label = "(other)"
        page.select_option(control, label=label)
    elif kind == "boolean":
        choice = {True: "yes", False: "no", None: "missing"}[value]
        page.check(f"{control}-{choice}", force=True)
    elif kind == "date":
        has_time = page.get_attribute(control, "type") == "datetime-local"
        written = "%Y-%m-%dT%H:%M" if has_time else "%Y-%m-%d"
        page.fill(control, "" if value is None else value.strftime(written))
    else:
        page.fill(control, "" if value is None else repr(float(value)))


def plain(value):
    return None if pd.isna(value) else value


@pytest.mark.parametrize("row", range(8))
def test_rows_that_are_entered_get_the_probabilities_of_python(row, browser, shop):
    model, path, X, _ = shop
    with Opened(browser, path) as page:
        listen(page)
        for column in model.columns_:
            if column.kind != "dropped":
                enter(page, column.name, column.kind, plain(X.at[row, column.name]))
        found = probabilities(page)
        expected = model.predict_proba(X.iloc[[row]])[0]
        np.testing.assert_allclose(found, expected, atol=NEAR)
        assert page.inner_text("#answer") == model.predict(X.iloc[[row]])[0]
        shares = page.locator("#bars .share").all_inner_texts()
        assert [float(text.removesuffix(" %")) for text in shares] == pytest.approx(
            100 * expected, abs=0.06
        )


def test_every_column_can_be_missing(browser, shop):
    model, path, X, _ = shop
    used = [column for column in model.columns_ if column.kind != "dropped"]
    with Opened(browser, path) as page:
        listen(page)
        row = X.iloc[[0]].astype(object)
        page.select_option("#rows", "0")
        for column in used:
            enter(page, column.name, column.kind, None)
            row[column.name] = None
            np.testing.assert_allclose(
                probabilities(page), model.predict_proba(row)[0], atol=NEAR, err_msg=column.name
            )
        assert page.locator(".control.missing").count() == len(used)
        assert page.locator("#similar tr.own td").all_inner_texts() == ["missing"] * len(used)


def test_other_levels_and_far_values(browser, shop):
    model, path, X, _ = shop
    row = X.iloc[[2]].astype(object)
    row["city"], row["plan"], row["age"] = "Timbuktu", "unheard of", 1e9
    row["since"] = pd.Timestamp("1850-02-03")
    row["last seen"] = pd.Timestamp("2199-12-31 23:59")
    kinds = {column.name: column.kind for column in model.columns_}
    with Opened(browser, path) as page:
        listen(page)
        for name in ("city", "plan", "age", "since", "last seen", "vip", "income", "shipped"):
            enter(page, name, kinds[name], plain(row.iloc[0][name]))
        found = probabilities(page)
        own = page.locator("#similar tr.own td").all_inner_texts()
    np.testing.assert_allclose(found, model.predict_proba(row)[0], atol=NEAR)
    assert own[:3] == ["other", "other", "1000000000"]
    assert "1850-02-03" in own
    assert "2199-12-31 23:59" in own


def test_test_rows_are_loaded_into_the_form_exactly(browser, shop):
    model, path, X, page_facts = shop
    assert page_facts.changed_labels == 0
    assert page_facts.largest_change <= NEAR
    with Opened(browser, path) as page:
        listen(page)
        options = page.locator("#rows option").all_inner_texts()
        assert len(options) == 1 + len(X)
        found = page.evaluate(
            """(n) => Array.from({ length: n }, (_, row) => {
              const list = document.getElementById("rows");
              list.value = row;
              list.dispatchEvent(new Event("change"));
              return Array.from(last.probabilities);
            })""",
            len(X),
        )
        np.testing.assert_allclose(found, model.predict_proba(X), atol=NEAR)
        page.select_option("#rows", "3")
        assert page.locator(f"{field(page, 'city')} option:checked").inner_text() == "(other)"
        page.fill(field(page, "age"), "33")
        assert page.input_value("#rows") == ""  # it is no longer that row
        page.click("#tab-tests")
        page.locator("#matrix td button.right").first.click()
        page.click("#cell td button >> nth=0")
        assert page.locator("#panel-try").is_visible()
        assert page.input_value("#rows") != ""


def test_the_form_has_a_control_of_its_kind_for_each_column(browser, shop):
    model, path, X, _ = shop
    with Opened(browser, path) as page:
        names = page.locator("#fields .name").all_inner_texts()
        used = [column.name for column in model.columns_ if column.kind != "dropped"]
        assert names == used
        note = page.inner_text("#left-out")
        assert "customer (id)" in note
        assert "country (constant)" in note
        levels = page.locator(f"{field(page, 'city')} option").all_inner_texts()
        assert sorted(levels) == sorted(
            ["(empty)", *(city for city in CITIES if city), "(other)", "(missing)"]
        )
        kinds = {
            name: page.get_attribute(field(page, name), "type")
            for name in used[2:]
            if name != "vip"
        }
        assert kinds == {
            "age": "number", "income": "number", "since": "date", "last seen": "datetime-local",
            "shipped": "date",
        }  # fmt: skip
        assert page.locator(f"{field(page, 'vip')}-missing").count() == 1
        assert page.get_attribute(field(page, "income"), "step") == "0.01"
        assert page.get_attribute(field(page, "age"), "step") == "1"
        ends = page.locator("#fields .ends").all_inner_texts()
        lowest, highest = X["age"].min(), X["age"].max()
        low, high = (float(end) for end in ends[used.index("age")].split(" – "))
        assert low <= lowest <= highest <= high
        assert ends[used.index("shipped")].startswith("1965-")


NUMBERS = {
    "income": [1426172.34, 4799000.55, -2134098.77],
    "tiny": [2.45913e-6, -2.9e-5, 1.17e-5],
    "far": [229087975.53871, -2866509880.08093, 2858597965.69992],
    "near": [1.7e9, 1.7e9 + 999, 1.7e9 + 500],
    "ratio": [-0.34716823912, 0.0312, 3.01412],
    "money": [18.5, 1234567.25, 48213.75],
}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """A model of numbers of all sizes, its page, and its test rows."""
    rng = np.random.default_rng(0)
    first = pd.DataFrame(NUMBERS)
    low, high = first.min(), first.max()
    share = pd.DataFrame(rng.random((237, len(NUMBERS))), columns=first.columns)
    others = share * (high - low) + low
    others = others.round({"income": 2, "far": 5, "near": 0, "money": 2})
    X = pd.concat([first, others], ignore_index=True)
    X["kind"] = rng.choice(["a", "b"], 240)
    y = X["income"] > rng.normal(size=240) * 1e6
    path = tmp_path_factory.mktemp("ledger") / "ledger.html"
    model = fitted(X, y)
    to_web(model, path, X=X[:40], y=y[:40])
    return model, path, X


def test_numbers_are_rounded_and_fit_their_fields_and_exact_ones_are_predicted(browser, ledger):
    model, path, X = ledger
    expected = model.predict_proba(X[:40])
    for width in (390, 1440):
        with Opened(browser, path, viewport={"width": width, "height": 900}) as page:
            listen(page)
            for row in range(3):
                page.select_option("#rows", str(row))
                np.testing.assert_allclose(probabilities(page), expected[row], atol=NEAR)
                cut = page.locator("#fields input[type=number]").evaluate_all(
                    "(all) => all.filter((one) => one.scrollWidth > one.clientWidth).length"
                )
                assert cut == 0
                shown = [page.input_value(f"#feature-{j}") for j in range(len(NUMBERS))]
                assert max(map(len, shown)) <= 12
                np.testing.assert_allclose(
                    [float(one) for one in shown],
                    X.loc[row, list(NUMBERS)].astype(float),
                    rtol=1e-3,
                )
            assert page.get_attribute("#feature-2", "title") == str(X.loc[2, "far"])
            assert shown[:3] == ["-2134098.77", "1.17e-5", "2858597966"]
            page.fill("#feature-4", "3.01")  # what is edited is predicted as it is written
            edited = X[2:3].assign(ratio=3.01)
            np.testing.assert_allclose(
                probabilities(page), model.predict_proba(edited)[0], atol=NEAR
            )
            assert page.get_attribute("#feature-4", "title") == ""


def test_ranges_have_four_digits_or_as_many_as_tell_the_ends_apart(browser, ledger):
    with Opened(browser, ledger[1], viewport={"width": 390, "height": 900}) as page:
        assert page.locator("#fields .ends").all_inner_texts()[:6] == [
            "-2.134e6 – 4.799e6",
            "-2.9e-5 – 1.17e-5",
            "-2.867e9 – 2.859e9",
            "1,700,000,000 – 1,700,000,999",
            "-0.3472 – 3.014",
            "18.5 – 1.235e6",
        ]


def test_texts_of_numbers(browser):
    page = browser.new_page()
    page.add_script_tag(content=script_of("pictures", "columns"))
    found = page.evaluate(
        """() => [
          [1426172.3, null, 4], [2.459131e-6, null, 4], [-0.0000004, 2, 4], [0, null, 4],
          [1e9, 0, 4], [229087975.53871, 5, 4], [123456789012.25, 2, 4], [12345678.5, 2, 4],
          [-1.23456789e15, 0, 4], [48213.27, 2, 4], [1e300, null, 4], [-999999.96, null, 4],
        ].map(([value, decimals, digits]) => numberText(value, { decimals, digits }))"""
    )
    page.close()
    assert found == [
        "1426172", "2.459e-6", "0.00", "0", "1000000000", "229087976", "123456789012",
        "12345678.50", "-1.235e15", "48213.27", "1e+300", "-1000000",
    ]  # fmt: skip


def test_wide_tables_show_that_they_scroll(browser, shop):
    with Opened(browser, shop[1], viewport={"width": 390, "height": 844}) as page:
        for tab, place in (("try", "#similar"), ("representatives", "#of-class-all")):
            page.click(f"#tab-{tab}")
            page.wait_for_selector(f"{place} .scroll.more-right")
            faded = "(box) => getComputedStyle(box).maskImage"
            assert page.locator(f"{place} .scroll").evaluate(faded) != "none"
            page.locator(f"{place} .scroll").evaluate("(box) => { box.scrollLeft = 1e6; }")
            page.wait_for_selector(f"{place} .scroll:not(.more-right)")
        page.click("#tab-tests")
        assert page.locator(".scroll:has(#matrix)").evaluate("(box) => box.className") == "scroll"


def test_it_starts_with_a_typical_row(browser, shop):
    """The representative of most rows, rounded as the table is."""
    model, path, _, _ = shop
    largest = model.model_.representative_counts.argmax()
    with Opened(browser, path) as page:
        own = page.locator("#similar tr.own td").all_inner_texts()
        nearest = page.locator("#similar tbody tr").nth(1).locator("td").all_inner_texts()
        age = page.input_value(field(page, "age"))
    for column, value in zip(model.columns_, model.representatives_[largest], strict=True):
        if column.kind == "category":
            assert own.pop(0) == ("missing" if value is None else str(value) or "(empty)")
        elif column.kind == "boolean":
            assert own.pop(0) == {True: "yes", False: "no", None: "missing"}[value]
        elif column.kind == "number":
            shown = own.pop(0)
            assert float(shown) == value
            assert len(shown.partition(".")[2]) == column.decimals
        elif column.kind == "date":
            own.pop(0)
    assert float(nearest[0]) > 0.9
    assert age == "" or float(age) == round(float(age))


def test_the_representatives_are_rows_of_the_table(browser, shop):
    model, path, _, _ = shop
    with Opened(browser, path) as page:
        page.click("#tab-representatives")
        head = page.locator("#of-class-all th[scope=col]").all_inner_texts()
        assert head[3:5] == ["city", "plan"]
        cells = page.locator("#of-class-all td").all_inner_texts()
        assert not any("NaN" in cell or "[object" in cell for cell in cells)
        words = set(page.locator("#of-class-all td.words").all_inner_texts())
        assert {"yes", "no", "missing", "Lisbon", "basic"} <= words
        assert any(datetime.date(1965, 1, 1) <= day for day in days_in(words))
        page.click("#of-class-all td button >> nth=2")  # a representative as a start
        assert page.locator("#panel-try").is_visible()
        assert page.locator("#similar td.near").count() > 0
    assert model.representatives_.shape[1] == len(model.columns_)


def days_in(words):
    for word in words:
        try:
            yield datetime.date.fromisoformat(word)
        except ValueError:
            continue


def test_the_terms_still_add_up(browser, shop):
    with Opened(browser, shop[1]) as page:
        lines = page.locator("#sum dd").all_inner_texts()
        *parts, total = (float(line.replace("−", "-")) for line in lines)
        assert sum(parts) == pytest.approx(total, abs=3e-3)
        assert page.locator("#for tbody tr").count() <= 9


def test_half_precision(browser, shop, tmp_path):
    model, _, X, whole = shop
    y = model.predict(X)
    half = to_web(model, tmp_path / "half.html", X=X, y=y, float16=True)
    assert half.model_bytes < whole.model_bytes
    assert NEAR < half.largest_change < 5e-2
    with Opened(browser, tmp_path / "half.html") as page:
        listen(page)
        for row in range(5):
            page.select_option("#rows", str(row))
            np.testing.assert_allclose(
                probabilities(page),
                model.predict_proba(X.iloc[[row]])[0],
                atol=half.largest_change + NEAR,
            )


def test_without_test_rows(browser, shop, tmp_path):
    model, _, _, _ = shop
    to_web(model, tmp_path / "a.html")
    with Opened(browser, tmp_path / "a.html") as page:
        assert page.locator("#rows").is_hidden()
        assert page.locator("#example").is_hidden()
        assert page.inner_text("#answer") in ("leaves", "stays")


SCRIPT = "</script><script>alert(1)</script>"
IMAGE = '"><img src="http://127.0.0.1:9/x" onerror="alert(2)">'


def test_names_and_levels_are_text(browser, tmp_path):
    """Nothing that a table holds can run: Opened sees dialogs, requests and errors."""
    rng = np.random.default_rng(0)
    levels = [SCRIPT, IMAGE, "{{facts}}", "__proto__", "constructor", "missing", "\\u003cb\\u003e"]
    X = pd.DataFrame(
        {
            SCRIPT: rng.choice(levels, 200),
            IMAGE: rng.normal(size=200),
            "__proto__": rng.random(200) < 0.5,
            "<!--": rng.choice(["<!-- <script>", "-->", "&lt;"], 200),
            f"left out {IMAGE}": 1.0,
        }
    )
    y = np.where(X[IMAGE] > 0, SCRIPT, IMAGE)
    model = fitted(X, y)
    to_web(model, tmp_path / "a.html", X=X, y=y, title=SCRIPT)
    with Opened(browser, tmp_path / "a.html") as page:
        listen(page)
        dialogs = []
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        assert page.inner_text("h1") == SCRIPT
        assert page.locator("#fields .name").all_inner_texts() == list(X.columns[:4])
        assert page.locator("#bars .label").all_inner_texts() == sorted({SCRIPT, IMAGE})
        options = page.locator("#feature-0 option").all_inner_texts()
        assert sorted(options) == sorted([*levels, "(other)", "(missing)"])
        for row in range(12):
            page.select_option("#rows", str(row))
            np.testing.assert_allclose(
                probabilities(page), model.predict_proba(X.iloc[[row]])[0], atol=NEAR
            )
            own = page.locator("#similar tr.own td").all_inner_texts()
            assert own[0] == X.iloc[row, 0]
        for tab in ("representatives", "tests", "about", "try"):
            page.click(f"#tab-{tab}")
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 2  # facts and the page's own; bytes are removed
        assert dialogs == []


def wide(n, columns=60):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            f"measure {j}" if j % 3 else f"a long name of the kind {j}, as data bases have": (
                rng.normal(50, 10, n).round(1) if j % 3 else rng.choice(list("abcdef"), n)
            )
            for j in range(columns)
        }
    )
    return X, np.where(X["measure 1"] > 50, "high", "low")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(390, 844), (820, 1180), (1440, 900)])
def test_sixty_columns(width, height, theme, browser, tmp_path):
    X, y = wide(300)
    to_web(fitted(X, y), tmp_path / "a.html", X=X, y=y)
    size = {"width": width, "height": height}
    with Opened(browser, tmp_path / "a.html", viewport=size, color_scheme=theme) as page:
        for tab in ("representatives", "tests", "about", "try"):
            page.click(f"#tab-{tab}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, tab
        page.locator("#feature-59").scroll_into_view_if_needed()
        answer = page.locator("#answer").bounding_box()  # is still seen
        assert 0 <= answer["y"] <= height - answer["height"]
        page.fill("#find", "MEASURE 1")
        shown = page.locator("#fields .field:visible .name").all_inner_texts()
        expected = [name for name in X.columns if "measure 1" in name]
        assert shown == expected
        assert page.inner_text("#found") == f"{len(expected)} of 60"
        page.fill("#feature-1", "90")
        assert page.inner_text("#answer") == "high"
        page.locator("#bars .bar").nth(1).click()  # shows why, which is far below
        page.wait_for_function(
            """() => {
              const { top } = document.getElementById("why-title").getBoundingClientRect();
              return top >= 0 && top < innerHeight;
            }"""
        )


def test_everything_has_a_name_for_a_screen_reader(browser, shop):
    with Opened(browser, shop[1]) as page:
        nameless = page.evaluate(
            """() => Array.from(document.querySelectorAll(
              "button, input, select, [role=region], [role=radiogroup]")).filter((one) =>
              !one.labels?.length && !one.getAttribute("aria-label") &&
              !one.getAttribute("aria-labelledby") && !one.textContent.trim())
              .map((one) => one.outerHTML)"""
        )
        assert nameless == []
        page.focus(f"{field(page, 'vip')}-yes")
        page.keyboard.press("ArrowRight")
        assert page.locator(f"{field(page, 'vip')}-no").is_checked()


def test_an_entry_that_is_not_complete_is_told(browser, shop):
    with Opened(browser, shop[1]) as page:
        page.fill(field(page, "age"), "")
        page.locator(field(page, "age")).press_sequentially("1e")
        assert page.inner_text("#answer-note") == "A field is not complete."
        assert page.get_attribute(field(page, "age"), "aria-invalid") == ""
        page.fill(field(page, "age"), "41")
        assert page.inner_text("#answer") != ""


def test_the_cross_sets_a_value_to_missing(browser, shop):
    with Opened(browser, shop[1]) as page:
        for name in ("income", "shipped"):
            control = field(page, name)
            assert page.input_value(control) != ""
            page.locator(f"{control} + .empty").click()
            assert page.input_value(control) == ""
        assert page.inner_text("#answer") != ""


@pytest.mark.parametrize("kind", ["polars", "arrow", "objects"])
def test_other_frames(kind, browser, tmp_path):
    X, y = customers(200)
    columns = ["city", "age", "vip", "last seen"]
    X = X[columns].astype({"city": object})
    if kind == "objects":
        table = X.drop(columns="last seen").astype(object).to_numpy()
    else:
        table = pl.DataFrame({name: [plain(v) for v in X[name].tolist()] for name in columns})
        table = table if kind == "polars" else table.to_arrow()
    model = fitted(table, y)
    to_web(model, tmp_path / "a.html", X=table, y=y)
    with Opened(browser, tmp_path / "a.html") as page:
        listen(page)
        expected = model.predict_proba(table[:20])
        for row in range(20):
            page.select_option("#rows", str(row))
            np.testing.assert_allclose(probabilities(page), expected[row], atol=NEAR)


def test_plain_numbers_with_missing_values(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] > 0
    X[rng.random(X.shape) < 0.2] = np.nan
    model = fitted(X, y)
    to_web(model, tmp_path / "a.html", X=X, y=y)
    with Opened(browser, tmp_path / "a.html") as page:
        listen(page)
        for row in range(20):
            page.select_option("#rows", str(row))
            found = probabilities(page)
            np.testing.assert_allclose(found, model.predict_proba(X[[row]])[0], atol=NEAR)


def test_booleans_that_training_has_seen_once(browser, tmp_path):
    """The other value of a boolean has a name, though it is an unknown level."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80), "b": [True, None] * 40})
    y = X["a"] + X["b"].eq(True) > 0.5
    model = fitted(X, y)
    X_test = pd.DataFrame({"a": [0.1, 0.1, 0.1, 0.2], "b": [False, True, None, "perhaps"]})
    to_web(model, tmp_path / "a.html", X=X_test, y=model.predict(X_test))
    with Opened(browser, tmp_path / "a.html") as page:
        listen(page)
        for row, choice in enumerate(["no", "yes", "missing"]):
            page.select_option("#rows", str(row))
            assert page.locator(f"#feature-1-{choice}").is_checked()
            np.testing.assert_allclose(
                probabilities(page), model.predict_proba(X_test[row : row + 1])[0], atol=NEAR
            )


def test_times_of_a_column_of_days(browser, tmp_path):
    """A test row's time of day counts, though the form shows days alone."""
    X = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=90), "a": np.arange(90.0) % 7})
    y = np.arange(90) > 40
    model = fitted(X, y)
    X_test = X.iloc[38:44].assign(day=lambda frame: frame["day"] + pd.Timedelta(hours=18.3))
    to_web(model, tmp_path / "a.html", X=X_test, y=y[38:44])
    with Opened(browser, tmp_path / "a.html") as page:
        listen(page)
        for row in range(6):
            page.select_option("#rows", str(row))
            assert page.input_value("#feature-0") == str(X_test["day"].iloc[row].date())
            np.testing.assert_allclose(
                probabilities(page), model.predict_proba(X_test[row : row + 1])[0], atol=NEAR
            )


def test_a_table_encoder_is_a_step(browser):
    """Its features in JavaScript, and the rows that its pipeline takes."""
    X, y = customers(120)
    encoder = TableEncoder().fit(X)
    arrays = {}
    place = Place("", arrays)
    tree = {
        "columns": describe_columns(encoder._columns),
        **describe_feature_map(encoder._encoding, place),
    }
    columns = columns_of(make_pipeline(encoder, fitted(encoder.transform(X), y)))
    page = browser.new_page()
    page.add_script_tag(content=script_of("arrays", "transforms", "columns", "steps", "estimators"))
    found = page.evaluate(
        """({ tree, arrays, rows }) => {
          const columns = tree.columns.map((one) => new Column(one));
          const step = STEPS.TableEncoder(tree, new Place(arrays));
          return rows.map((cells) => Array.from(step(
            columns.map((column, j) => column.valueOf(cells[j] ?? NaN)))));
        }""",
        {
            "tree": tree,
            "arrays": {name: array.tolist() for name, array in arrays.items()},
            "rows": [
                [None if np.isnan(cell) else cell for cell in row] for row in cells_of(columns, X)
            ],
        },
    )
    page.close()
    np.testing.assert_allclose(found, encoder.transform(X), atol=1e-12)


def test_representatives_before_a_table_encoder():
    X, y = customers(120)
    model = make_pipeline(TableEncoder(), classifier_of_features()).fit(X, y)
    columns = columns_of(model)
    assert columns == model[0].columns_
    assert takes_missing(model)
    cells = representative_cells(model, columns)
    assert cells.shape == (len(model[-1].representatives_), X.shape[1])
    ages = cells[:, list(X.columns).index("age")]
    assert (ages[~np.isnan(ages)] == np.round(ages[~np.isnan(ages)])).all()


def test_cells():
    X, y = customers(120)
    model = fitted(X, y)
    columns = columns_of(model)
    cells = dict(zip(X.columns, cells_of(columns, X).T, strict=True))
    assert np.isnan(cells["customer"]).all()
    assert np.isnan(cells["country"]).all()
    np.testing.assert_array_equal(cells["age"], X["age"].astype(float))
    seconds = X["last seen"].astype("datetime64[us]").astype(np.int64) / 1e6
    np.testing.assert_array_equal(cells["last seen"], seconds)
    levels = {column.name: column.levels for column in columns}
    assert [levels["plan"][int(cell)] for cell in cells["plan"]] == X["plan"].tolist()
