"""The record of a run: what it was started with, whether it can be continued, and with which budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bestprompt import __version__
from bestprompt.errors import ConfigError, LedgerError
from bestprompt.execution import Questions, Spend, spent
from bestprompt.ledger import EXTENDED, REFINING, Ledger, check_content, holds_a_run, reading
from bestprompt.lm.embedded import current_fingerprint
from bestprompt.lm.several import names_of
from bestprompt.run.demonstrations import parted
from bestprompt.run.differences import differences
from bestprompt.run.given import Given, given_texts, source_fingerprint
from bestprompt.run.parts import build_questions, on_top, refuse_unusable
from bestprompt.run.setting_tables import BudgetSettings
from bestprompt.run.settings import Settings, recorded_settings, without_auto
from bestprompt.tasks import Task
from bestprompt.types import LanguageModel

# Facts that may differ between the record and the program that continues it: these are as recorded, whatever is wanted.
_AS_RECORDED = ("version", "items", "repeats", "next_item", "edition", "proposed", "task_parts")
# Settings that decide nothing about the answers: a run may be continued with others.
_FREE = {"output", "ray", "budget", "all_zero"}
# Where a run is kept, and who carries it out, is no part of its record.
_ELSEWHERE = {"output", "ray"}


def run_facts(
    task: Task,
    lm: LanguageModel,
    settings: Settings,
    candidates: Given = (),
    writer: LanguageModel | None = None,
) -> dict[str, Any]:
    """What a run depends on; but for the version, it must be equal for the run to be continued.

    Raises:
        ConfigError: If the settings cannot be used together, or a limit cannot be kept: said before there is a record.
    """
    settings = without_auto(settings)
    refuse_unusable(settings)
    refuse_uncounted(task, lm, settings)
    if writer is not None and settings.has_ideas:
        refuse_uncounted(task, writer, settings)
    source = source_fingerprint(candidates)
    return {
        "version": __version__,
        "task": task.name,
        "task_fingerprint": task.fingerprint,
        "task_parts": task.part_fingerprints,
        "proposed": dict(task.proposed),
        **asdict(build_questions(parted(task, settings)[0], settings, lm)),
        "lm": lm.name,
        **({"models": list(names_of(lm))} if names_of(lm) else {}),
        "lm_fingerprint": lm.fingerprint,
        "settings": settings.model_dump(mode="json", exclude=_ELSEWHERE),
        "given": given_texts(candidates),
        **({"candidate_source": source} if source is not None else {}),
        **({"writer": writer.name, "writer_fingerprint": writer.fingerprint} if writer is not None else {}),
    }


def as_begun(task: Task, facts: Mapping[str, Any]) -> Task:
    """``task`` with the score and length of answers that were proposed when the run of ``facts`` began."""
    return task.as_proposed(facts.get("proposed"))


def open_ledger(folder: Path, facts: Mapping[str, Any], extra: Mapping[str, Any] | None = None) -> Ledger:
    """The ledger in ``folder``, new or to be continued; a larger budget in ``facts`` extends the run.

    Raises:
        LedgerError: If it belongs to a run with other ``facts``.
    """
    if not holds_a_run(folder):
        refuse_unpriced(recorded_settings(facts), _asked(facts))
        return Ledger.create(folder, {**facts, **(extra or {})})
    ledger = Ledger.open(folder)
    try:
        check_content(ledger)
        _check(ledger, facts, folder)
    except BaseException:
        ledger.close()
        raise
    return ledger


def _check(ledger: Ledger, facts: Mapping[str, Any], folder: Path) -> None:
    # The budget may differ: it is checked, and raised, by itself.
    with reading(ledger.path):
        recorded = _comparable(ledger.facts())
    wanted = _comparable(facts)
    differing = [key for key in wanted if key not in _AS_RECORDED and recorded.get(key) != wanted[key]]
    if differing:
        changed = dict.fromkeys(name for key in differing for name in differences(key, recorded, wanted))
        raise LedgerError(
            f"{', '.join(changed)} changed since the run in {folder} began. Restore what it was started with, or start "
            "another run with a new --output."
        )
    settings = recorded_settings(facts)
    if settings.budget.dollars != budgets(ledger)[-1].dollars:  # a limit that stood before goes on as it was begun
        refuse_unpriced(settings, _asked(facts))
    extend(ledger, settings.budget)


def _comparable(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **facts,
        "lm_fingerprint": current_fingerprint(facts["lm_fingerprint"]),
        "settings": recorded_settings(facts).model_dump(mode="json", exclude=_FREE),
        "candidate_source": facts.get("candidate_source"),
        "writer_fingerprint": current_fingerprint(facts.get("writer_fingerprint", "")),
    }


def budgets(ledger: Ledger) -> list[BudgetSettings]:
    """The budget a run was started with, and each it was extended to."""
    extensions = [BudgetSettings.model_validate(payload) for payload in ledger.payloads(EXTENDED)]
    return [recorded_settings(ledger.facts()).budget, *extensions]


def limits(ledger: Ledger) -> list[Spend]:
    """What each of these budgets allows: with the paper's M-UCB-r the I additional calls come on top, counted as all.

    They do not where the run was found not to refine.
    """
    extra = Spend(calls=_additional(ledger))
    return [Spend(*budget.limits()) + extra for budget in budgets(ledger)]


def _additional(ledger: Ledger) -> int:
    facts, decided = ledger.facts(), ledger.payloads(REFINING)
    if decided and decided[-1]["skipped"] is not None:
        return 0
    return on_top(recorded_settings(facts), Questions.of(facts))


def extend(ledger: Ledger, wanted: BudgetSettings) -> None:
    """Raises the budget of a run to ``wanted`` and records that; the plan so far is carried out first.

    Raises:
        LedgerError: If a limit would fall.
    """
    refuse_less(ledger, wanted)
    if wanted != budgets(ledger)[-1]:
        ledger.event(EXTENDED, **wanted.model_dump(mode="json"))


def refuse_less(ledger: Ledger, wanted: BudgetSettings) -> None:
    """Raises ``LedgerError`` if ``wanted`` is below the present budget in any limit."""
    so_far = spent(ledger)
    present = budgets(ledger)[-1].limits()
    for name, limit, before in zip(("calls", "tokens", "dollars"), wanted.limits(), present, strict=True):
        used = getattr(so_far, name)
        on_top_of_it = _additional(ledger) if name == "calls" else 0
        if (limit + on_top_of_it) * (1 + 1e-12) < used:  # the budget's own tolerance of rounding in sums of dollars
            raise LedgerError(
                f"The run in {ledger.path.parent} has used {used:g} {name}; a budget of {limit:g} is less."
            )
        if limit < before:
            raise LedgerError(
                f"The run in {ledger.path.parent} has a budget of {before:g} {name}; it can be raised, not lowered."
            )


def _asked(facts: Mapping[str, Any]) -> list[str]:
    """The names of the models that a run asks."""
    writes = "writer" in facts and recorded_settings(facts).has_ideas
    return [*(facts.get("models") or [facts["lm"]]), *([facts["writer"]] if writes else [])]


def refuse_unpriced(settings: Settings, models: Sequence[str]) -> None:
    """Raises ``ConfigError`` if there is a limit in dollars and a model without a price, which could not be kept."""
    names = [*models, *([settings.judge.name] if settings.judge and settings.judge.name else [])]
    missing = next((name for name in names if name not in settings.prices), None)
    if settings.budget.dollars is not None and missing is not None:
        raise ConfigError(
            f"A budget in dollars needs the price of {missing!r}. Give it in the TOML file of the run, in dollars per "
            f'million tokens:\n[prices."{missing}"]\ninput = 0.15\noutput = 0.60'
        )


def refuse_uncounted(task: Task, lm: LanguageModel, settings: Settings) -> None:
    """Raises ``ConfigError`` if a limit in tokens or dollars rests on a model that cannot say how long a prompt is."""
    if settings.budget.tokens is None and settings.budget.dollars is None:
        return
    pair = task.held_out(settings.holdout, settings.seed)[0][0]
    if lm.max_prompt_tokens(task.render("A prompt.", pair, seed=0)) < 1:
        raise ConfigError(
            f"A budget in tokens or dollars needs the tokens of a prompt, and {lm.name} does not count them. Let "
            "max_prompt_tokens(request) of the model return an upper bound, or limit budget.calls instead."
        )
