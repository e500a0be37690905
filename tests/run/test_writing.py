"""Candidates that the model of a run writes itself: paid for once, from the budget, and on the record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.cli.inspecting import status
from bestprompt.cli.session import print_plan
from bestprompt.cli.showing import show_result
from bestprompt.errors import BudgetExhausted, ConfigError, LMError, LMRefused, SearchError
from bestprompt.execution import Budget, Price, Spend, Writer, spent, spent_writing
from bestprompt.ledger import WRITTEN, Ledger
from bestprompt.report import write_report
from bestprompt.rng import stream
from bestprompt.run import Silent, standing
from bestprompt.run.settings import Settings, load_settings
from bestprompt.types import Completion, Message, Request

EXAMPLES = ["Repeat the word.", "Say it again.", "Echo what you read."]
GOOD = "Copy the word exactly"


def asked_to_write(request: Request) -> bool:
    return "new instruction only" in request.messages[-1].content


class Author:
    """Writes a numbered variant when asked to rewrite, answers well to a good prompt; counts what it is asked."""

    def __init__(self, fails: Sequence[int] = (), error: LMError | None = None, variants: int = 2**31) -> None:
        self.wrote, self.answered = list[Request](), 0
        self.fails, self.error, self.variants = fails, error or LMError("busy"), variants

    def __call__(self, request: Request) -> str:
        if asked_to_write(request):
            self.wrote.append(request)
            if len(self.wrote) - 1 in self.fails:
                raise self.error
            # Equal for equal requests; variants of different numbers share too few letters to be near duplicates.
            number = request.seed % self.variants
            tail = hashlib.sha256(str(number).encode()).hexdigest()
            return f"{GOOD}, {tail[:16]} {tail[16:32]}."
        self.answered += 1
        prompt, word = request.messages[-1].content.split("\n\n")
        chance = 0.9 if prompt.startswith(GOOD) else 0.4
        return word if stream(request.seed, "author", prompt, word).random() < chance else "wrong"

    @property
    def lm(self) -> Any:
        return bp.lm.function(self, name="author")


def task() -> bp.Task:
    return bp.Task.from_pairs([(f"word{i}", f"word{i}") for i in range(60)], EXAMPLES, scorer="exact")


def settings(**overrides: Any) -> Settings:
    named = {key.replace("__", "."): value for key, value in overrides.items()}
    return load_settings(None, {"budget.calls": 60, "search.rewrites": 5, **named})


def test_written_candidates_join_the_set_and_may_win(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    author = Author()
    rec = bp.optimize(task(), author.lm, config=settings(), ledger=tmp_path)
    assert rec.candidates.sources == ("example",) * 3 + ("rewrite",) * 5
    assert rec.prompt.startswith(GOOD)
    assert (len(author.wrote), author.answered, rec.calls) == (5, 55, 60)
    assert rec.shortfall is None
    with Ledger.read(tmp_path) as ledger:
        assert standing(ledger).as_dict() == rec.as_dict()
        assert spent_writing(ledger).calls == 5
        assert spent(ledger) == Spend(rec.calls, rec.tokens, rec.dollars)
        page = write_report(tmp_path / "report.html", ledger, rec).read_text(encoding="utf-8")
    assert "5 of the calls were for writing candidates" in page
    status(tmp_path, as_json=True)
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["calls"], listed["evaluations"], listed["tokens"]) == (60, 55, rec.tokens)


def test_the_plan_counts_what_writing_may_use(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(task(), Author().lm, settings(), as_json=True)
    plan = json.loads(capsys.readouterr().out)
    assert (plan["candidates"], plan["evaluations"], plan["calls_at_most"]) == (8, 45, 60)
    print_plan(task(), Author().lm, settings(search__rewrites=30), as_json=True)
    assert json.loads(capsys.readouterr().out)["evaluations"] == 30


def test_they_join_prompts_of_a_file_and_those_that_are_passed(tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("Write the word down.\n")
    config = settings(search__file=tmp_path / "more.txt")
    rec = bp.optimize(task(), Author().lm, config=config, candidates=["Give the word back."])
    assert rec.candidates.sources == ("example",) * 3 + ("file: more.txt", "file") + ("rewrite",) * 5


@pytest.mark.parametrize(
    "limits",
    [
        {"budget__calls": 13},
        {"budget__calls": 12, "search__rewrites": 6},
        {"budget__tokens": 1500},
        {"budget__dollars": 1400.0},
    ],
)
def test_the_budget_is_never_exceeded(limits: dict[str, Any], tmp_path: Path) -> None:
    # A model that repeats itself makes writing as long as it may be; a dollar a token.
    author = Author(fails=[1], variants=2)
    config = settings(**limits).model_copy(update={"prices": {"author": _price()}})
    rec = bp.optimize(task(), author.lm, config=config, ledger=tmp_path)
    calls, tokens, dollars = config.budget.limits()
    assert rec.calls == len(author.wrote) + author.answered <= calls
    assert rec.tokens <= tokens
    assert rec.dollars <= dollars
    with Ledger.read(tmp_path) as ledger:
        writing = spent_writing(ledger)
    assert writing.calls == len(author.wrote) <= calls / 2
    assert writing.tokens <= tokens / 2
    assert writing.dollars <= dollars / 2
    assert author.answered > 0


def _price() -> Any:
    return load_settings(None, {"prices": {"author": {"input": 1e6, "output": 1e6}}}).prices["author"]


def test_what_was_written_is_not_paid_for_again(tmp_path: Path) -> None:
    whole = bp.optimize(task(), Author().lm, config=settings(), ledger=tmp_path / "whole")
    author = Author(fails=[3], error=LMError("the endpoint went away", systemic=True))
    with pytest.raises(LMError, match="went away"):
        bp.optimize(task(), author.lm, config=settings(), ledger=tmp_path / "broken")
    assert len(author.wrote) == 4
    continued = bp.optimize(task(), author.lm, config=settings(), ledger=tmp_path / "broken")
    # Only the call that failed is made again, and it counts: one evaluation less fits.
    assert len(author.wrote) == len(set(author.wrote)) + 1 == 6
    assert continued.candidates.prompts == whole.candidates.prompts
    assert (continued.calls, author.answered) == (60, 54)


def test_nothing_is_written_again_once_the_candidates_are_there(tmp_path: Path) -> None:
    class Leaving(Author):
        gone = True

        def __call__(self, request: Request) -> str:
            if not asked_to_write(request) and self.gone:
                raise LMError("gone", systemic=True)
            return super().__call__(request)

    author = Leaving()
    with pytest.raises(LMError, match="gone"):
        bp.optimize(task(), author.lm, config=settings(), ledger=tmp_path)
    with Ledger.read(tmp_path) as ledger:
        stored = ledger.candidates()
    assert stored is not None
    author.gone = False
    assert bp.optimize(task(), author.lm, config=settings(), ledger=tmp_path).candidates.prompts == stored.prompts
    assert len(author.wrote) == 5


def test_a_killed_process_loses_only_the_answers_under_way(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    author = Author()
    killed_at = 4

    class Dying:
        name, fingerprint, batch_size, concurrency = "dying", "dying", 2, 1

        def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
            answers = author.lm.complete(requests)
            if len(author.wrote) == killed_at:
                raise Killed
            return list(answers)

        def max_prompt_tokens(self, request: Request) -> int:
            return int(author.lm.max_prompt_tokens(request))

    with pytest.raises(Killed):
        bp.optimize(task(), Dying(), config=settings(), ledger=tmp_path)
    with Ledger.read(tmp_path) as ledger:
        assert len(ledger.payloads(WRITTEN)) == 2
    killed_at = -1
    rec = bp.optimize(task(), Dying(), config=settings(), ledger=tmp_path)
    assert len(author.wrote) == 5 + 2
    assert len(set(author.wrote)) == 5
    assert rec.calls == 60


def test_a_refusal_is_final(tmp_path: Path) -> None:
    author = Author(fails=[0], error=LMRefused("no"))
    with Ledger.create(tmp_path, {}) as ledger:
        for asked in (2, 3):  # once as in a first session, once as in the next
            writer = Writer(author.lm, ledger, Budget(Spend(3, 1000, 0)), Price())
            requests = [Request((Message("user", f"new instruction only {n}"),), seed=n) for n in range(asked)]
            answers = writer.complete(requests)
            assert isinstance(answers[0], LMRefused)
            assert all(isinstance(answer, Completion) for answer in answers[1:])
            assert len(author.wrote) == asked
        more = [Request((Message("user", "new instruction only"),), seed=n) for n in (8, 9)]
        with pytest.raises(BudgetExhausted, match="writing candidates"):
            Writer(author.lm, ledger, Budget(Spend(3, 1000, 0)), Price()).complete(more)
        partly = Writer(author.lm, ledger, Budget(Spend(4, 1000, 0)), Price()).complete(more)
    assert [type(answer) for answer in partly] == [Completion, LMError]


def test_a_model_that_only_refuses_leaves_a_run_without_variants() -> None:
    author = Author(fails=range(100), error=LMRefused("no"))
    rec = bp.optimize(task(), author.lm, config=settings(search__rewrites=2))
    assert rec.candidates.sources == ("example",) * 3
    assert (len(author.wrote), rec.calls) == (6, 60)
    assert rec.shortfall is not None


def test_failures_count_and_starting_again_gives_no_further_calls(tmp_path: Path) -> None:
    author, config = Author(fails=range(3)), settings(search__rewrites=1)
    with pytest.raises(SearchError, match="busy"):
        bp.optimize(task(), author.lm, config=config, ledger=tmp_path)
    rec = bp.optimize(task(), author.lm, config=config, ledger=tmp_path)
    # The three calls that writing one prompt may use are used up, so the run goes on without.
    assert len(author.wrote) == 3
    assert rec.candidates.sources == ("example",) * 3
    assert rec.shortfall is not None
    assert rec.calls == 60


def test_a_model_out_of_reach_ends_the_writing() -> None:
    author = Author(fails=range(1000))
    with pytest.raises(LMError, match="busy"):
        bp.optimize(task(), author.lm, config=settings(search__rewrites=20))
    assert len(author.wrote) == 10


def test_too_few_variants_are_said_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Listener(Silent):
        def warn(self, message: str) -> None:
            warnings.append(message)

    warnings: list[str] = []
    rec = bp.optimize(task(), Author(variants=1).lm, config=settings(), ledger=tmp_path, observer=Listener())
    assert rec.candidates.sources.count("rewrite") == 1
    assert rec.shortfall is not None
    assert rec.shortfall.startswith("The language model wrote 1 of the 5 variants asked for")
    assert warnings == [rec.shortfall]
    assert rec.as_dict()["shortfall"] == rec.shortfall
    with Ledger.read(tmp_path) as ledger:
        page = write_report(tmp_path / "report.html", ledger, standing(ledger)).read_text(encoding="utf-8")
    assert rec.shortfall in page
    show_result(rec.as_dict(), "a task")
    assert rec.shortfall in capsys.readouterr().out


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"search__rewrites": -1}, r"search\.rewrites = -1: .*greater than or equal to 0"),
        ({"search__rewrites": "many"}, r"search\.rewrites = 'many'"),
        ({"search__rewrites": 31}, r"search\.rewrites = 31 may need 31 calls; at most half of the budget of 60 calls"),
        ({"budget__tokens": 300}, r"may need \d+ tokens; .* raise budget\.tokens"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(overrides: dict[str, Any], message: str) -> None:
    author = Author()
    with pytest.raises(ConfigError, match=message):
        bp.optimize(task(), author.lm, config=settings(**overrides))
    assert author.wrote == []


def test_written_and_latent_candidates_share_a_space(world: Any) -> None:
    def write(request: Request) -> str:
        if not asked_to_write(request):
            return str(world.answer(request))
        return ["Repeat the word exactly.", "This has no place there."][request.seed % 2]

    config = settings(search__source="latent", search__candidates=12, search__rewrites=2, refinement__mode="off")
    rec = bp.optimize(world.task, bp.lm.function(write, name="m"), config=config, autoencoder=world.space)
    assert rec.candidates.X is not None
    assert [s for s in rec.candidates.sources if s != "latent"] == ["example"] * 5 + ["rewrite"]
    assert rec.candidates.sources.count("latent") == 6
    assert rec.candidates.prompts[5] == "Repeat the word exactly."
