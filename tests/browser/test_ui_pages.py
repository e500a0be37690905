"""``bestprompt ui`` in a real browser, with a real run: a process that asks a server on loopback."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
PATIENCE = 300_000  # milliseconds; a process that loads the engines on a busy machine
PAIRS = "input,output\n" + "".join(f"word {i},{'odd' if i % 2 else 'even'}\n" for i in range(24))
PROMPTS = "Odd or even?\nAnswer with one word: odd or even.\n<img src=x onerror=\"document.title='owned'\"> Even?"


def eventually(true: Callable[[], bool]) -> None:
    """Waits for it; the pages' policy keeps the browser from evaluating what a test would have it wait for."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, hostile_run: Path) -> Path:
    made = tmp_path_factory.mktemp("runs")
    shutil.copytree(hostile_run, made / "hostile")
    return made


@pytest.fixture(scope="module")
def pages(browser: Any, serve_pages: Any, folder: Path) -> Iterator[str]:
    with serve_pages(folder) as (url, _):
        yield url


def test_a_run_from_the_form_to_its_end(
    pages: str,
    folder: Path,
    visit: Callable[..., Any],
    sound: Callable[[Any], None],
    screenshots: Callable[[Any, str], None],
    serve_requests: Any,
    chat_answer: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = threading.Event()

    def reply(attempt: int, asked: Any) -> tuple[int, dict[str, str], Any]:
        # A server that takes its time, so that there is something to watch, and more of it until the run is stopped:
        # however slow this machine is, the run must not come to its end before.
        time.sleep(0.15 if attempt < 30 or stopped.is_set() else 1.8)
        text = asked["messages"][-1]["content"] if asked else ""
        number = int(text.rsplit(" ", 1)[-1]) if text else 0
        right = "odd" if number % 2 else "even"
        return 200, {}, chat_answer(f"It is {right}." if "one word" in text or number % 3 else "No idea <b>at all</b>.")

    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    (tmp_path / "parity.csv").write_text(PAIRS)
    with serve_requests(reply) as (address, _):
        page = visit(f"{pages}/new")
        page.set_input_files("[name=data]", tmp_path / "parity.csv")
        page.fill("[name=prompts]", PROMPTS)
        page.select_option("[name=scorer]", "contains")
        page.fill("[name=attempt]", "Surely even")
        page.get_by_text("24 pairs, the first 5").wait_for()
        page.locator("#preview tr", has_text="Surely even").locator(".s4").wait_for()
        page.get_by_text("What the model gets for the first of 3 prompts").wait_for()
        for width in (400, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            sound(page)
            screenshots(page, f"ui-new-{width}")
        page.fill("[name=model]", "stub")
        page.fill("[name=base_url]", address)
        page.fill("[name=incumbent]", "Odd or even?")
        page.fill("[name=budget]", "60")
        page.get_by_role("button", name="Start the run").click()
        page.wait_for_url("**/runs/parity-*", timeout=PATIENCE)
        # The live view moves by itself.
        page.wait_for_selector("#leaderboard", timeout=PATIENCE)
        count = "parseInt(document.querySelector('.going .headline').innerText)"
        first = page.evaluate(count)
        eventually(lambda: page.evaluate(count) > first)
        sound(page)
        screenshots(page, "ui-live-1280")
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("button", name="Continue").wait_for(timeout=PATIENCE)
        stopped.set()
        assert "stopped" in page.locator("h1").inner_text()
        page.get_by_role("button", name="Continue").click()
        eventually(lambda: "finished" in page.locator("h1").inner_text())
    assert "owned" not in page.title()
    assert page.locator("main img").count() == 0
    assert page.locator(".headline").inner_text().startswith(("Use", "Keep"))
    page.get_by_role("button", name="Copy the prompt").click()
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") in PROMPTS.split("\n")
    (run,) = folder.glob("parity-*/ledger.db")
    assert "sk-test" not in (folder / "tasks" / "logs" / f"{run.parent.name}.log").read_text()


def test_the_list_a_report_and_two_runs_side_by_side(
    pages: str, visit: Callable[..., Any], sound: Callable[[Any], None], screenshots: Callable[[Any, str], None]
) -> None:
    for width in (400, 1280):
        for path, name in (("/", "list"), ("/runs/hostile", "run"), ("/compare?a=hostile&b=hostile", "compare")):
            page = visit(f"{pages}{path}", width, "dark" if width == 400 else "light")
            page.locator("h1").wait_for()
            sound(page)
            screenshots(page, f"ui-{name}-{width}")
    assert "+0.00" in page.locator(".headline").inner_text()


def test_the_report_can_be_kept(pages: str, visit: Callable[..., Any]) -> None:
    page = visit(f"{pages}/runs/hostile")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the report").click()
    assert Path(download.value.path()).read_text(encoding="utf-8").startswith("<!doctype html>")
