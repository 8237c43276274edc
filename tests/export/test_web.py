"""The page in a real browser: its results, its views, and that it makes no requests."""

import base64
import json
import struct
import zlib
from dataclasses import asdict
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kmeans_kernel import (
    Deskewer,
    KMeansKernelClassifier,
    OrientedGradients,
    PixelNormalizer,
    image_classifier,
    paper,
)
from kmeans_kernel.data import load_digits
from kmeans_kernel.estimators.columns import Column
from kmeans_kernel.export.web import to_web
from kmeans_kernel.export.web._frame import Frame
from kmeans_kernel.export.web._page import _model_tree
from kmeans_kernel.export.web._table import form_fields
from tests import vectors
from tests.browser import Opened, chromium, draw
from tests.reference import estimators as twin

SOURCES = files("kmeans_kernel.export.web") / "scripts"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def script(browser):
    """A blank page with the functions that compute, and no views."""
    page = browser.new_page()
    names = (
        "arrays", "kernels", "transforms", "model", "columns", "steps", "estimators", "framing",
        "pictures",
    )  # fmt: skip
    page.add_script_tag(content="\n".join((SOURCES / f"{name}.js").read_text() for name in names))
    return page


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture(scope="module")
def wine():
    data = load_wine(as_frame=True)
    return train_test_split(data.data, data.target_names[data.target], random_state=0)


@pytest.fixture(scope="module")
def wine_page(wine, tmp_path_factory):
    X_train, X_test, y_train, y_test = wine
    model = make_pipeline(StandardScaler(), KMeansKernelClassifier(5, random_state=0))
    model.fit(X_train, y_train)
    path = tmp_path_factory.mktemp("wine") / "wine.html"
    return model, path, to_web(model, path, X=X_test, y=y_test, title="Wines <b>&</b> {{more}}")


@pytest.fixture(scope="module")
def mnist_page(mnist, tmp_path_factory):
    model = paper.raw(20, random_state=0).fit(mnist.X_train[:6000], mnist.y_train[:6000])
    path = tmp_path_factory.mktemp("mnist") / "mnist.html"
    to_web(model, path, X=mnist.X_test[:2000], y=mnist.y_test[:2000], title="Digits")
    return model, path


def classifier(q):
    """Return a classifier with all parameters given, which fits fast."""
    return KMeansKernelClassifier(
        q, kernel="rbf", gamma=1.0, regularization=1e-3, loss="squared", feature_scales=None,
        feature_transform=None, random_state=0,
    )  # fmt: skip


# Scores and probabilities


@pytest.mark.parametrize("name", vectors.cases("models"))
def test_scores_are_those_of_the_table(name, script):
    case = vectors.cases("models")[name]
    found = script.evaluate(
        """({ case: one }) => {
          const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
          const mapOf = (tree) => {
            if (!tree) return null;
            if (!("n_columns" in tree)) return new FeatureTransform(tree);
            return new ColumnEncoding({
              ...Object.fromEntries(Object.entries(tree).map(([key, one]) => [camel(key), one])),
              values: mapOf(tree.values) });
          };
          const flat = (rows) => Object.assign(Float64Array.from(rows.flat()),
            { shape: [rows.length, rows[0].length] });
          const model = new FittedModel({
            directions: flat(one.directions), dualCoef: flat(one.dual_coef),
            intercept: one.intercept, kernel: one.kernel, lift: one.lift,
            temperature: one.temperature, scales: one.feature_scales,
            transform: mapOf(one.feature_transform) });
          return one.rows.map((row) => {
            const values = model.kernelValues(Float64Array.from(row, (x) => x ?? NaN));
            const scores = model.scoresOf(values);
            const probabilities = model.probabilities(scores);
            return { scores: Array.from(scores), probabilities: Array.from(probabilities),
              contributions: Array.from(model.contributionsOf(values, argmax(probabilities))) };
          });
        }""",
        {"case": case},
    )
    for key in ("scores", "probabilities", "contributions"):
        np.testing.assert_allclose([row[key] for row in found], case[key], rtol=1e-9, atol=1e-9)


