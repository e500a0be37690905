"""The search stage's r1, r2, similarity and D, and the surrogates' K, as a user sets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bestprompt.choices import DEFAULT_BOUNDS, DEFAULT_DIM
from bestprompt.errors import ConfigError
from bestprompt.run.search import build_prompt_set
from bestprompt.run.settings import Settings, load_settings
from bestprompt.search.filters import SIMILARITIES
from bestprompt.selection import SelectorConfig
from bestprompt.selection.strategies.named import surrogate_of

FILE = """
[search]
source = "latent"
candidates = 9
r1 = 0.2
r2 = 0.7
similarity = "letters"
dimension = 2
[selection]
surrogate = "blr"
draws = 30
"""


def test_a_file_sets_them_and_the_search_keeps_to_them(world: Any, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(FILE)
    settings = load_settings(tmp_path / "p.toml")
    found = build_prompt_set(world.task, settings, world.lm, autoencoder=world.space)
    assert found.Z.shape[1] == 2
    invented = [n for n, source in enumerate(found.sources) if source == "latent"]
    assert invented
    for n in invented:
        similar = SIMILARITIES["letters"](found.prompts[n], found.prompts[found.parents[n]])
        assert 0.2 < similar < 0.7
    assert settings.selection.draws == 30


def test_left_out_they_are_as_before() -> None:
    search = Settings().search
    assert ((search.r1, search.r2), search.similarity, search.dimension) == (DEFAULT_BOUNDS, "mixed", DEFAULT_DIM)


@pytest.mark.parametrize("wrong", [{"search.r1": 0.9, "search.r2": 0.5}, {"search.similarity": "mood"}])
def test_what_cannot_be_used_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"r1 must be below r2|similarity"):
        load_settings(None, wrong)


def test_draws_reach_the_surrogate() -> None:
    config = SelectorConfig(budget=9, surrogate="blr", draws=30)
    assert surrogate_of("blr", np.eye(3), config).n_draws == 30
