"""The first five minutes of somebody with a CSV file, two prompts and a chatty model, over real HTTP."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.cli import main
from bestprompt.run.settings import Settings

GOOD, BAD = "Classify the sentiment of this review.", "Tell me about this customer."
REVIEWS = [(f"Lovely thing {n}", "positive") for n in range(10)] + [
    (f"Broken thing {n}", "negative") for n in range(10)
]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "reviews.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in REVIEWS))
    (tmp_path / "ideas.txt").write_text(f"{GOOD}\n{BAD}\n{GOOD}\n")
    return tmp_path


def chatty(body: Any) -> str:
    """Right, in a sentence, if it is asked well; else an echo of the labels, or one of them whatever is asked."""
    asked = body["messages"][-1]["content"]
    if asked.startswith(GOOD):
        return f"The sentiment is {'positive' if 'Lovely' in asked else 'negative'}."
    return "It could be positive or negative." if asked[-1] in "02468" else "It sounds positive to me!"


@pytest.fixture
def server(serve_requests: Any, chat_answer: Any) -> Any:
    @contextmanager
    def serving(answer: Any = chatty) -> Iterator[str]:
        with serve_requests(lambda _attempt, body: (200, {}, chat_answer(answer(body)))) as (url, _seen):
            yield url

    return serving


def bestprompt(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, which is quick for all that only looks."""
    command = [str(Path(sys.executable).with_name("bestprompt")), *arguments]
    settings = {**os.environ, "COLUMNS": "60", **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=settings, timeout=300)