CLASSIFY = """({ tree, arrays, rows, are_values }) => {
  const typed = Object.fromEntries(Object.entries(arrays).map(([name, { shape, values }]) =>
    [name, Object.assign(Float64Array.from(values), { shape })]));
  const estimator = estimatorOf(tree, new Place(typed));
  return rows.map((row) => {
    const { probabilities, scores, model, values, best } =
      estimator.classify(are_values ? row : Float64Array.from(row));
    const sum = Array.from(scores).map((_, k) =>
      model.contributionsOf(values, k).reduce((a, b) => a + b, model.intercept[k]));
    return { probabilities: Array.from(probabilities), scores: Array.from(scores), sum, best };
  });
}"""


def classify(script, estimator, rows, *, values=False):
    """Classify rows of numbers, or of values, in JavaScript."""
    tree, arrays = _model_tree(estimator)
    plain = {
        name: {"shape": list(array.shape), "values": array.reshape(-1).tolist()}
        for name, array in arrays.items()
    }
    rows = rows if values else np.asarray(rows, dtype=float).tolist()
    return script.evaluate(
        CLASSIFY, {"tree": tree, "arrays": plain, "rows": rows, "are_values": values}
    )


@pytest.mark.parametrize("name", vectors.cases("tables"))
def test_tables_agree_with_the_table(name, script):
    case = vectors.cases("tables")[name]
    estimator = vectors.estimator(case)
    found = classify(script, estimator, case["rows"], values=True)
    probabilities = [row["probabilities"] for row in found]
    np.testing.assert_allclose(probabilities, case["probabilities"], atol=1e-9)
    assert [estimator.classes_[row["best"]] for row in found] == case["labels"]
    numbers = script.evaluate(
        """({ columns, rows }) => rows.map((row) =>
          Array.from(codesOf(columns.map((column) => new Column(column)), row),
            (x) => (Number.isNaN(x) ? null : x)))""",
        {"columns": twin.columns_of(case["tree"]), "rows": case["rows"]},
    )
    expected = np.array(case["numbers"], dtype=float)
    np.testing.assert_allclose(np.array(numbers, dtype=float), expected, rtol=1e-9)


@pytest.mark.parametrize("name", vectors.cases("estimators"))
def test_estimators_agree_with_the_table(name, script):
    case = vectors.cases("estimators")[name]
    estimator = vectors.estimator(case)
    found = classify(script, estimator, case["rows"])
    probabilities = [row["probabilities"] for row in found]
    np.testing.assert_allclose(probabilities, case["probabilities"], atol=1e-6)
    assert [estimator.classes_[row["best"]] for row in found] == case["labels"]
    for row in found:  # contributions and intercept add up to the score
        np.testing.assert_allclose(row["sum"], row["scores"], atol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        image_classifier(3, random_state=0),
        make_pipeline(Deskewer(), OrientedGradients(), classifier(5)),
        paper.raw_fft(5, random_state=0),
        paper.patches(5, patch=6, random_state=0),
    ],
    ids=["patterns", "gradients", "fft", "patches"],
)
def test_digits_are_classified_as_in_python(model, script, digits):
    model.fit(digits.X_train, digits.y_train)
    rows = digits.X_test[:40].reshape(40, -1)
    found = classify(script, model, rows)
    np.testing.assert_allclose(
        [row["probabilities"] for row in found], model.predict_proba(rows), atol=1e-4
    )


def test_numbers_of_sixteen_bits(script):
    every = np.arange(2**16, dtype=np.uint16)
    found = script.evaluate("(bits) => bits.map(halfToNumber)", every.tolist())
    expected = every.view(np.float16).astype(float)
    finite = np.isfinite(expected)
    assert np.array_equal(np.array(found, dtype=float)[finite], expected[finite])


# Normalization of images


def test_a_frame_is_learned_from_images(mnist, digits):
    frame = Frame.from_images(mnist.X_test)
    assert frame.centre == "mass"
    assert frame.box == (20, 20)
    assert np.allclose(frame.at, 14, atol=0.3)
    assert (frame.low, frame.high, frame.inverted) == (0, 255, False)
    assert np.allclose(Frame.default((28, 28)).box, 20)
    assert np.allclose(Frame.default((28, 28)).at, 14)
    assert Frame.from_images(digits.X_test).box[0] == 8
    assert Frame.from_images(16 - digits.X_test).inverted
    assert Frame.from_images(np.pad(digits.X_test, ((0, 0), (0, 0), (0, 8)))).box[1] <= 8
    assert Frame.from_images(np.zeros((2, 8, 8))) == Frame.default((8, 8))


