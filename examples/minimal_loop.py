"""The method in a loop of one's own: coordinates for the prompts, then ask, evaluate, tell, and in the end recommend.

Runs in seconds and needs no model file: the "language model" is a small program that reads its prompt and does what it
understands of it. Replace ``follow`` by a call to yours. Run with: python examples/minimal_loop.py
"""

import re

import bestprompt as bp
from bestprompt.search import embed_candidates
from bestprompt.selection import Selector, SelectorConfig
from bestprompt.types import Completion, Observation, Request

PROMPTS = [
    "Give the first letter of the word.",
    "Give the first vowel of the word.",
    "Give the last letter of the word.",
    "Give the first letter of the word and the last.",
    "Spell the word.",
    "Which letter does the word begin with?",
]
BUDGET, BATCH = 90, 6


def follow(request: Request) -> str:
    """Understands first, last and vowel; repeats the word if it understands none of them."""
    prompt, word = request.messages[-1].content.split("\n\n")
    letters = re.findall("[aeiou]" if "vowel" in prompt else "[a-z]", word) or [word]
    answer = letters[0] * ("first" in prompt) + letters[-1] * ("last" in prompt)
    return answer or word


def main() -> None:
    """Six prompts, ninety calls, one recommendation."""
    task = bp.Task.load("first-letter")
    lm, pairs = bp.lm.function(follow), task.pairs
    candidates = embed_candidates(PROMPTS)
    # Replication r means the same pair for every prompt, so that an easy pair favours none, and none is asked twice.
    settings = SelectorConfig(budget=BUDGET, pairs="common", items=len(pairs), repeats="never")
    selector = Selector(candidates.Z, settings)
    state = selector.initial()
    while selector.should_stop(state) is None:
        proposals = selector.ask(state, BATCH)
        met = [pairs[p.replication] for p in proposals]
        asked = [task.render(candidates.prompts[p.candidate], pair) for p, pair in zip(proposals, met, strict=True)]
        answers = [answer.text for answer in lm.complete(asked) if isinstance(answer, Completion)]
        scores = task.scorer.score(answers, met)
        told = [Observation(p.candidate, p.replication, s.value) for p, s in zip(proposals, scores, strict=True)]
        state = selector.tell(state, told)
    chosen = selector.recommend(state)
    print(candidates.prompts[chosen.candidate])
    print(chosen.verdict)


if __name__ == "__main__":
    main()