def here(*arguments: str, cwd: Path) -> tuple[int, str, str]:
    """A command in this process, where the engines are loaded already: exit code, stdout, stderr."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout), redirect_stderr(stderr):
        patch.setattr(sys, "argv", ["bestprompt", *arguments])
        patch.setattr(sys, "stdin", io.StringIO())
        patch.setenv("OPENAI_API_KEY", "sk-test")
        patch.chdir(cwd)
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0), stdout.getvalue(), stderr.getvalue()


@pytest.mark.slow
def test_a_chatty_model_needs_no_flag(shop: Path, server: Any) -> None:
    with server() as url:
        asked = ("run", "reviews.csv", "--prompts", "ideas.txt", "--model", "m", "--base-url", url, "-o", "runs/a b")
        code, told, said = here(*asked, cwd=shop)
    assert code == 0, said
    assert "score: label, proposed from 20 pairs" in said
    assert said.index("score: label") < said.index("evaluating"), "before anything is spent"
    assert "ideas.txt: 3 prompts, one a line" in said
    assert f"counted once: “{GOOD}”" in said
    assert re.search(r"read as   “(\w+)”, expected “\1”: score 1.00", said)
    assert "calls of the budget saved" in told
    assert "bestprompt export 'runs/a b'\n" in told
    shown = json.loads(bestprompt("show", "runs/a b", "--json", cwd=shop).stdout)
    assert shown["prompt"] == shown["prompt_to_use"] == GOOD
    ranked = [row["prompt"] for row in shown["leaderboard"]]
    assert ranked[0] == GOOD
    assert ranked.count(GOOD) == ranked.count(BAD) == 1, "whatever the model wrote besides"
    assert shown["unspent"] + shown["calls"] == 300
    _looking_loads_no_engine(shop)
    _every_call_is_exported(shop, shown["calls"])


def _looking_loads_no_engine(shop: Path) -> None:
    for command in (
        ["show", "runs/a b"],
        ["export", "runs/a b"],
        ["status"],
        ["export", "runs/a b", "--format", "csv"],
    ):
        code = (
            "import sys; from bestprompt.cli import main; sys.argv = ['bestprompt', *sys.argv[1:]]\n"
            "try: main()\n"
            "finally: print(sorted({'jax', 'sklearn', 'scipy', 'plotly'} & set(sys.modules)), file=sys.stderr)"
        )
        ended = subprocess.run(
            [sys.executable, "-c", code, *command], capture_output=True, text=True, cwd=shop, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, "[]\n"), command


def _every_call_is_exported(shop: Path, calls: int) -> None:
    lines = bestprompt("export", "runs/a b", "--format", "jsonl", cwd=shop).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == calls
    assert {row["answer"] for row in rows} <= {
        "The sentiment is positive.", "The sentiment is negative.", "It could be positive or negative.",
        "It sounds positive to me!",
    }  # fmt: skip
    table = bp.calls(shop / "runs" / "a b")
    assert table["score"] == [row["score"] for row in rows]
    judged = [(each, answers[0]) for each, answers in zip(table["input"], table["expected"], strict=True) if answers]
    assert set(judged) <= set(REVIEWS)
    assert len(judged) > calls / 2, "the others wrote prompts"
    assert bestprompt("export", "runs/a b", "-f", "parquet", "-o", "calls.parquet", cwd=shop).returncode == 0
    import pyarrow.parquet

    assert pyarrow.parquet.read_table(shop / "calls.parquet").column("read").to_pylist() == table["read"]


@pytest.mark.slow
def test_a_run_in_which_nothing_scores_stops_and_says_why(shop: Path, server: Any) -> None:
    with server(lambda body: "I would say that the sentiment is positive or perhaps negative.") as url:
        asked = (
            "run",
            "reviews.csv",
            "--prompts",
            "ideas.txt",
            "-m",
            "m",
            "--base-url",
            url,
            "--spend-all",
            "-o",
            "runs/x",
        )
        code, _, said = here(*asked, "--scorer", "exact", "-b", "30", cwd=shop)
        assert code == 4
        assert "The right answer stands inside longer answers, and the score exact" in said
        assert "with: bestprompt resume runs/x\n" in said
        listed = bestprompt("status", cwd=shop).stdout
        assert "stopped: every answer scored 0" in listed
        assert "continue with: bestprompt resume runs/x\n" in listed
        assert bestprompt("export", "runs/x", cwd=shop).returncode == 2
        code, told, said = here("resume", "runs/x", "--json", cwd=shop)
    assert code == 0, said
    assert json.loads(told)["calls"] == 30


@pytest.mark.slow
def test_two_models_are_compared_from_the_command_line(shop: Path, server: Any) -> None:
    with server() as url, server(lambda body: "No idea, positive or negative.") as other:
        models = ("--model", f"good@{url}", "--model", f"bad@{other}")
        asked = ("run", "reviews.csv", "--prompts", "ideas.txt", *models, "--json", "-o", "runs/two")
        code, told, said = here(*asked, cwd=shop)
    assert code == 0, said
    result = json.loads(told)
    assert (result["prompt"], result["model"]) == (GOOD, "good")
    assert {(row["prompt"], row["model"]) for row in result["leaderboard"]} == {
        (prompt, model) for prompt in (GOOD, BAD) for model in ("good", "bad")
    }
    shown = bestprompt("show", "runs/two", cwd=shop, COLUMNS="80").stdout
    assert "seconds" in shown
    assert "good" in shown


def test_help_shows_defaults_in_groups(tmp_path: Path) -> None:
    shown = " ".join(bestprompt("run", "--help", cwd=tmp_path, COLUMNS="100").stdout.split())
    for default in ("300", "0.45", "mixed", "the embedded one", "proposed from the data"):
        assert f"[default: ({default})]" in shown
    for group in ("Your task", "The model", "The budget, and when to stop", "Where prompts come from", "The method"):
        assert f"─ {group} ─" in shown


@pytest.mark.slow
def test_completion_offers_tasks_runs_and_values(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("input,output\na,b\n")
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "ledger.db").touch()

    def offered(line: str) -> list[str]:
        shell = {
            "_BESTPROMPT_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
        }
        return bestprompt(cwd=tmp_path, **shell).stdout.split()

    assert offered("bestprompt run fir") == ["first-letter"]
    assert offered("bestprompt run m") == ["mine.csv"]
    assert offered("bestprompt show ru") == ["runs/one"]
    assert offered("bestprompt run x --scorer lab") == ["label"]
    assert offered("bestprompt run x --surrogate gp") == ["gp", "gp-rank"]


def test_keeping_your_prompt_shows_it_everywhere(tmp_path: Path) -> None:
    task = bp.Task.from_pairs([(f"word{i}", f"word{i}") for i in range(40)], ["Say it.", "Repeat it."], scorer="exact")
    mine = "Echo the word."
    settings = Settings.model_validate({"selection": {"incumbent": mine}, "budget": {"calls": 30}})
    lm = bp.lm.function(lambda request: request.messages[-1].content.split()[-1], name="m")
    rec = bp.optimize(task, lm, config=settings, ledger=tmp_path / "run")
    assert rec.choice.keep_incumbent
    assert rec.prompt_to_use == mine
    panel = bestprompt("show", "run", cwd=tmp_path, COLUMNS="80").stdout.split("╰")[0]
    assert mine in panel
    assert json.loads(bestprompt("show", "run", "--json", cwd=tmp_path).stdout)["prompt_to_use"] == mine
    assert bestprompt("export", "run", cwd=tmp_path).stdout == f"{mine}\n"


@pytest.mark.slow
def test_the_embedded_model_chats_and_is_understood(shop: Path) -> None:
    (shop / "ideas.txt").write_text("Translate this into French.\nClassify the sentiment of this review.\n")
    code, told, said = here(
        "run", "reviews.csv", "--prompts", "ideas.txt", "-b", "24", "--json", "-o", "runs/e", cwd=shop
    )
    assert code == 0, said
    rows = json.loads(told)["leaderboard"]
    assert rows[0]["prompt"] == "Classify the sentiment of this review."
    assert rows[0]["observed"] > 0.25 > rows[1]["observed"]
