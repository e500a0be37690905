"""Candidates a language model writes: variants of the example prompts (the "rewrite" source).

Of a prompt of several lines, or with a placeholder, one sentence is written anew and all else is kept to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress

from bestprompt.errors import BudgetExhausted, LMError, LMRefused, SearchError
from bestprompt.latent.sentences import Frame, varied_sentence
from bestprompt.rng import integer, stream
from bestprompt.search.embed import clean_prompts
from bestprompt.search.filters import near_duplicate, plain
from bestprompt.types import LanguageModel, Message, Request, Usage

ASKS = (
    "Write this instruction in other words and keep its meaning. Answer with the new instruction only.\n\n{prompt}",
    "Write a clearer version of this instruction. Answer with the new instruction only.\n\n{prompt}",
    "Write a shorter version of this instruction. Answer with the new instruction only.\n\n{prompt}",
    "Write a more detailed version of this instruction. Answer with the new instruction only.\n\n{prompt}",
)
CALLS_EACH = 3  # at most, on average: small models repeat themselves
MAX_TOKENS = 64
_WRAPPING = re.compile(r'^(?:[-*•]\s+|\d+[.)]\s+|(?:new |rewritten )?instruction:\s*)|^["“]|["”]$', re.IGNORECASE)


def rewrite(
    lm: LanguageModel,
    examples: Sequence[str],
    n: int,
    seed: int = 0,
    accepts: Callable[[str], bool] = lambda text: True,
) -> tuple[list[str], Usage]:
    """Up to ``n`` new prompts written by ``lm`` that ``accepts`` lets pass, and what that consumed.

    At most 3n calls are made, and none after a systemic error or when ``lm`` raises ``BudgetExhausted``. How many are
    under way at once changes no result.

    Raises:
        SearchError: No call was answered, and another attempt may help.
    """
    starts = clean_prompts(examples, what="example prompt")
    frames = _frames(starts)
    known, found, usage = [plain(text) for text in starts], list[str](), Usage()
    calls, last_error = 0, None
    while len(found) < n and calls < CALLS_EACH * n and not (last_error is not None and last_error.systemic):
        # Never more than are missing: an answer that is not needed is paid for all the same.
        size = min(max(lm.batch_size, lm.concurrency), CALLS_EACH * n - calls, n - len(found))
        try:
            answers = lm.complete([_request(frames, seed, calls + i)[0] for i in range(size)])
        except BudgetExhausted:
            return found, usage
        for number, answer in enumerate(answers):
            if isinstance(answer, LMError):
                last_error = last_error if isinstance(answer, LMRefused) else answer
                continue
            usage += answer.usage
            before, _, after = _request(frames, seed, calls + number)[1]
            sentence = _unwrapped(answer.text)
            text = before + sentence + after
            if sentence and not near_duplicate(plain(text), known) and accepts(text):
                found.append(text)
                known.append(plain(text))
        calls += size
    if last_error is not None and usage.calls == 0:
        raise SearchError(f"The language model wrote no variant; its last error: {last_error}") from last_error
    return found, usage


def largest_call(lm: LanguageModel, examples: Sequence[str]) -> Usage:
    """The most that one call of ``rewrite`` may consume."""
    texts = [sentence for _, sentence, _ in _frames(clean_prompts(examples, what="example prompt"))]
    requests = [Request((Message("user", ask.format(prompt=text)),)) for ask in ASKS for text in texts]
    return Usage(1, max(lm.max_prompt_tokens(request) for request in requests), MAX_TOKENS)


def _frames(starts: Sequence[str]) -> list[Frame]:
    """What is written anew of each prompt, and what is kept around it; prompts without such a sentence are left out."""
    frames = []
    for text in starts:
        with suppress(SearchError):
            frames.append(varied_sentence(text, lambda sentence: True))
    if not frames:
        raise SearchError("None of the prompts has a sentence that could be put in other words; leave rewrites out.")
    return frames


def _request(frames: Sequence[Frame], seed: int, call: int) -> tuple[Request, Frame]:
    """What is asked in one call, and around which sentence."""
    rng = stream(seed, "rewrite", call)
    ask = ASKS[int(rng.integers(len(ASKS)))]
    frame = frames[int(rng.integers(len(frames)))]
    messages = (Message("user", ask.format(prompt=frame[1])),)
    request = Request(messages, MAX_TOKENS, temperature=0.9, top_p=0.95, seed=integer(seed, "rewrite", call))
    return request, frame


def _unwrapped(answer: str) -> str:
    first = next((line.strip() for line in answer.splitlines() if line.strip()), "")
    while (shorter := _WRAPPING.sub("", first).strip()) != first:
        first = shorter
    return first
