"""promptfoo's files: a configuration becomes a project here, and what a run found a configuration there.

What cannot be said exactly is refused in words, or left out with a note where nothing depends on it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bestprompt.errors import MissingExtraError, TaskError
from bestprompt.scoring import ScorerSpec
from bestprompt.scoring.assertions import checked
from bestprompt.tasks.loaders import read_text
from bestprompt.tasks.promptfoo import parse_yaml, prompt_texts, variables, with_values
from bestprompt.tasks.spec import DEFAULT_TEMPLATE, TaskSpec
from bestprompt.types import Pair

try:
    import yaml
except ImportError:
    raise MissingExtraError("Reading and writing promptfoo's files", "promptfoo") from None

_SYNTAX = re.compile(r"\{\{|\{%|\{#")
_ANSWER_LENGTH = 1024  # what promptfoo lets a model write unless told otherwise
_NOTHING = {"case": False, "punctuation": False, "whitespace": False, "articles": False, "unicode": False}
_TEST_KEYS = {"vars", "assert", "description", "metadata"}


@dataclass(frozen=True, slots=True)
class Imported:
    """A configuration in our terms.

    Attributes:
        name: Of the task.
        prompts: With ``{input}`` where the variable stood.
        rows: The pairs, with their assertions.
        model: Keys of ``[model]``, as far as they are known.
        max_tokens: Longest answer.
        notes: What could not be carried over.
    """

    name: str
    prompts: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    model: Mapping[str, Any]
    max_tokens: int
    notes: tuple[str, ...]

    def write(self, folder: Path) -> Path:
        """Writes ``bestprompt.toml``, ``pairs.jsonl`` and ``prompts.json`` into a new folder; returns the first."""
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / "bestprompt.toml"
        if target.exists():
            raise TaskError("is there already; choose another folder", file=str(target))
        rows = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows)
        (folder / "pairs.jsonl").write_text(rows, encoding="utf-8")
        (folder / "prompts.json").write_text(json.dumps(self.prompts, indent=2, ensure_ascii=False) + "\n", "utf-8")
        tables = {
            "task": {"name": self.name, "data": "pairs.jsonl", "prompts": "prompts.json", "scorer": "assertions"}
            | {"max_tokens": self.max_tokens},
            "model": self.model,
        }
        lines = [f"# {note}" for note in self.notes]
        for table, keys in tables.items():
            lines += (
                ["", f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())] if keys else []
            )
        target.write_text("\n".join(lines).lstrip("\n") + "\n", encoding="utf-8")
        return target


def read_config(path: Path) -> Imported:
    """A ``promptfooconfig.yaml`` in our terms.

    Raises:
        TaskError: What it asks for cannot be said here exactly; the message says what and where.
    """
    config = parse_yaml(path, read_text(path))
    if not isinstance(config, dict):
        raise TaskError("is no promptfoo configuration: expected prompts, providers and tests", file=str(path))
    try:
        return _imported(config, path)
    except TaskError as error:
        raise TaskError(str(error), file=str(path)) if error.file is None else error from None


def _imported(config: Mapping[str, Any], path: Path) -> Imported:
    notes: list[str] = []
    tests = config.get("tests")
    if not isinstance(tests, list) or not tests:
        raise TaskError("tests must be a list in this file; a table of tests can be given to bestprompt itself")
    shared = config.get("defaultTest") or {}
    cases = [_case(test, shared, number, path) for number, test in enumerate(tests, start=1)]
    templates = _templates(_listed(config.get("prompts"), "prompts"), path)
    constants, varying = _split(templates, cases)
    prompts = tuple(with_values(text, constants, "{input}") for text in templates)
    rows = tuple(_row(case, asserts, varying) for case, asserts in cases)
    model, length = _model(config.get("providers"), notes)
    known = {"prompts", "providers", "tests", "defaultTest", "description"}
    notes += [f"left out: {key}" for key in config if key not in known and not str(key).startswith("$")]
    name = str(config.get("description") or path.parent.resolve().name)
    return Imported(name, tuple(dict.fromkeys(prompts)), rows, model, length, tuple(notes))


def _case(test: Any, shared: Mapping[str, Any], number: int, path: Path) -> tuple[dict[str, Any], list[Any]]:
    """(variables, assertions) of a test."""
    if not isinstance(test, dict):
        raise TaskError(f"test {number} is no table of vars and assert, but {test!r:.60}")
    if other := sorted((test.keys() | shared.keys()) - _TEST_KEYS):
        raise TaskError(f"test {number}: {other[0]!r} has no equal here")
    values = {**(shared.get("vars") or {}), **(test.get("vars") or {})}
    for name, value in values.items():
        plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        if not plain or str(value).startswith("file://"):
            raise TaskError(f"test {number}: the variable {name!r} must be a text or number, found {value!r:.60}")
    asserts = [*(shared.get("assert") or []), *(test.get("assert") or [])]
    if not asserts:
        raise TaskError(f"test {number} has no assert: any answer would be right")
    return values, [_assertion(each, values, number, path) for each in asserts]


def _assertion(given: Any, values: Mapping[str, Any], number: int, path: Path) -> dict[str, Any]:
    if isinstance(given, dict) and (other := sorted(given.keys() - {"type", "value", "metric", "weight"})):
        raise TaskError(f"test {number}: {other[0]!r} of an assertion has no equal here")
    if isinstance(given, dict) and given.get("weight", 1) == 0:
        raise TaskError(f"test {number}: an assertion of weight 0 decides nothing; leave it out")
    value = given.get("value") if isinstance(given, dict) else None
    kind = str(given.get("type", "")) if isinstance(given, dict) else ""
    if isinstance(value, str) and kind.removeprefix("not-") in ("contains-all", "icontains-all", "icontains-any"):
        value = [part.strip() for part in value.split(",")]
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(part, str) and part.startswith(("file://", "javascript:", "python:")) for part in parts):
        raise TaskError(f"test {number}: a value that is a file or a script has no equal here")
    for part in parts:
        variables(part if isinstance(part, str) else "", f"test {number}", path)  # which refuses programs
    filled = [with_values(part, values) if isinstance(part, str) else part for part in parts]
    made = {"type": kind, **({} if value is None else {"value": filled if isinstance(value, list) else filled[0]})}
    try:
        checked(made if isinstance(given, dict) else given)
    except TaskError as error:
        raise TaskError(f"test {number}: {error}") from None
    return made


def _templates(prompts: Sequence[Any], path: Path) -> dict[str, list[str]]:
    """Text of each prompt → its variables."""
    found = {}
    for key, text, messages in prompt_texts(prompts, path):
        if messages > 1:
            raise TaskError(f"{key} is a conversation; give its texts, and a system message by --system")
        found[text.strip()] = variables(text, key, path)
    return found


def _split(
    templates: Mapping[str, Sequence[str]], cases: Sequence[tuple[dict[str, Any], Any]]
) -> tuple[dict[str, Any], str]:
    """The variables that are the same in all tests, and the one that is not: a pair has one input."""
    used = {name for names in templates.values() for name in names}
    for name in sorted(used):
        if missing := [number for number, (values, _) in enumerate(cases, start=1) if name not in values]:
            raise TaskError(f"test {missing[0]} has no variable {name!r}, which a prompt uses")
    varying = [name for name in sorted(used) if len({str(values[name]) for values, _ in cases}) > 1]
    if len(varying) != 1:
        found = ", ".join(varying) or "none"
        raise TaskError(f"one variable of the prompts must differ between tests, as the input does here; found {found}")
    for text, names in templates.items():
        if varying[0] not in names:
            raise TaskError(f"the prompt {text[:60]!r} does not use {{{{{varying[0]}}}}}")
        if "{input}" in text:
            raise TaskError(f"the prompt {text[:60]!r} holds {{input}}, which stands for the input here")
    return {name: cases[0][0][name] for name in used if name not in varying}, varying[0]


def _row(values: Mapping[str, Any], asserts: Sequence[Mapping[str, Any]], varying: str) -> dict[str, Any]:
    expected = [str(v) for a in asserts for v in (a["value"] if isinstance(a.get("value"), list) else [a.get("value")])]
    shown = [text for text in dict.fromkeys(expected) if text != "None"] or [asserts[0]["type"]]
    return {"input": str(values[varying]), "references": shown, "assert": list(asserts)}


def _model(given: Any, notes: list[str]) -> tuple[dict[str, Any], int]:
    """Keys of ``[model]`` from the first provider, and the length of an answer."""
    listed = _listed(given, "providers")
    first = listed[0]
    if len(listed) > 1:
        notes.append(f"of {len(listed)} providers the first is used; further ones become [[model]] tables")
    name = str(first.get("id") if isinstance(first, dict) else first)
    options = dict((first.get("config") or {}) if isinstance(first, dict) else {})
    kind, _, rest = name.partition(":")
    if kind != "openai" or rest.split(":")[0] in ("embedding", "responses", "assistant", "image", "realtime"):
        notes.append(f"the provider {name!r} has no equal here: set [model] yourself")
        return {}, int(options.get("max_tokens", _ANSWER_LENGTH))
    model: dict[str, Any] = {"kind": "openai", "name": rest.removeprefix("chat:")}
    ours = {"apiBaseUrl": "base_url", "apiKeyEnvar": "api_key_env", "temperature": "temperature", "top_p": "top_p"}
    for key, value in options.items():
        if key in ours:
            model[ours[key]] = value
        elif key == "apiKey":
            notes.append("a key in the file is not copied: put it into an environment variable")
        elif key != "max_tokens":
            notes.append(f"left out: {key} of the provider")
    return model, int(options.get("max_tokens", _ANSWER_LENGTH))


def _listed(value: Any, what: str) -> list[Any]:
    if value is None or value == []:
        raise TaskError(f"there are no {what}")
    return value if isinstance(value, list) else [value]


def config_of(
    spec: TaskSpec, score: ScorerSpec, prompts: Mapping[str, str], model: Mapping[str, Any], max_tokens: int
) -> tuple[dict[str, Any], list[str]]:
    """A configuration for promptfoo with these ``prompts`` (label → text), and notes on what it cannot hold."""
    notes: list[str] = []
    tests: list[dict[str, Any]] = []
    for pair in spec.pairs:
        asserts = _asserts(score, pair)
        expected = {"metadata": {"expected": list(pair.references)}}
        tests.append({"vars": {"input": pair.input}, **({"assert": asserts} if asserts else expected)})
    if any("assert" not in test for test in tests):
        notes.append("the score has no equal in promptfoo: tests hold the right answers as metadata, and no assert")
    texts = [{"label": label, "raw": _raw(spec, text)} for label, text in prompts.items()]
    provider: Any = "echo"
    if model.get("kind") == "openai":
        options = {"apiBaseUrl": model.get("base_url"), "apiKeyEnvar": model.get("api_key_env")}
        options |= {"temperature": model.get("temperature"), "max_tokens": max_tokens}
        kept = {key: value for key, value in options.items() if value is not None}
        provider = {"id": f"openai:chat:{model['name']}", "config": kept}
    else:
        notes.append("the model is none of promptfoo's: the provider is echo, which repeats the prompt")
    return {"description": spec.name, "prompts": texts, "providers": [provider], "tests": tests}, notes


def to_yaml(config: Mapping[str, Any]) -> str:
    """The text of a configuration."""
    return str(yaml.safe_dump(dict(config), allow_unicode=True, sort_keys=False, width=100))


def _asserts(score: ScorerSpec, pair: Pair) -> list[Any]:
    table = {"kind": score} if isinstance(score, str) else dict(score) if isinstance(score, Mapping) else {}
    if table.get("kind") == "assertions":
        return list(pair.meta.get("assert", ()))
    several = len(pair.references) > 1
    if table.get("kind") == "regex" and table.get("pattern") == "{reference}":
        kind = "icontains" if table.get("ignore_case", True) else "contains"
        return [
            {"type": f"{kind}-any", "value": list(pair.references)}
            if several
            else {"type": kind, "value": pair.reference}
        ]
    exact = (
        table.get("kind") == "exact" and table.get("normalisation") == _NOTHING and table.get("extract", "all") == "all"
    )
    return [{"type": "equals", "value": pair.reference}] if exact and not several else []


def _raw(spec: TaskSpec, prompt: str) -> str:
    """What a prompt sends, with promptfoo's variable for the input; a system message makes it a conversation."""
    template = "{prompt}" if "{input}" in prompt and spec.template == DEFAULT_TEMPLATE else spec.template

    def filled(text: str) -> str:
        parts = re.split(r"(\{input\})", text.replace("{prompt}", prompt.strip()))
        return "".join("{{input}}" if part == "{input}" else _literal(part) for part in parts)

    if not spec.system:
        return filled(template)
    turns = [{"role": "system", "content": filled(spec.system)}, {"role": "user", "content": filled(template)}]
    return json.dumps(turns, indent=2, ensure_ascii=False)


def _literal(text: str) -> str:
    return f"{{% raw %}}{text}{{% endraw %}}" if _SYNTAX.search(text) else text
