"""A Hugging Face sequence-to-sequence model (T5, BART and the like) in place of the shipped autoencoder.

Notation (paper symbol → name, shape):
    h        states of the model's encoder                         → ``states``  (n, T, w)
    s        code: h averaged over ``slots`` stretches of the text → ``codes``   (n, slots · w), root mean square one
    X        latent vector in [-1, 1]^D~, by the frame of ``box.py``
    Dec      the model's decoder, which sees s as the states of a text of ``slots`` tokens

No such model was trained to speak from pooled states, so ``fine_tune`` is what makes it an autoencoder: it moves all
weights until every example comes back exactly. Needs ``pip install 'bestprompt[huggingface]'``.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bestprompt.errors import SearchError
from bestprompt.latent import box
from bestprompt.latent.contract import TuningProgress
from bestprompt.latent.sentences import encoded_part
from bestprompt.types import FloatArray

SLOTS, MAX_TOKENS, BEAMS = 4, 40, 6
MAX_STEPS, CHECK_EVERY, RATE, NOISE = 400, 10, 1e-3, 0.2


@dataclass(frozen=True)
class Seq2SeqAutoencoder:
    """Texts ↔ latent vectors through a sequence-to-sequence model; satisfies ``TextAutoencoder``.

    Attributes:
        model: The network, in evaluation mode.
        tokenizer: Its tokenizer.
        slots: Stretches of a text that are averaged separately.
        gain: Root mean square of the states the model's decoder is used to.
    """

    model: Any
    tokenizer: Any
    slots: int
    gain: float

    @classmethod
    def load(cls, name: str | Path, slots: int | None = None) -> Seq2SeqAutoencoder:
        """Open a model by its folder, or by its name on the hub if it may be fetched.

        Raises:
            SearchError: The packages are missing, or there is no such model.
        """
        transformers = _package("transformers")
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(name))
            model = transformers.AutoModelForSeq2SeqLM.from_pretrained(str(name)).float().eval()
        except (OSError, ValueError) as error:
            raise SearchError(f"{name}: cannot be opened as a sequence-to-sequence model ({error}).") from error
        most = box.LATENT_DIM // int(model.config.hidden_size)
        if most < 1:
            raise SearchError(f"{name}: states of {model.config.hidden_size} numbers do not fit into the latent space.")
        opened = cls(model, tokenizer, slots or min(SLOTS, most), 1.0)
        with _package("torch").no_grad():
            states = opened._pooled(["Write the first letter of the given word.", "Which of these is the largest?"])
        return replace(opened, gain=float(states.pow(2).mean().sqrt()))

    @property
    def latent_dim(self) -> int:
        """D~."""
        return box.LATENT_DIM

    @property
    def max_tokens(self) -> int:
        """Longest text, in tokens, that one latent vector can hold."""
        return MAX_TOKENS

    def fits(self, text: str) -> bool:
        """Whether the text is short enough and the tokenizer can write all of it."""
        numbers = self.tokenizer(text).input_ids
        return 0 < len(numbers) <= MAX_TOKENS and self._texts([numbers])[0] == text.strip() != ""

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """(n, D~) latent vectors of the texts' varied sentences; the entries are in [-1, 1]."""
        varied = [encoded_part(text, self.fits) for text in texts]
        with _package("torch").no_grad():
            return box.to_latent(self._codes(varied).double().numpy())

    def decode(self, X: FloatArray) -> list[str]:
        """One sentence per row of ``X`` (n, D~), by greedy decoding: a function of ``X`` alone."""
        return [found[0] for found in self._generated(X, 1)]

    def hypotheses(self, X: FloatArray) -> list[list[str]]:
        """Per row of ``X`` (n, D~) the greedy sentence, then the distinct others of a beam search, likeliest first."""
        pairs = zip(self.decode(X), self._generated(X, BEAMS), strict=True)
        return [[text for text in dict.fromkeys([first, *others]) if text] for first, others in pairs]

    def paraphrases(self) -> tuple[FloatArray, FloatArray]:
        """(0, D~) twice: the model brings no corpus of its own."""
        return np.zeros((0, box.LATENT_DIM)), np.zeros((0, box.LATENT_DIM))

    def fine_tune(self, texts: Sequence[str], progress: TuningProgress | None = None) -> Seq2SeqAutoencoder:
        """A copy that gives every one of ``texts`` back exactly; the codes are moved a little while it learns.

        Raises:
            SearchError: Some are still not exact after the last step.
        """
        torch = _package("torch")
        varied = sorted({encoded_part(text, self.fits) for text in texts})
        tuned = replace(self, model=copy.deepcopy(self.model))
        optimizer = torch.optim.AdamW(tuned.model.parameters(), lr=RATE, weight_decay=0.0)
        noise, wrong = torch.Generator().manual_seed(0), varied
        for step in range(MAX_STEPS + 1):
            if step % CHECK_EVERY == 0:
                back = tuned.decode(tuned.encode(varied))
                wrong = [text for text, again in zip(varied, back, strict=True) if text != again]
                if progress is not None:
                    progress(len(varied) - len(wrong), len(varied))
                if not wrong:
                    return tuned
            optimizer.zero_grad()
            tuned._loss(varied, noise).backward()
            torch.nn.utils.clip_grad_norm_(tuned.model.parameters(), 1.0)
            optimizer.step()
        raise SearchError(
            f"{len(wrong)} of {len(varied)} example prompts cannot be learned by the model, e.g. {wrong[0][:60]!r}."
        )

    def _loss(self, texts: Sequence[str], noise: Any) -> Any:
        torch = _package("torch")
        codes = self._codes(texts)
        moved = codes + NOISE * torch.randn(codes.shape, generator=noise)
        labels = self.tokenizer(list(texts), return_tensors="pt", padding=True)
        wanted = labels.input_ids.masked_fill(labels.attention_mask == 0, -100)
        return self.model(**self._as_encoded(moved), labels=wanted).loss

    def _pooled(self, texts: Sequence[str]) -> Any:
        """(n, slots, w): the states of each text, averaged over stretches of equal length."""
        torch = _package("torch")
        batch = self.tokenizer(list(texts), return_tensors="pt", padding=True)
        encoder = self.model.get_encoder()
        states = encoder(input_ids=batch.input_ids, attention_mask=batch.attention_mask).last_hidden_state
        lengths = batch.attention_mask.sum(dim=1, keepdim=True)
        # A text shorter than the number of slots leaves some empty: every slot looks at one token at least.
        place = torch.arange(states.shape[1])[None, None]
        slot = torch.arange(self.slots)[None, :, None]
        begin = slot * lengths[..., None] // self.slots
        end = torch.maximum(begin + 1, (slot + 1) * lengths[..., None] // self.slots)
        weights = ((place >= begin) & (place < end)).to(states.dtype)
        return weights @ states / weights.sum(dim=-1, keepdim=True)

    def _codes(self, texts: Sequence[str]) -> Any:
        flat = self._pooled(texts).flatten(start_dim=1)
        return flat / (flat.pow(2).mean(dim=1, keepdim=True) + 1e-9).sqrt()

    def _as_encoded(self, codes: Any) -> dict[str, Any]:
        torch, outputs = _package("torch"), _package("transformers.modeling_outputs")
        states = self.gain * codes.reshape(len(codes), self.slots, -1)
        return {
            "encoder_outputs": outputs.BaseModelOutput(last_hidden_state=states),
            "attention_mask": torch.ones(states.shape[:2], dtype=torch.long),
        }

    def _generated(self, X: FloatArray, beams: int) -> list[list[str]]:
        torch = _package("torch")
        rows = np.atleast_2d(X)
        if not len(rows):
            return []
        width = self.slots * int(self.model.config.hidden_size)
        codes = torch.tensor(box.to_code(rows, width), dtype=torch.float32)
        with torch.no_grad():
            numbers = self.model.generate(
                **self._as_encoded(codes),
                num_beams=beams,
                num_return_sequences=beams,
                do_sample=False,
                max_new_tokens=MAX_TOKENS,
            )
        texts = [text if self.fits(text) else "" for text in self._texts(numbers)]  # without an end: not a text
        return [texts[i : i + beams] for i in range(0, len(texts), beams)]

    def _texts(self, numbers: Any) -> list[str]:
        return [text.strip() for text in self.tokenizer.batch_decode(numbers, skip_special_tokens=True)]


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise SearchError(
            f"A Hugging Face model needs the package {name.partition('.')[0]!r}: pip install 'bestprompt[huggingface]'."
        ) from error
