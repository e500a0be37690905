"""``optimize``: a whole run as one function."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from bestprompt.choices import Mode
from bestprompt.latent import TextAutoencoder
from bestprompt.ledger import Ledger, holds_a_run
from bestprompt.lm import open_model
from bestprompt.lm.several import Several
from bestprompt.run.automatic import as_recorded, decided
from bestprompt.run.live import Run
from bestprompt.run.observer import Observer
from bestprompt.run.record import as_begun, open_ledger, run_facts
from bestprompt.run.result import Recommendation
from bestprompt.run.settings import Settings, changed, in_mode, load_settings
from bestprompt.search import CandidateSource
from bestprompt.tasks import Task
from bestprompt.types import LanguageModel, SoftPromptSet


def optimize(
    task: Task,
    lm: LanguageModel | Sequence[LanguageModel],
    *,
    budget: int | None = None,
    seed: int | None = None,
    candidates: Sequence[str] | SoftPromptSet | CandidateSource = (),
    ledger: str | Path | None = None,
    config: Settings | str | Path | None = None,
    observer: Observer | None = None,
    autoencoder: TextAutoencoder | None = None,
    holdout: float | None = None,
    demos: int | None = None,
    prompts: str | Path | Sequence[str | Path] | None = None,
    incumbent: str | None = None,
    mode: Mode | None = None,
    writer: LanguageModel | None = None,
) -> Recommendation:
    """Finds the best prompt for ``task`` on ``lm``.

    Args:
        task: Pairs, example prompts and score.
        lm: The language model; or several, to find the best combination of prompt and model under one budget. The first
            of them also writes and judges, where that is asked for.
        budget: Calls allowed; 300 unless ``config`` says otherwise.
        seed: Decides every random choice; 0 unless ``config`` says otherwise.
        candidates: Prompts to choose from besides the task's examples; when given, no others are invented but those
            that ``search.rewrites`` asks for. Or a set from :func:`bestprompt.build_candidates`, used as it is. Or an
            object that proposes prompts (:class:`bestprompt.search.CandidateSource`), which is asked once.
        ledger: Folder of the run. A run that is already there is continued, with a larger budget if that is given.
            Nothing is kept when left out.
        config: Settings, or a TOML file of them.
        observer: Is told how the run goes.
        autoencoder: Invents candidates and refines them, where the settings ask for that; the shipped one if left out.
        holdout: Share of the pairs on which nothing is chosen: winner and incumbent (or best example) are tried on them
            at the end, within the budget. None are held out unless ``config`` says otherwise.
        demos: Every prompt is also tried with so many pairs shown in it, taken from pairs that judge no prompt. None
            unless ``config`` says otherwise.
        prompts: Files of prompts to choose from besides the task's examples, or folders of them: texts, tables, JSON,
            and what GEPA, DSPy, promptfoo, PromptWizard and promptolution write.
        incumbent: The prompt in use now: one more candidate, and the verdict says whether to keep it.
        mode: ``"paper"`` runs the published method as a whole: candidates are invented from the examples, warmed up and
            chosen by a Bayesian neural network and M-UCB, one evaluation at a time; it outranks ``config``, whose
            refinement it keeps. What ``config`` says unless given.
        writer: The model that writes prompts while the run goes on, where it does (``[ideas]`` of ``config``); that of
            ``[writer]`` or, if there is none, ``lm``.

    Raises:
        LedgerError: If the folder holds a run with another task, model or configuration, or a larger budget.
        LMError: If the model cannot be used. All answers so far are in the ledger; call again to continue.
        NothingScored: If all answers of the pilot scored 0; the message names the likely cause. Call again with the
            same ``ledger`` to go on all the same, or set ``all_zero="continue"`` in ``config``.
        BudgetExhausted: If the budget ended before a single evaluation was made.
    """
    lm = Several(lm) if isinstance(lm, Sequence) else lm
    settings = config if isinstance(config, Settings) else load_settings(Path(config) if config else None)
    settings = settings if mode is None else in_mode(settings, mode)
    named = [prompts] if isinstance(prompts, str | Path) else prompts
    given = {
        "budget.calls": budget,
        "seed": seed,
        "holdout": holdout,
        "selection.incumbent": incumbent,
        "search.demos": demos,
        "search.file": tuple(Path(each) for each in named) if named is not None else None,
    }
    settings = changed(settings, given)
    if writer is None and settings.writer is not None:
        writer = open_model(settings.writer)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(ledger) if ledger is not None else Path(scratch) / "run"
        if holds_a_run(folder):
            with Ledger.read(folder) as recorded:
                task = as_begun(task, recorded.facts())
                settings = as_recorded(settings, recorded.facts())
        settings = decided(task, lm, settings, candidates, autoencoder)
        with open_ledger(folder, run_facts(task, lm, settings, candidates, writer)) as opened:
            return Run(task, lm, settings, opened, candidates, observer, autoencoder, writer).execute()
