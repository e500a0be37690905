"""What a run relies on in a language model."""

from __future__ import annotations

import threading
from collections.abc import Callable

from bestprompt.errors import LMError
from bestprompt.types import Completion, LanguageModel, Message, Request

WORDS = ("river", "stone", "cloud", "bread")


def question(
    text: str, max_tokens: int = 12, temperature: float = 0.0, seed: int = 0, stop: tuple[str, ...] = ()
) -> Request:
    """A request of one user turn."""
    return Request((Message("user", text),), max_tokens, temperature, seed=seed, stop=stop)


def _answer(model: LanguageModel, request: Request) -> Completion:
    (answer,) = model.complete([request])
    assert isinstance(answer, Completion), f"{request.messages[-1].content!r} was not answered: {answer}"
    return answer


def _repeat(word: str) -> Request:
    return question(f"Repeat exactly this one word: {word}")


def says_what_it_is(model: LanguageModel) -> None:
    """Name, fingerprint and how it wants to be asked; nothing asked, nothing answered."""
    assert isinstance(model, LanguageModel)
    assert model.name
    assert model.fingerprint
    assert model.fingerprint == model.fingerprint
    assert model.batch_size >= 1
    assert model.concurrency >= 1
    assert model.complete([]) == []


def keeps_the_order(model: LanguageModel) -> None:
    """Answers come in the order of the requests: each is that of its own question, or names its word."""
    answers = model.complete([_repeat(word) for word in WORDS])
    assert len(answers) == len(WORDS)
    for word, answer in zip(WORDS, answers, strict=True):
        assert isinstance(answer, Completion)
        assert word in answer.text.lower() or answer.text == _answer(model, _repeat(word)).text


def repeats_itself_with_the_seed(model: LanguageModel) -> None:
    """Equal requests with equal seeds are the same call, above temperature 0 too."""
    requests = [question("Tell me about", max_tokens=6, temperature=1.0, seed=seed) for seed in range(3)]
    assert [_answer(model, r).text for r in requests] == [_answer(model, r).text for r in requests]


def ends_at_a_stop_string(model: LanguageModel) -> None:
    """The answer ends before the stop string, which is left out."""
    text = "Name the first letter of the word dog."
    whole = _answer(model, question(text)).text
    words = whole.split()
    if not words:
        return
    marker = words[min(2, len(words) - 1)]
    cut = _answer(model, question(text, stop=(marker,)))
    assert cut.text == whole[: whole.index(marker)]
    assert cut.finish_reason == "stop"


def obeys_max_tokens_and_counts(model: LanguageModel) -> None:
    """A budget is planned by ``max_tokens`` and ``max_prompt_tokens`` and kept by ``usage``."""
    request = question("Tell me a long story about a dragon.", max_tokens=3)
    answer = _answer(model, request)
    assert answer.usage.calls == 1
    assert 0 <= answer.usage.completion_tokens <= 3
    assert 0 < answer.usage.prompt_tokens <= model.max_prompt_tokens(request)
    assert answer.latency >= 0


def serves_threads(model: LanguageModel) -> None:
    """Requests made at the same time get their own answers."""
    found: dict[str, Completion | LMError] = {}

    def work(word: str) -> None:
        found[word] = model.complete([_repeat(word)])[0]

    threads = [threading.Thread(target=work, args=(word,)) for word in WORDS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for word, answer in found.items():
        assert isinstance(answer, Completion)
        assert word in answer.text.lower() or answer.text == _answer(model, _repeat(word)).text
    assert len(found) == len(WORDS)


model_checks: tuple[Callable[[LanguageModel], None], ...] = (
    says_what_it_is,
    keeps_the_order,
    repeats_itself_with_the_seed,
    ends_at_a_stop_string,
    obeys_max_tokens_and_counts,
    serves_threads,
)


def check_model(model: LanguageModel) -> None:
    """All of ``model_checks``."""
    for check in model_checks:
        check(model)
