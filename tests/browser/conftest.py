"""A real browser, headless: Debian's chromium or any other that is installed, driven by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

WHERE = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
WIDTHS = (400, 1280)


def installed() -> str | None:
    return os.environ.get("BESTPROMPT_BROWSER") or next(
        (found for name in WHERE if (found := shutil.which(name))), None
    )


# By module: while playwright is open, nothing else in this process may run an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = installed()
    if path is None:
        pytest.skip("no browser was found; `make test-browser` installs one, BESTPROMPT_BROWSER names one")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; see `make test-browser`")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """``visit(url, width, scheme)``: a page in which nothing may go wrong unnoticed."""
    opened, wrong = [], []

    def go(url: str, width: int = 1280, scheme: str = "light") -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            permissions=["clipboard-read", "clipboard-write"],
        )
        page = context.new_page()
        page.set_default_timeout(120_000)  # a busy machine is no fault of the page
        page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.goto(url)
        opened.append(context)
        return page

    yield go
    for context in opened:
        context.close()
    assert not wrong, wrong


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any, str], None]:
    """Keeps a picture of the whole page, in BESTPROMPT_SCREENSHOTS if that names a folder."""
    folder = Path(os.environ.get("BESTPROMPT_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)

    def keep(page: Any, name: str) -> None:
        path = folder / f"{name}.png"
        page.screenshot(path=path, full_page=True)
        assert path.stat().st_size > 10_000

    return keep


@pytest.fixture
def sound() -> Callable[[Any], None]:
    """Checks what any page owes its reader: contrast, names, one title, no sideways scrolling."""
    script = Path(__file__).with_name("checks.js").read_text(encoding="utf-8")

    def check(page: Any) -> None:
        found = page.evaluate(script)
        assert len(found["contrasts"]) > 10
        assert found["contrasts"][0][0] >= 4.5, found["contrasts"][:5]
        assert found["unnamed"] == []
        assert found["fits"]
        assert (found["lang"], found["titles"]) == ("en", 1)
        assert len(found["ids"]) == len(set(found["ids"]))

    return check