def test_mnist_images_cut_out_and_enlarged_come_back(mnist, script):
    """MNIST images, enlarged ten times, are normalized back to the originals."""
    images = mnist.X_test[:30]
    frame = Frame.from_images(mnist.X_test)
    found = script.evaluate(
        """({ images, frame }) => images.map((image) => {
          const ink = resized(shaped(Float64Array.from(image), [28, 28]), [280, 280]);
          return Array.from(framedInk(ink, [28, 28], frame));
        })""",
        {
            "images": (images / 255).reshape(30, -1).tolist(),
            "frame": asdict(frame),
        },
    )
    off = np.abs(np.array(found) - images.reshape(30, -1) / 255).mean(axis=1)
    assert np.median(off) < 0.02


def test_small_images_of_another_shape(script):
    ink = script.evaluate(
        """() => Array.from(framedInk(shaped(Float64Array.of(0, 1, 0, 0, 1, 0), [2, 3]), [6, 6],
          { box: [3, 3], centre: "box", at: [2.5, 2.5] }))"""
    )
    shown = np.array(ink).reshape(6, 6)
    assert shown.sum() > 0
    assert shown[:, :1].sum() == 0


# The page


def png(image):
    """A grey image as a PNG file."""

    def chunk(kind, content):
        whole = kind + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    height, width = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image.astype(np.uint8))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + (
        chunk(b"IEND", b"")
    )  # fmt: skip


PASTE = """async (images) => {
  const found = [];
  const { estimator } = kmeansKernel;
  const classify = estimator.classify.bind(estimator);
  for (const text of images) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], "digit.png", { type: "image/png" }));
    const seen = new Promise((resolve) => {
      estimator.classify = (row) => {
        const verdict = classify(row);
        resolve(verdict);
        return verdict;
      };
    });
    document.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer }));
    const verdict = await seen;
    await new Promise(requestAnimationFrame);
    found.push({ shown: document.getElementById("answer").textContent,
      probabilities: Array.from(verdict.probabilities) });
  }
  return found;
}"""


@pytest.mark.mnist
def test_pasted_digits_get_the_labels_that_python_gives(browser, mnist, mnist_page):
    model, path = mnist_page
    images = mnist.X_test[5000:5200]
    with Opened(browser, path) as page:
        texts = [base64.b64encode(png(image)).decode() for image in images]
        found = page.evaluate(PASTE, texts)
    expected = model.predict_proba(images)
    np.testing.assert_allclose([one["probabilities"] for one in found], expected, atol=1e-3)
    assert [one["shown"] for one in found] == [str(label) for label in model.predict(images)]


@pytest.mark.mnist
def test_drawing_with_the_mouse(browser, mnist_page):
    with Opened(browser, mnist_page[1]) as page:
        assert page.inner_text("#answer-note") == "Draw something."
        draw(page, (0.3, 0.25), (0.7, 0.25), (0.5, 0.8))
        assert page.inner_text("#answer") == "7"
        assert page.locator("#bars .bar").count() == 10
        note = page.inner_text("#answer-note")
        assert float(note.split(" in ")[1].removesuffix(" ms")) < 50
        page.click("#clear")
        assert page.inner_text("#answer") == ""
        assert page.locator("#why").is_hidden()
        draw(page, (0.5, 0.2), (0.5, 0.8))
        assert page.inner_text("#answer") == "1"
        draw(page, (0.1, 0.5), (0.9, 0.5))
        page.click("#undo")
        assert page.inner_text("#answer") == "1"


@pytest.mark.mnist
def test_drawing_with_the_keys(browser, mnist_page):
    with Opened(browser, mnist_page[1]) as page:
        page.focus("#pad")
        for key in ["ArrowUp"] * 8 + [" "] + ["ArrowDown"] * 16 + [" "]:
            page.keyboard.press(key)
        assert page.inner_text("#answer") == "1"
        page.keyboard.press("Escape")
        assert page.inner_text("#answer") == ""
        page.focus("#tab-try")
        page.keyboard.press("ArrowRight")
        assert page.locator("#panel-representatives").is_visible()


