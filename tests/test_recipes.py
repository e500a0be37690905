"""The recipes of CONTRIBUTING.md work as written: file, registration line and test."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bestprompt as bp
from bestprompt import choices
from bestprompt.run import load_settings
from bestprompt.scoring import build, build_scorer
from bestprompt.types import Pair

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TABLES = {
    "A surrogate": choices.SURROGATES,
    "An acquisition": choices.ACQUISITIONS,
    "A scorer": build.KINDS,
    "A model back end": bp.lm.BACK_ENDS,
}
RECIPES = dict(re.findall(r"^### (A.*?)\n(.*?)(?=^##)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))


@pytest.fixture(params=list(RECIPES))
def recipe(request, tmp_path, monkeypatch):
    """The recipe's title, with its file in the package it names and its line in the table; and the code of its test."""
    blocks = BLOCK.findall(RECIPES[request.param])
    source, registration, test = blocks[0], blocks[1:-1], blocks[-1]
    path = re.match(r"# src/(bestprompt/\w+)/(\w+)\.py\n", source)
    package = importlib.import_module(path[1].replace("/", "."))
    (tmp_path / f"{path[2]}.py").write_text(source, encoding="utf-8")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    for line in registration:
        for name, where in ast.literal_eval(f"{{{line}}}").items():
            monkeypatch.setitem(TABLES[request.param], name, where)
    yield request.param, source, test
    sys.modules.pop(f"{package.__name__}.{path[2]}", None)


def the_test(code: str, folder: Path) -> object:
    (folder / "recipe_test.py").write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("recipe_test", folder / "recipe_test.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.test_keeps_the_contract


def test_there_is_one_for_each_kind():
    assert list(RECIPES) == ["A surrogate", "An acquisition", "A scorer", "A model back end"]


def test_a_recipes_own_test_passes(recipe, tmp_path):
    title, _, code = recipe
    test = the_test(code, tmp_path)
    marks = getattr(test, "pytestmark", [])
    cases = marks[0].args[1] if marks else [None]
    assert len(cases) >= (1 if title == "A scorer" else 3)
    for case in cases:
        test(case) if marks else test()


def test_a_recipe_is_written_as_the_package_is(recipe, tmp_path):
    """Lint and layout by the project's own rules."""
    settings = ["--config", str(PAGE.parent / "pyproject.toml")]
    for command in (["check", *settings, "--ignore", "I001"], ["format", "--check", *settings]):
        made = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "-"], input=recipe[1], text=True, capture_output=True, check=False
        )
        assert made.returncode == 0, made.stdout + made.stderr


def test_a_registered_part_is_found_by_its_name(recipe):
    title = recipe[0]
    Z = np.random.default_rng(0).normal(size=(20, 2))

    def score(candidate: int, replication: int) -> float:
        return float(np.random.default_rng([candidate, replication]).random() < 1 / (1 + np.exp(-3 * Z[candidate, 0])))

    if title == "A surrogate":
        found = bp.select(Z, score, 60, surrogate="quadratic")
        assert Z[found.candidate, 0] > 0.0
        assert load_settings(None, {"selection.surrogate": "quadratic"}).selection.surrogate == "quadratic"
    elif title == "An acquisition":
        found = bp.select(Z, score, 60, surrogate="gp", acquisition="pi")
        assert Z[found.candidate, 0] > 0.0
    elif title == "A scorer":
        scorer = build_scorer({"kind": "length", "tolerance": 1})
        assert scorer.score(["a b c"], [Pair("q", ("x y",))])[0].value == 1.0
    else:
        settings = load_settings(None, {"model.kind": "echo", "model.options": {"words": 1}})
        task = bp.Task.from_pairs(
            [(w, w) for w in ("red", "blue", "green", "black")], ["Say", "Repeat"], scorer="exact"
        )
        assert bp.optimize(task, bp.lm.open_model(settings.model), budget=12, seed=0, config=settings).score > 0.5
