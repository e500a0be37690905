"""The command line as a user meets it: what it prints, where, and with which exit code.

Commands run in this process, where the engines are loaded already; what belongs to a process of its own has one.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import bestprompt as bp
from bestprompt.cli import main
from bestprompt.ledger import WRITTEN, Ledger
from bestprompt.run.settings import Settings, load_settings
from bestprompt.types import Request

TOML = """
[task]
name = "repeat"
data = "pairs.csv"
template = "{prompt}: {input}"
max_tokens = 8
examples = ["Repeat the word", "Say it again", "Echo"]
[search]
source = "examples"
[budget]
calls = 24
"""


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str, cwd: Path | None = None) -> Done:
    stdout, stderr = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        patch.setattr(sys, "argv", ["bestprompt", *arguments])
        if cwd is not None:
            patch.chdir(cwd)
        try:
            main()
        except SystemExit as end:
            return Done(int(end.code or 0), stdout.getvalue(), stderr.getvalue())
    return Done(0, stdout.getvalue(), stderr.getvalue())


def process(*arguments: str, cwd: Path | None = None) -> Done:
    command = [str(Path(sys.executable).with_name("bestprompt")), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=300)
    return Done(ended.returncode, ended.stdout, ended.stderr)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "bestprompt.toml").write_text(TOML)
    (folder / "pairs.csv").write_text("input,output\n" + "".join(f"word{i},word{i}\n" for i in range(30)))
    return folder


@pytest.fixture(scope="module")
def finished(project: Path) -> Path:
    """A finished run on the real embedded model."""
    done = run("run", "bestprompt.toml", "-o", "runs/one", "--quiet", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "best prompt for repeat" in done.stdout
    assert "24 calls" in done.stdout
    return project / "runs" / "one"


def test_help_teaches() -> None:
    assert "bestprompt init" in " ".join(process("--help").stdout.split())
    assert "bestprompt run first-letter --budget 200" in " ".join(run("run", "--help").stdout.split())


@pytest.mark.slow
def test_show_export_and_status_read_the_ledger(finished: Path) -> None:
    shown = run("show", str(finished), "--json")
    result = json.loads(shown.stdout)
    exported = run("export", str(finished))
    assert exported.stdout == result["prompt"] + "\n"
    assert exported.stderr == ""
    listed = json.loads(run("status", str(finished.parent), "--json").stdout)
    assert [(r["state"], r["calls"], r["task"]) for r in listed] == [("finished", 24, "repeat")]
    assert result["calls"] == 24


@pytest.mark.slow
def test_the_report_is_one_file_with_the_winner_in_it(finished: Path) -> None:
    report = (finished / "report.html").read_text(encoding="utf-8")
    prompt = run("export", str(finished)).stdout.strip()
    assert prompt in report
    assert "<script src=" not in report
    assert "Where the calls went" in report


@pytest.mark.slow
def test_the_embedded_model_writes_candidates_from_the_same_budget(project: Path) -> None:
    done = run("run", "bestprompt.toml", "--rewrites", "1", "-b", "8", "--json", "-o", "runs/written", cwd=project)
    assert done.returncode == 0, done.stderr
    with Ledger.read(project / "runs" / "written") as ledger:
        written, evaluations = len(ledger.payloads(WRITTEN)), len(list(ledger.entries()))
    assert 1 <= written <= 3
    assert json.loads(done.stdout)["calls"] == written + evaluations == 8


@pytest.mark.slow
def test_a_process_of_its_own_ends_as_a_command_here_does(finished: Path, tmp_path: Path) -> None:
    """Result to stdout, words to stderr, and the exit code, also where nobody catches what is raised."""
    assert process("export", str(finished)) == run("export", str(finished))
    refused = process("run", "absent.toml", cwd=tmp_path)
    assert refused == run("run", "absent.toml", cwd=tmp_path)
    assert refused.returncode == 2


@pytest.mark.slow
def test_a_run_is_not_overwritten(finished: Path, project: Path) -> None:
    again = run("run", "bestprompt.toml", "-o", str(finished), cwd=project)
    assert again.returncode == 2
    assert "already holds a run" in again.stderr
    assert "Traceback" not in again.stderr


def test_dry_run_spends_nothing(project: Path) -> None:
    plan = run("run", "bestprompt.toml", "--dry-run", "--json", "-o", "runs/dry", cwd=project)
    values = json.loads(plan.stdout)
    assert values["calls_at_most"] == 24
    assert values["tokens_at_most"] > 24 * 8
    assert not (project / "runs" / "dry").exists()


@pytest.mark.slow
def test_a_finished_run_goes_on_with_a_larger_budget(project: Path) -> None:
    assert run("run", "bestprompt.toml", "-o", "runs/two", "-b", "12", "--quiet", cwd=project).returncode == 0
    less = run("resume", "runs/two", "--budget", "5", "--quiet", cwd=project)
    assert less.returncode == 2
    assert "has used 12 calls; a budget of 5 is less" in " ".join(less.stderr.split())
    more = run("resume", "runs/two", "--budget", "20", "--quiet", "--json", cwd=project)
    assert more.returncode == 0, more.stderr
    assert json.loads(more.stdout)["calls"] == 20


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("run", "frist-letter"), 2, "did you mean 'first-letter'?"),
        (("run", "absent.toml"), 2, "bestprompt init"),
        (("show", "nowhere"), 2, "bestprompt status"),
        (("run", "first-letter", "--model", "absent.gguf"), 1, "absent.gguf"),
        (("run",), 2, "Missing argument"),
        (("run", "first-letter", "--refine", "always"), 2, "refinement.mode = 'always'"),
    ],
)
def test_errors_are_sentences_with_exit_codes(tmp_path: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_bad_setting_is_named_by_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[task]\nname = 'first-letter'\n[budget]\ncals = 10\n")
    done = run("run", "bad.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "bad.toml, line 4: unknown key 'budget.cals'; did you mean 'calls'?" in " ".join(done.stderr.split())


def test_init_writes_a_project_that_loads(tmp_path: Path) -> None:
    done = run("init", "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    settings = load_settings(tmp_path / "mine" / "bestprompt.toml", {"all_zero": "continue"})
    task = bp.Task.load(tmp_path / "mine" / "bestprompt.toml")
    assert settings.budget.calls == 120
    assert len(task.pairs) == 40
    # One right answer in forty may be none in the first 24, where a run would stop.
    rec = bp.optimize(task, bp.lm.function(_knows_europe), config=settings.model_copy(update={"all_zero": "continue"}))
    assert rec.calls == 120
    assert run("init", "mine", cwd=tmp_path).returncode == 2


def _knows_europe(request: Request) -> str:
    return "Paris" if "France" in request.messages[-1].content else "I do not know."


def test_doctor_tasks_and_models() -> None:
    checks = {c["check"]: c["state"] for c in json.loads(run("doctor", "--json").stdout)}
    assert checks["jax"] == checks["xllamacpp"] == "fine"
    listed = json.loads(run("tasks", "--json").stdout)
    assert {t["name"] for t in listed} >= {"first-letter", "word-sorting", "rhymes", "counting-objects"}
    assert all(t["pairs"] >= 500 and t["examples"] >= 5 for t in listed)
    assert run("models", "path").stdout.strip().endswith(".gguf")


def test_export_gives_the_prompt_in_use_where_the_verdict_keeps_it(tmp_path: Path) -> None:
    task = bp.Task.from_pairs([(f"word{i}", f"word{i}") for i in range(40)], ["Say it.", "Repeat it."], scorer="exact")
    lm = bp.lm.function(lambda request: "word1", name="m")
    settings = Settings.model_validate(
        {"selection": {"incumbent": "Echo the word."}, "budget": {"calls": 30}, "all_zero": "continue"}
    )
    found = bp.optimize(task, lm, config=settings, ledger=tmp_path / "run")
    assert found.as_dict()["keep_incumbent"]
    assert run("export", str(tmp_path / "run")).stdout == "Echo the word.\n"


def test_a_dry_run_refuses_what_a_run_would_refuse(project: Path) -> None:
    (project / "odd.toml").write_text(TOML + '[selection]\nacquisition = "ei"\n')
    planned = run("run", "odd.toml", "--dry-run", cwd=project)
    assert planned.returncode != 0
    assert "acquisition must go with a surrogate gp, gp-rank, blr, bnn, vae or an object, not 'ei'" in " ".join(
        planned.stderr.split()
    )