@pytest.mark.mnist
def test_the_representatives_add_up_to_the_score(browser, mnist_page):
    with Opened(browser, mnist_page[1]) as page:
        draw(page, (0.3, 0.25), (0.7, 0.25), (0.5, 0.8))
        lines = page.locator("#sum dd").all_inner_texts()
        *parts, total = (float(line.replace("−", "-")) for line in lines)
        assert sum(parts) == pytest.approx(total, abs=3e-3)
        assert page.locator("#for figure canvas").count() == 8
        assert page.locator("#against figure canvas").count() == 8
        page.locator("#bars .bar").nth(3).click()
        assert page.inner_text("#why-title") == "Why 3?"
        assert page.locator("#bars .bar").nth(3).get_attribute("aria-pressed") == "true"


@pytest.mark.mnist
def test_the_confusion_matrix_opens(browser, mnist, mnist_page):
    model, path = mnist_page
    truth, given = mnist.y_test[:2000], model.predict(mnist.X_test[:2000])
    with Opened(browser, path) as page:
        page.click("#tab-tests")
        assert f"{(truth != given).sum()} of them wrong" in page.inner_text("#test-note")
        assert page.locator("#matrix tbody tr").count() == 10
        counts = page.locator("#matrix td button").all_inner_texts()
        assert sum(map(int, counts)) == 2000
        page.locator("#matrix td button.right").nth(4).click()
        expected = int(((truth == 4) & (given == 4)).sum())
        while page.locator("#cell .more").is_visible():
            page.click("#cell .more")
        assert page.locator("#cell .card").count() == expected
        shares = [
            float(text.removesuffix(" %"))
            for text in page.locator("#cell .card .stands").all_inner_texts()
        ]
        assert shares == sorted(shares)
        page.select_option("#order", "most")
        first = page.locator("#cell .card").first
        assert float(first.locator(".stands").inner_text().removesuffix(" %")) == max(shares)
        first.click()
        assert page.inner_text("#answer") == "4"
        assert page.locator("#panel-try").is_visible()


@pytest.mark.mnist
def test_representatives_are_sorted_by_what_they_stand_for(browser, mnist_page):
    model, path = mnist_page
    with Opened(browser, path) as page:
        page.click("#tab-representatives")
        page.select_option("#of-class", label="8")
        shown = page.locator("#of-class-all .stands").all_inner_texts()
    counts = model[-1].representative_counts_[model[-1].representative_classes_ == 8]
    assert [int(text) for text in shown] == sorted(counts, reverse=True)


@pytest.mark.mnist
def test_dropped_images_of_any_size_and_files_that_are_none(browser, mnist, mnist_page):
    model, path = mnist_page
    known = mnist.X_test[:20][model.predict(mnist.X_test[:20]) == mnist.y_test[:20]][:5]
    with Opened(browser, path) as page:
        for image in known:
            dark_on_light = 255 - np.kron(image, np.ones((9, 9)))
            content = png(np.pad(dark_on_light, 40, constant_values=255))
            page.set_input_files(
                "#file", {"name": "a.png", "mimeType": "image/png", "buffer": content}
            )
            label = str(model.predict(image[None])[0])
            page.wait_for_function(
                "(label) => document.getElementById('answer').textContent === label", arg=label
            )
            page.click("#clear")
        page.set_input_files(
            "#file", {"name": "no.png", "mimeType": "image/png", "buffer": b"no image"}
        )
        page.wait_for_function(
            "() => document.getElementById('answer-note').textContent.includes('no.png is no')"
        )


def as_file(image, name="a.png"):
    return {"name": name, "mimeType": "image/png", "buffer": png(np.asarray(image))}


def answer_to(page, file):
    """Choose a file, wait for its classification, and return the label."""
    page.evaluate("document.getElementById('answer-note').textContent = 'waiting'")
    page.set_input_files("#file", file)
    page.wait_for_function("() => document.getElementById('answer-note').textContent !== 'waiting'")
    return page.inner_text("#answer")


