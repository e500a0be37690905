"""The fixture ``bestprompt_check``: a test that fails when a new prompt is worse than the one in use.

    def test_prompt_is_not_worse(bestprompt_check):
        bestprompt_check("tickets.csv", incumbent=Path("prompts/live.txt"), new=Path("prompts/next.txt"))

pytest finds this module by its entry point, in every project of the environment: nothing is imported before the fixture
is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bestprompt.run import CheckResult
    from bestprompt.tasks import Task
    from bestprompt.types import LanguageModel

_FINDINGS = pytest.StashKey[list[str]]()


@pytest.fixture
def bestprompt_check(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., CheckResult]:
    """A function that fails the test when a new prompt is worse than the one in use; see :func:`bestprompt.check`.

    ``task`` is a :class:`bestprompt.Task` or what names one, ``lm`` a model (the embedded one if left out), a prompt is
    a text or the path of a file that holds it. All else is as in :func:`bestprompt.check`. The run is kept in
    ``ledger``, a folder below ``tmp_path`` unless given; with one of your own, what was answered is not asked again.
    """

    def check(
        task: Task | str | Path,
        lm: LanguageModel | None = None,
        *,
        incumbent: str | Path,
        new: str | Path,
        ledger: str | Path | None = None,
        **options: Any,
    ) -> CheckResult:
        __tracebackhide__ = True
        import bestprompt

        model = lm if lm is not None else bestprompt.lm.embedded()
        loaded = bestprompt.Task.load(task, lm=model) if isinstance(task, str | Path) else task
        folder = ledger if ledger is not None else tmp_path / "bestprompt"
        found = bestprompt.check(loaded, model, incumbent=_text(incumbent), new=_text(new), ledger=folder, **options)
        request.config.stash.setdefault(_FINDINGS, []).append(f"{request.node.nodeid}: {found.verdict}")
        if not found.passed:
            pytest.fail(f"{found.verdict} {found.calls} calls; the run is in {folder}", pytrace=False)
        return found

    return check


def _text(prompt: str | Path) -> str:
    if not isinstance(prompt, Path):
        return prompt
    from bestprompt.tasks.loaders import read_text

    return read_text(prompt)


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> Iterator[None]:
    """What was found of each prompt, also where the test passed: "undecided" should not go unseen."""
    found = config.stash.get(_FINDINGS, [])
    if found:
        terminalreporter.section("prompts")
        for line in found:
            terminalreporter.write_line(line)
    return (yield)
