"""The embedded model: answers by llama.cpp, counted, refused and broken off as callers expect."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bestprompt import lm
from bestprompt.errors import LMError
from bestprompt.lm import embedded as constructor
from bestprompt.run.parts import fluency_of
from bestprompt.types import Message, Request


def test_importing_the_package_loads_no_engine() -> None:
    code = "import sys, bestprompt.lm; print([m for m in ('jax', 'xllamacpp', 'openai', 'gguf') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_constructor_settings(model_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for bad in ({"threads": 0}, {"context": 1}, {"batch_size": 0}):
        with pytest.raises(LMError, match="at least"):
            lm.embedded(model_path, **bad)
    monkeypatch.setenv(constructor.__globals__["THREADS_VARIABLE"], "many")
    with pytest.raises(LMError, match="whole number"):
        lm.embedded(model_path)


def test_it_says_who_it_is(embedded_model: Any) -> None:
    assert embedded_model.name == "SmolLM2-135M-Instruct"
    assert "b179c9523d0e6a0f" in embedded_model.fingerprint


def test_files_that_cannot_be_used_are_named(tmp_path: Path, model_path: str) -> None:
    with pytest.raises(LMError, match="no model file"):
        lm.embedded(tmp_path / "absent.gguf")
    text = tmp_path / "notes.gguf"
    text.write_text("just some notes")
    with pytest.raises(LMError, match="not a GGUF"):
        lm.embedded(text)
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(Path(model_path).read_bytes()[:5000])
    with pytest.raises(LMError, match="damaged"):
        lm.embedded(cut)


def test_requests_that_cannot_run_say_the_sizes(embedded_model: Any, ask: Any) -> None:
    (error,) = embedded_model.complete([ask("word " * 2000)])
    assert isinstance(error, LMError)
    assert not error.retryable
    assert "1024" in str(error)
    assert str(embedded_model.max_prompt_tokens(ask("word " * 2000))) in str(error)
    (error,) = embedded_model.complete([ask("hi", max_tokens=0)])
    assert "max_tokens" in str(error)
    # A prompt that fits, with an answer that may not: refused too, not cut short.
    (error,) = embedded_model.complete([ask("hi", max_tokens=1000)])
    assert "up to 1000 of answer" in str(error)
    with pytest.raises(LMError, match="1024"):
        embedded_model.embed(["word " * 2000])


def test_the_largest_seed_is_a_seed_like_any_other(embedded_model: Any, ask: Any) -> None:
    # llama.cpp takes 2³² − 1 for a wish to be surprised.
    request = ask("Tell me about", temperature=1.0, seed=0xFFFFFFFF, max_tokens=8)
    first, second = (embedded_model.complete([request])[0].text for _ in range(2))
    assert first == second


def test_an_interruption_is_prompt_and_leaves_the_model_usable(embedded_model: Any, ask: Any) -> None:
    (whole,) = embedded_model.complete([ask("Name the first letter of the word dog.")])
    many = [ask(f"Write a long story about the number {n}.", max_tokens=900) for n in range(40)]
    started = time.monotonic()
    embedded_model.complete([ask("Write a long story about the number 40.", max_tokens=30)])
    seconds_per_story = 900 / 30 * (time.monotonic() - started)  # each slot has several of them to write
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer = threading.Timer(1.0, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT])
        timer.start()
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            embedded_model.complete(many)
    finally:
        signal.signal(signal.SIGINT, handler)
    (again,) = embedded_model.complete([ask("Name the first letter of the word dog.")])
    assert time.monotonic() - started < 1.0 + seconds_per_story
    assert again.text == whole.text


# ------------------------------------------------------------------------------------------------------------- counting
TALKS = [
    (Message("user", "Hi"),),
    (Message("system", "Be brief."), Message("user", "Hi"), Message("assistant", "Yes?"), Message("user", "Go")),
    (Message("user", "naïve café — 東京 🙂 Ω\n\n\tIt's 12345 o'clock; they're   late.\r\n"),),
]


@pytest.mark.parametrize("talk", TALKS)
def test_prompt_tokens_are_counted_as_llamacpp_counts_them(embedded_model: Any, talk: tuple[Message, ...]) -> None:
    counted = embedded_model.max_prompt_tokens(Request(talk))
    assert counted == embedded_model._servers.first.count(talk)
    (answer,) = embedded_model.complete([Request(talk, max_tokens=1)])
    assert answer.usage.prompt_tokens == counted


# --------------------------------------------------------------------------------------------- architectures not known
@pytest.fixture(scope="module")
def other_model(model_path: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same weights with a tokeniser under another name, which llama.cpp knows and we do not."""
    content = Path(model_path).read_bytes()
    renamed = content.replace(b"\x06\x00\x00\x00\x00\x00\x00\x00smollm", b"\x06\x00\x00\x00\x00\x00\x00\x00falcon", 1)
    assert renamed != content
    path = tmp_path_factory.mktemp("other") / "other.gguf"
    path.write_bytes(renamed)
    return lm.embedded(path, context=256, batch_size=2, threads=1)


@pytest.mark.slow
def test_what_we_do_not_know_llamacpp_answers_counts_and_embeds(other_model: Any, ask: Any) -> None:
    request = ask("Name the first letter of the word dog.")
    (answer,) = other_model.complete([request])
    assert answer.text
    assert other_model.max_prompt_tokens(request) == answer.usage.prompt_tokens
    assert other_model.embed(["a cat"]).shape == (1, 576)


def test_what_we_do_not_know_is_not_weighed(other_model: Any, embedded_model: Any) -> None:
    with pytest.raises(LMError, match="cannot weigh"):
        other_model.mean_logprob(["text"])
    # A run must know before it asks: invented prompts are then not judged for fluency.
    assert fluency_of(other_model) is None
    assert fluency_of(embedded_model) == embedded_model.mean_logprob


# ------------------------------------------------------------------------------------------------------------ embedding
def test_embeddings_are_unit_vectors_close_for_close_meanings(embedded_model: Any) -> None:
    vectors = embedded_model.embed(["a small cat", "a little kitten", "quarterly interest rates fell", ""])
    assert vectors.shape == (4, 576)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
