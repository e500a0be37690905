"""Prompts that a model writes while a run goes on: what they are judged by, what they cost, and what is recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bestprompt as bp
from bestprompt.errors import LMError
from bestprompt.execution import spent, spent_on_ideas
from bestprompt.ledger import LOOK, Ledger
from bestprompt.report import write_report
from bestprompt.rng import stream
from bestprompt.run import outside, standing
from bestprompt.run.settings import Settings, load_settings
from bestprompt.types import ADDED, REFLECTED, WRITTEN_SOURCES, Completion, Request

EXAMPLES = ["Repeat the word.", "Say it again.", "Echo what you read."]
PAIRS = [(f"word{i} here", f"word{i}") for i in range(40)]


def asked_to_write(request: Request) -> bool:
    return "new prompt only" in request.messages[-1].content


def written(request: Request) -> str:
    """A prompt that no other request gets, with few letters in common."""
    said = hashlib.sha256(request.messages[-1].content.encode() + str(request.seed).encode()).hexdigest()
    return f"Copy {said[:14]} and {said[14:30]} with {said[30:44]}"


def chatty(request: Request) -> str:
    return f"Here is the improved prompt:\n\n{written(request)}"


class World:
    """Answers rightly with a chance that the prompt decides; written prompts are ``better`` than the examples."""

    def __init__(self, better: float = 0.3, reply: Callable[[Request], str] | None = None) -> None:
        self.better, self.reply = (
            better,
            reply or (lambda request: f"Here is the improved prompt:\n\n{written(request)}"),
        )
        self.asked: list[Request] = []
        self.wrote: list[Request] = []

    def __call__(self, request: Request) -> str:
        if asked_to_write(request):
            self.wrote.append(request)
            return self.reply(request)
        self.asked.append(request)
        prompt, text = request.messages[-1].content.rsplit("\n\n", 1)
        chance = 0.5 if prompt in EXAMPLES else 0.5 + self.better
        right = stream(0, "world", prompt, text).random() < chance
        return text.split()[0] if right else "wrong"

    @property
    def lm(self) -> Any:
        return bp.lm.function(self, name="world", deterministic=True)


def task() -> bp.Task:
    return bp.Task.from_pairs(PAIRS, EXAMPLES, scorer="exact")


def settings(**overrides: Any) -> Settings:
    named = {key.replace("__", "."): value for key, value in overrides.items()}
    return load_settings(None, {"budget.calls": 120, "ideas.mode": "on", "search.source": "examples", **named})


def leaks(folder: Path) -> tuple[int, int]:
    """Judged pairs of candidates that a writer of them or of a forebear was shown, by texts alone; and pairs shown."""
    with Ledger.read(folder) as ledger:
        stored, added = ledger.candidates(), ledger.added_candidates()
        looks = [look for look in ledger.payloads(LOOK) if look["candidate"] is not None]
        requests = [p for p in ledger.payloads("written") if p["status"] == "ok"]
        entries, pairs = list(ledger.entries()), ledger.pairs()
    assert stored is not None
    texts = {n: f"INPUT: {pair.input}\n" for n, pair in pairs.items()}
    shown: dict[int, set[int]] = {n: set() for n in range(len(stored.prompts))}
    for look, new in zip(looks, added, strict=True):
        number = look["candidate"]
        # What the request that led to this prompt held, by its text.
        asks = [r["request"]["messages"][0]["content"] for r in requests if new.prompt in r["output"]]
        own = {n for n, text in texts.items() for ask in asks if text in ask}
        # A crossed prompt has two parents: both are in its request.
        known = [*stored.prompts, *(each.prompt for each in added)]
        parents = {new.parent, *(n for n, prompt in enumerate(known[:number]) for ask in asks if prompt in ask)}
        shown[number] = own.union(*(shown[parent] for parent in parents))
    judged = sum(e.pair in shown[e.candidate] for e in entries)
    return judged, sum(map(len, shown.values()))


def test_what_a_writer_was_shown_judges_neither_its_prompt_nor_any_that_descends_from_it(tmp_path: Path) -> None:
    world = World()
    rec = bp.optimize(task(), world.lm, config=settings(budget__calls=240), ledger=tmp_path)
    sources = np.array(rec.candidates.sources)
    assert (sources == REFLECTED).any()
    descendants = [n for n in np.flatnonzero(np.isin(sources, WRITTEN_SOURCES)) if rec.candidates.parents[n] >= 3]
    assert descendants, "the test shows nothing about descendants"
    judged, shown = leaks(tmp_path)
    assert shown > 0
    assert judged == 0


def test_a_better_prompt_is_written_judged_and_returned(tmp_path: Path) -> None:
    world = World()
    rec = bp.optimize(task(), world.lm, config=settings(), ledger=tmp_path)
    assert rec.candidates.sources[rec.choice.candidate] in ADDED
    assert "is better than the best prompt of the set" in rec.verdict
    assert rec.calls == len(world.asked) + len(world.wrote) <= 120
    with Ledger.read(tmp_path) as ledger:
        assert standing(ledger).as_dict() == rec.as_dict()
        assert spent(ledger).calls == rec.calls
        assert spent_on_ideas(ledger).calls == len(world.wrote)
        page = write_report(tmp_path / "report.html", ledger, rec).read_text(encoding="utf-8")
    assert rec.refinement is not None
    assert sum(each.calls for each in rec.refinement.sources) == len(world.wrote)
    assert [each.source for each in rec.refinement.sources if each.won] == [
        rec.candidates.sources[rec.choice.candidate]
    ]
    assert "Where new prompts came from" in page


def test_a_run_whose_set_is_settled_finishes_the_comparison_before_it_ends(tmp_path: Path) -> None:
    """A perfect prompt among few pairs leaves nothing to ask about the set long before ten pairs are shared."""

    def answer(request: Request) -> str:
        if asked_to_write(request):
            return "Copy the first word and nothing else."
        prompt, text = request.messages[-1].content.rsplit("\n\n", 1)
        return text.split()[0] if "nothing else" in prompt or text.endswith("0 here") else "wrong"

    lm = bp.lm.function(answer, name="pedant", deterministic=True)
    few = bp.Task.from_pairs(PAIRS[:20], EXAMPLES[:2], scorer="exact")
    rec = bp.optimize(few, lm, config=settings(all_zero="continue"), ledger=tmp_path)
    assert rec.prompt == "Copy the first word and nothing else."
    assert rec.calls < 60, "the budget is not spent on what is settled"


def test_a_run_with_one_prompt_has_it_meet_pairs_and_asks_for_others(tmp_path: Path) -> None:
    """With one prompt nothing is open about the set, but what a writer may add."""
    one = bp.Task.from_pairs(PAIRS, EXAMPLES[:1], scorer="exact")
    world = World()
    rec = bp.optimize(one, world.lm, config=settings(), ledger=tmp_path)
    assert world.wrote
    assert rec.prompt not in EXAMPLES
    with Ledger.read(tmp_path) as ledger:
        looks = [look for look in ledger.payloads(LOOK) if look["candidate"] is not None]
        assert standing(ledger).as_dict() == rec.as_dict()
    assert looks[0]["at"] == 10, "no more than it takes to see what the prompt gets wrong"


def test_a_record_of_a_run_that_looked_less_often_is_read_as_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(outside, "PAUSE", 100)
        rec = bp.optimize(task(), World().lm, config=settings(budget__calls=240), ledger=tmp_path)
    with Ledger.read(tmp_path) as ledger:
        assert standing(ledger).as_dict() == rec.as_dict()


def test_prompts_that_are_worse_are_not_returned(tmp_path: Path) -> None:
    rec = bp.optimize(task(), World(better=-0.4).lm, config=settings(budget__calls=150), ledger=tmp_path)
    assert rec.prompt in EXAMPLES
    assert rec.refinement is not None
    assert rec.refinement.tried
    # What disappoints is asked for less: the last look is not to a writer.
    assert len([look for look in rec.refinement.looks if look.written]) <= 12


REPLIES = {
    "empty": lambda request: "",
    "copied": lambda request: request.messages[-1].content,
    "long": lambda request: "Repeat the word as it is. " * 400,
    "other script": lambda request: "Повтори слово так, как оно написано.",
    "leaked": lambda request: f"{written(request)} such as word1 here, word2 here, " + ", ".join(a for a, _ in PAIRS),
    "known": lambda request: "Repeat the word!",
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_what_is_no_prompt_is_refused_on_the_record_and_the_writer_given_up(
    reply: Callable[[Request], str], tmp_path: Path
) -> None:
    world = World(reply=reply)
    rec = bp.optimize(task(), world.lm, config=settings(), ledger=tmp_path)
    assert rec.candidates.prompts == tuple(EXAMPLES)
    with Ledger.read(tmp_path) as ledger:
        looks = ledger.payloads(LOOK)
        assert standing(ledger).as_dict() == rec.as_dict()
    refused = [look["refused"] for look in looks if look["refused"] is not None]
    assert len(refused) == len(world.wrote) <= 4 + 8  # restyling and crossing may be fine where reflecting leaks
    assert all(refused)
    assert "none was fit to be tried" in rec.verdict


class Killed(BaseException):
    """What SIGKILL leaves behind: nothing is caught, nothing is cleaned up."""


class Mortal:
    """A world that dies at a call that writes, before or after it has been answered; may have been billed."""

    def __init__(self, world: World, dies_at: int) -> None:
        self.world, self.inner, self.dies_at = world, world.lm, dies_at
        self.name, self.fingerprint, self.batch_size, self.concurrency = "mortal", "mortal", 4, 1
        self.deterministic = True

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        answers: list[Completion | LMError] = self.inner.complete(requests)
        if len(self.world.wrote) == self.dies_at and asked_to_write(requests[-1]):
            raise Killed
        return answers

    def max_prompt_tokens(self, request: Request) -> int:
        return int(self.inner.max_prompt_tokens(request))


@pytest.mark.parametrize("in_flight", [None, 3])
def test_killed_while_a_prompt_is_written_and_continued(tmp_path: Path, in_flight: int | None) -> None:
    config = settings(selection__in_flight=in_flight)
    world = World()
    mortal = Mortal(world, dies_at=2)
    with pytest.raises(Killed):
        bp.optimize(task(), mortal, config=config, ledger=tmp_path)
    with Ledger.read(tmp_path) as ledger:
        before = list(ledger.entries()), ledger.payloads(LOOK), [n.prompt for n in ledger.added_candidates()]
        assert [intent.purpose for intent in ledger.open_intents() if intent.purpose == "idea"] == ["idea"]
    mortal.dies_at = -1
    rec = bp.optimize(task(), mortal, config=config, ledger=tmp_path)
    with Ledger.read(tmp_path) as ledger:
        assert list(ledger.entries())[: len(before[0])] == before[0]
        assert ledger.payloads(LOOK)[: len(before[1])] == before[1]
        assert [n.prompt for n in ledger.added_candidates()][: len(before[2])] == before[2]
        assert standing(ledger).as_dict() == rec.as_dict()
    # The call that nobody knows the end of counts, and was made again.
    assert len(world.asked) + len(world.wrote) <= rec.calls <= 120
    assert leaks(tmp_path)[0] == 0


def test_a_continued_run_goes_the_way_of_a_whole_one(tmp_path: Path) -> None:
    whole = bp.optimize(task(), World().lm, config=settings(), ledger=tmp_path / "whole")
    world = World()
    stop = 70

    def until(request: Request) -> str:
        if len(world.asked) == stop and not asked_to_write(request):
            raise LMError("gone", systemic=True)
        return world(request)

    mortal = bp.lm.function(until, name="world", deterministic=True)
    with pytest.raises(LMError, match="gone"):
        bp.optimize(task(), mortal, config=settings(), ledger=tmp_path / "broken")
    stop = -1
    continued = bp.optimize(task(), mortal, config=settings(), ledger=tmp_path / "broken")
    assert whole.refinement is not None
    assert continued.refinement is not None
    # The call that failed may have been billed: the run may be one evaluation short, and goes the same way till then.
    looks = [look for look in whole.refinement.looks if look.at < 110]
    assert any(look.written for look in looks)
    assert list(continued.refinement.looks[: len(looks)]) == looks


def test_an_extended_run_goes_on_from_where_it_ended(tmp_path: Path) -> None:
    world = World()
    bp.optimize(task(), world.lm, config=settings(), ledger=tmp_path)
    rec = bp.optimize(task(), world.lm, config=settings(budget__calls=200), ledger=tmp_path)
    assert rec.calls == len(world.asked) + len(world.wrote) <= 200
    with Ledger.read(tmp_path) as ledger:
        assert standing(ledger).as_dict() == rec.as_dict()
    assert leaks(tmp_path)[0] == 0


def test_another_model_writes_and_is_paid_by_its_own_price(tmp_path: Path) -> None:
    world, author = World(), World()
    prices = {"world": {"input": 1.0, "output": 1.0}, "author": {"input": 0.25, "output": 0.25}}
    config = settings(budget__dollars=0.004).model_copy(
        update={"prices": load_settings(None, {"prices": prices}).prices}
    )
    rec = bp.optimize(task(), world.lm, config=config, ledger=tmp_path, writer=bp.lm.function(author, name="author"))
    assert not world.wrote
    assert author.wrote
    assert not author.asked
    assert rec.dollars <= 0.004
    with Ledger.read(tmp_path) as ledger:
        ideas, all_of_it = spent_on_ideas(ledger), spent(ledger)
        looks = ledger.payloads(LOOK)
        assert ledger.facts()["writer"] == "author"
        assert standing(ledger).as_dict() == rec.as_dict()
    assert ideas.dollars == pytest.approx(2.5e-7 * ideas.tokens)
    assert all_of_it.dollars <= 0.004
    # One such call takes the place of several evaluations, and the plan knows.
    assert max(look["cost"] for look in looks) > 1


def test_a_writer_that_fails_is_no_failure_of_the_run(tmp_path: Path) -> None:
    def fails(request: Request) -> str:
        raise LMError("no such model", systemic=True)

    rec = bp.optimize(
        task(), World().lm, config=settings(), ledger=tmp_path, writer=bp.lm.function(fails, name="author")
    )
    assert rec.candidates.prompts == tuple(EXAMPLES)
    assert "the writer failed" in rec.verdict


def test_with_few_pairs_nothing_is_shown_but_the_leader_is_rewritten(tmp_path: Path) -> None:
    few = bp.Task.from_pairs(PAIRS[:11], EXAMPLES, scorer="exact")
    rec = bp.optimize(few, World().lm, config=settings(budget__calls=90), ledger=tmp_path)
    assert REFLECTED not in rec.candidates.sources
    assert leaks(tmp_path) == (0, 0)
