import json
from pathlib import Path

import pytest

from bestprompt.errors import SearchError
from bestprompt.search import read_prompts


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "One.\n\nTwo.\nOne.\n"),
        ("a.json", json.dumps(["One.", "Two.", "One."])),
        ("b.json", json.dumps({"annotations": ["One.", "Two."]})),
        ("c.json", json.dumps({"candidates": [{"system_prompt": "One."}, {"system_prompt": "Two."}]})),
        ("d.json", json.dumps({"prompts": [{"raw": "One.", "label": "x"}, "Two."]})),
        ("a.jsonl", '{"prompt": "One."}\n\n{"instruction": "Two."}\n'),
    ],
)
def test_layouts(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert read_prompts(tmp_path / name) == ["One.", "Two."]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", "[1,", "line 1"),
        ("a.json", '{"other": "One."}', "no prompt found"),
        ("a.txt", " \n", "no prompt found"),
    ],
)
def test_unusable_files_are_refused(tmp_path: Path, name: str, content: str, words: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SearchError, match=words):
        read_prompts(tmp_path / name)


def test_missing_and_binary_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SearchError, match="cannot be read"):
        read_prompts(tmp_path / "none.txt")
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SearchError, match="cannot be read"):
        read_prompts(tmp_path / "b.txt")
