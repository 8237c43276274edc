"""Pictures of the pages, to be looked at: `python -m tests.screenshots` writes build/screenshots.

Nothing is compared; they are not committed.
"""

from pathlib import Path

from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kmeans_kernel import KMeansKernelClassifier, paper
from kmeans_kernel.data import load_mnist
from kmeans_kernel.export.web import to_web
from tests.browser import chromium, draw
from tests.export.test_web_tables import customers, wide

FOLDER = Path("build") / "screenshots"
SIZES = {"phone": (390, 844), "desk": (1440, 900)}
TABS = ("try", "representatives", "tests", "about")


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    pages = {
        "digits": digits_page(),
        "wine": wine_page(),
        "customers": table_page("customers", *customers(800)),
        "wide": table_page("wide", *wide(800)),
    }
    with chromium() as browser:
        for name, (width, height) in SIZES.items():
            for theme in ("light", "dark"):
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=theme
                )
                for subject, path in pages.items():
                    take(context.new_page(), path, f"{subject}-{name}-{theme}")
    print(f"Look at {FOLDER.resolve()}")


def take(page, path, name):
    page.goto(path.resolve().as_uri())
    page.wait_for_selector("body.ready")
    if page.locator("#pad").count():
        draw(page, (0.3, 0.25), (0.7, 0.25), (0.5, 0.8))
    if page.locator("#feature-8").count():  # in the middle of the form, beside the answer
        page.locator("#feature-8").scroll_into_view_if_needed()
        page.screenshot(path=FOLDER / f"{name}-form.png")
    for tab in TABS:
        page.click(f"#tab-{tab}")
        page.screenshot(path=FOLDER / f"{name}-{tab}.png", full_page=True)


def digits_page():
    mnist = load_mnist()
    model = paper.raw(100, random_state=0).fit(mnist.X_train, mnist.y_train)
    path = FOLDER / "digits.html"
    to_web(model, path, X=mnist.X_test, y=mnist.y_test, title="Digits")
    return path


def wine_page():
    data = load_wine(as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(
        data.data, data.target_names[data.target], random_state=0
    )
    model = make_pipeline(StandardScaler(), KMeansKernelClassifier(5, random_state=0))
    path = FOLDER / "wine.html"
    to_web(model.fit(X_train, y_train), path, X=X_test, y=y_test, title="Wines")
    return path


def table_page(name, X, y):
    train = len(X) * 3 // 4
    path = FOLDER / f"{name}.html"
    model = KMeansKernelClassifier(50, random_state=0).fit(X[:train], y[:train])
    to_web(model, path, X=X[train:], y=y[train:], title=name.capitalize())
    return path


if __name__ == "__main__":
    main()
