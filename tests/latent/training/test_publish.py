"""What ships beside the weights: wordings stay together, held-out sentences stay out, and runs read it back."""

import re
from pathlib import Path

import pytest

from bestprompt.latent.corpus import texts
from bestprompt.latent.training import publish as module
from bestprompt.latent.training.corpus_groups import SampledCorpus
from bestprompt.latent.training.store import CorpusFile, CorpusRecord
from bestprompt.latent.weights_file import WEIGHTS_NAME
from bestprompt.latent.words import PAIRS_NAME, read_pairs


@pytest.fixture
def corpus(tmp_path: Path) -> SampledCorpus:
    with CorpusFile(tmp_path) as store:
        for number in range(200):
            group = f"big-{number}-1"
            store.add(CorpusRecord(f"Sort list number {number}.", "plain", group, "sort a list"))
            store.add(CorpusRecord(f"Please put list {number} in order.", "polite", group, "sort a list"))
    (tmp_path / "older.txt").write_text("Name the river.\nName the lake.\n")
    (tmp_path / "older_held_out.txt").write_text("Name the lake.\n")
    return SampledCorpus.of(tmp_path)


def test_whole_instructions_ship_in_all_their_wordings(
    corpus: SampledCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (module, texts):
        monkeypatch.setattr(each, "WEIGHTS", tmp_path)
    monkeypatch.setattr(module, "DRAWN", 50)
    monkeypatch.setattr(module, "SHIPPED", 101)
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    for name in (WEIGHTS_NAME, "tokenizer.json"):
        (checkpoint / name).write_text("x")
    module.publish(checkpoint, corpus)
    pairs = texts.sampled_paraphrases()
    assert len(pairs) == 50
    numbers = [{int(re.findall(r"\d+", text)[0]) for text in pair} for pair in pairs]
    assert all(len(each) == 1 for each in numbers)
    shipped = texts.sampled_instructions()
    assert 100 <= len(shipped) <= 101
    assert shipped == sorted(set(shipped))
    assert corpus.held_out
    assert not {*corpus.held_out, "Name the lake."} & set(shipped)
    followers = read_pairs(tmp_path / PAIRS_NAME)
    assert "number" in followers["list"]
    assert (tmp_path / WEIGHTS_NAME).read_text() == "x"
