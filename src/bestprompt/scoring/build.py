"""From a name or a table of settings to a scorer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from bestprompt.choices import named_class
from bestprompt.errors import ConfigError
from bestprompt.lm.abilities import embedder
from bestprompt.scoring.function import FunctionScorer
from bestprompt.scoring.normalise import Normalisation
from bestprompt.types import LanguageModel, Pair, Scorer

ScorerSpec = str | Mapping[str, Any] | Scorer | Callable[[str, Pair], float]

# One line for each scorer: kind → module:class.
KINDS: dict[str, str] = {
    "exact": "bestprompt.scoring.lexical:Exact",
    "contains": "bestprompt.scoring.lexical:Contains",
    "f1": "bestprompt.scoring.lexical:TokenF1",
    "edit": "bestprompt.scoring.lexical:EditSimilarity",
    "rouge-l": "bestprompt.scoring.lexical:RougeL",
    "regex": "bestprompt.scoring.lexical:Regex",
    "assertions": "bestprompt.scoring.assertions:Assertions",
    "label": "bestprompt.scoring.labels:Label",
    "choice": "bestprompt.scoring.answers:Choice",
    "number": "bestprompt.scoring.answers:Number",
    "number-words": "bestprompt.scoring.answers:NumberWords",
    "letter": "bestprompt.scoring.answers:Letter",
    "positions": "bestprompt.scoring.answers:Positions",
    "tf": "bestprompt.scoring.vector:TfCosine",
    "tf-idf": "bestprompt.scoring.vector:TfIdfCosine",
    "word2vec": "bestprompt.scoring.word2vec:Word2VecCosine",
    "embedding": "bestprompt.scoring.vector:EmbeddingCosine",
    "judge": "bestprompt.scoring.judge:Judge",
}
# What the factory fills in itself, so that a settings table may not name it.
_SUPPLIED = {"texts", "lm", "embedder"}


def build_scorer(spec: ScorerSpec, *, lm: LanguageModel | None = None, texts: Sequence[str] | None = None) -> Scorer:
    """A scorer from ``"exact"``, ``{"kind": "regex", "pattern": "..."}``, a Python function or a ready scorer.

    Args:
        spec: A kind, a table with ``kind`` and its settings, a function ``(output, pair) -> float``, or a scorer.
        lm: The model for ``judge``, and for ``embedding`` if it has ``embed``.
        texts: The task's texts, for ``tf-idf`` and for training ``word2vec``.

    Raises:
        ConfigError: Unknown kind or setting (with the nearest valid name), or a value out of range.
    """
    if not isinstance(spec, (str, Mapping)):
        if not callable(spec) and not hasattr(spec, "score"):
            raise ConfigError(f"scorer = {spec!r:.60}: give a kind, a table with a kind, a function or a scorer")
        return FunctionScorer(spec) if callable(spec) else spec
    settings: dict[str, Any] = {"kind": spec} if isinstance(spec, str) else dict(spec)
    kind = settings.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"scorer kind = {kind!r} is unknown{_suggest(str(kind), KINDS)}")
    scorer = named_class("scorer", KINDS, kind)
    allowed = {f.name: f for f in dataclasses.fields(scorer) if f.name not in _SUPPLIED}
    for key in settings:
        if key not in allowed:
            raise ConfigError(f"scorer {kind}: unknown setting {key!r}{_suggest(key, allowed)}")
    if "normalisation" in settings:
        settings["normalisation"] = _normalisation(settings["normalisation"])
    _check_types(kind, allowed, settings)
    settings |= _supplied(scorer, lm, texts)
    try:
        built: Scorer = scorer(**settings)
    except TypeError as error:
        raise ConfigError(f"scorer {kind}: {str(error).split('__init__() ')[-1]}") from None
    return built


def _supplied(scorer: type, lm: LanguageModel | None, texts: Sequence[str] | None) -> dict[str, Any]:
    wanted = {f.name for f in dataclasses.fields(scorer)} & _SUPPLIED
    if "lm" in wanted and lm is None:
        raise ConfigError("scorer judge: needs a language model to judge with")
    embedding = embedder(lm) if "embedder" in wanted and lm is not None else None
    if "embedder" in wanted and embedding is None:
        raise ConfigError("scorer embedding: needs a model that embeds texts, such as the embedded one")
    return {name: {"lm": lm, "embedder": embedding, "texts": tuple(texts or ())}[name] for name in wanted}


def _normalisation(value: Any) -> Normalisation:
    if isinstance(value, Normalisation):
        return value
    allowed = {f.name: f for f in dataclasses.fields(Normalisation)}
    if not isinstance(value, Mapping):
        raise ConfigError(f"scorer normalisation = {value!r} must be a table of: {', '.join(allowed)}")
    for key in value:
        if key not in allowed:
            raise ConfigError(f"scorer normalisation: unknown setting {key!r}{_suggest(key, allowed)}")
    _check_types("normalisation", allowed, value)
    return Normalisation(**value)


def _check_types(owner: str, allowed: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Settings come from files: a number where a text belongs must be refused by name, not fail later."""
    expected: dict[str, Any] = {"bool": bool, "int": int, "float": (int, float), "str": str}
    for key, value in settings.items():
        wanted = expected.get(str(allowed[key].type))
        if wanted and (not isinstance(value, wanted) or (wanted is not bool and isinstance(value, bool))):
            raise ConfigError(f"scorer {owner}: {key} = {value!r} must be of type {allowed[key].type}")


def _suggest(name: str, valid: Mapping[str, Any]) -> str:
    near = get_close_matches(name, list(valid), n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; choose one of: {', '.join(sorted(valid)) or 'none'}"
