"""The stand-in on a tiny T5 that is built here, saved and loaded like any other."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from bestprompt.errors import SearchError
from bestprompt.latent import TextAutoencoder
from bestprompt.latent.huggingface import Seq2SeqAutoencoder

installed = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))
needs_extra = pytest.mark.skipif(not installed, reason="the extra [huggingface] is not installed")
TEXTS = ["Sort the words.", "Sort the words from A to Z.", "Which word comes first?", "Write the words in order."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from tokenizers import decoders as writing

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = writing.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<pad>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(TEXTS * 4, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    path = tmp_path_factory.mktemp("tiny")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>")
    fast.save_pretrained(path)
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=tokenizer.get_vocab_size(), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, dropout_rate=0.0,
    )  # fmt: skip
    transformers.T5ForConditionalGeneration(config).save_pretrained(path)
    return path


@needs_extra
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_a_tiny_model_learns_the_examples_and_moves_between_them(folder: Path) -> None:
    fresh = Seq2SeqAutoencoder.load(folder)
    assert isinstance(fresh, TextAutoencoder)
    assert fresh.decode(fresh.encode(TEXTS)) != TEXTS
    seen: list[tuple[int, int]] = []
    tuned = fresh.fine_tune(TEXTS, lambda exact, of: seen.append((exact, of)))
    X = tuned.encode(TEXTS)
    assert X.shape == (4, tuned.latent_dim)
    assert np.abs(X).max() < 1.0
    assert tuned.decode(X) == TEXTS
    assert seen[-1] == (4, 4) > seen[0]
    assert fresh.decode(fresh.encode(TEXTS)) != TEXTS, "fine-tuning must leave the original alone"
    readings = tuned.hypotheses(X)
    assert [found[0] for found in readings] == TEXTS
    assert all(1 < len(found) == len(set(found)) for found in readings)
    assert tuned.decode(X[:0]) == []
    assert not tuned.fits("word " * 60)


@needs_extra
def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SearchError, match="cannot be opened"):
        Seq2SeqAutoencoder.load(tmp_path)


@pytest.mark.skipif(installed, reason="the extra is installed")
def test_the_missing_extra_is_named() -> None:
    with pytest.raises(SearchError, match=r"bestprompt\[huggingface\]"):
        Seq2SeqAutoencoder.load("t5-small")
