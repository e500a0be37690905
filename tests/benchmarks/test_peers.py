"""The harness of the comparison: nobody passes the meter, runs repeat, tasks are sound, figures are what rows say."""

from __future__ import annotations

import json
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bestprompt.errors import LMError
from bestprompt.types import Completion, Request, Usage

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "peers"))

import methods
import page
import problems
import runs
import scripted
import summary
from made_tasks import MADE
from methods import Method
from proxy import Meter, Proxy
from runs import Record, Workers
from scripted_world import World

PEERS = Path(methods.__file__).parent


class Parrot:
    """Repeats the last word, and remembers what it was asked."""

    name = fingerprint = "parrot"
    batch_size = concurrency = 1

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        self.asked += requests
        if any("too long" in request.messages[-1].content for request in requests):
            return [LMError("longer than the context", retryable=False)]
        return [Completion(request.messages[-1].content.split()[-1], Usage(1, 7, 2)) for request in requests]

    def max_prompt_tokens(self, request: Request) -> int:
        return 7


def post(url: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def chat(url: str, text: str = "say yes", **options: Any) -> tuple[int, dict[str, Any]]:
    return post(url + "/v1/chat/completions", {"messages": [{"role": "user", "content": text}], **options})


def meter(lm: Any, budget: int = 4, draws: str = "a problem") -> Meter:
    return Meter("a-run", budget, lm, lambda question, output: float(output == "yes"), draws)


def test_the_call_after_the_last_is_refused_and_stays_refused():
    with Proxy() as proxy:
        of = meter(Parrot(), budget=3)
        url = proxy.open(of)
        statuses = [chat(url)[0] for _ in range(6)]
    assert statuses == [200, 200, 200, 403, 403, 403]
    assert (of.calls, of.refused, of.prompt_tokens, of.completion_tokens) == (3, 3, 21, 6)


def test_calls_side_by_side_do_not_pass_the_budget():
    with Proxy() as proxy:
        of, statuses = meter(Parrot(), budget=10), []
        url = proxy.open(of)
        threads = [threading.Thread(target=lambda: statuses.extend(chat(url)[0] for _ in range(5))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (statuses.count(200), statuses.count(403)) == (10, 30) == (of.calls, of.refused)


def test_scores_and_unusable_requests_are_not_counted():
    with Proxy() as proxy:
        of = meter(Parrot())
        url = proxy.open(of)
        assert post(url + "/score", {"input": "q", "output": "yes"}) == (200, {"score": 1.0})
        assert chat(url, "this is too long")[0] == 400
        assert (of.calls, of.unusable) == (0, 1)
        proxy.close("a-run")
        assert chat(url)[0] == 404


def test_sampled_calls_have_seeds_of_their_own_that_runs_on_one_problem_share():
    def seeds(draws: str, temperatures: Sequence[float]) -> list[int]:
        parrot = Parrot()
        with Proxy() as proxy:
            url = proxy.open(meter(parrot, draws=draws))
            for temperature in temperatures:
                chat(url, temperature=temperature)
        return [request.seed for request in parrot.asked]

    one, again, other = seeds("one", (0.9, 0.9, 0.0)), seeds("one", (0.0, 0.9, 0.0, 0.9)), seeds("two", (0.9, 0.9))
    assert [seed for seed in again if seed] == one[:2], "what a method asks besides does not matter"
    assert len({*one[:2], *other}) == 4
    assert one[2] == 0


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Workers run in this interpreter, and their logs stay out of the way."""
    monkeypatch.setattr(runs, "python_of", lambda environment: Path(sys.executable))
    monkeypatch.setattr(runs, "HOME", tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("method", ["halving", "ours-proposals"])
def test_a_method_is_shown_the_stream_and_chooses_from_it(here: Path, method: str):
    run = {"family": "rare", "method": method, "budget": 60, "seed": 0}
    with Proxy() as proxy, Workers() as workers:
        row = scripted.choose(proxy, workers, run)
    world = World("rare", 0)
    assert row["shown"] == 4
    assert row["chosen"] in range(5)
    assert row["test"] == round(float(world.truth[row["chosen"]]), 4)
    assert 0 < row["calls"] <= 60
    assert row["own_calls"] == row["calls"]
    assert (row["refused"], row["unknown"]) == (0, 0)


def test_a_worker_that_overruns_or_breaks_is_told_apart(here: Path, monkeypatch: pytest.MonkeyPatch):
    (here / "workers").mkdir()
    script = (
        f"import sys; sys.path.insert(0, {str(PEERS / 'workers')!r})\n"
        "from job import Refused, serve\n"
        "def choose(job):\n"
        "    if job.seed: raise ValueError('broken')\n"
        "    answers = []\n"
        "    for _ in range(job.budget + 2):\n"
        "        try: answers.append(job.answer('Repeat.', 'yes'))\n"
        "        except Refused: pass\n"
        "    return {'prompt': 'Repeat.', 'stated': job.score('yes', answers[-1])}\n"
        "serve(choose)\n"
    )
    (here / "workers" / "greedy.py").write_text(script)
    monkeypatch.setattr(runs, "HERE", here)
    monkeypatch.setitem(methods.METHODS, "greedy", Method("greedy", "plain", "greedy"))
    job = {"seed": 0, "examples": ["a"], "pairs": [], "template": "{prompt}\n\n{input}", "max_tokens": 4}
    run = {"method": "greedy", "budget": 4}
    with Proxy() as proxy, Workers() as workers:
        args = (proxy, workers, Parrot(), run)
        row = runs.one_run(*args, job, lambda question, output: float(output == question))
        broken = runs.one_run(*args, {**job, "seed": 1}, lambda question, output: 0.0)
    assert (row["calls"], row["refused"], row["own_calls"], row["stated"]) == (4, 2, 6, 1.0)
    assert broken["error"] == "ValueError: broken"


def test_a_record_goes_on_after_a_kill_in_the_middle_of_a_line(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    record = Record(path, ("method", "seed"))
    record.add({"method": "gepa", "seed": 0, "test": 0.5})
    with path.open("a") as file:
        file.write('{"method": "gepa", "se')
    again = Record(path, ("method", "seed"))
    assert {"method": "gepa", "seed": 0} in again
    assert {"method": "gepa", "seed": 1} not in again
    again.add({"method": "gepa", "seed": 1, "test": 0.5})
    assert len(Record(path, ("method", "seed")).rows) == 2


@pytest.mark.parametrize("name", problems.TASKS)
def test_tasks_have_right_answers_and_untouched_pairs(name: str):
    task, problem = problems.load_task(name), problems.Problem(name, 3)
    untouched = task.pairs[: problems.TEST]
    assert len(task.examples) >= 8
    assert (len(untouched), len(problem.pairs)) == (100, 50)
    assert not {pair.input for pair in untouched} & {pair.input for pair in problem.pairs}
    right = task.scorer.score([pair.reference for pair in task.pairs[:200]], task.pairs[:200])
    assert all(each.value == 1 for each in right)
    if name in MADE:  # an echo of the question must not win
        echo = task.scorer.score([pair.input for pair in task.pairs[:200]], task.pairs[:200])
        assert np.mean([each.value for each in echo]) < 0.05


def test_worlds_are_what_their_families_say():
    for seed in range(5):
        assert World("none-better", seed).truth.argmax() == 0
        world = World("mixed", seed)
        assert world.truth[1:].min() < world.truth[0] < world.truth[1:].max()
        scatter = np.sqrt(0.25 / world.right.size)  # of the share of right answers, more than pairs in common allow
        assert abs(world.right.mean() - world.truth.mean()) < 0.2 + 3 * scatter


def row(method: str, task: str, seed: int, test: float) -> dict[str, Any]:
    return {"method": method, "task": task, "seed": seed, "test": test, "stated": test + 0.1, "pairs": 24}


def test_methods_are_compared_on_the_cells_they_share():
    rows = [row(m, t, s, 0.5) for m in ("gepa", "ours-latent") for t in "ab" for s in range(2)]
    rows += [row("capo", "a", 0, 0.9), {**row("gepa", "c", 0, 0.9), "stated": None}]
    chosen, shown = summary.shared_cells(rows, "task")
    assert shown == ["ours-latent", "gepa"]
    assert len(chosen) == 8


def test_a_mean_is_over_tasks_and_a_difference_cell_by_cell():
    rows = [row("gepa", "a", s, 0.2 + 0.1 * s) for s in range(2)] + [row("gepa", "b", s, 0.8) for s in range(3)]
    rows += [{**each, "method": "ours-latent", "test": each["test"] + 0.05} for each in rows]
    mean = summary.of_method(rows, "gepa", "test", "task")
    assert mean.mean == pytest.approx((0.25 + 0.8) / 2)
    assert mean.runs == 5
    gain = summary.difference(rows, "ours-latent", "gepa", "test", "task")
    assert (gain.mean, gain.half) == (pytest.approx(0.05), pytest.approx(0, abs=1e-12))
    assert summary.of_method(rows, "gepa", "optimism", "task").mean == pytest.approx(0.1)


def test_a_world_counts_once_over_all_budgets():
    rows = [
        {**row(m, "mixed", s, x + 0.1 * b + 0.01 * s), "family": "mixed", "budget": b}
        for m, x in (("ours-proposals", 0.5), ("gepa", 0.4)) for s in range(3) for b in (1, 2)
    ]  # fmt: skip
    chosen = summary.across_budgets(rows[:-1], "family")  # one world lacks a run of gepa
    assert [(each["method"], each["seed"]) for each in chosen] == [
        (m, s) for m in ("ours-proposals", "gepa") for s in (0, 1)
    ]
    assert chosen[0]["test"] == pytest.approx(0.65)
    text = page.over_all_budgets(rows, "ours-proposals")
    assert "| gepa | 0.560 ± 0.025 | +0.100 ± 0.000 | +0.100 ± 0.000 |" in text


def test_the_floor_is_what_an_unbiased_mean_misses_by():
    rng, q, n = np.random.default_rng(5), 0.7, 40
    tested, stated = rng.binomial(100, q, 4000) / 100, rng.binomial(n, q, 4000) / n
    gaps = np.abs(stated - tested)
    floors = [summary.floor({"test": x, "pairs": n, "test_pairs": 100}) for x in tested]
    # Between draws; and the floor takes the distribution for normal, which is off by less than a fiftieth here.
    assert np.mean(floors) == pytest.approx(gaps.mean(), abs=4 * gaps.std() / 4000**0.5 + gaps.mean() / 50)
    assert summary.floor({"test": q, "pairs": n}) < np.mean(floors)


def test_lines_of_code_leave_out_what_is_said(tmp_path: Path):
    file = tmp_path / "worker.py"
    head = '"""Says\nmuch."""\n\n# and more\ndef f(\n    x,\n):\n    """What."""\n'
    file.write_text(head + "    y = (\n        x\n    )\n    return y\n")
    assert summary._code_lines(file) == 7


def test_the_page_says_what_the_rows_say(tmp_path: Path):
    spent = {"calls": 150, "refused": 0, "prompt_tokens": 900, "completion_tokens": 100, "own_seconds": 2.0}
    base = {"model": "m", "budget": 150, **spent}
    rows = [{**base, **row(m, t, s, x)} for m, x in (("ours-latent", 0.7), ("gepa", 0.6)) for t in "ab" for s in (0, 1)]
    rows += [{**base, "method": "capo", "task": "a", "seed": 0, "error": "broke"}]
    rows[-2]["refused"] = 2
    rows[0] |= {"fresh": 100, "served": 4.0}
    for each in rows[:4]:
        each["interval"] = [0.6, 0.7]
    text = page.comparison(rows, "model", "task")
    assert "**m, 150 calls** (4 runs of each method; tasks: a, b)" in text
    # 0.080 = √(2/π · 0.24 / 24); a call took 0.04 s.
    spent = "24 | 150 | 25% (0) | 1,000 | 2.0 | 8 |"
    assert f"| gepa | 0.600 ± 0.000 | 0.100 ± 0.000 | +0.100 ± 0.000 | 0.100 | 0.080 |  | {spent}" in text
    assert "| bestprompt, latent | 0.700 ± 0.000 |  | +0.100 ± 0.000 | 0.100 | 0.075 | 100% | 24 |" in text
    assert "| a | bestprompt, latent | 0.700 | gepa | 0.600 | +0.100 |" in page.per_task(rows)
    assert page.failures(rows).endswith("CAPO 1.")
    page.draw(rows, "model", "task", "test", "test score", tmp_path / "figure.svg")
    assert "gepa" in (tmp_path / "figure.svg").read_text()
