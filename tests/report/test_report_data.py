"""The report's numbers, checked as values; the page itself is checked for what a reader needs."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bestprompt as bp
from bestprompt.ledger import LOOK, Entry, Ledger
from bestprompt.report import answers, assurance, refining, texts, write_report
from bestprompt.report.course import course, own_answers, strips
from bestprompt.report.svg import Scale
from bestprompt.report.wording import wording_map
from bestprompt.run import Recommendation, standing
from bestprompt.run.settings import load_settings
from bestprompt.run.sources import sources
from bestprompt.types import Pair, Usage


def entry(candidate: int, replication: int, score: float | None, **given: object) -> Entry:
    request = {"messages": [{"role": "user", "content": f"ask {replication}"}]}
    made = {"pair": replication, "status": "ok", "output": f"out {score}", "score": score, "usage": Usage(1, 5, 2)}
    return Entry(candidate, replication, 0, request=request, **{**made, **given})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def recommendation(hostile_run: Path) -> Recommendation:
    with Ledger.read(hostile_run) as ledger:
        return standing(ledger)


@pytest.fixture(scope="module")
def entries(hostile_run: Path) -> list[Entry]:
    with Ledger.read(hostile_run) as ledger:
        return list(ledger.entries())


@pytest.fixture(scope="module")
def refined(world: Any, small_network: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refined") / "run"
    config = load_settings(
        None,
        {"search.source": "latent", "search.candidates": 10, "budget.calls": 80, "refinement.mode": "m-ucb-r",
         "refinement.additional": 30, "selection.surrogate": "average"},
    )  # fmt: skip
    bp.optimize(world.task, world.lm, config=config, ledger=folder, autoencoder=world.space)
    return folder


@pytest.fixture(scope="module")
def page(hostile_run: Path, recommendation: Recommendation, tmp_path_factory: pytest.TempPathFactory) -> str:
    with Ledger.read(hostile_run) as ledger:
        path = write_report(tmp_path_factory.mktemp("page") / "page.html", ledger, recommendation)
    return path.read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------------- the prompts
def test_leaderboard_starts_with_the_winner_and_is_ordered(
    recommendation: Recommendation, entries: list[Entry]
) -> None:
    rows = recommendation.leaderboard
    assert rows[0].prompt == recommendation.prompt
    assert (rows[0].low, rows[0].high) == pytest.approx(np.clip(recommendation.interval, 0, 1))
    assert all(0 <= r.low <= r.high <= 1 for r in rows)
    assert [r.rank for r in rows] == [1, 2, 3, 4, 5]
    assert all(a.estimate >= b.estimate for a, b in pairwise(rows[1:]))
    assert rows[0].tied
    mine = [e for e in entries if e.candidate == rows[0].candidate]
    assert rows[0].cost == pytest.approx(np.mean([e.cost for e in mine]))
    assert rows[0].cost > 0


def test_sources_add_up(refined: Path) -> None:
    with Ledger.read(refined) as ledger:
        rows = standing(ledger).leaderboard
    found = sources(rows)
    assert {each.source for each in found} >= {"example", "latent"}
    assert sum(each.prompts for each in found) == len(rows)
    assert sum(each.calls for each in found) == sum(r.evaluations for r in rows)
    assert found[0].best is rows[0]


# -------------------------------------------------------------------------------------------------------- the course
def test_the_course_follows_the_leader_with_its_uncertainty() -> None:
    values = course([entry(0, 0, 1.0), entry(1, 0, 0.0), entry(0, 1, 1.0)], 2)
    # After t = 1: (1 + 4·1)/5. After t = 2 the overall mean is 1/2: (1 + 2)/5. After t = 3: (2 + 8/3)/6.
    np.testing.assert_allclose(values.estimate, [1.0, 0.6, (2 + 8 / 3) / 6])
    # With a right and a wrong answer added to each: sums of squares around 3 of 4 right and 1 of 3 right.
    assert values.deviation[-1] == pytest.approx(np.sqrt((3 - 9 / 4 + 1 - 1 / 3) / 7 / 6))
    assert values.leader.tolist() == [0, 0, 0]
    assert values.candidate.tolist() == [0, 1, 0]
    assert values.tokens.tolist() == [7, 14, 21]


def test_failed_attempts_are_no_answers_but_are_paid_for() -> None:
    failed = entry(0, 0, None, status="error", error="503")
    values = course([failed, entry(0, 0, 1.0)], 1)
    assert len(values) == 1
    assert values.calls.tolist() == [2]


def test_own_answers_are_where_the_course_ends(entries: list[Entry]) -> None:
    values, known = course(entries, 5), own_answers(entries, 5)
    leader = int(values.leader[-1])
    assert known.mean[leader] == pytest.approx(values.estimate[-1])
    assert known.deviation[leader] == pytest.approx(values.deviation[-1])
    assert int(known.counts.sum()) == len(values)


def test_strips_hold_every_call(entries: list[Entry]) -> None:
    values = course(entries, 5)
    lines = strips(values, range(5), bins=7)
    assert sum(line.calls for line in lines) == len(values)
    assert np.sum([line.counts for line in lines], axis=0).min() >= len(values) // 7
    for line in lines:
        assert (line.counts * line.scores).sum() == pytest.approx(
            values.score[values.candidate == line.candidate].sum()
        )


def test_an_empty_course_is_drawn_too() -> None:
    assert len(course([], 3)) == 0
    assert strips(course([], 3), [0])[0].calls == 0


# ------------------------------------------------------------------------------------------------------- the answers
def test_the_table_of_answers_is_the_record(hostile_run: Path, entries: list[Entry]) -> None:
    with Ledger.read(hostile_run) as ledger:
        pairs = ledger.pairs()
    table = answers.answer_table(entries, pairs, [2, 0, 1, 3, 4])
    assert table.candidates[0] == 2
    assert table.left_out == (0, 0)
    for e in entries:
        answer = table.answers[e.pair, e.candidate]
        assert answer.output == e.output
        assert answer.score == pytest.approx(e.score)
    assert all(pairs[p.number].input == p.input and pairs[p.number].references == p.expected for p in table.pairs)
    assert len(pairs) == 40


def test_a_large_table_is_bounded_and_says_so() -> None:
    many = [entry(n, r, 1.0, output="x" * 5000) for n in range(30) for r in range(40)]
    table = answers.answer_table(many, {}, range(30), most_pairs=25, most_prompts=10)
    assert len(table.pairs) == 25
    assert table.candidates == tuple(range(10))
    assert table.left_out == (15, 20)
    assert len(table.answers) * table.longest <= answers.MOST_CHARACTERS
    assert texts.shortened("x" * 5000, table.longest).endswith("more characters)")


def test_a_pair_that_was_asked_twice_has_the_mean() -> None:
    twice = [entry(0, 0, 1.0), entry(0, 1, 0.0, pair=0, output="later")]
    answer = answers.all_answers(twice)[0, 0]
    assert (answer.score, answer.times, answer.output) == (0.5, 2, "later")


def test_mistakes_and_differences() -> None:
    pairs = {r: Pair(f"in {r}", f"right {r}") for r in range(4)}
    seen = [entry(0, r, float(r > 0)) for r in range(4)] + [entry(1, r, float(r > 2)) for r in range(1, 4)]
    assert [m.pair.expected for m in answers.mistakes(seen, pairs, 0)] == [("right 0",)]
    apart = answers.differences(seen, pairs, 0, 1)
    assert [d.pair.number for d in apart] == [1, 2]
    assert all(d.ours.score > d.theirs.score for d in apart)


# --------------------------------------------------------------------------------------------------------- how sure
def test_the_winner_against_the_incumbent_is_the_paired_difference(
    recommendation: Recommendation, entries: list[Entry]
) -> None:
    found = assurance.against(recommendation, entries)
    assert found is not None
    assert recommendation.candidates.prompts[found.theirs] == "Word?"
    by = {n: {e.pair: e.score for e in entries if e.candidate == n and e.pair < 32} for n in (found.ours, found.theirs)}
    d = [by[found.ours][p] - by[found.theirs][p] for p in by[found.ours].keys() & by[found.theirs].keys()]
    assert found.shared == len(d)
    assert found.whom == "your prompt"
    if not found.estimated:
        assert found.difference == pytest.approx(np.mean(d))
        said = assurance.headline(recommendation, found)
        assert f"{found.difference:.2f} ± {found.half:.2f} on {len(d)} shared pairs" in said


def test_the_half_width_is_that_of_agresti_and_min() -> None:
    # Added answers: half of +1, half of −1, one of 0: two answers with a sum of squares of 1.
    d = np.array([1.0, 1.0, 0.0, -1.0])
    more = np.array([1.0, 1.0, 0.0, -1.0, np.sqrt(0.5), -np.sqrt(0.5)])
    assert assurance.half_width(d) == pytest.approx(1.96 * more.std(ddof=1) / np.sqrt(6))
    assert assurance.half_width(np.zeros(5)) > 0


def test_half_widths_cover_the_truth() -> None:
    rng = np.random.default_rng(5)
    draws = rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.6, 0.3], size=(2000, 15))
    inside = np.mean([abs(d.mean() - 0.2) <= assurance.half_width(d) for d in draws])
    assert inside > 0.95 - 4 * np.sqrt(0.05 * 0.95 / 2000)


def test_later_answers_of_steady_prompts_are_as_expected() -> None:
    rng = np.random.default_rng(3)
    levels = rng.uniform(0.2, 0.9, size=200)
    steady = [entry(n, r, float(rng.random() < levels[n])) for n in range(200) for r in range(20)]
    found = assurance.later_as_expected(steady)
    assert found.prompts == 200
    # The range is conservative for levels far from the mean, and pulls the others in: about 95 in 100 on the whole.
    assert found.inside / found.prompts > 0.95 - 4 * np.sqrt(0.05 * 0.95 / 200)
    fading = [entry(0, r, float(r < 20)) for r in range(40)]
    assert assurance.later_as_expected(fading) == assurance.Halves(1, 0)


def test_what_to_do_next(recommendation: Recommendation, entries: list[Entry], tmp_path: Path) -> None:
    folder = tmp_path / "a run"
    first = assurance.next_steps(recommendation, True, folder, entries)[0]
    assert first.command == f"bestprompt export '{folder}'"
    (only,) = assurance.next_steps(recommendation, False, folder, entries)
    assert only.command == f"bestprompt resume '{folder}'"
    (mend,) = assurance.next_steps(recommendation, True, folder, [entry(0, r, 0.0) for r in range(5)])
    assert "scored 0" in mend.text


# ------------------------------------------------------------------------------------------------------- map and axes
def test_prompts_that_share_words_are_near_each_other() -> None:
    prompts = ["count the red apples", "count the green apples", "translate this sentence", "translate that sentence"]
    found = wording_map(prompts, np.array([-1, 0, -1, 2]))
    places = np.column_stack([found.x, found.y])
    near = np.linalg.norm(places[0] - places[1]), np.linalg.norm(places[2] - places[3])
    assert max(near) < np.linalg.norm(places[0] - places[2])
    assert found.edges == ((1, 0), (3, 2))
    assert {"apples", "count", "sentence", "translate"} == {mark.word for mark in found.landmarks}
    assert "the" not in {mark.word for mark in found.landmarks}


def test_a_map_of_one_prompt_is_its_middle() -> None:
    found = wording_map(["alone"], np.array([-1]))
    assert (found.x.tolist(), found.y.tolist(), found.landmarks) == ([0.5], [0.5], ())


def test_ticks_are_round_and_inside() -> None:
    for low, high in ((0, 1), (0.31, 0.77), (0, 240), (0, 3), (-0.5, 12345)):
        ticks = Scale(low, high).ticks()
        assert 2 <= len(ticks) <= 5
        assert low - 1e-9 <= ticks[0] <= ticks[-1] <= high + 1e-9
    assert Scale(0.5, 0.5).ticks() == [0.5]
    assert Scale(0.5, 0.5).share(0.5) == 0.5


# --------------------------------------------------------------------------------------------------------- refinement
def test_predictions_and_turns_are_those_of_the_record(refined: Path) -> None:
    with Ledger.read(refined) as ledger:
        recommendation, looks, entries = standing(ledger), ledger.payloads(LOOK), list(ledger.entries())
    assert recommendation.refinement is not None
    seen = refining.predictions(recommendation.refinement)
    taken = [look for look in looks if look["candidate"] is not None]
    assert seen.predicted.tolist() == [look["mean"] for look in taken]
    for look, observed, n in zip(taken, seen.observed, seen.evaluations, strict=True):
        scores = [e.score for e in entries if e.candidate == look["candidate"]]
        assert (len(scores), np.mean(scores)) == (n, pytest.approx(observed))
    turns = refining.turns(recommendation.refinement)
    assert turns.call.tolist() == [look["at"] for look in looks]
    assert turns.refined.tolist() == [look["turn"] == "refine" for look in looks]
    assert turns.selecting.tolist() == [look["selection_value"] for look in looks]


# ----------------------------------------------------------------------------------------------------------- the page
class Reader(HTMLParser):
    """Collects scripts, texts, elements and where they point to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._script = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._script = tag == "script"
        if self._script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def handle_data(self, text: str) -> None:
        if self._script:
            self.scripts[-1] += text
        else:
            self.words += text


