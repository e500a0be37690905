"""``run`` and ``resume``: their options."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from bestprompt.errors import LedgerError
from bestprompt.lm.settings import RaySettings
from bestprompt.run.settings import load_settings, recorded_settings


def register(app: typer.Typer) -> None:
    """Adds this module's commands."""
    app.command("run")(run)
    app.command("resume")(resume)


def run(
    task: Annotated[str, typer.Argument(help="A bundled task (see: bestprompt tasks), or a file or folder.")],
    budget: Annotated[int | None, typer.Option("--budget", "-b", help="Calls allowed.  [default: 300]")] = None,
    dollars: Annotated[float | None, typer.Option(help="Dollars allowed, by the price table of the TOML file.")] = None,
    tokens: Annotated[int | None, typer.Option(help="Tokens allowed.")] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="A GGUF file, or the model's name at --base-url.  [default: embedded]"),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="An OpenAI-compatible URL; the key is read from the environment.")
    ] = None,
    candidates: Annotated[int | None, typer.Option("--candidates", "-n", help="Size of the candidate set.")] = None,
    r1: Annotated[
        float | None, typer.Option(help="Invented prompts are more similar than this.  [default: 0.45]")
    ] = None,
    r2: Annotated[float | None, typer.Option(help="And less similar than this.  [default: 0.95]")] = None,
    similarity: Annotated[
        str | None, typer.Option(help="Similar in what: words, letters or mixed.  [default: mixed]")
    ] = None,
    dimension: Annotated[
        int | None, typer.Option(help="Coordinates of a soft prompt, D, at most.  [default: 50]")
    ] = None,
    draws: Annotated[int | None, typer.Option(help="Posterior draws of a named surrogate, K.  [default: 100]")] = None,
    prompts: Annotated[Path | None, typer.Option(help="A file of further candidate prompts, one a line.")] = None,
    rewrites: Annotated[
        int | None,
        typer.Option(help="Variants of the examples that the model writes, paid for from the budget.  [default: 0]"),
    ] = None,
    latent: Annotated[
        bool | None,
        typer.Option("--latent/--examples-only", help="Also invent variants of the examples, or use them as given."),
    ] = None,
    refine: Annotated[
        str | None,
        typer.Option(
            metavar="MODE",
            help="Look for better prompts outside the set: off, default (a rule shares the budget), m-ucb-r (with the "
            "last calls) or psk-ei (direct search).  [default: off; default with --latent]",
        ),
    ] = None,
    incumbent: Annotated[
        str | None, typer.Option(help="The prompt you use now; the verdict says whether to keep it.")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help="default, or paper: the published method as a whole, from the search in the latent space to a batch "
            "of one; it refines only with --refine."
        ),
    ] = None,
    surrogate: Annotated[
        str | None,
        typer.Option(help="What learns from scores: auto, none, gp, gp-rank, blr, bnn, vae.  [default: auto]"),
    ] = None,
    maximizer: Annotated[
        str | None,
        typer.Option(help="How a surrogate's next prompt is found: argmax, or reinforce (PR-M-UCB).  [default: auto]"),
    ] = None,
    in_flight: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Keep so many requests at the model and ask for another as soon as any is answered.  [default: in "
            "lock-step, a batch at a time, which gives the same run every time]",
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Let workers of a Ray cluster answer: auto, HOST:PORT, or local."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="With --ray: how many workers hold the model.  [default: 1]")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Decides every random choice.")] = None,
    stop_at: Annotated[
        float | None,
        typer.Option(help="Stop early when the winner is within delta (0.02) of the best this surely: 0.95."),
    ] = None,
    stop_loss: Annotated[
        float | None, typer.Option(help="Stop early when the winner is expected to miss less score than this.")
    ] = None,
    spend_all: Annotated[
        bool, typer.Option("--spend-all", help="Go on when what is left to ask would hardly change the answer.")
    ] = False,
    holdout: Annotated[
        float | None,
        typer.Option(help="Share of the pairs kept aside, e.g. 0.2; at the end the winner and your prompt meet them."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the run.  [default: runs/TASK-TIME]")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what the run may use, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Choose the best prompt for a task.

    Evaluates candidate prompts one small batch at a time, where a call is worth most, until the budget is spent or
    the answer is settled; at temperature 0 no question is asked twice. Then prints the winner, how sure that is, and
    the path of a report. Every call is kept: Ctrl-C loses nothing,
    and `bestprompt resume` continues.

    Examples:
      bestprompt run first-letter --budget 200

      bestprompt run reviews.csv --prompts ideas.txt --model gpt-4o-mini --base-url https://host/v1

      bestprompt run project.toml --dry-run
    """
    path = Path(task)
    overrides: dict[str, Any] = {
        "budget.calls": budget, "budget.dollars": dollars, "budget.tokens": tokens, "search.candidates": candidates,
        "search.file": prompts and str(prompts.absolute()), "search.rewrites": rewrites,
        "search.source": {None: None, True: "latent", False: "examples"}[latent],
        "refinement.mode": refine, "selection.incumbent": incumbent, "mode": mode,
        "selection.surrogate": surrogate, "selection.maximizer": maximizer, "selection.draws": draws,
        "search.r1": r1, "search.r2": r2, "search.similarity": similarity, "search.dimension": dimension,
        "selection.stop_at": stop_at, "selection.stop_loss": stop_loss,
        "selection.stop_gain": 0.0 if spend_all else None, "holdout": holdout, "seed": seed, "output": folder,
        "selection.in_flight": in_flight, "model.concurrency": in_flight, "ray.address": ray, "ray.workers": workers,
        **_model_overrides(model, base_url),
    }  # fmt: skip
    settings = load_settings(path if path.suffix == ".toml" else None, overrides)
    source = str(path.absolute()) if path.exists() else task
    from bestprompt.cli import session  # loads the numerical engines, which --help does not need
    from bestprompt.ledger import holds_a_run
    from bestprompt.run import open_ledger, run_facts

    lm = session.open_lm(settings, quiet=quiet or as_json)
    loaded = session.load_task(source, settings, lm)
    if dry_run:
        session.print_plan(loaded, lm, settings, as_json)
        return
    target = settings.output or Path("runs") / f"{loaded.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    if holds_a_run(target):
        raise LedgerError(f"{target} already holds a run. Continue it with: bestprompt resume {target}")
    ledger = open_ledger(target, run_facts(loaded, lm, settings), {"source": source})
    session.execute(loaded, lm, settings, ledger, target, as_json, quiet)


def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of the run (see: bestprompt status).")],
    budget: Annotated[
        int | None,
        typer.Option("--budget", "-b", min=1, help="Calls allowed in all; more than before extends the run."),
    ] = None,
    dollars: Annotated[float | None, typer.Option(min=1e-9, help="Dollars allowed in all.")] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="Tokens allowed in all.")] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Let workers of a Ray cluster answer: auto, HOST:PORT, or local."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="With --ray: how many workers hold the model.  [default: 1]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Continue a run that was interrupted, or extend one; nothing that was answered is asked again.

    A run that has used its budget goes on with a larger one: bestprompt resume runs/mine --budget 600
    """
    from bestprompt.cli import session
    from bestprompt.ledger import Ledger
    from bestprompt.run import budgets, open_ledger, refuse_less, run_facts

    changes = {"calls": budget, "dollars": dollars, "tokens": tokens}
    with Ledger.read(folder) as ledger:
        facts, limits = ledger.facts(), budgets(ledger)[-1].model_dump()
        limits |= {name: limit for name, limit in changes.items() if limit is not None}
        settings = recorded_settings({"settings": {**facts["settings"], "budget": limits}})
        if ray is not None:
            settings = settings.model_copy(update={"ray": RaySettings(address=ray, workers=workers or 1)})
        refuse_less(ledger, settings.budget)  # before the model is loaded
    if "source" not in facts:
        raise LedgerError(
            f"{folder} was started from Python. Continue it with: bestprompt.optimize(..., ledger={str(folder)!r})"
        )
    lm = session.open_lm(settings, quiet=quiet or as_json)
    task = session.load_task(facts["source"], settings, lm)
    ledger = open_ledger(folder, run_facts(task, lm, settings))
    session.execute(task, lm, settings, ledger, folder, as_json, quiet)


def _model_overrides(model: str | None, base_url: str | None) -> Mapping[str, Any]:
    if base_url is not None or (model is not None and not model.endswith(".gguf")):
        return {"model.kind": "openai", "model.name": model, "model.base_url": base_url}
    return {"model.path": model and str(Path(model).absolute())}