@pytest.mark.parametrize("inverted", [False, True])
def test_ink_may_be_dark_or_light_in_the_data(inverted, browser, digits, tmp_path):
    """An image of the model's size is not changed, on a dark or a bright background."""
    turn = (lambda X: 16 - X) if inverted else (lambda X: X)
    rows = turn(digits.X_train).reshape(len(digits.X_train), -1)
    model = make_pipeline(StandardScaler(), classifier(20)).fit(rows, digits.y_train)
    tests = turn(digits.X_test).reshape(len(digits.X_test), -1)
    to_web(model, tmp_path / "a.html", X=tests, y=digits.y_test, image_shape=(8, 8))
    images = turn(digits.X_test)[:12]
    expected = [str(label) for label in model.predict(tests[:12])]
    with Opened(browser, tmp_path / "a.html") as page:
        shown = [answer_to(page, as_file(np.rint(image * (255 / 16)))) for image in images]
        assert sum(a == b for a, b in zip(shown, expected, strict=True)) >= 11  # 255 / 16 rounds
        draw(page, (0.5, 0.2), (0.5, 0.8))
        assert page.evaluate("kmeansKernel.facts.frame.inverted") is inverted


@pytest.mark.mnist
@pytest.mark.parametrize(("ground", "ink"), [(120, 0), (130, 255), (255, 60), (0, 200)])
def test_ink_on_any_ground(ground, ink, browser, mnist, mnist_page):
    model, path = mnist_page
    known = mnist.X_test[:20][model.predict(mnist.X_test[:20]) == mnist.y_test[:20]][:3]
    with Opened(browser, path) as page:
        for image in known:
            large = np.kron(np.pad(image, 6) / 255, np.ones((7, 7)))
            file = as_file(np.rint(ground + large * (ink - ground)))
            assert answer_to(page, file) == str(model.predict(image[None])[0])
        answer_to(page, as_file(np.full((40, 40), ground)))
        assert page.inner_text("#answer-note") == "Nothing stands out in a.png."
        assert page.inner_text("#answer") == ""


def test_images_that_are_no_squares(browser, digits, tmp_path):
    wide = np.kron(digits.X_train, np.ones((1, 1, 2)))
    model = make_pipeline(PixelNormalizer(), classifier(20)).fit(wide, digits.y_train)
    X_test = np.kron(digits.X_test, np.ones((1, 1, 2)))
    to_web(model, tmp_path / "wide.html", X=X_test, y=digits.y_test)
    with Opened(browser, tmp_path / "wide.html") as page:
        box = page.locator("#pad").bounding_box()
        assert box["width"] == pytest.approx(2 * box["height"], rel=0.05)
        draw(page, (0.5, 0.1), (0.5, 0.9))
        seen = page.evaluate(
            """() => Array.from(document.getElementById("seen").getContext("2d")
              .getImageData(0, 0, 16, 8).data.filter((_, at) => at % 4 === 3))"""
        )
        assert np.array(seen).reshape(8, 16).max(axis=1).min() > 0  # from top to bottom


@pytest.mark.mnist
def test_odd_ways_to_draw(browser, mnist_page):
    with Opened(browser, mnist_page[1]) as page:
        box = page.locator("#pad").bounding_box()
        x, y = box["x"] + 100, box["y"] + 60
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x, y + 50)
        page.keyboard.press("Escape")  # while the button is down
        page.mouse.move(x, y + 100)
        page.mouse.up()
        assert page.inner_text("#answer") == ""
        page.mouse.move(x, y)
        page.mouse.down(button="right")
        page.mouse.move(x, y + 100)
        page.mouse.up(button="right")
        assert page.inner_text("#answer") == ""
        page.focus("#pad")
        page.keyboard.press(" ")  # the pen is down, and an image comes
        answer_to(page, as_file(np.eye(28) * 255))
        shown = page.inner_text("#answer")
        page.focus("#pad")
        page.keyboard.press("ArrowUp")  # the pen is up: the image stays
        assert page.inner_text("#answer") == shown
        page.evaluate(
            """() => {
              const pad = document.getElementById("pad");
              pad.setPointerCapture = () => {};
              const box = pad.getBoundingClientRect();
              const send = (kind, pointerId, x, y) => pad.dispatchEvent(new PointerEvent(kind,
                { pointerId, clientX: box.left + x, clientY: box.top + y }));
              document.getElementById("clear").click();
              send("pointerdown", 1, 100, 40);
              send("pointerdown", 2, 200, 40);
              for (let k = 0; k < 10; k++) {
                send("pointermove", 1, 100, 40 + 15 * k);
                send("pointermove", 2, 200, 40 + 15 * k);
              }
            }"""
        )
        assert page.inner_text("#answer") == "1"  # one finger draws


