"""Prompts of other tools in their layouts: gepa 0.1.4, dspy 3.4, promptfoo 0.121, PromptWizard, promptolution 2.3."""

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from bestprompt.errors import MissingExtraError, TaskError
from bestprompt.tasks import read_prompt_file


def saved(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def predictor(instructions: str, demos: list[dict[str, str]] | None = None) -> dict[str, Any]:
    fields = [{"prefix": "Ticket:", "description": "${ticket}"}, {"prefix": "Team:", "description": "${team}"}]
    signature = {"instructions": instructions, "fields": fields}
    return {"traces": [], "train": [], "demos": demos or [], "signature": signature, "lm": None}


METADATA = {"dependency_versions": {"python": "3.11", "dspy": "3.4.1", "cloudpickle": "3.1"}}


# ------------------------------------------------------------------------------------------------------------- GEPA
def test_a_run_folder_of_gepa(tmp_path: Path) -> None:
    run = tmp_path / "gepa-run"
    saved(run / "candidates.json", [{"system_prompt": "Name the team."}, {"system_prompt": "Route it.\n\nBe brief."}])
    saved(run / "run_log.json", [{"i": 0, "selected_program_candidate": 0}])
    (run / "gepa_state.bin").write_bytes(b"\x80\x05not opened")
    read = read_prompt_file(run)
    assert read.prompts == ("Name the team.", "Route it.\n\nBe brief.")
    assert read.sources == ("GEPA: gepa-run",) * 2
    assert read.notes == ("GEPA: gepa-run: 2 candidates",)


def test_a_whole_result_of_gepa(tmp_path: Path) -> None:
    result = {
        "candidates": [{"predict": "One."}, {"predict": "Two.", "refiner_prompt": "Repair it."}, {"predict": "One."}],
        "parents": [[None], [0], [0]],
        "val_aggregate_scores": [0.1, 0.4, 0.1],
        "best_idx": 1,
    }
    read = read_prompt_file(saved(tmp_path / "result.json", result))
    assert (read.prompts, set(read.sources)) == (("One.", "Two."), {"GEPA: result.json"})
    assert read.notes == ("GEPA: result.json: 3 candidates, 2 different ones",)


def test_a_candidate_of_several_parts_is_refused_by_name(tmp_path: Path) -> None:
    path = saved(tmp_path / "candidates.json", [{"plan": "Plan.", "answer": "Answer."}])
    with pytest.raises(TaskError, match=r"candidates\.json: candidates\[0\] has 2 parts \(plan, answer\)"):
        read_prompt_file(path)
    with pytest.raises(TaskError, match=r"candidates\[0\] does not map names to texts"):
        read_prompt_file(saved(tmp_path / "candidates.json", [{"plan": 1}]))


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    for name, words in (("gepa_state.bin", "GEPA run as a pickle"), ("program.pkl", "DSPy program as a pickle")):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
        with pytest.raises(TaskError, match=words):
            read_prompt_file(folder)
        with pytest.raises(TaskError, match="which is not opened"):
            read_prompt_file(folder / name)


# ------------------------------------------------------------------------------------------------------------- DSPy
@pytest.mark.parametrize(
    "state",
    [
        {**predictor("Decide which team answers."), "metadata": METADATA},
        {"predict": predictor("Decide which team answers."), "metadata": METADATA},
        {"predict": predictor("Decide which team answers.")},
    ],
)
def test_a_saved_program_of_dspy(tmp_path: Path, state: dict[str, Any]) -> None:
    read = read_prompt_file(saved(tmp_path / "program.json", state))
    assert (read.prompts, read.sources) == (("Decide which team answers.",), ("DSPy: program.json",))


def test_demonstrations_of_a_program_may_be_pairs_that_judge_and_are_left_out(tmp_path: Path) -> None:
    state = predictor("Route.", [{"ticket": "I was charged twice.", "team": "billing"}])
    read = read_prompt_file(saved(tmp_path / "program.json", state))
    assert read.prompts == ("Route.",)
    assert "its 1 demonstrations are left out" in read.notes[0]


def test_a_program_of_two_predictors_is_refused(tmp_path: Path) -> None:
    state = {"a": predictor("One."), "b.predict": predictor("Two."), "metadata": METADATA}
    with pytest.raises(TaskError, match=r"the program has 2 parts \(a, b\.predict\)"):
        read_prompt_file(saved(tmp_path / "program.json", state))


# -------------------------------------------------------------------------------------- PromptWizard and promptolution
def test_the_log_of_promptwizard(tmp_path: Path) -> None:
    log = [
        {"round_num": 1, "best_prompt": "Decide.", "score": 0.6},
        {"inputs": {}, "outputs": "Think, then decide.", "meta": {"method_name": "get_best_instr_by_critique"}},
        {"inputs": {}, "outputs": [{"question": "q"}], "meta": {"method_name": "generate_best_examples"}},
    ]
    saved(tmp_path / "run" / "best_prompt.jsonl", "\n".join(map(json.dumps, log)))
    saved(tmp_path / "run" / "io_logs.jsonl", '{"inputs": {}}')
    read = read_prompt_file(tmp_path / "run")
    assert (read.prompts, set(read.sources)) == (("Decide.", "Think, then decide."), {"PromptWizard: run"})


def test_the_ratings_of_promptwizard(tmp_path: Path) -> None:
    answers = [{"method": "Equals"}, [{"prompt": "One."}, {"test": "q", "answer": "a", "ideal": "a", "result": True}]]
    ratings = [{"prompt": "Two.", "rating": 90.0}, {"prompt": "One.", "rating": 10.0}, answers, {"real_cost": 0.1}]
    read = read_prompt_file(saved(tmp_path / "output.json", ratings))
    assert (read.prompts, set(read.sources)) == (("Two.", "One."), {"PromptWizard: output.json"})


STEPS = """\
step,input_tokens,output_tokens,time,score,prompt
1,5,6,1.5,0.5,One.
1,5,6,1.5,0.6,"Two.

Input:"
2,9,9,2.5,0.5,One.
"""


def test_the_steps_of_promptolution(tmp_path: Path) -> None:
    saved(tmp_path / "capo" / "step_results.csv", STEPS)
    saved(tmp_path / "capo" / "runinfo.json", {"name": "x", "status": "finished"})
    read = read_prompt_file(tmp_path / "capo")
    assert (read.prompts, set(read.sources)) == (("One.", "Two.\n\nInput:"), {"promptolution: capo"})
    assert read.notes == ("promptolution: capo: 3 prompts in the column “prompt”, 2 different ones",)


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "prompt_scores.parquet"
    parquet.write_table(pyarrow.table({"prompt": ["One.", "Two.", None], "score": [0.5, 0.4, 0.1]}), path)
    read = read_prompt_file(path)
    assert (read.prompts, set(read.sources)) == (("One.", "Two."), {"promptolution: prompt_scores.parquet"})
    assert "1 rows without one" in read.notes[0]
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(TaskError, match=r"broken\.parquet: is not Parquet"):
        read_prompt_file(tmp_path / "broken.parquet")
    without(monkeypatch, "pyarrow")
    with pytest.raises(MissingExtraError, match=r"pip install 'bestprompt\[parquet\]'"):
        read_prompt_file(path)


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    real = builtins.__import__

    def importing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", importing)


# -------------------------------------------------------------------------------------------------------- promptfoo
CONFIG = """\
description: routing
prompts:
  - 'Which team answers this: {{input}}'
  - file://prompts/two.txt
  - file://prompts/chat.json
  - id: file://prompts/long.md
    label: careful
  - label: raw
    raw: |
      Route it for {{company}}.
      {{ input | trim }}
  - file://prompts/more-*.txt
providers: [echo]
defaultTest:
  vars: {company: Acme}
tests:
  - vars: {input: I was charged twice.}
"""


@pytest.fixture
def promptfoo(tmp_path: Path) -> Path:
    folder = tmp_path / "evals"
    saved(folder / "promptfooconfig.yaml", CONFIG)
    saved(folder / "prompts" / "two.txt", "First: {{input}}\n---\nSecond: {{ input }}{# why #}\n")
    chat = [{"role": "system", "content": "You route tickets."}, {"role": "user", "content": "{{ticket}}"}]
    saved(folder / "prompts" / "chat.json", chat)
    saved(folder / "prompts" / "long.md", "# Role\nYou route.\n\n---\n\n{{input}}\n")
    saved(folder / "prompts" / "more-a.txt", "More.")
    return folder


EXPECTED = (
    "Which team answers this: {input}",
    "First: {input}",
    "Second: {input}",
    "You route tickets.\n\n{input}",
    "# Role\nYou route.\n\n---\n\n{input}",
    "Route it for Acme.\n{input}",
    "More.",
)


def test_a_configuration_of_promptfoo(promptfoo: Path) -> None:
    read = read_prompt_file(promptfoo / "promptfooconfig.yaml")
    assert read.prompts == EXPECTED
    assert set(read.sources) == {"promptfoo: promptfooconfig.yaml"}
    assert "1 of them a chat whose messages were joined" in read.notes[0]
    whole = read_prompt_file(promptfoo)
    assert (whole.prompts, set(whole.sources)) == (EXPECTED, {"promptfoo: evals"})


def test_results_of_promptfoo(tmp_path: Path) -> None:
    prompts = [{"raw": "Which team: {{t}}", "label": "a", "id": "60e9", "provider": "echo"}]
    value = {"evalId": "e", "results": {"prompts": prompts, "results": []}, "config": {"prompts": [], "tests": []}}
    assert read_prompt_file(saved(tmp_path / "out.json", value)).prompts == ("Which team: {input}",)


@pytest.mark.parametrize(
    ("prompts", "words"),
    [
        ("['{{a}} to {{b}}']", r"prompts\[0\] has 2 variables \(\{\{a\}\}, \{\{b\}\}\), and a pair has one input"),
        ("['x', '{% if a %}b{% endif %}']", r"prompts\[1\]: \{% … %\} is a program"),
        ("['{{ a | upper }}']", r"\{\{a \| upper\}\} is more than a variable"),
        ("['file://none.txt']", r"prompts\[0\] = 'file://none\.txt': no such file"),
        ("['file://make.py']", r"make\.py is no text: a prompt stands in one of \.txt"),
        ("['langfuse://mine:3:text']", "is kept or made elsewhere"),
        ("[1]", r"prompts\[0\] = 1 is no prompt; give a text"),
        ("'x", r"line \d: is not YAML"),
    ],
)
def test_what_promptfoo_alone_can_fill_in_is_refused_by_its_key(tmp_path: Path, prompts: str, words: str) -> None:
    saved(tmp_path / "make.py", "print(1)")
    path = saved(tmp_path / "c.yaml", f"prompts: {prompts}\nproviders: [echo]\n")
    with pytest.raises(TaskError, match=words):
        read_prompt_file(path)


def test_yaml_needs_its_extra(promptfoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "yaml")
    with pytest.raises(MissingExtraError, match=r"pip install 'bestprompt\[yaml\]'"):
        read_prompt_file(promptfoo)


def test_any_other_yaml_is_read_like_json(tmp_path: Path) -> None:
    assert read_prompt_file(saved(tmp_path / "a.yaml", "- One.\n- Two.\n")).prompts == ("One.", "Two.")
    with pytest.raises(TaskError, match="no prompt found under any of the keys"):
        read_prompt_file(saved(tmp_path / "b.yml", "model: x\n"))


# ----------------------------------------------------------------------------------------------------------- tables
@pytest.mark.parametrize(
    ("content", "column"),
    [
        ("id,System Prompt,score\n1,One of them.,2\n", "System Prompt"),
        ("prompt_id,my prompt v2\n7,One of them.\n", "my prompt v2"),
        ("score;prompt\n1;One of them.\n", "prompt"),
        ("Optimized Prompt,prompt_tokens\nOne of them.,5\n", "Optimized Prompt"),
    ],
)
def test_a_column_that_can_be_recognised(tmp_path: Path, content: str, column: str) -> None:
    read = read_prompt_file(saved(tmp_path / "a.csv", content))
    assert read.prompts == ("One of them.",)
    assert column in read.notes[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a prompt,b prompt\nOne is.,Two is.\n", "line 1: several columns may be meant: a prompt, b prompt"),
        ("id,prompt\n1,One.\n2\n", "line 3: 1 cells, and none in the column “prompt”"),
    ],
)
def test_columns_that_cannot_be_told_apart(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(TaskError, match=words):
        read_prompt_file(saved(tmp_path / "a.csv", content))


def test_what_is_not_read_of_a_folder_is_said(tmp_path: Path) -> None:
    saved(tmp_path / "pool" / "a.txt", "One.")
    saved(tmp_path / "pool" / "b.md", "# Two\r\nlines\r\n")
    saved(tmp_path / "pool" / "config.yaml", "a: 1")
    read = read_prompt_file(tmp_path / "pool")
    assert read.sources == ("file: a.txt", "file: b.md")
    assert "pool: not read: config.yaml" in read.notes


def test_windows_line_ends_separate_prompts_too(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"---\r\ntitle: x\r\n---\r\n# One\r\n\r\nkept  \r\n---\r\nTwo.\r\n")
    assert read_prompt_file(tmp_path / "a.md").prompts == ("# One\r\n\r\nkept", "Two.")
