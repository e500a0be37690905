"""What a model can do besides answering is found through whatever wraps it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bestprompt import lm
from bestprompt.errors import LMError
from bestprompt.lm import abilities
from bestprompt.lm.function import FunctionModel
from bestprompt.scoring import build_scorer
from bestprompt.types import FloatArray, LanguageModel, Pair


class Able(FunctionModel):
    """A function that also weighs and embeds texts, and may be out of reach."""

    weighs_texts = True

    def __init__(self) -> None:
        super().__init__(lambda request: "yes", "able", 1, deterministic=True)

    def mean_logprob(self, texts: Sequence[str], contexts: Sequence[str] | None = None) -> FloatArray:
        return np.array([-float(len(text)) for text in texts])

    def embed(self, texts: Sequence[str]) -> FloatArray:
        return np.array([[1.0, float(len(text))] for text in texts])

    def ping(self) -> None:
        raise LMError("out of reach")


def test_a_plain_model_has_none() -> None:
    plain = lm.function(lambda request: "no")
    assert not abilities.deterministic(plain)
    assert abilities.weigher(plain) is None
    assert abilities.embedder(plain) is None
    abilities.ping(plain)


@pytest.mark.parametrize("wrappers", [0, 1, 2])
def test_abilities_are_found_behind_wrappers(wrappers: int, tmp_path: Path) -> None:
    able = Able()
    model: LanguageModel = able
    for _ in range(wrappers):
        model = lm.cached(model, tmp_path / "answers.db")
    assert abilities.deterministic(model)
    assert abilities.weigher(model) is able
    assert abilities.embedder(model) is able
    with pytest.raises(LMError, match="out of reach"):
        abilities.ping(model)
    (scored,) = build_scorer("embedding", lm=model).score(["abc"], [Pair("x", ("abc",))])
    assert scored.value == pytest.approx(1.0)


def test_weights_that_cannot_weigh_are_not_asked_to() -> None:
    able = Able()
    able.weighs_texts = False
    assert abilities.weigher(able) is None
