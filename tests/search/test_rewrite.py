from collections.abc import Sequence

import pytest

from bestprompt.errors import LMError, SearchError
from bestprompt.search import rewrite
from bestprompt.search.rewrite import largest_call
from bestprompt.types import Completion, Request, Usage


class Scripted:
    """A language model that answers from a list, over and over."""

    fingerprint, name, batch_size, concurrency = "scripted", "scripted", 4, 1

    def __init__(self, answers: Sequence[str | LMError]) -> None:
        self.answers, self.seen = answers, list[Request]()

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        found: list[Completion | LMError] = []
        for request in requests:
            answer = self.answers[len(self.seen) % len(self.answers)]
            self.seen.append(request)
            found.append(answer if isinstance(answer, LMError) else Completion(answer, Usage(1, 10, 5)))
        return found

    def max_prompt_tokens(self, request: Request) -> int:
        return 100


def test_variants_are_cleaned_distinct_and_counted() -> None:
    lm = Scripted(['"Order the words."', "- 1. Put words in order.\nBecause.", "Sort the words", "Order the words."])
    found, usage = rewrite(lm, ["Sort the words."], 3)
    assert found == ["Order the words.", "Put words in order."]
    assert usage.calls == len(lm.seen) == 9
    assert all("Sort the words." in request.messages[0].content for request in lm.seen)


def test_of_a_long_prompt_one_sentence_is_written_anew() -> None:
    long = "# Rules\r\n\r\n- Stay kind, {name}.  \r\n- Sort the words of the list.\r\n\r\n```\r\n{input}\r\n```"
    lm = Scripted(["Put the words in order.", "Order all the words."])
    found, _ = rewrite(lm, [long], 2)
    assert found == [long.replace("Sort the words of the list.", new) for new in lm.answers]
    assert all("{input}" not in request.messages[0].content for request in lm.seen)
    assert rewrite(Scripted(["Give the plural:"]), ["Write the plural: {input}"], 1)[0] == ["Give the plural: {input}"]
    with pytest.raises(SearchError, match="put in other words"):
        rewrite(lm, ["{input}"], 1)


def test_no_answer_is_paid_for_that_is_not_needed() -> None:
    lm = Scripted(["Order the words.", "Put them in order."])
    assert len(rewrite(lm, ["Sort the words."], 2)[0]) == 2
    assert len(lm.seen) == 2


def test_how_many_calls_are_under_way_changes_nothing() -> None:
    many, one = Scripted(["A b c.", "Sort.", "D e f.", "G h i."]), Scripted(["A b c.", "Sort.", "D e f.", "G h i."])
    one.batch_size = 1  # type: ignore[misc]
    assert rewrite(many, ["Sort."], 3) == rewrite(one, ["Sort."], 3)
    assert many.seen == one.seen


def test_what_is_not_accepted_is_not_returned() -> None:
    lm = Scripted(["Too long to be kept.", "Order."])
    assert rewrite(lm, ["Sort."], 1, accepts=lambda text: len(text) < 10)[0] == ["Order."]


def test_nothing_is_asked_after_a_systemic_error() -> None:
    lm = Scripted(["Order the words.", LMError("no credit", systemic=True)])
    found, usage = rewrite(lm, ["Sort the words."], 3)
    assert (found, usage.calls, len(lm.seen)) == (["Order the words."], 2, 3)


def test_no_call_needs_more_than_the_largest() -> None:
    class Counting(Scripted):
        def max_prompt_tokens(self, request: Request) -> int:
            return len(request.messages[0].content.split())

    lm, examples = Counting(["Sort."]), ["Sort.", "Sort all of the words."]
    rewrite(lm, examples, 12)
    needed = [(lm.max_prompt_tokens(request), request.max_tokens) for request in lm.seen]
    most = largest_call(lm, examples)
    assert max(needed) == (most.prompt_tokens, most.completion_tokens)


def test_requests_depend_on_the_seed_only() -> None:
    first, again, other = Scripted(["A b c."]), Scripted(["A b c."]), Scripted(["A b c."])
    rewrite(first, ["Sort."], 2, seed=1)
    rewrite(again, ["Sort."], 2, seed=1)
    rewrite(other, ["Sort."], 2, seed=2)
    assert first.seen == again.seen != other.seen


def test_a_model_that_repeats_itself_ends_the_search() -> None:
    lm = Scripted(["Sort."])
    found, usage = rewrite(lm, ["Sort."], 3)
    assert found == []
    assert usage.calls == 9


def test_a_model_that_always_fails_is_an_error() -> None:
    with pytest.raises(SearchError, match="no connection"):
        rewrite(Scripted([LMError("no connection")]), ["Sort."], 2)
