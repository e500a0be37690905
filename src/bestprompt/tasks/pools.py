"""Prompts that other tools have found, in the files they write: GEPA, DSPy, PromptWizard, promptolution.

Nothing is unpickled: a pickle can run anything when it is opened, and these tools write their texts elsewhere, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bestprompt.errors import TaskError


@dataclass(frozen=True, slots=True)
class Found:
    """Prompts of one file or folder.

    Attributes:
        prompts: In the order of the file, perhaps repeated.
        by: The tool that wrote it; ``"file"`` where none is known.
        how: How it was read, in words; empty if there is nothing to say.
    """

    prompts: list[str]
    by: str = "file"
    how: str = ""


def in_json(value: Any, path: Path) -> Found | None:
    """What a tool wrote as JSON; ``None`` if no tool is known by it.

    Raises:
        TaskError: A tool is known by it, but what it wrote is not one prompt after the other.
    """
    for read in (_gepa, _dspy, _promptwizard_ratings):
        if (found := read(value, path)) is not None:
            return found
    return None


def in_json_lines(rows: list[Any]) -> Found | None:
    """The log ``best_prompt.jsonl`` of PromptWizard: the best prompt of each round, and those that critique made."""
    rounds = [row["best_prompt"] for row in rows if _has(row, "best_prompt", "round_num")]
    if not rounds:
        return None
    refined = [row["outputs"] for row in rows if _logged(row) == "get_best_instr_by_critique"]
    texts = [text for text in (*rounds, *refined) if isinstance(text, str) and text.strip()]
    return Found(texts, "PromptWizard", _counted(texts, f"{len(rows)} entries of a log"))


def folder_file(folder: Path) -> Path | None:
    """The file of a tool's folder that holds its prompts; ``None`` for any other folder.

    Raises:
        TaskError: They are in a pickle alone.
    """
    holds = {each.name for each in folder.iterdir() if each.is_file()}
    if "gepa_state.bin" in holds or {"candidates.json", "run_log.json"} <= holds:
        if "candidates.json" in holds:
            return folder / "candidates.json"
        raise TaskError(
            "holds the state of a GEPA run as a pickle, which is not opened, and no candidates.json. Run it on with a "
            "newer gepa, or write what gepa.optimize returned: json.dump(result.to_dict(), file)",
            file=str(folder),
        )
    if "program.pkl" in holds:
        raise TaskError(
            "holds a DSPy program as a pickle, which is not opened. Save its state as JSON: "
            'program.save("program.json"), and name that file',
            file=str(folder),
        )
    known = ("step_results.parquet", "step_results.csv", "prompt_scores.parquet", "best_prompt.jsonl")
    return next((folder / name for name in known if name in holds), None)


def _gepa(value: Any, path: Path) -> Found | None:
    """A list of candidates, each of which maps the names of its parts to texts; alone, or in a whole result."""
    whole = _has(value, "candidates", "val_aggregate_scores")
    listed = value["candidates"] if whole else value
    if not (whole or path.name == "candidates.json") or not isinstance(listed, list):
        return None
    parts = [_parts(each, f"candidates[{number}]", path) for number, each in enumerate(listed)]
    texts = [_only(each, f"candidates[{number}]", path) for number, each in enumerate(parts)]
    return Found(texts, "GEPA", _counted(texts, f"{len(texts)} candidates"))


def _parts(candidate: Any, key: str, path: Path) -> dict[str, str]:
    named = candidate if isinstance(candidate, dict) else {"": candidate}
    if not named or not all(isinstance(text, str) for text in named.values()):
        raise TaskError(f"{key} does not map names to texts: {candidate!r:.80}", file=str(path))
    # It repairs answers of the others, and is no prompt for the task.
    return {name: text for name, text in named.items() if name != "refiner_prompt" or len(named) == 1}


def _only(parts: Mapping[str, str], key: str, path: Path) -> str:
    if len(parts) > 1:
        raise TaskError(
            f"{key} has {len(parts)} parts ({', '.join(parts)}), and one prompt is chosen here. Put the texts of the "
            "part to be chosen into a JSON list",
            file=str(path),
        )
    return next(iter(parts.values()))


def _dspy(value: Any, path: Path) -> Found | None:
    """The state of a predictor, or of a program by the names of its predictors."""
    if not isinstance(value, dict):
        return None
    states = {"": value} if _is_predictor(value) else {k: v for k, v in value.items() if _is_predictor(v)}
    if not states:
        return None
    texts = {name: state["signature"]["instructions"] for name, state in states.items()}
    text = _only(_parts(texts, "the program", path), "the program", path)
    demos = sum(len(state.get("demos") or ()) for state in states.values())
    left = f"; its {demos} demonstrations are left out, because they may be pairs that judge here (see --demos)"
    return Found([text], "DSPy", "the instruction of a program" + (left if demos else ""))


def _is_predictor(value: Any) -> bool:
    signature = value.get("signature") if isinstance(value, dict) else None
    return isinstance(signature, dict) and "instructions" in signature


def _promptwizard_ratings(value: Any, path: Path) -> Found | None:
    """A list of prompts with their ratings, then what each of them answered and what that cost."""
    listed = value if isinstance(value, list) else []
    rated = [each for each in listed if _has(each, "prompt", "rating") and isinstance(each["prompt"], str)]
    if not rated:
        return None
    texts = [each["prompt"] for each in rated]
    return Found(texts, "PromptWizard", _counted(texts, f"{len(rated)} rated prompts"))


def _has(value: Any, *keys: str) -> bool:
    return isinstance(value, dict) and all(key in value for key in keys)


def _logged(row: Any) -> str | None:
    meta = row.get("meta") if isinstance(row, dict) else None
    return meta.get("method_name") if isinstance(meta, dict) else None


def _counted(texts: list[str], what: str) -> str:
    different = len(set(texts))
    return what if different == len(texts) else f"{what}, {different} different ones"
