"""A real browser for the tests: Debian's Chromium, without a window."""

import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium():
    """Give a running browser, or skip where there is none."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("Chromium is not here; on Debian: apt-get install chromium")
    with sync_playwright() as playwright:
        # Containers run as root, where Chromium's sandbox does not start.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
