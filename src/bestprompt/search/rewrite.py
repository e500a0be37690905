"""Candidates a language model writes: variants of the example prompts (the "rewrite" source)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bestprompt.errors import LMError, SearchError
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
_WRAPPING = re.compile(r'^(?:[-*•]\s+|\d+[.)]\s+|(?:new |rewritten )?instruction:\s*)|^["“]|["”]$', re.IGNORECASE)


def rewrite(lm: LanguageModel, examples: Sequence[str], n: int, seed: int = 0) -> tuple[list[str], Usage]:
    """Up to ``n`` new prompts written by ``lm``, and what that consumed; at most 3n calls are made.

    Raises:
        SearchError: Every call failed.
    """
    starts = clean_prompts(examples, what="example prompt")
    known, found, usage = [plain(text) for text in starts], list[str](), Usage()
    calls, last_error = 0, None
    while len(found) < n and calls < 3 * n:
        size = min(lm.batch_size, 3 * n - calls, 2 * (n - len(found)))
        for answer in lm.complete([_request(starts, seed, calls + i) for i in range(size)]):
            if isinstance(answer, LMError):
                last_error = answer
                continue
            usage += answer.usage
            text = _unwrapped(answer.text)
            if text and len(found) < n and not near_duplicate(plain(text), known):
                found.append(text)
                known.append(plain(text))
        calls += size
    if last_error is not None and usage.calls == 0:
        raise SearchError(f"The language model wrote no variant; its last error: {last_error}") from last_error
    return found, usage


def _request(starts: Sequence[str], seed: int, call: int) -> Request:
    rng = stream(seed, "rewrite", call)
    ask = ASKS[int(rng.integers(len(ASKS)))].format(prompt=starts[int(rng.integers(len(starts)))])
    return Request(
        (Message("user", ask),), max_tokens=64, temperature=0.9, top_p=0.95, seed=integer(seed, "rewrite", call)
    )


def _unwrapped(answer: str) -> str:
    first = next((line.strip() for line in answer.splitlines() if line.strip()), "")
    while (shorter := _WRAPPING.sub("", first).strip()) != first:
        first = shorter
    return first
