"""``bestprompt check`` as a job meets it: exit codes, what is printed, and that a job that was cut off goes on."""

from __future__ import annotations

import json
import sys

import pytest

from bestprompt.cli import main
from bestprompt.ledger import Ledger

GOOD, BAD = "Repeat the word.", "Say nothing."


@pytest.fixture
def job(tmp_path, monkeypatch, serve_requests, chat_answer, capsys):
    """``job(new, …)`` runs the command against a server that counts: (exit code, output, errors, seen)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-no-account")
    (tmp_path / "words.csv").write_text("input,output\n" + "".join(f"word{i},word{i}\n" for i in range(30)))
    (tmp_path / "live.txt").write_text(GOOD + "\n")

    def reply(_attempt, body):
        prompt, word = body["messages"][-1]["content"].split("\n\n")
        return 200, {}, chat_answer(word if prompt.startswith("Repeat") else "nothing")

    with serve_requests(reply) as (url, seen):

        def call(new, *options, task="words.csv"):
            (tmp_path / "next.txt").write_text(new)
            arguments = ["check", task, "--incumbent", "live.txt", "--new", "next.txt", "-m", "m", "--base-url", url]
            monkeypatch.setattr(sys, "argv", ["bestprompt", *arguments, "-o", "runs/c", "-q", *options])
            try:
                main()
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
            said = capsys.readouterr()
            return code, said.out, said.err, seen

        yield call


def test_a_worse_prompt_fails_the_job_and_again_for_nothing(job, tmp_path):
    code, out, _, seen = job(BAD)
    assert code == 5
    assert "failed: the new prompt for words on m" in out
    assert "is worse than the one in use with probability" in out
    asked = len(seen)
    assert asked < 40
    code, out, _, seen = job(BAD, "--json")
    assert (code, len(seen)) == (5, asked)
    found = json.loads(out)["check"]
    assert (found["outcome"], found["passes"]) == ("worse", False)
    assert found["shared"] == asked // 2
    assert b"a-key-of-no-account" not in (tmp_path / "runs" / "c" / "ledger.db").read_bytes()


def test_an_equal_prompt_passes_or_fails_as_was_asked(job):
    code, out, _, _ = job("Repeat the word below.", "--budget", "12")
    assert code == 0
    assert "Undecided" in out
    assert job("Repeat the word below.", "--budget", "12", "--if-undecided", "fail", "-o", "runs/d")[0] == 6


def test_the_budget_is_kept_and_a_larger_one_goes_on(job, monkeypatch, capsys):
    code, _, _, seen = job(BAD, "--budget", "4")
    assert (code, len(seen)) == (0, 4)
    monkeypatch.setattr(sys, "argv", ["bestprompt", "resume", "runs/c", "--budget", "40", "-q"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 5
    assert 4 < len(seen) <= 40


def test_the_same_prompt_asks_nothing(job):
    code, out, err, seen = job(f"  {GOOD}\n\n", "--json")
    assert (code, seen) == (0, [])
    assert json.loads(out)["check"]["passes"]
    assert "nothing to compare" in err


def test_prompts_of_a_project_are_left_aside(job, tmp_path):
    (tmp_path / "more.txt").write_text("One more.\nAnother.\n")
    (tmp_path / "project.toml").write_text(
        '[task]\ndata = "words.csv"\nprompts = "more.txt"\n[search]\nfile = "more.txt"\nsource = "latent"\n'
    )
    assert job(BAD, task="project.toml")[0] == 5
    with Ledger.read(tmp_path / "runs" / "c") as ledger:
        assert ledger.candidates().prompts == (GOOD, BAD)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--if-undecided", "perhaps"), "incumbent_check.if_undecided"),
        (("--probability", "1.2"), "incumbent_check.probability"),
        (("--margin", "-1"), "incumbent_check.margin"),
        (("--new", "missing.txt"), "missing.txt: no such file"),
    ],
)
def test_wrong_usage_is_named(job, options, said):
    code, _, err, seen = job(BAD, *options)
    assert (code, seen) == (2, [])
    assert said in err.replace("\n", "")


def test_another_prompt_needs_another_folder(job):
    job(BAD, "--budget", "4")
    code, _, err, _ = job("Something else.", "--budget", "4")
    assert code == 2
    assert "the example prompts" in err
