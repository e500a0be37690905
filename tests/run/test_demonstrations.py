"""Pairs that are shown judge nobody: counted over requests, records, held-out pairs, models and places in flight."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.errors import ConfigError, LedgerError
from bestprompt.ledger import Ledger
from bestprompt.rng import stream
from bestprompt.run import load_settings, standing
from bestprompt.run.demonstrations import FEWEST, parted, pool_size
from bestprompt.run.preview import preview
from bestprompt.tasks import Splits
from bestprompt.types import Request

PAIRS = [(f"ticket number {n:02d}", f"team {n % 3}") for n in range(40)]
TASK = bp.Task.from_pairs(PAIRS, ["Name the team.", "Who answers?"], scorer="exact")


def model(asked: list[Request], name: str = "m", good: float = 0.9, bad: float = 0.3) -> Any:
    """Answers well when it is shown something."""

    def answer(request: Request) -> str:
        asked.append(request)
        content = request.messages[-1].content
        question = content.rsplit("\n\n", 1)[-1]
        chance = good if "Examples:" in content else bad
        right = stream(request.seed, "demonstrated", name, content).random() < chance
        return f"team {int(question[-2:]) % 3}" if right else "nobody"

    return bp.lm.function(answer, name=name)


def shown_and_asked(request: Request) -> tuple[set[str], str]:
    content = request.messages[-1].content
    *before, question = content.split("\n\n")
    return {text for text, _ in PAIRS if any(text in part for part in before)}, question


def leaks(asked: list[Request], folder: Path) -> int:
    """How many times a pair was shown that judges, or has judged, any prompt of the run."""
    with Ledger.read(folder) as ledger:
        judging = {pair.input for pair in ledger.pairs().values()}
        judged = {ledger.pairs()[entry.pair].input for entry in ledger.entries()}
    assert judged <= judging
    return sum(len(shown_and_asked(request)[0] & judging) for request in asked)


@pytest.mark.parametrize(
    "changes",
    [{}, {"holdout": 0.2}, {"selection.in_flight": 6}, {"selection.pairs": "independent"}, {"seed": 3}],
    ids=["plain", "held out", "in flight", "independent", "seed"],
)
def test_no_pair_that_judges_is_ever_shown(tmp_path: Path, changes: dict[str, Any]) -> None:
    asked: list[Request] = []
    config = load_settings(None, {"search.demos": 4, "budget.calls": 90, **changes})
    rec = bp.optimize(TASK, model(asked), ledger=tmp_path, config=config)
    assert leaks(asked, tmp_path) == 0
    shown = [shown_and_asked(request)[0] for request in asked]
    assert {len(each) for each in shown} == {0, 4}, "some prompts show four pairs, some none"
    assert len(set.union(*shown)) <= pool_size(4)
    assert rec.source == "example + demonstrations"
    assert rec.demonstrations == 4
    assert rec.prompt.count("Output: team ") == 4
    assert "8 pairs were kept aside for demonstrations and judged no prompt; the winner shows 4 of them." in rec.verdict
    with Ledger.read(tmp_path) as ledger:
        assert len(ledger.pairs()) == 40 - 8
        assert standing(ledger).as_dict() == rec.as_dict()


def test_a_run_goes_on_with_the_same_pairs_aside(tmp_path: Path) -> None:
    once: list[Request] = []
    whole = bp.optimize(TASK, model(once), budget=90, demos=2, ledger=tmp_path / "whole")
    twice: list[Request] = []
    bp.optimize(TASK, model(twice), budget=40, demos=2, ledger=tmp_path / "parts")
    rec = bp.optimize(TASK, model(twice), budget=90, demos=2, ledger=tmp_path / "parts")
    assert leaks(twice, tmp_path / "parts") == 0
    assert len({(r.messages, r.seed) for r in twice}) == len(twice) == rec.calls
    assert rec.candidates.prompts == whole.candidates.prompts
    with pytest.raises(LedgerError, match="changed since the run"):
        bp.optimize(TASK, model([]), budget=90, demos=3, ledger=tmp_path / "parts")


def test_on_several_models(tmp_path: Path) -> None:
    asked: list[Request] = []
    models = [model(asked, "m", good=0.3), model(asked, "n")]
    rec = bp.optimize(TASK, models, budget=120, demos=2, ledger=tmp_path)
    assert leaks(asked, tmp_path) == 0
    assert (rec.model, rec.demonstrations) == ("n", 2)


def test_given_splits_lose_pairs_on_which_nothing_is_chosen() -> None:
    splits = Splits(TASK.pairs[:20], TASK.pairs[20:30], TASK.pairs[30:])
    task = bp.Task.from_pairs(TASK.pairs, TASK.examples, scorer="exact", fixed_splits=splits)
    judging, shown = parted(task, load_settings(None, {"search.demos": 4}))
    assert judging.held_out(0.2, 0) == (splits.train, splits.test)
    assert all(pair in splits.validation for pair in shown)
    judging, shown = parted(task, load_settings(None, {"search.demos": 5, "seed": 1}))
    assert sorted(pair.input for pair in shown) == [pair.input for pair in splits.validation]
    few = bp.Task.from_pairs(
        TASK.pairs, scorer="exact", fixed_splits=Splits(TASK.pairs[:25], TASK.pairs[25:27], TASK.pairs[27:])
    )
    judging, shown = parted(few, load_settings(None, {"search.demos": 4}))
    assert len(shown) == 8
    assert not any(pair in judging.held_out(0.2, 0)[0] for pair in shown)
    assert judging.held_out(0.2, 0)[1] == TASK.pairs[27:]


@pytest.mark.parametrize(
    ("pairs", "demos", "advice"), [(17, 4, r"--demos 3\)"), (12, 1, "14 pairs or more\\."), (3, 9, "28")]
)
def test_too_few_pairs_are_refused_before_anything_is_asked(
    tmp_path: Path, pairs: int, demos: int, advice: str
) -> None:
    asked: list[Request] = []
    task = bp.Task.from_pairs(PAIRS[:pairs], ["Name the team."], scorer="exact")
    with pytest.raises(ConfigError, match=f"search.demos = {demos} keeps .*{advice}"):
        bp.optimize(task, model(asked), demos=demos, ledger=tmp_path / "run")
    assert not asked
    assert not (tmp_path / "run").exists()
    assert pairs - pool_size(demos) < FEWEST


def test_a_ready_set_cannot_be_added_to() -> None:
    pool = bp.optimize(TASK, model([]), budget=10).candidates
    with pytest.raises(ConfigError, match=r"search\.demos cannot add"):
        bp.optimize(TASK, model([]), demos=2, candidates=pool)


def test_the_preview_counts_them(tmp_path: Path) -> None:
    counting: Callable[[Request], int] = lambda request: sum(len(m.content) for m in request.messages)  # noqa: E731

    class Counting:
        """A model that counts a character as a token."""

        name, fingerprint, batch_size, concurrency, deterministic = "m", "m:1", 4, 1, True

        def complete(self, requests: Any) -> Any:
            return model([]).complete(requests)

        def max_prompt_tokens(self, request: Request) -> int:
            return counting(request)

    plain = preview(TASK, Counting(), load_settings(None, {"budget.calls": 50}))
    shown = preview(TASK, Counting(), load_settings(None, {"budget.calls": 50, "search.demos": 4}))
    assert (plain.pairs, plain.shown, plain.candidates) == (40, 0, 2)
    assert (shown.pairs, shown.shown, shown.candidates) == (32, 8, 10)
    assert shown.most.tokens - plain.most.tokens >= 50 * 4 * len("Input: ticket number 01\nOutput: team 1")
    rec = bp.optimize(TASK, Counting(), budget=50, demos=4)
    assert rec.tokens <= shown.most.tokens
