"""The shipped autoencoder, and the small one that tests use, keep the public contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bestprompt.latent import Autoencoder
from bestprompt.testing import autoencoder_checks

SENTENCES = ("Sort the words in alphabetical order.", "Which of these animals is the largest?")


@pytest.mark.parametrize("check", autoencoder_checks)
def test_the_word_space_keeps_the_contract(check: Callable[..., None], world: Any) -> None:
    check(world.space, world.task.examples)


@pytest.mark.slow
@pytest.mark.parametrize("check", autoencoder_checks)
def test_the_shipped_one_keeps_the_contract(check: Callable[..., None]) -> None:
    check(Autoencoder.pretrained(), SENTENCES)


@pytest.mark.parametrize("check", autoencoder_checks[:3])
def test_one_that_breaks_it_is_found_out(check: Callable[..., None], world: Any) -> None:
    class Forgetful(type(world.space)):  # type: ignore[misc]
        """Writes another text each time it is asked, and offers each reading twice."""

        calls = 0

        def decode(self, X: Any) -> list[str]:
            self.calls += 1
            return [f"Copy the term again. {self.calls}"] * len(X)

        def hypotheses(self, X: Any) -> list[list[str]]:
            return [[text, text] for text in self.decode(X)]

    with pytest.raises(AssertionError):
        check(Forgetful(), world.task.examples)
