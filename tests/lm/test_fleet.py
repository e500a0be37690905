"""Several workers as one model: the one with most room is asked, a lost one rests, and limits hold for all together."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bestprompt import lm as models
from bestprompt.errors import LMError
from bestprompt.lm import fleet as fleet_module
from bestprompt.lm import patience
from bestprompt.lm.fleet import Fleet, WorkerLost
from bestprompt.lm.limits import Rates
from bestprompt.lm.patience import Patience
from bestprompt.run.settings import load_settings
from bestprompt.types import Completion, LanguageModel, Request, Usage


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(fleet_module, "FIRST_REST", 600.0)  # nobody comes back in the middle of a test
    monkeypatch.setattr(fleet_module, "_LOOK", 0.01)


def worker(f: Callable[[Request], str], places: int = 2) -> LanguageModel:
    return models.function(f, name="m", concurrency=places)


def test_requests_are_shared_by_room(ask: Any) -> None:
    seen: Counter[str] = Counter()
    here, open_ = threading.Barrier(5), threading.Event()

    def counting(name: str) -> Callable[[Request], str]:
        def answer(_request: Request) -> str:
            seen[name] += 1
            here.wait(30)
            open_.wait(30)
            return name

        return answer

    both = Fleet([worker(counting("small"), 1), worker(counting("large"), 3)])
    assert both.concurrency == 4
    threads = [threading.Thread(target=both.complete, args=([ask("hi")],)) for _ in range(4)]
    for thread in threads:
        thread.start()
    here.wait(30)  # all four are there at once
    open_.set()
    for thread in threads:
        thread.join()
    assert seen == {"small": 1, "large": 3}


def test_what_cost_nothing_is_asked_elsewhere(ask: Any) -> None:
    def full(_request: Request) -> str:
        raise LMError("429", usage=Usage())

    answers = [Fleet([worker(full), worker(lambda _: "yes")]).complete([ask("hi")])[0] for _ in range(6)]
    assert all(isinstance(answer, Completion) and answer.text == "yes" for answer in answers)


def test_what_may_have_been_billed_is_not(ask: Any) -> None:
    lost = [False]

    def dying(_request: Request) -> str:
        lost[0] = True
        raise WorkerLost("gone")

    both = Fleet([worker(dying, 4), worker(lambda _: "yes", 1)])
    answers = [both.complete([ask("hi")])[0] for _ in range(3)]
    failed = [answer for answer in answers if isinstance(answer, LMError)]
    assert lost[0]
    assert failed
    assert all(error.usage is None for error in failed), "charged at its worst case by whoever keeps the budget"


def test_a_lost_worker_rests_until_it_can_be_reached(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_module, "FIRST_REST", 0.01)

    class Dying:
        name, fingerprint, batch_size, concurrency = "m", "f", 1, 8
        reachable, asked = False, 0

        def complete(self, requests: Any) -> Any:
            self.asked += 1
            if self.reachable:
                return [Completion("back")]
            return [WorkerLost("gone")]

        def ping(self) -> None:
            if not self.reachable:
                raise LMError("no", usage=Usage())

        def max_prompt_tokens(self, request: Request) -> int:
            return 1

    dying = Dying()
    both = Fleet([dying, worker(lambda _: "yes", 1)])
    for _ in range(20):
        both.complete([ask("hi")])
    assert dying.asked == 1
    dying.reachable = True
    deadline = time.monotonic() + 30
    while not both._workers[0].rested and time.monotonic() < deadline:
        time.sleep(0.01)
    assert both.complete([ask("hi")])[0].text == "back"


def test_with_no_worker_left_the_run_is_told_and_stops(ask: Any) -> None:
    class Gone:
        name, fingerprint, batch_size, concurrency = "m", "f", 1, 8

        def complete(self, requests: Any) -> Any:
            return [WorkerLost("gone", usage=Usage()) for _ in requests]

        def ping(self) -> None:
            raise LMError("no", usage=Usage())

        def max_prompt_tokens(self, request: Request) -> int:
            return 1

    heard: list[float | None] = []
    waits = Patience(2)
    with waits.heard_by(lambda _error, seconds: heard.append(seconds)):
        (answer,) = Fleet([Gone(), Gone()], patience=waits).complete([ask("hi")])
    assert isinstance(answer, LMError)
    assert answer.unbilled
    assert heard[-1] is None


def test_a_part_of_a_batch_is_asked_elsewhere(ask: Any) -> None:
    class Half:
        name, fingerprint, batch_size, concurrency = "m", "f", 4, 8

        def complete(self, requests: Any) -> Any:
            return [Completion("a"), *[LMError("503", usage=Usage()) for _ in requests[1:]]]

        def max_prompt_tokens(self, request: Request) -> int:
            return 1

    answers = Fleet([Half(), worker(lambda _: "b", 1)]).complete([ask(str(n)) for n in range(3)])
    assert [answer.text for answer in answers][1:] == ["b", "b"]


def test_the_same_model_is_the_same_run_whoever_answers() -> None:
    def one(_request: Request) -> str:
        return "x"

    alone = worker(one)
    assert Fleet([alone, alone]).fingerprint == alone.fingerprint
    left, right = (models.openai("m", f"http://127.0.0.{n}:9/v1") for n in (2, 3))
    third = models.openai("m", "http://127.0.0.4:9/v1")
    assert Fleet([left, right]).fingerprint == Fleet([right, third]).fingerprint
    with pytest.raises(LMError, match="m and n"):
        Fleet([left, models.openai("n", "http://127.0.0.2:9/v1")])


def test_limits_are_shared(ask: Any) -> None:
    both = Fleet([worker(lambda _: "x"), worker(lambda _: "y")], rates=Rates(requests_per_second=1000.0))
    both.complete([ask("hi")])
    assert both._rates.requests._available < 1000.0


def test_settings_of_the_guide(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "cluster.md").read_text(encoding="utf-8")
    path = tmp_path / "cluster.toml"
    path.write_text(guide.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    settings = load_settings(path)
    assert settings.ray is not None
    assert [worker.count for worker in settings.ray.worker] == [3, 1]
    assert settings.ray.worker[0].resources == {"gpu-box": 1.0}


def test_nobody_looks_for_a_worker_after_the_end(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What leads to the workers may be gone by then, and touching it would end the program with an error."""
    monkeypatch.setattr(fleet_module, "FIRST_REST", 0.01)
    monkeypatch.setattr(fleet_module, "LONGEST_REST", 0.01)
    looks = []

    class Gone:
        name, fingerprint, batch_size, concurrency = "m", "m", 1, 1

        def complete(self, requests: list[Request]) -> list[Completion | LMError]:
            return [WorkerLost("it is gone") for _ in requests]

        def max_prompt_tokens(self, request: Request) -> int:
            return 1

        def ping(self) -> None:
            looks.append(time.monotonic())
            raise LMError("it is gone")

    fleet = Fleet([Gone()])
    fleet.complete([ask("hi")])
    while not looks:
        time.sleep(0.001)
    fleet.close()
    closed = time.monotonic()
    time.sleep(0.1)
    assert max(looks) <= closed
    assert not any(thread.name == "resting worker" and thread.is_alive() for thread in fleet._looking)