def test_the_page_needs_nothing_else_and_is_small(page: str) -> None:
    assert len(page.encode()) < 300_000
    for tag, attributes in Reader(page).tags:
        assert tag not in ("link", "iframe", "img", "object")
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")


def test_what_models_and_users_write_is_text(page: str, recommendation: Recommendation, hostile: str) -> None:
    read = Reader(page)
    assert "\x1b" not in page
    assert "\u2028" not in "".join(read.scripts)
    assert "\\x1b[31m" in read.words
    assert "Name <b>it</b> </script><script>document.title='owned'</script>" in read.words
    use, cells, _own = read.scripts
    assert json.loads(use) == recommendation.as_dict()["prompt_to_use"]
    held = json.loads(cells)
    assert texts.visible(hostile) in {prompt for _, prompt in held["prompts"].values()}
    assert all(len(a) == 5 for a in held["answers"].values())


def test_the_page_says_what_a_reader_asks(page: str, recommendation: Recommendation, long: str) -> None:
    words = Reader(page).words
    for heading in (
        "What to do next", "Leaderboard", "The best so far", "Where the calls went", "Map of the prompts by wording",
        "Where prompts came from", "Every answer", "What the winner gets wrong",
        "What the winner does differently from your prompt", "How sure, and why", "Settings", "Seeds and checksums",
    ):  # fmt: skip
        assert heading in words
    assert recommendation.verdict in words
    assert long in words
    assert "of 40 rows" in words


def test_the_page_tells_what_refinement_did(refined: Path, tmp_path: Path) -> None:
    with Ledger.read(refined) as ledger:
        recommendation = standing(ledger)
        page = write_report(tmp_path / "page.html", ledger, recommendation).read_text(encoding="utf-8")
    assert recommendation.refinement is not None
    words = Reader(page).words
    for said in ("Refinement", "Predicted and observed", "Selecting or refining", "Cumulative uncertainty"):
        assert said in words
    assert recommendation.refinement.sentence in words
    assert all(r.prompt in words for r in recommendation.refinement.tried)
    assert f"{recommendation.refinement.uncertainty:.4g}" in words


def test_texts_are_inert() -> None:
    assert texts.visible("a\x1b[0m\u202eb\r\nc\td\ud800") == "a\\x1b[0m\\u202eb\nc\td\\ud800"
    held = texts.inline_json(["</script>", "<!--", "\u2028", "&"])
    assert "<" not in held
    assert json.loads(held) == ["</script>", "<!--", "\u2028", "&"]
    assert texts.one_line("a\n b" * 50, 20).endswith("…")