@pytest.mark.mnist
def test_a_file_that_is_dropped_never_takes_the_place_of_the_page(browser, mnist_page):
    with Opened(browser, mnist_page[1]) as page:
        draw(page, (0.5, 0.2), (0.5, 0.8))
        page.click("#tab-about")
        prevented = page.evaluate(
            """() => {
              const transfer = new DataTransfer();
              transfer.items.add(new File(["words"], "words.txt", { type: "text/plain" }));
              return !document.dispatchEvent(new DragEvent("drop",
                { dataTransfer: transfer, cancelable: true }));
            }"""
        )
        assert prevented
        page.wait_for_function(
            "() => document.getElementById('answer-note').textContent.startsWith('words.txt is')"
        )
        assert page.inner_text("#answer") == ""
        assert page.locator("#panel-try").is_visible()


def test_rows_are_exact_and_shown_with_the_digits_they_need(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 9, 60) + 1.6e9, rng.normal(size=60) + 1e6])
    y = (X[:, 1] > 1e6).astype(int)
    model = make_pipeline(StandardScaler(), classifier(5)).fit(X, y)
    to_web(model, tmp_path / "a.html", X=X, y=y)
    with Opened(browser, tmp_path / "a.html") as page:
        page.click("#tab-tests")
        page.locator("#matrix td button.right").first.click()
        page.click("#cell td button >> nth=0")
        row = [float(page.get_attribute(f"#feature-{j}", "title")) for j in range(2)]
        assert row in X.tolist()
        assert page.inner_text("#answer") == str(model.predict([row])[0])
        slider = page.locator("#fields input[type=range]").nth(1)
        slider.focus()
        page.keyboard.press("ArrowRight")
        assert page.input_value("#feature-1") == slider.input_value()
        low, high = page.locator(".field .ends").nth(0).inner_text().split(" – ")
        assert float(low.replace(",", "")) < float(high.replace(",", ""))


def test_enter_does_not_send_the_page_away(browser, tmp_path):
    X = np.linspace(-1, 1, 40)[:, None]
    to_web(classifier(3).fit(X, X[:, 0] > 0), tmp_path / "a.html", X=X, y=X[:, 0] > 0)
    with Opened(browser, tmp_path / "a.html") as page:
        page.fill("#feature-0", "0.5")
        page.press("#feature-0", "Enter")
        assert page.input_value("#feature-0") == "0.5"
        assert page.url.endswith("a.html")


def test_counts_are_whole(browser, tmp_path):
    X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 12345, axis=0)
    model = classifier(1).fit(X, np.repeat([0, 1], 12345))
    to_web(model, tmp_path / "a.html")
    with Opened(browser, tmp_path / "a.html") as page:
        page.click("#tab-representatives")
        assert "12,345" in page.inner_text("#of-class-all")


def test_long_names_and_many_classes_fit_the_screen(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["x" * 90, "b", "c"])
    for y in (np.arange(300) % 50, np.array(["w" * 60, "v" * 60])[np.arange(300) % 2]):
        y = np.array([f"class number {label}" for label in y]) if y.dtype.kind == "i" else y
        to_web(classifier(3).fit(X, y), tmp_path / "a.html", X=X, y=y, title="t" * 90)
        for width in (375, 1280):
            size = {"width": width, "height": 700}
            with Opened(browser, tmp_path / "a.html", viewport=size) as page:
                for tab in ("try", "representatives", "tests", "about"):
                    page.click(f"#tab-{tab}")
                    assert page.evaluate("document.documentElement.scrollWidth") <= width, tab


def test_a_screen_reader_is_told_once(browser, wine_page):
    with Opened(browser, wine_page[1]) as page:
        page.evaluate(
            """() => {
              globalThis.said = [];
              new MutationObserver(() => said.push(document.getElementById("spoken").textContent))
                .observe(document.getElementById("spoken"), { childList: true });
            }"""
        )
        for k in range(8):
            page.fill("#feature-0", str(11 + k / 10))
        page.wait_for_function("() => said.length > 0")
        said = page.evaluate("said")
        assert len(said) <= 2
        assert "ms" not in said[-1]


