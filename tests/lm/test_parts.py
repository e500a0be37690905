"""The parts under the models: pages, sampling, tokeniser, file reader, rate limit, function model, constructor."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestprompt import lm
from bestprompt.builders import fluency_of
from bestprompt.errors import LMError
from bestprompt.lm import embedded as constructor
from bestprompt.lm import gguf_file
from bestprompt.lm.limits import RateLimit
from bestprompt.lm.pages import TRASH, Pages
from bestprompt.lm.sampling import sample
from bestprompt.rng import stream
from bestprompt.types import Message, Request


# --------------------------------------------------------------------------------------------------------------- pages
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 1), st.booleans()), min_size=1, max_size=60))
def test_pages_are_never_handed_out_twice(steps: list[tuple[int, int, bool]]) -> None:
    pages = Pages(20, 4)
    held: list[Any] = []
    for size, start, release in steps:
        if release and held:
            pages.release(held.pop(0))
            continue
        tokens = tuple(range(start, start + size))
        lease = pages.lease(tokens, size - 1, size + 2, 128)
        if lease is not None:
            held.append(lease)
        private = [p for one in held for p in one.pages[one.shared :]]
        shared = {p for one in held for p in one.pages[: one.shared]}
        assert TRASH not in private
        assert len(private) == len(set(private))
        assert not shared & set(private)
    for lease in held:
        pages.release(lease)
    assert pages.lease(tuple(range(100, 170)), 0, 19 * 4, 128) is not None  # everything can be had again


def test_pages_share_equal_beginnings_of_equal_span_only() -> None:
    pages = Pages(50, 4)
    first = pages.lease(tuple(range(10)), 9, 12, 128)
    again = pages.lease((*range(9), 99), 9, 12, 128)
    other_span = pages.lease(tuple(range(10)), 9, 12, 256)
    assert first is not None
    assert again is not None
    assert other_span is not None
    assert (first.ready, again.ready, other_span.ready) == (0, 2, 0)
    assert again.pages[:2] == first.pages[:2]
    assert not set(other_span.pages) & set(first.pages)


# ------------------------------------------------------------------------------------------------------------ sampling
def test_sampling_follows_the_distribution() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05])).astype(np.float32)
    rng = stream(1, "test")
    draws = np.bincount([sample(logits, 1.0, 1.0, rng) for _ in range(4000)], minlength=4) / 4000
    assert np.allclose(draws, [0.5, 0.3, 0.15, 0.05], atol=0.03)
    cut = np.bincount([sample(logits, 1.0, 0.79, rng) for _ in range(4000)], minlength=4) / 4000
    assert np.allclose(cut, [0.625, 0.375, 0, 0], atol=0.03)
    assert {sample(logits, 0.01, 1.0, rng) for _ in range(50)} == {0}


# ----------------------------------------------------------------------------------------------------------- tokeniser
TEXTS = [
    "Hello, world!",
    "It's 12345 o'clock; they're late.",
    "  leading and   inner spaces\n\n\ttabs\r\n",
    "naïve café — 東京 🙂 Ω",
    "def f(x):\n    return x**2  # comment",
    "<|im_start|>user\nhi<|im_end|>",
    "word" * 20,
    "",
]


def test_tokens_are_those_of_llamacpp(jax_model: Any, llamacpp_model: Any) -> None:
    for text in TEXTS:
        body = {"content": text, "add_special": False, "parse_special": True}
        assert jax_model._tokenizer.encode(text) == llamacpp_model._post("/tokenize", body)["tokens"], text


def test_text_survives_the_tokeniser(jax_model: Any) -> None:
    for text in TEXTS:
        if "<|" not in text:
            assert jax_model._tokenizer.decode(jax_model._tokenizer.encode(text)) == text


def test_prompts_are_those_of_llamacpp(jax_model: Any, llamacpp_model: Any) -> None:
    talks = [
        (Message("user", "Hi"),),
        (Message("system", "Be brief."), Message("user", "Hi"), Message("assistant", "Yes?"), Message("user", "Go")),
    ]
    for talk in talks:
        messages = [{"role": m.role, "content": m.content} for m in talk]
        assert (
            jax_model._tokenizer.render(talk)
            == llamacpp_model._post("/apply-template", {"messages": messages})["prompt"]
        )
        assert jax_model.max_prompt_tokens(Request(talk)) == llamacpp_model.max_prompt_tokens(Request(talk))


# ------------------------------------------------------------------------------------------------------------ the file
@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    """A file of an architecture of its own, written by the reference writer."""
    import gguf

    path = tmp_path / "small.gguf"
    writer = gguf.GGUFWriter(path, "mamba9")
    writer.add_string("general.name", "Größe")
    writer.add_bool("mamba9.flag", True)
    writer.add_float32("mamba9.rate", 0.25)
    writer.add_uint64("mamba9.big", 2**40)
    writer.add_array("mamba9.words", ["a", "", "naïve"])
    writer.add_array("mamba9.numbers", [1, -2, 3])
    rng = stream(0, "file")
    for name, kind in (("plain", "F32"), ("half", "F16"), ("eight", "Q8_0"), ("four", "Q4_1")):
        values = rng.normal(size=(6, 64)).astype(np.float32)
        kind = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_file_is_read_as_the_reference_reader_reads_it(small_file: Path) -> None:
    import gguf

    ours, theirs = gguf_file.read(small_file), gguf.GGUFReader(small_file)
    for key, field in theirs.fields.items():
        if not key.startswith("GGUF."):
            assert ours.metadata[key] == field.contents(), key
    assert ours.name == "Größe"
    assert ours.setting("numbers") == [1, -2, 3]
    assert list(ours.tensors) == [tensor.name for tensor in theirs.tensors] == ["plain", "half", "eight", "four"]
    for tensor in theirs.tensors:
        expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.array_equal(ours.tensor(tensor.name), expected), tensor.name


def test_other_architectures_are_left_to_llamacpp(small_file: Path) -> None:
    from bestprompt.lm import llama

    assert not llama.supports(gguf_file.read(small_file))
    with pytest.raises(LMError, match="mamba9 family"):
        lm.embedded(small_file, engine="jax")
    with pytest.raises(LMError, match=r"llama\.cpp cannot load"):
        lm.embedded(small_file)


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


# ---------------------------------------------------------------------------------------------------------- rate limit
def test_rate_limit_paces_threads_together() -> None:
    limit = RateLimit(per_second=100, burst=1)
    started = time.monotonic()
    threads = [threading.Thread(target=lambda: [limit.acquire() for _ in range(10)]) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - started >= 0.48
    assert RateLimit(None).acquire(1e9) == 0.0


def test_rate_limit_settles_a_wrong_estimate() -> None:
    limit = RateLimit(per_second=100, burst=10)
    limit.acquire(10)
    limit.settle(-10)  # nothing was used after all
    assert limit.acquire(9) == 0.0
    limit.settle(20)
    assert limit.acquire(1) > 0.1


# ------------------------------------------------------------------------------------------------------ function model
def test_function_errors_keep_their_message(ask: Any) -> None:
    def broken(request: Request) -> str:
        raise RuntimeError("the backend is down")

    def wrong(request: Request) -> Any:
        return 3

    def refusing(request: Request) -> str:
        raise LMError("never", retryable=False)

    (error,) = lm.function(broken).complete([ask("x")])
    assert isinstance(error, LMError)
    assert "the backend is down" in str(error)
    (error,) = lm.function(wrong).complete([ask("x")])
    assert "expected str" in str(error)
    (error,) = lm.function(refusing).complete([ask("x")])
    assert not error.retryable
    with pytest.raises(LMError, match="concurrency"):
        lm.function(broken, concurrency=0)


def test_function_fingerprint_follows_name_and_source() -> None:
    one = lm.function(lambda r: "a", name="same")
    two = lm.function(lambda r: "b", name="same")
    assert one.fingerprint != two.fingerprint
    assert lm.function(len).fingerprint  # a built-in has no source


# --------------------------------------------------------------------------------------------------------- constructor
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


def test_models_say_who_they_are(jax_model: Any, llamacpp_model: Any) -> None:
    assert jax_model.name == llamacpp_model.name == "SmolLM2-135M-Instruct"
    assert jax_model.fingerprint != llamacpp_model.fingerprint
    assert "b179c9523d0e6a0f" in jax_model.fingerprint
    with pytest.raises(LMError, match="likelihood"):
        llamacpp_model.mean_logprob(["text"])
    # A run must know before it asks: invented prompts are then not judged for fluency.
    assert fluency_of(llamacpp_model) is None
    assert fluency_of(jax_model) == jax_model.mean_logprob


def test_llamacpp_embeds_too(llamacpp_model: Any, jax_model: Any) -> None:
    texts = ["a small cat", "quarterly interest rates fell"]
    theirs, ours = llamacpp_model.embed(texts), jax_model.embed(texts)
    assert np.allclose(np.linalg.norm(theirs, axis=1), 1)
    assert np.all(np.sum(theirs * ours, axis=1) > 0.95)
