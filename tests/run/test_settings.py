"""Settings are checked before anything is spent, and errors say where and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

import bestprompt as bp
from bestprompt.errors import ConfigError
from bestprompt.execution import Questions
from bestprompt.run.parts import selector_config
from bestprompt.run.settings import Settings, load_settings, recorded_settings
from bestprompt.selection import SelectorConfig
from bestprompt.types import Request


def write(folder: Path, text: str) -> Path:
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_need_no_file() -> None:
    settings = load_settings()
    assert settings.model.kind == "embedded"
    assert settings.budget.calls == 300


def test_file_then_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, 'seed = 4\n[task]\nanything = "is the task\'s business"\n[budget]\ncalls = 10\n')
    assert load_settings(path).budget.calls == 10
    assert load_settings(path, {"budget.calls": 20, "budget.tokens": None}).budget.calls == 20
    assert load_settings(path).seed == 4


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, '[model]\npath = "weights/m.gguf"\n')
    assert load_settings(path).model.path == tmp_path / "weights" / "m.gguf"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[budget]\ncals = 3\n", r"run.toml, line 2: unknown key 'budget.cals'; did you mean 'calls'\?"),
        ("[budgets]\ncalls = 3\n", r"line 1: unknown key 'budgets'; did you mean 'budget'\?"),
        ("[search]\nqqq = 3\n", r"line 2: unknown key 'search.qqq'; allowed: source, candidates"),
        ("[selection]\ndelat = 0.1\n", r"line 2: unknown key 'selection.delat'; did you mean 'delta'\?"),
        ('[selection]\nsurrogate = "gpp"\n', r"line 2: selection.surrogate = 'gpp': choose one of auto, .*, gp-rank"),
        (
            "[selection]\nsurrogate = 3\n",
            r"selection.surrogate = 3: choose one of auto, .*, or an object with fit",
        ),
        ("[judge]\nnam = 'x'\n", r"unknown key 'judge.nam'; did you mean 'name'\?"),
        ("seed = 1\n[model]\ntemperature = 9\n", r"line 3: model.temperature = 9: .*less than or equal to 2"),
        ('[model]\nkind = "gpt"\n', r"model.kind = 'gpt': .*'embedded' or 'openai'"),
        ('[model]\nkind = "openai"\n', r"model.name is missing"),
        ("[budget\n", r"run.toml: not valid TOML"),
        ("further_models = 5\n", r"line 1: further_models = 5: "),
        ('[model]\npath = "~nobody-of-that-name/x"\n', r"~nobody-of-that-name/x: there is no home folder"),
        ('[search]\nfile = ["~nobody-of-that-name/x"]\n', r"~nobody-of-that-name/x: there is no home folder"),
    ],
)
def test_errors_name_file_line_key_and_what_is_allowed(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        load_settings(write(tmp_path, text))


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="bestprompt init"):
        load_settings(tmp_path / "absent.toml")


@pytest.mark.parametrize("url", ["https://me:hunter2@host/v1", "https://host/v1?api_key=hunter2"])
def test_a_credential_in_a_url_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    path = write(tmp_path, f'[model]\nkind = "openai"\nname = "m"\nbase_url = "{url}"\n')
    with pytest.raises(ConfigError, match="environment variable") as caught:
        load_settings(path)
    assert "hunter2" not in str(caught.value)


def test_paper_mode_draws_pairs_independently(tmp_path: Path) -> None:
    assert load_settings().selection.pairing == "common"
    assert load_settings(None, {"selection.mode": "paper"}).selection.pairing == "independent"
    assert load_settings(None, {"selection.mode": "paper", "selection.pairs": "common"}).selection.pairing == "common"


def test_a_record_from_before_refinement_is_continued_without_it() -> None:
    recorded = load_settings(None, {"search.source": "latent"}).model_dump(mode="json")
    assert recorded_settings({"settings": recorded}).refining == "default"
    del recorded["refinement"]
    assert recorded_settings({"settings": recorded}).refining == "off"


@pytest.mark.parametrize("changes", [{"mode": "always"}, {"share": 1.0}, {"additional": 0}])
def test_refinement_settings_are_checked(changes: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=f"refinement.{next(iter(changes))}"):
        load_settings(None, {f"refinement.{key}": value for key, value in changes.items()})


SELECTION = """
[selection]
surrogate = "bnn"
surrogate_options = { inference = "hmc", layers = [4, 4] }
acquisition = "ei"
maximizer = "reinforce"
warmup = "random"
beta = 0.5
stop_loss = 0.01
gain_per_call = 1e-4
"""


def test_every_setting_of_a_selection_reaches_the_selector(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(SELECTION)
    config = selector_config(load_settings(tmp_path / "run.toml"), Questions(30, "never"), evaluations=200)
    assert config == SelectorConfig(
        budget=200,
        surrogate="bnn",
        surrogate_options={"inference": "hmc", "layers": [4, 4]},
        acquisition="ei",
        maximizer="reinforce",
        pairs="common",
        items=30,
        repeats="never",
        units="alike",
        stop_gain=0.0005,
        warmup="random",
        beta=0.5,
        stop_loss=0.01,
        gain_per_call=1e-4,
    )


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"acquisition": "ei"}, "acquisition must go with a surrogate"),
        ({"surrogate": "gp", "surrogate_options": {"lenght": 1.0}}, "no option 'lenght'"),
    ],
)
def test_settings_that_do_not_go_together_leave_no_record(tmp_path: Path, selection: dict, message: str) -> None:
    def never(request: Request) -> str:
        raise AssertionError("nothing may be asked")

    with pytest.raises(ConfigError, match=message):
        bp.optimize(
            bp.Task.from_pairs([(f"a{i}", "b") for i in range(4)], ["Do it.", "Do it well."], scorer="exact"),
            bp.lm.function(never),
            config=Settings.model_validate({"selection": selection}),
            ledger=tmp_path / "run",
        )
    assert not (tmp_path / "run").exists()