def test_a_table_has_fields(browser, wine, wine_page):
    model, path, page_facts = wine_page
    X_test = wine[1]
    assert page_facts.changed_labels == 0
    assert page_facts.n_rows == len(X_test)
    with Opened(browser, path) as page:
        assert page.inner_text("h1") == "Wines <b>&</b> {{more}}"  # text, whatever it holds
        assert page.locator("#fields .field").count() == 13
        for row in (0, 7, 20):
            for j, value in enumerate(X_test.iloc[row]):
                page.fill(f"#feature-{j}", repr(float(value)))
            assert page.inner_text("#answer") == model.predict(X_test.iloc[[row]])[0]
        slider = page.locator("#fields input[type=range]").first
        slider.focus()
        before = page.input_value("#feature-0")
        page.keyboard.press("ArrowRight")
        assert page.input_value("#feature-0") != before
        page.fill("#feature-0", "")  # missing
        row = X_test.iloc[[20]].assign(alcohol=np.nan)
        assert page.inner_text("#answer") == model.predict(row)[0]
        assert page.get_attribute("#feature-0", "placeholder") == "missing"
        page.click("#reset")
        assert page.inner_text("#answer") != ""
        page.click("#tab-tests")
        assert "0 of them wrong" in page.inner_text("#test-note")
        assert page.inner_text("#cell") == "None."


def test_a_model_of_plain_numbers_needs_them_all(browser, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    to_web(classifier(3).fit(X, X[:, 0] > 0), tmp_path / "a.html")
    with Opened(browser, tmp_path / "a.html") as page:
        page.fill("#feature-0", "")
        assert page.inner_text("#answer-note") == "Every field needs a number."
        assert page.locator(".empty").count() == 0


def test_names_and_labels_are_text(browser, tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)))
    X.columns = ["</script><img src=x onerror=alert(1)>", "b"]
    y = np.where(X["b"] > 0, "<script>", "</script>")
    model = KMeansKernelClassifier(3, random_state=0).fit(X, y)
    to_web(model, tmp_path / "page.html", X=X, y=y)
    with Opened(browser, tmp_path / "page.html") as page:
        assert page.locator("#fields label").first.inner_text() == X.columns[0]
        assert page.locator("#bars .label").all_inner_texts() == ["</script>", "<script>"]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 820, 1440])
def test_nothing_is_wider_than_the_screen(width, theme, browser, wine_page, digits, tmp_path):
    model = paper.raw(5, random_state=0).fit(digits.X_train, digits.y_train)
    to_web(model, tmp_path / "digits.html", X=digits.X_test, y=digits.y_test)
    for path in (wine_page[1], tmp_path / "digits.html"):
        size = {"width": width, "height": 800}
        with Opened(browser, path, viewport=size, color_scheme=theme) as page:
            if page.locator("#pad").count():
                draw(page, (0.3, 0.25), (0.7, 0.25), (0.5, 0.8))
            for tab in ("try", "representatives", "tests", "about"):
                page.click(f"#tab-{tab}")
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, tab


def test_everything_has_a_name_for_a_screen_reader(browser, wine_page, digits, tmp_path):
    model = paper.raw(5, random_state=0).fit(digits.X_train, digits.y_train)
    to_web(model, tmp_path / "digits.html", X=digits.X_test, y=digits.y_test)
    for path in (wine_page[1], tmp_path / "digits.html"):
        with Opened(browser, path) as page:
            nameless = page.evaluate(
                """() => Array.from(document.querySelectorAll(
                  "button, input, select, canvas, [role=region]")).filter((one) =>
                  !one.labels?.length && !one.getAttribute("aria-label") &&
                  !one.textContent.trim()).map((one) => one.outerHTML)"""
            )
            assert nameless == []


# Writing it


def test_without_test_data(browser, digits, tmp_path):
    model = paper.raw(5, random_state=0).fit(digits.X_train, digits.y_train)
    page = to_web(model, tmp_path / "digits.html")
    assert (page.n_rows, page.left_out, page.changed_labels) == (0, 0, 0)
    with Opened(browser, tmp_path / "digits.html") as shown:
        assert shown.locator("#tab-tests").is_hidden()
        assert shown.locator("#example").is_hidden()
        draw(shown, (0.5, 0.2), (0.5, 0.8))
        assert shown.inner_text("#answer") != ""


