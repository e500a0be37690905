"""promptfoo's files: read, written, and run by the real promptfoo where it is installed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import bestprompt as bp
from bestprompt.cli import main
from bestprompt.errors import TaskError

yaml = pytest.importorskip("yaml", reason="make test-integrations installs it")

CONFIG = """
description: capitals
prompts:
  - "In {{language}}, name the capital of {{country}}."
  - label: short
    raw: "{{ country }}? ({{language}})"
  - file://more.txt
providers:
  - id: openai:chat:m
    config: { apiBaseUrl: "http://127.0.0.1:9/v1", temperature: 0, max_tokens: 20, apiKey: sk-not-to-be-copied }
defaultTest:
  vars: { language: English }
  assert:
    - { type: not-contains, value: sorry }
tests:
  - vars: { country: France }
    assert: [{ type: icontains, value: paris }]
  - vars: { country: Italy }
    assert: [{ type: contains-any, value: [Rome, Roma] }, { type: regex, value: "^[^.]*.?$" }]
  - vars: { country: Chad }
    assert: [{ type: equals, value: "{{country}} has N'Djamena" }]
"""


def run(monkeypatch, *arguments: object) -> int:
    monkeypatch.setattr("sys.argv", ["bestprompt", *map(str, arguments)])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.fixture
def config(tmp_path):
    (tmp_path / "more.txt").write_text("Capital of {{country}}:\n---\nWhere is {{country}} governed from?\n")
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(CONFIG)
    return path


def test_a_configuration_becomes_a_project_that_runs(config, tmp_path, monkeypatch, capsys):
    assert run(monkeypatch, "import-promptfoo", config, "-o", tmp_path / "project") == 0
    said = capsys.readouterr()
    assert "4 prompts, 3 pairs" in said.out
    assert "a key in the file is not copied" in said.err
    toml = tmp_path / "project" / "bestprompt.toml"
    assert "sk-not" not in toml.read_text()
    task = bp.Task.load(toml)
    assert task.examples[0] == "In English, name the capital of {input}."
    assert task.render(task.examples[2], task.pairs[0]).messages[-1].content == "Capital of France:"
    scores = task.scorer.score(["PARIS", "Roma", "Chad has N'Djamena"], task.pairs)
    assert [each.value for each in scores] == [1.0, 1.0, 1.0]
    assert task.scorer.score(["Paris, sorry"], task.pairs[:1])[0].value == 0.0
    settings = bp.run.load_settings(toml)
    assert (settings.model.name, settings.model.temperature, task.max_tokens) == ("m", 0, 20)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("icontains, value: paris", "llm-rubric, value: kind", "test 1: assertion 'llm-rubric' has no equal"),
        ("{{ country }}?", "{{ country | upper }}?", "more than a variable"),
        ("vars: { country: Chad }", "vars: { country: Chad, language: Arabic }", "found country, language"),
        ("vars: { country: Chad }", "vars: { country: [Chad, Mali] }", "must be a text or number"),
        ("vars: { country: Chad }", "vars: { land: Chad }", "test 3 has no variable 'country'"),
        (
            "- file://more.txt",
            "- |\n    - role: system\n      content: Be short.\n    - role: user\n      content: '{{country}}?'",
            r"prompts\[2\] is a conversation",
        ),
        ("Capital", "Capital", ""),
    ],
)
def test_what_has_no_equal_is_refused_in_words(config, before, after, said):
    from bestprompt.integrations.promptfoo import read_config

    config.write_text(CONFIG.replace(before, after))
    if not said:
        assert read_config(config).prompts
        return
    with pytest.raises(TaskError, match=r"promptfooconfig\.yaml: .*" + said.replace("|", r"\|")):
        read_config(config)


def test_imported_prompts_are_those_that_are_read_as_a_pool(config):
    from bestprompt.integrations.promptfoo import read_config
    from bestprompt.tasks.prompt_file import read_prompt_file

    config.write_text(CONFIG.replace('"{{ country }}?', '"{# the short one #}{{ country | trim }}?'))
    imported = read_config(config).prompts
    assert imported[1] == "{input}? (English)"
    assert imported == tuple(read_prompt_file(config).prompts)


def finished_run(tmp_path, monkeypatch, url: str, *options: str) -> Path:
    (tmp_path / "pairs.jsonl").write_text(
        "".join(
            json.dumps(
                {"input": f"word{i}", "output": f"word{i}", "assert": [{"type": "contains", "value": f"word{i}"}]}
            )
            + "\n"
            for i in range(6)
        )
    )
    (tmp_path / "prompts.txt").write_text('Repeat "it" {{ as is }}: {input}\nSay nothing.\n')
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-no-account")
    done = run(
        monkeypatch, "run", tmp_path / "pairs.jsonl", "--prompts", tmp_path / "prompts.txt", "--scorer", "assertions",
        "-m", "m", "--base-url", url, "-o", tmp_path / "r", "-q", *options,
    )  # fmt: skip
    assert done == 0
    return tmp_path / "r"


@pytest.fixture
def server(serve_requests, chat_answer):
    def reply(_attempt, body):
        said = body["messages"][-1]["content"]
        return 200, {}, chat_answer(said if "Repeat" in said else "")

    with serve_requests(reply) as (url, seen):
        yield url, seen


def test_a_run_is_written_as_a_configuration(server, tmp_path, monkeypatch, capsys):
    folder = finished_run(tmp_path, monkeypatch, server[0], "--incumbent", "Say nothing.")
    capsys.readouterr()
    assert run(monkeypatch, "export", folder, "-f", "promptfoo", "-o", tmp_path / "c.yaml") == 0
    made = yaml.safe_load((tmp_path / "c.yaml").read_text())
    raw = made["prompts"][0]["raw"]
    assert raw == '{% raw %}Repeat "it" {{ as is }}: {% endraw %}{{input}}'
    assert made["prompts"][1]["raw"] == "Say nothing.\n\n{{input}}"
    assert made["tests"][0] == {"vars": {"input": "word0"}, "assert": [{"type": "contains", "value": "word0"}]}
    assert made["providers"][0]["id"] == "openai:chat:m"


def test_promptfoo_itself_takes_the_configuration_and_finds_the_same(server, tmp_path, monkeypatch):
    """The real promptfoo asks the same server the same questions, and its assertions say what ours say."""
    promptfoo = os.environ.get("PROMPTFOO")
    if not promptfoo:
        pytest.skip("PROMPTFOO names no promptfoo; make test-integrations installs one where npm is")
    url, seen = server
    folder = finished_run(tmp_path, monkeypatch, url, "--incumbent", "Say nothing.")
    run(monkeypatch, "export", folder, "-f", "promptfoo", "-o", tmp_path / "c.yaml")
    quiet = {
        "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_CACHE_ENABLED": "false",
        "PROMPTFOO_CONFIG_DIR": str(tmp_path / "home"), "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    }  # fmt: skip
    environment = {**os.environ, **quiet}

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [promptfoo, *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300
        )

    valid = call("validate", "-c", "c.yaml")
    assert valid.returncode == 0, valid.stdout + valid.stderr
    before = len(seen)
    call("eval", "-c", "c.yaml", "-o", "out.json", "--no-cache", "--no-progress-bar")
    found = json.loads((tmp_path / "out.json").read_text())["results"]
    assert found["stats"]["successes"] == 6
    assert found["stats"]["failures"] == 6
    theirs = {body["messages"][-1]["content"] for _, body in seen[before:]}
    assert theirs == {body["messages"][-1]["content"] for _, body in seen[:before]} | theirs
    assert 'Repeat "it" {{ as is }}: word3' in theirs
