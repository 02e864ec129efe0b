"""A real Chromium without a network: Debian's package, driven by playwright."""

import os
import shutil

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REQUIRED = bool(os.environ.get("REQUIRE_BROWSER"))
"""Set where a browser is installed on purpose: tests then fail without it."""


def unavailable(reason):
    """Skip the tests, or fail if a browser is required."""
    (pytest.fail if REQUIRED else pytest.skip)(reason)


@pytest.fixture(scope="session")
def browser():
    """Start a browser for all tests."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        unavailable("playwright is not installed: pip install -e '.[dev]'")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        unavailable("there is no Chromium: apt-get install chromium")
    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield launched
        launched.close()


class Visit:
    """A page that was opened without a network, with what it did.

    Parameters
    ----------
    browser : Browser
        The browser.
    options : dict
        Options of the browser's context.
    """

    def __init__(self, browser, options):
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.requests, self.problems = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.problems.append(dialog.message), dialog.dismiss()))
        self.page.on("console", lambda message: self.problems.append(message.text))

    def require_quiet(self):
        """Fail if the page asked for another file, wrote to the console, or showed a dialog."""
        assert len(self.requests) == 1, self.requests
        assert self.problems == []


@pytest.fixture
def visit(browser):
    """Open pages in contexts of their own; fail if one does more than show itself."""
    visits = []

    def opened(path, *, scripts=True, **options):
        visits.append(Visit(browser, {"java_script_enabled": scripts, **options}))
        page = visits[-1].page
        page.goto(path.as_uri())
        if scripts and page.locator("body > script").count():
            page.wait_for_selector("body[data-ready]", timeout=10_000)
        return page

    yield opened
    for each in visits:
        each.require_quiet()
        each.context.close()
