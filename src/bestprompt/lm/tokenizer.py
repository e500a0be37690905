"""Text to tokens, and the chat template, all from a GGUF file's own metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Regex, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from bestprompt.errors import LMError
from bestprompt.lm.gguf_file import GgufFile
from bestprompt.types import Message

_CONTROL = 3
_USER_DEFINED = 4
# What llama.cpp takes for a file that has no template.
_DEFAULT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# One word, one digit, a run of punctuation with the newlines after it, or white space.
_QWEN_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _splitter(kind: str) -> pre_tokenizers.PreTokenizer:
    if kind == "smollm":
        parts = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    else:
        pieces = pre_tokenizers.Split(Regex(_QWEN_PIECES), behavior="isolated")
        parts = [pieces, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    return pre_tokenizers.Sequence(parts)


def supports(file: GgufFile) -> bool:
    """Whether the file's tokeniser is one this module reproduces exactly: byte-level BPE, SmolLM's or Qwen's."""
    kinds = (file.metadata.get("tokenizer.ggml.model"), file.metadata.get("tokenizer.ggml.pre"))
    return kinds in {("gpt2", "smollm"), ("gpt2", "qwen2")} and not file.metadata.get("tokenizer.ggml.add_bos_token")


class Tokenizer:
    """The tokeniser of one GGUF file.

    Attributes:
        separator: The token that stands between documents, put before a text that is scored from its first word.
    """

    def __init__(self, file: GgufFile) -> None:
        meta = file.metadata
        tokens: list[str] = meta["tokenizer.ggml.tokens"]
        types: list[int] = meta["tokenizer.ggml.token_type"]
        merges = [tuple(pair.split(" ", 1)) for pair in meta["tokenizer.ggml.merges"]]
        vocabulary = {token: index for index, token in enumerate(tokens)}
        self._backend = Backend(models.BPE(vocab=vocabulary, merges=merges))
        self._backend.pre_tokenizer = _splitter(meta["tokenizer.ggml.pre"])
        added = [(token, kind) for token, kind in zip(tokens, types, strict=True) if kind in (_CONTROL, _USER_DEFINED)]
        self._backend.add_tokens([AddedToken(t, special=kind == _CONTROL, normalized=False) for t, kind in added])
        end = int(meta["tokenizer.ggml.eos_token_id"])
        first = int(meta.get("tokenizer.ggml.bos_token_id", end))
        self.separator = vocabulary.get("<|endoftext|>", first)
        self._template = _compile(meta.get("tokenizer.chat_template") or _DEFAULT_TEMPLATE)
        self._names = {"bos_token": tokens[first], "eos_token": tokens[end]}

    def encode(self, text: str) -> list[int]:
        """Tokens of ``text``; the names of control tokens in it are read as those tokens, as llama.cpp does."""
        return list(self._backend.encode(text, add_special_tokens=False).ids)

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of the prompt made of ``messages``."""
        return len(self.encode(self.render(messages)))

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt the model sees: the chat template filled in, open for the assistant's answer."""
        turns = [{"role": message.role, "content": message.content} for message in messages]
        try:
            return str(self._template.render(messages=turns, add_generation_prompt=True, **self._names))
        except TemplateError as error:
            raise LMError(f"The model's chat template refuses these messages: {error}", retryable=False) from error


def _compile(source: str) -> Any:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = _refuse
    return environment.from_string(source)


def _refuse(message: str) -> None:
    raise TemplateError(message)


def check_length(name: str, prompt: int, answer: int, context: int) -> None:
    """Refuses, for the model called ``name``, so many tokens of prompt and answer if its context holds fewer."""
    if prompt + answer > context:
        parts = f"{prompt} tokens of prompt and up to {answer} of answer" if answer else f"{prompt} tokens"
        raise LMError(
            f"The request is too long for {name}: {parts}, but the context is {context}. "
            "Shorten it, or open the model with a larger context.",
            retryable=False,
        )
