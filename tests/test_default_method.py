"""``docs/default-method.md`` names every constant of selection, with the value that it has."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import bestprompt.selection
from bestprompt.choices import SelectionMethod
from bestprompt.run.setting_tables import SelectionSettings

PAGE = Path(__file__).parents[1] / "docs" / "default-method.md"
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| `([\w/]+)\.py` \| \*(\w[\w ]*)\*: [^|]+ \|$", re.MULTILINE)
ORIGINS = {"derived", "measured", "families", "by hand", "bound", "wording"}


def written() -> dict[tuple[str, str], str]:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert {origin for *_, origin in rows} <= ORIGINS
    return {(module, name): value for name, value, module, _ in rows}


def in_the_code() -> dict[tuple[str, str], str]:
    found = {}
    for info in pkgutil.walk_packages(bestprompt.selection.__path__, "bestprompt.selection."):
        module = importlib.import_module(info.name)
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        for line in re.findall(r"^([A-Z][A-Z_, ]+) = ", source, re.MULTILINE):
            for name in line.split(", "):
                value = getattr(module, name)
                numbers = value if isinstance(value, tuple) else (value,)
                if all(isinstance(number, int | float) for number in numbers):
                    shown = ", ".join(
                        f"{number:.4g}" if isinstance(number, float) else str(number) for number in numbers
                    )
                    found[info.name.removeprefix("bestprompt.").replace(".", "/"), name] = shown
    return found


def same(page: str, code: str) -> bool:
    return [float(x) for x in page.split(", ")] == [float(x) for x in code.split(", ")]


def test_every_constant_is_on_the_page_with_its_value():
    page, code = written(), in_the_code()
    assert len(code) > 50
    assert set(code) <= set(page), "constants without a row"
    assert {key for key in page if key[0].startswith("selection/")} <= set(code), "rows without a constant"
    assert {key: (page[key], value) for key, value in code.items() if not same(page[key], value)} == {}


def test_the_two_settings_on_the_page():
    page = written()
    assert float(page["run/setting_tables", "stop_gain"]) == SelectionSettings().stop_gain
    assert float(page["choices", "delta"]) == SelectionMethod().delta
