"""Every code block of the README and of the guides runs as it stands, page by page, in the order of reading.

A block with a title is a file, a ``python`` block is executed, and in a ``console`` block each line after ``$ `` is a
command. What the pages call ``https://host/v1`` is a real server on loopback here, which answers in sentences.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from bestprompt.cli import main

ROOT = Path(__file__).parents[1]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "autoencoder.md", *GUIDES]
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
HOST = "https://host/v1"
TEAMS = {"billing": ("charged", "invoice", "receipt", "refund"), "sales": ("discount", "much", "pay", "trial")}


def blocks(page: Path) -> list[tuple[str, str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def sentence(asked: str) -> str:
    """What a talkative model says of a support ticket; it knows the teams only from its instruction."""
    team = next((team for team, words in TEAMS.items() if any(w in asked.lower() for w in words)), "technical")
    return f"This is for the {team} team." if "billing" in asked else "I would forward it to a colleague."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Holds the files that any guide shows: a reader meets them on the page before."""
    for page in reversed(GUIDES):
        for _, title, text in blocks(page):
            if title:
                (tmp_path / title).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-no-account")
    return tmp_path


def command(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a command line in this process, where the engines are loaded already."""
    program, *arguments = shlex.split(line)
    assert program == "bestprompt", f"only bestprompt itself is run from a page, not {program}"
    monkeypatch.setattr(sys, "argv", [program, *arguments])
    code: object = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    assert not code, line


def test_every_page_of_the_site_exists_and_every_page_is_on_the_site() -> None:
    named = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    there = {
        str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "adr"
    }
    assert named == there


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run(page, folder, serve_requests, chat_answer, monkeypatch):
    def reply(_attempt, body):
        return 200, {}, chat_answer(sentence(body["messages"][-1]["content"]))

    with serve_requests(reply) as (url, _):
        names: dict[str, object] = {}
        for language, title, text in blocks(page):
            served = text.replace(HOST, url)
            if title:
                (folder / title).write_text(served, encoding="utf-8")
            elif language == "python":
                exec(compile(served, str(page), "exec"), names)
            elif language == "console":
                for line in re.findall(r"^\$ (.*)$", served, re.MULTILINE):
                    command(line, monkeypatch)
