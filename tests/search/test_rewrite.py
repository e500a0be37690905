from collections.abc import Sequence

import pytest

from bestprompt.errors import LMError, SearchError
from bestprompt.search import rewrite
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
    found, usage = rewrite(lm, ["Sort the words."], 2)
    assert found == ["Order the words.", "Put words in order."]
    assert usage.calls == len(lm.seen) == 4
    assert all("Sort the words." in request.messages[0].content for request in lm.seen)


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
