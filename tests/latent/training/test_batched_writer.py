"""The corpus writer with the embedded model, judged by the package's own reader of the same file; needs torch."""

from __future__ import annotations

import numpy as np
import pytest

import bestprompt.lm as lm
from bestprompt.latent.training.requests import Catalogue

pytest.importorskip("torch")


@pytest.mark.slow
def test_each_row_goes_on_from_its_own_prompt() -> None:
    from bestprompt.latent.training.batched_writer import BatchedWriter

    model = lm.embedded(threads=1)
    catalogue = Catalogue.load()
    blocks = [catalogue.block("small", number)[:4] for number in (3, 4)]  # more requests than rows: these are reused
    written = {r.prompt: text for r, text in BatchedWriter(lm.weights.fetch(), rows=3).write(blocks)}
    assert set(written) == {request.prompt for block in blocks for request in block}
    ended = [(prompt, text) for prompt, text in written.items() if text]
    assert len(ended) >= 6
    prompts, texts = [list(side) for side in zip(*ended, strict=True)]
    own = model.mean_logprob(texts, prompts)
    other = model.mean_logprob(texts, prompts[4:] + prompts[:4])
    # The least likely token that may be drawn has a share of 4 % of the likeliest one's; others' prompts suit less.
    assert own.min() > -4.0
    assert np.mean(own) > np.mean(other) + 0.3
