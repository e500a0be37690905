"""A model back end is one function and one line in the table; settings then know its name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import bestprompt as bp
from bestprompt import lm
from bestprompt.errors import ConfigError
from bestprompt.lm.back_ends import BACK_ENDS
from bestprompt.lm.function import FunctionModel
from bestprompt.run import load_settings
from bestprompt.types import Request


def echo_from(settings: lm.ModelSettings) -> FunctionModel:
    """The last word of a request, as often as the option says."""
    times = int((settings.options or {}).get("times", 1))

    def answer(request: Request) -> str:
        return " ".join([request.messages[-1].content.split()[-1]] * times)

    return lm.function(answer, name=settings.name)


BACK_END = lm.BackEnd(echo_from, needs=("name",))


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "a_strangers_file", sys.modules[__name__])
    monkeypatch.setitem(BACK_ENDS, "echo", "a_strangers_file:BACK_END")


@pytest.mark.usefixtures("echo")
def test_a_new_back_end_is_known_to_settings_and_runs(tmp_path: Path) -> None:
    project = tmp_path / "project.toml"
    project.write_text('[model]\nkind = "echo"\nname = "parrot"\n[model.options]\ntimes = 1\n')
    settings = load_settings(project)
    task = bp.Task.from_pairs([(f"w{i}", f"w{i}") for i in range(12)], ["Repeat", "Say again"])
    rec = bp.optimize(task, lm.open_model(settings.model), budget=12, config=settings, ledger=tmp_path / "run")
    assert rec.score > 0.6
    project.write_text('[model]\nkind = "echo"\n')
    with pytest.raises(ConfigError, match=r"project.toml: model.name is missing: kind = \"echo\" needs it"):
        load_settings(project)


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"model\.kind = 'echo': input should be 'embedded' or 'openai'"):
        load_settings(None, {"model.kind": "echo"})
    with pytest.raises(ConfigError, match="'embedded' or 'openai'"):
        lm.open_model(lm.ModelSettings(kind="echo"))


def test_an_option_holds_no_credential() -> None:
    with pytest.raises(ConfigError, match="environment variable") as refused:
        load_settings(None, {"model.options": {"api_key": "sk-very-secret"}})
    assert "very-secret" not in str(refused.value)
