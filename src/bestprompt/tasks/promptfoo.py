"""The prompts of a promptfoo configuration, or of the results that promptfoo writes.

Configurations hold texts, references to files, and chats as JSON. Their placeholders are Nunjucks': ``{{ticket}}``.
What a prompt calls its one variable is the input here; variables with one value for all tests are put in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from bestprompt.errors import MissingExtraError, TaskError
from bestprompt.tasks.loaders import jsonl_rows, parse_json, read_text
from bestprompt.tasks.pools import Found

CONFIGS = ("promptfooconfig.yaml", "promptfooconfig.yml", "promptfooconfig.json")
YAML_SUFFIXES = (".yaml", ".yml")
_TEXT_SUFFIXES = (".txt", ".md", ".j2")
_SUFFIXES = (*_TEXT_SUFFIXES, ".json", ".jsonl", *YAML_SUFFIXES)
_PARTED = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_VARIABLE = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*(?:\s*\|\s*(?:safe|trim))?$")
_SERVICE = re.compile(r"[a-z][\w+.-]*://|exec:")


def parse_yaml(path: Path, text: str) -> Any:
    """The value of a YAML text.

    Raises:
        TaskError: It is not YAML; names the line.
        MissingExtraError: There is no parser.
    """
    try:
        import yaml
    except ImportError:
        raise MissingExtraError(f"{path.name}: a YAML file", "yaml") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or "not well-formed"
        raise TaskError(f"is not YAML: {what}", file=str(path), line=mark.line + 1 if mark else None) from None
    except (ValueError, RecursionError) as error:  # a date that none is, or nested too deeply
        raise TaskError(f"cannot be read: {error}", file=str(path)) from None


def from_promptfoo(value: Any, path: Path) -> Found | None:
    """The prompts of a configuration or of results; ``None`` where ``value`` is neither.

    Raises:
        TaskError: A prompt is a program, is kept elsewhere or needs more than one input; names its key.
    """
    if not isinstance(value, dict):
        return None
    config: dict[str, Any] = value["config"] if isinstance(value.get("config"), dict) else value
    results = value.get("results")
    prompts = results.get("prompts") if isinstance(results, dict) else config.get("prompts")
    if prompts is None or not {"providers", "targets", "tests", "defaultTest"} & config.keys():
        return None
    fixed, texts, chats = _fixed(config), list[str](), 0
    for key, text, messages in prompt_texts(prompts, path):
        texts.append(_filled(text, fixed, key, path))
        chats += messages > 1
    how = f"{len(texts)} prompts"
    if chats:
        how += f", {chats} of them a chat whose messages were joined into one text"
    return Found(list(dict.fromkeys(texts)), "promptfoo", how)


def prompt_texts(prompts: Any, path: Path) -> Iterator[tuple[str, str, int]]:
    """(key, text, number of messages) of each entry of ``prompts``; the messages of a chat are joined.

    Raises:
        TaskError: A prompt is a program, or is kept elsewhere; names its key.
    """
    for key, text in _texts(prompts, "prompts", path):
        yield key, *_as_one_text(text, path)


def variables(text: str, key: str, path: Path) -> list[str]:
    """The names of the variables of ``text``.

    Raises:
        TaskError: It holds more than variables; names its key.
    """
    text = _COMMENT.sub("", text)
    if "{%" in text:
        raise TaskError(f"{key}: {{% … %}} is a program that only promptfoo carries out; give the text", file=str(path))
    found = dict.fromkeys(match.group(1) for match in _VARIABLE.finditer(text))
    for expression in found:
        if not _NAME.match(expression):
            allowed = "{{name}} alone can be filled in"
            raise TaskError(f"{key}: {{{{{expression}}}}} is more than a variable; {allowed}", file=str(path))
    return list(dict.fromkeys(_name_in(expression) for expression in found))


def with_values(text: str, values: Mapping[str, object], otherwise: str = "") -> str:
    """``text``, which has variables alone, with their ``values`` in it, and ``otherwise`` where there is none."""
    return _VARIABLE.sub(lambda m: str(values.get(_name_in(m.group(1)), otherwise)), _COMMENT.sub("", text))


def _name_in(expression: str) -> str:
    return expression.split("|")[0].strip()


def _fixed(config: Mapping[str, Any]) -> dict[str, str]:
    """The variables that have one value in all tests."""
    default = config.get("defaultTest")
    values = default.get("vars") if isinstance(default, dict) else None
    given = values.items() if isinstance(values, dict) else ()
    return {str(name): str(each) for name, each in given if isinstance(each, str | int | float)}


def _texts(value: Any, key: str, path: Path) -> Iterator[tuple[str, str]]:
    """(key, text) of every prompt."""
    if isinstance(value, str):
        yield from _text(value, key, path)
    elif isinstance(value, list):
        if _is_chat(value):
            yield key, json.dumps(value, ensure_ascii=False)
            return
        for number, each in enumerate(value):
            yield from _texts(each, f"{key}[{number}]", path)
    elif isinstance(value, dict) and isinstance(value.get("raw"), str):
        yield f"{key}.raw", value["raw"]
    elif isinstance(value, dict) and isinstance(value.get("id"), str):
        yield from _text(value["id"], f"{key}.id", path)
    elif isinstance(value, dict) and value and all(isinstance(name, str) for name in value):
        for name in value:  # files and what they are called, as older configurations have it
            yield from _text(name if "://" in name else f"file://{name}", key, path)
    else:
        allowed = "a text, file://…, or raw: with a text"
        raise TaskError(f"{key} = {value!r:.80} is no prompt; give {allowed}", file=str(path))


def _text(text: str, key: str, path: Path) -> Iterator[tuple[str, str]]:
    named = text.removeprefix("file://")
    lone = "\n" not in text and Path(text).suffix.lower() in _SUFFIXES and (path.parent / text).is_file()
    if not text.startswith("file://") and not lone:
        if _SERVICE.match(text):
            raise TaskError(f"{key} = {text!r:.80} is kept or made elsewhere; give its text", file=str(path))
        yield key, text
        return
    pattern = unquote(named)
    base, found = path.parent, [path.parent / pattern]
    if any(mark in pattern for mark in "*?["):
        found = sorted(base.glob(pattern)) if not Path(pattern).is_absolute() else []
    if not found or not all(each.is_file() for each in found):
        raise TaskError(f"{key} = {text!r:.80}: no such file beside it", file=str(path))
    for file in found:
        yield from _file(file, f"{key}, {file.name}", path)


def _file(file: Path, key: str, path: Path) -> Iterator[tuple[str, str]]:
    kind = file.suffix.lower()
    if kind not in _SUFFIXES:
        allowed = ", ".join(_SUFFIXES)
        raise TaskError(f"{key} is no text: a prompt stands in one of {allowed}, not in a program", file=str(path))
    content = read_text(file)
    if kind in (".txt", ".j2"):
        yield from ((key, part) for part in _PARTED.split(content) if part.strip())
    elif kind == ".md":
        yield key, content
    elif kind == ".jsonl":
        yield from ((f"{key}, line {row.line}", json.dumps(row.record)) for row in jsonl_rows(file, content))
    else:
        value = parse_json(file, content) if kind == ".json" else parse_yaml(file, content)
        if isinstance(value, str) or _is_chat(value):
            yield key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        else:
            yield from _texts(value, key, file)


def _is_chat(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(m, dict) and "role" in m for m in value)


def _as_one_text(text: str, path: Path) -> tuple[str, int]:
    """A chat, as JSON or YAML has it, as one text and the number of its messages; any other text as it is."""
    start = text.lstrip()
    if not start.startswith(("[", '"', "- role:")):
        return text, 1
    try:
        chat = parse_yaml(path, text) if start.startswith("-") else json.loads(text)
    except (ValueError, TaskError):  # a text that begins with a bracket
        return text, 1
    if isinstance(chat, str):
        return chat, 1
    if not _is_chat(chat):
        return text, 1
    turns = [(str(message["role"]), _content(message.get("content"))) for message in chat]
    if any(role == "assistant" for role, _ in turns):
        named = (f"{role.capitalize()}: {said}" if role != "system" else said for role, said in turns)
        return "\n\n".join(named), len(turns)
    return "\n\n".join(said for _, said in turns), len(turns)


def _content(content: Any) -> str:
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n\n".join(part for part in parts if isinstance(part, str))
    return str(content or "")


def _filled(text: str, fixed: Mapping[str, str], key: str, path: Path) -> str:
    """``text`` with our placeholder in place of its one variable."""
    open_names = [name for name in variables(text, key, path) if name not in fixed]
    if len(open_names) > 1:
        listed = ", ".join(f"{{{{{name}}}}}" for name in open_names)
        raise TaskError(
            f"{key} has {len(open_names)} variables ({listed}), and a pair has one input. Give all but one a value "
            "under defaultTest: vars:",
            file=str(path),
        )
    return with_values(text, fixed, "{input}")
