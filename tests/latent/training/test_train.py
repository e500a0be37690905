"""Pre-training: half precision changes gradients little, and a training in two stretches goes on where it ended."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bestprompt.latent.autoencoder import Autoencoder
from bestprompt.latent.network import NetworkSizes, SentenceNetwork, product
from bestprompt.latent.training import train as module
from bestprompt.latent.training.store import CorpusFile, CorpusRecord
from bestprompt.latent.weights_file import WEIGHTS, WEIGHTS_NAME, save_network

SMALL = NetworkSizes(
    vocabulary=600, width=32, heads=2, encoder_layers=1, decoder_layers=1, slots=2, code=16, prefix=2, length=14
)


@pytest.mark.slow
def test_the_gradient_in_bfloat16_points_where_the_one_in_single_precision_does() -> None:
    x, weights = jax.random.normal(jax.random.key(0), (4, 8, 32)), jax.random.normal(jax.random.key(1), (32, 16)) / 6

    def value(x: jax.Array, weights: jax.Array, half: bool) -> jax.Array:
        return jnp.sum(jnp.sin(product(x, weights.astype(jnp.bfloat16) if half else weights)))

    for argument in (0, 1):
        whole, half = (np.ravel(jax.grad(value, argument)(x, weights, precision)) for precision in (False, True))
        assert whole.dtype == half.dtype == np.float32
        assert not np.array_equal(whole, half)
        # Rounding to eight bits: errors of at most 0.4 % per factor, independent between the products.
        assert whole @ half / np.linalg.norm(whole) / np.linalg.norm(half) > 0.999


def test_rate_and_step_sizes_follow_the_whole_training_and_each_stretch_warms_up() -> None:
    plan = module.TrainingPlan(steps=1000, peak_rate=1.0)
    assert plan.rate_at(500, 500) == pytest.approx(0.03 + 0.97 / 2)
    assert plan.rate_at(500, 0) == pytest.approx(plan.rate_at(500, 500) / module.WARM_UP)
    assert plan.rate_at(1000, 500) == pytest.approx(0.03)
    assert plan.ramp_at(0) == module.RAMP_FROM
    assert plan.ramp_at(int(1000 * module.RAMP_UNTIL)) == 1.0


@pytest.mark.slow
def test_two_stretches_are_one_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LENGTHS", (14,))
    monkeypatch.setattr(module, "LENGTH_SHARES", (1.0,))
    monkeypatch.setattr(module, "COMPETITORS", 512)
    monkeypatch.setattr(module, "TESTED", 8)
    sizes, out = replace(SMALL, vocabulary=8192), tmp_path / "out"
    out.mkdir()
    shutil.copy(WEIGHTS / "tokenizer.json", out)
    save_network(SentenceNetwork(sizes, jax.random.key(0)), out / WEIGHTS_NAME, half=True)
    with CorpusFile(tmp_path) as store:
        for number in range(60):
            store.add(CorpusRecord(f"Sort list number {number}.", "plain", f"big-{number}", "sort a list"))

    (tmp_path / "older.txt").write_text("\n".join(f"Name the river {n}." for n in range(60)))

    def stretch(steps: int) -> list[dict[str, float]]:
        plan = module.TrainingPlan(out, tmp_path, steps, groups=2)
        module.train(plan)
        return [json.loads(line) for line in plan.log.read_text().splitlines()]

    first = stretch(40)
    assert [row["step"] for row in first] == [40]
    both = stretch(120)
    assert [row["step"] for row in both] == [40, 120]
    assert both[1]["loss"] < both[0]["loss"] < np.log(512) + 1.0
    assert Autoencoder.pretrained(out).network.shape == sizes
