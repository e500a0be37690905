"""The report in a real browser: it copies, filters, opens answers, obeys the keyboard, prints on two pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.ledger import Ledger
from bestprompt.report import write_report
from bestprompt.run import standing
from bestprompt.run.settings import load_settings

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(browser: Any, hostile_run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    with Ledger.read(hostile_run) as ledger:
        return write_report(tmp_path_factory.mktemp("page") / "report.html", ledger, standing(ledger)).as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_at_both_widths(
    url: str,
    scheme: str,
    visit: Callable[..., Any],
    sound: Callable[[Any], None],
    screenshots: Callable[[Any, str], None],
) -> None:
    for width in (400, 1280):
        page = visit(url, width, scheme)
        sound(page)
        screenshots(page, f"report-{width}-{scheme}")


def test_a_page_about_ideas_can_be_read_at_both_widths(
    tmp_path: Path, visit: Callable[..., Any], sound: Callable[[Any], None]
) -> None:
    def answer(request: bp.types.Request) -> str:
        text = request.messages[-1].content
        if "new prompt only" in text:
            return "Copy the first word and write nothing else."
        prompt, shown = text.rsplit("\n\n", 1)
        even = shown.split()[0][-1] in "02468"  # half of the pairs, so that no pilot is all wrong
        return shown.split()[0] if "nothing else" in prompt or even else "wrong"

    pairs = [(f"word{n} here", f"word{n}") for n in range(20)]
    task = bp.Task.from_pairs(pairs, ["Repeat the word.", "Say it again."], scorer="exact")
    lm = bp.lm.function(answer, name="pedant", deterministic=True)
    rec = bp.optimize(task, lm, config=load_settings(None, {"budget.calls": 120, "ideas.mode": "on"}), ledger=tmp_path)
    with Ledger.read(tmp_path) as ledger:
        made = write_report(tmp_path / "report.html", ledger, rec).as_uri()
    for width in (400, 1280):
        page = visit(made, width)
        assert page.get_by_text("Where new prompts came from").count() == 1
        sound(page)


def test_copy_copies_and_nothing_acts(url: str, visit: Callable[..., Any], hostile: str) -> None:
    page = visit(url)
    page.get_by_role("button", name="Copy the prompt").click()
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#prompt").inner_text()
    assert "owned" not in page.title()
    assert page.locator("main img").count() == 0
    assert page.get_by_text("</script><script>").count() > 0


def test_filters_filter_and_a_cell_opens(url: str, visit: Callable[..., Any]) -> None:
    page = visit(url)
    rows = page.locator("tr[data-pair]:visible")
    everything = rows.count()
    page.locator("[data-filter=pairs]").select_option("wrong")
    wrong = rows.count()
    assert 0 < wrong < everything
    assert page.locator("[data-shown]").inner_text() == f"{wrong} of {everything} pairs"
    # What is left is what the winner got wrong.
    assert set(page.locator("tr[data-pair]:visible [data-column='0'] button").all_inner_texts()) == {"0"}
    page.locator("[data-filter=pairs]").select_option("all")
    words = rows.first.locator("th .text").inner_text()
    page.get_by_label("Text in pair or answers").fill(words)
    assert rows.count() == 1
    rows.locator("button").first.click()
    shown = page.get_by_role("dialog")
    assert words in shown.inner_text()
    assert re.search("Read as", shown.inner_text())
    page.keyboard.press("Escape")
    assert not shown.is_visible()


def test_the_keyboard_reaches_every_answer(url: str, visit: Callable[..., Any]) -> None:
    page = visit(url)
    cells = page.locator("[data-cell][tabindex='0']")
    assert cells.count() == 1
    cells.focus()
    first = page.evaluate("document.activeElement.dataset.cell")
    page.keyboard.press("ArrowDown")
    second = page.evaluate("document.activeElement.dataset.cell")
    assert first != second
    assert first.split("-")[1] == second.split("-")[1]
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Enter")  # the dialog's button has the focus
    assert page.evaluate("document.activeElement.dataset.cell") == second


def test_it_prints_on_two_pages(url: str, visit: Callable[..., Any]) -> None:
    printed = visit(url).pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 2
