"""The parts under the models: tokeniser, file reader, rate limit, function model."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bestprompt import lm
from bestprompt.errors import LMError
from bestprompt.lm import gguf_file, transformer
from bestprompt.lm.limits import RateLimit
from bestprompt.rng import stream
from bestprompt.types import Message, Request

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


def test_tokens_are_those_of_llamacpp(embedded_model: Any) -> None:
    for text in TEXTS:
        body = {"content": text, "add_special": False, "parse_special": True}
        theirs = embedded_model._servers.first._post("/tokenize", body)["tokens"]
        assert embedded_model._tokenizer.encode(text) == theirs, text


def test_prompts_are_those_of_llamacpp(embedded_model: Any) -> None:
    talks = [
        (Message("user", "Hi"),),
        (Message("system", "Be brief."), Message("user", "Hi"), Message("assistant", "Yes?"), Message("user", "Go")),
    ]
    for talk in talks:
        messages = [{"role": m.role, "content": m.content} for m in talk]
        theirs = embedded_model._servers.first._post("/apply-template", {"messages": messages})["prompt"]
        assert embedded_model._tokenizer.render(talk) == theirs


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
    assert not transformer.supports(gguf_file.read(small_file))
    with pytest.raises(LMError, match=r"llama\.cpp cannot load"):
        lm.embedded(small_file)


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