def test_representatives_that_are_no_pixels_are_shown_by_images(browser, digits, tmp_path):
    model = make_pipeline(OrientedGradients(), classifier(5))
    model.fit(digits.X_train, digits.y_train)
    to_web(model, tmp_path / "with.html", X=digits.X_test, y=digits.y_test)
    to_web(model, tmp_path / "without.html")
    for name, count in (("with", 5), ("without", 0)):
        with Opened(browser, tmp_path / f"{name}.html") as page:
            page.click("#tab-representatives")
            assert page.locator("#of-class-all figure").count() == 5
            assert page.locator("#of-class-all canvas").count() == count


def test_rows_that_are_images_when_told(browser, digits, tmp_path):
    rows = digits.X_train.reshape(len(digits.X_train), -1)
    model = classifier(3).fit(rows, digits.y_train)
    to_web(model, tmp_path / "page.html", image_shape=(8, 8))
    with Opened(browser, tmp_path / "page.html") as page:
        assert page.locator("#pad").count() == 1
    to_web(model, tmp_path / "page.html")
    with Opened(browser, tmp_path / "page.html") as page:
        assert page.locator("#fields .field").count() == 64


def test_half_the_space(digits, tmp_path):
    model = make_pipeline(PixelNormalizer(), classifier(50))
    model.fit(digits.X_train, digits.y_train)
    data = {"X": digits.X_test, "y": digits.y_test}
    whole = to_web(model, tmp_path / "a.html", **data)
    half = to_web(model, tmp_path / "b.html", **data, float16=True)
    assert half.model_bytes < 0.62 * whole.model_bytes
    assert half.size < whole.size
    assert whole.largest_change < 1e-5 < half.largest_change < 1e-2


def test_labels_that_the_model_does_not_know(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = KMeansKernelClassifier(3, random_state=0).fit(X, X[:, 0] > 0)
    page = to_web(model, tmp_path / "a.html", X=X, y=["True"] * 29 + ["maybe"])
    facts = json.loads(page.content.decode().split('type="application/json">')[1].split("</")[0])
    assert facts["test"]["labels"] == ["False", "True", "maybe"]


def test_sparse_rows_and_large_values(browser, tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = X[:, 0] > 0
    model = classifier(3).fit(sparse.csr_array(X), y)
    assert to_web(model, tmp_path / "a.html", X=sparse.csr_array(X), y=y).n_rows == 30
    large = classifier(3).fit(X * 1e150, y)
    to_web(large, tmp_path / "b.html", X=X * 1e150, y=y)
    with Opened(browser, tmp_path / "b.html") as page:
        assert page.inner_text("#answer") in ("False", "True")


def test_a_title_is_a_title(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    page = to_web(classifier(3).fit(X, X[:, 0] > 0), tmp_path / "a.html", title="{{facts}}")
    assert b"<title>{{facts}}</title>" in page.content


def test_ranges_of_fields():
    columns = np.array([[0.0, 3, 5], [1.0, 3, 7], [0.123, 3, 9]])
    first, same, whole = form_fields([Column(name, "number") for name in "abc"], columns)
    assert (first["low"], first["high"], first["step"]) == (0, 1, 0.001)
    assert same["low"] < 3 < same["high"]
    assert (whole["step"], whole["typical"], whole["name"]) == (1, 7, "c")


def test_wrong_arguments_are_refused(digits, tmp_path):
    rows = digits.X_train.reshape(len(digits.X_train), -1)
    path = tmp_path / "page.html"
    with pytest.raises(NotFittedError):
        to_web(KMeansKernelClassifier(), path)
    model = classifier(3).fit(rows, digits.y_train)
    with pytest.raises(ValueError, match="X and y must be given together"):
        to_web(model, path, X=rows)
    with pytest.raises(ValueError, match="X must hold rows of 7 × 9 = 63 pixels"):
        to_web(model, path, image_shape=(7, 9))
    with pytest.raises(ValueError, match="one label for each of the 1257 rows of X"):
        to_web(model, path, X=rows, y=digits.y_train[:5])
    with pytest.raises(ValueError, match="X must have at least one row"):
        to_web(model, path, X=rows[:0], y=digits.y_train[:0])
    with pytest.raises(FileNotFoundError, match="make the folder"):
        to_web(model, tmp_path / "no" / "page.html")
    unknown = make_pipeline(PCA(5), classifier(3)).fit(rows, digits.y_train)
    with pytest.raises(TypeError, match="PCA"):
        to_web(unknown, path)
    assert list(tmp_path.iterdir()) == []
