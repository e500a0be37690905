"""A model whose proposals and answers are written down beforehand, so that judging is compared apart from writing.

A world has a first prompt and a stream of proposals, each with a known true score; whoever asks for a new prompt gets
the next of the stream, in the form in which that method reads it. Whether a prompt's answer to a pair is right was
drawn once, by the prompt's ability and the pair's difficulty (logistic), so that asking again tells nothing new.

Notation (symbol → name, shape):
    a_k    ability of prompt k on the logit scale; k = 0 is where everybody starts     → ``ability``  (K + 1,)
    d_i    difficulty of pair i                                                        → ``difficulty``  (M,)
    q_k    true score, E_d[σ(a_k − d)]                                                 → ``truth``  (K + 1,)
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from bestprompt.errors import LMError
from bestprompt.rng import stream
from bestprompt.types import Completion, FloatArray, Request, Usage

PROPOSALS, PAIRS, DIFFICULTY = 160, 50, 1.5
FAMILIES = ("mixed", "rare", "none-better")
RIGHT, WRONG = "yes", "no"
_WORDS = (
    ("Read", "Study", "Consider", "Take", "Look at", "Examine", "Go over", "Inspect"),
    ("the text", "the line below", "this entry", "the case", "what follows", "the record", "the note", "this item"),
    ("and decide", "and judge", "and say", "and find out", "and tell me", "and state", "and determine", "and check"),
    ("whether it holds.", "if it is right.", "whether it fits.", "if that is so.", "whether it is true."),
)
_CASE = re.compile(r"Case (\d+): a simulated question\.")


@dataclass(frozen=True)
class World:
    """One problem.

    Families: ``mixed``: proposals scatter around the start; ``rare``: most are worse, one in ten is much better;
    ``none-better``: the start is the best there is, and every other choice is a loss.
    """

    family: str
    seed: int

    @cached_property
    def prompts(self) -> list[str]:
        """K + 1 distinct texts that say nothing of their quality."""
        texts = [" ".join(words) for words in itertools.product(*_WORDS)]
        order = stream(self.seed, "scripted", self.family, "texts").permutation(len(texts))
        return [texts[i] for i in order[: PROPOSALS + 1]]

    @cached_property
    def ability(self) -> FloatArray:
        """(K + 1,)"""
        rng = stream(self.seed, "scripted", self.family, "ability")
        if self.family == "none-better":
            return np.concatenate([[0.5], 0.5 - np.abs(rng.normal(0.0, 0.7, PROPOSALS))])
        if self.family == "rare":
            gem = rng.random(PROPOSALS) < 0.1
            return np.concatenate(
                [[0.0], np.where(gem, rng.normal(1.5, 0.3, PROPOSALS), rng.normal(-0.6, 0.4, PROPOSALS))]
            )
        return np.concatenate([[0.0], rng.normal(-0.2, 0.9, PROPOSALS)])

    @cached_property
    def truth(self) -> FloatArray:
        """(K + 1,) by quadrature."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(61)
        return np.asarray(expit(self.ability[:, None] - DIFFICULTY * nodes) @ (weights / weights.sum()))

    @cached_property
    def right(self) -> FloatArray:
        """(K + 1, M) whether each answer is right."""
        rng = stream(self.seed, "scripted", self.family, "answers")
        difficulty = DIFFICULTY * rng.standard_normal(PAIRS)
        return (rng.random((PROPOSALS + 1, PAIRS)) < expit(self.ability[:, None] - difficulty)).astype(float)

    def inputs(self) -> list[str]:
        """The pairs' questions."""
        return [f"Case {number}: a simulated question." for number in range(PAIRS)]

    def number(self, prompt: str) -> int | None:
        """Which prompt of the world a text is, or holds; ``None`` if none."""
        text = prompt.strip()
        if text in self.prompts:
            return self.prompts.index(text)
        inside = [k for k, known in enumerate(self.prompts) if known in text]
        return inside[0] if inside else None


@dataclass
class ScriptedModel:
    """Answers one run in a world.

    Attributes:
        proposed: Proposals handed out so far.
        unknown: Questions under a prompt that is none of the world's; their answers are wrong.
    """

    world: World
    proposed: int = 0
    unknown: int = 0
    name: str = "scripted"
    batch_size: int = 1
    concurrency: int = 1
    fingerprint: str = "scripted"

    def complete(self, requests: Sequence[Request]) -> list[Completion | LMError]:
        """Answers in order."""
        return [self._one(request) for request in requests]

    def max_prompt_tokens(self, request: Request) -> int:
        """Words."""
        return sum(len(message.content.split()) for message in request.messages)

    def _one(self, request: Request) -> Completion:
        asked = request.messages[-1].content
        cases = list(_CASE.finditer(asked))
        # A request for a new prompt may show cases, too, and so may demonstrations; only a question ends with one.
        if cases and cases[-1].end() == len(asked):
            text = self._answer(asked[: cases[-1].start()], int(cases[-1].group(1)))
        else:
            text = self._proposal(request)
        return Completion(text, Usage(1, self.max_prompt_tokens(request), len(text.split())))

    def _answer(self, prompt: str, case: int) -> str:
        k = self.world.number(prompt)
        if k is None:
            self.unknown += 1
            return WRONG
        return RIGHT if self.world.right[k, case] else WRONG

    def _proposal(self, request: Request) -> str:
        asked = "\n".join(message.content for message in request.messages)
        fields = re.findall(r"\[\[ ## (\w+) ## \]\]", asked)
        wanted = [name for name in ("proposed_instruction", "new_instruction") if name in fields]
        if fields and not wanted:
            return "A set of short questions, each to be answered with yes or no."  # a description of data or program
        self.proposed += 1
        text = self.world.prompts[1 + (self.proposed - 1) % PROPOSALS]
        if wanted:
            return f"[[ ## {wanted[0]} ## ]]\n{text}\n\n[[ ## completed ## ]]"
        return f"```\n{text}\n```" if "```" in asked else text
