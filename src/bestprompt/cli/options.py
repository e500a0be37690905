"""The options of ``run`` and ``search``: their names, help and groups, each in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bestprompt.cli import completion

_DATA, _MODEL, _BUDGET = "Your task", "The model", "The budget, and when to stop"
_PROMPTS, _METHOD, _OUTPUT = "Where prompts come from", "The method", "What is written"

TaskName = Annotated[
    str,
    typer.Argument(
        help="A bundled task (see: bestprompt tasks), or a file or folder: CSV, JSONL, JSON, TOML.",
        autocompletion=completion.tasks,
        show_default=False,
    ),
]

ScorerKind = Annotated[
    str | None,
    typer.Option(
        "--scorer",
        metavar="KIND",
        help="What an answer is worth: label, number, contains, f1, rouge-l, exact, judge, … or a table such as "
        '\'{ kind = "regex", pattern = "x" }\'.',
        show_default="proposed from the data",
        autocompletion=completion.scorers,
        rich_help_panel=_DATA,
    ),
]
Template = Annotated[
    str | None,
    typer.Option(
        help="The message to the model, with {prompt} and {input}; \\n is a new line.",
        show_default="{prompt}\\n\\n{input}",
        rich_help_panel=_DATA,
    ),
]
System = Annotated[
    str | None,
    typer.Option(
        help="A system message for all prompts; may hold {prompt}.", show_default=False, rich_help_panel=_DATA
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(min=1, help="Longest answer.", show_default="32, more for long answers", rich_help_panel=_DATA),
]
Incumbent = Annotated[
    str | None,
    typer.Option(
        metavar="PROMPT", help="The prompt you use now; the verdict says whether to keep it.", rich_help_panel=_DATA
    ),
]
Holdout = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Share of the pairs kept aside, e.g. 0.2; at the end the winner and your prompt meet them.",
        show_default="0",
        rich_help_panel=_DATA,
    ),
]

Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        help="A GGUF file, embedded, or a model's name at --base-url (or NAME@URL). Several, to find the best "
        "combination of prompt and model.",
        show_default="the embedded one",
        rich_help_panel=_MODEL,
    ),
]
OneModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="A GGUF file, embedded, or a model's name at --base-url (or NAME@URL).",
        show_default="the embedded one",
        rich_help_panel=_MODEL,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="An OpenAI-compatible URL; the key is read from the environment (OPENAI_API_KEY).",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
InFlight = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Keep so many requests at the model, and ask for another as soon as any is answered.",
        show_default="in lock-step, a batch at a time, which gives the same run every time",
        rich_help_panel=_MODEL,
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Let workers of a Ray cluster answer: auto, HOST:PORT, or local.",
        rich_help_panel=_MODEL,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="With --ray: workers that hold the model.", show_default="1", rich_help_panel=_MODEL),
]

Calls = Annotated[
    int | None, typer.Option("--budget", "-b", help="Calls allowed.", show_default="300", rich_help_panel=_BUDGET)
]
Dollars = Annotated[
    float | None,
    typer.Option(help="Dollars allowed, by the price table of the TOML file.", rich_help_panel=_BUDGET),
]
Tokens = Annotated[int | None, typer.Option(help="Tokens allowed.", rich_help_panel=_BUDGET)]
SpendAll = Annotated[
    bool,
    typer.Option(
        "--spend-all",
        help="Go on when what is left to ask would hardly change the answer; a run ends there otherwise.",
        rich_help_panel=_BUDGET,
    ),
]
StopAt = Annotated[
    float | None,
    typer.Option(
        metavar="PROBABILITY",
        help="Stop when the winner is within delta (0.02) of the best this surely, e.g. 0.95.",
        rich_help_panel=_BUDGET,
    ),
]
StopLoss = Annotated[
    float | None,
    typer.Option(
        metavar="SCORE", help="Stop when the winner is expected to miss less score than this.", rich_help_panel=_BUDGET
    ),
]
KeepGoing = Annotated[
    bool,
    typer.Option(
        "--keep-going", help="Go on even if every answer of the first 24 calls scores 0.", rich_help_panel=_BUDGET
    ),
]

PromptFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--prompts",
        help="A file of prompts to choose from: one a line, several separated by lines of ---, or a whole .md file as "
        "one prompt; also CSV, JSON, a folder of files, and what GEPA, DSPy, promptfoo, PromptWizard and promptolution "
        "write. May be repeated.",
        show_default=False,
        rich_help_panel=_PROMPTS,
    ),
]
Latent = Annotated[
    bool | None,
    typer.Option(
        "--latent/--examples-only",
        help="Also invent variants of your prompts in the latent space of an autoencoder, or do not.",
        show_default="from 200 calls on, where every prompt is a sentence that it can hold",
        rich_help_panel=_PROMPTS,
    ),
]
Ideas = Annotated[
    bool | None,
    typer.Option(
        "--ideas/--no-ideas",
        help="Let a model write further prompts while the run goes on: it sees what the leading prompt got wrong, and "
        "what it writes is judged like the others, by pairs that it was not shown. Its calls count in the budget.",
        show_default="from 100 calls and 12 pairs on",
        rich_help_panel=_PROMPTS,
    ),
]
Writer = Annotated[
    str | None,
    typer.Option(
        "--writer",
        metavar="MODEL",
        help="Who writes them: a GGUF file, embedded, or a model's name at --base-url (or NAME@URL).",
        show_default="the model itself",
        rich_help_panel=_PROMPTS,
    ),
]
Candidates = Annotated[
    int | None,
    typer.Option("--candidates", "-n", help="Size of the candidate set.", show_default="60", rich_help_panel=_PROMPTS),
]
Rewrites = Annotated[
    int | None,
    typer.Option(
        help="Variants of your prompts that the model writes, paid for from the budget.",
        show_default="0",
        rich_help_panel=_PROMPTS,
    ),
]
Demos = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="K",
        help="Also try your prompts with K of your pairs shown in them as examples. They are taken from pairs that are "
        "kept aside and judge no prompt (twice K of them).",
        show_default="0",
        rich_help_panel=_PROMPTS,
    ),
]
Refine = Annotated[
    str | None,
    typer.Option(
        metavar="MODE",
        help="Look for better prompts outside the set: off, default (a rule shares the budget), m-ucb-r (with the last "
        "calls) or psk-ei (direct search).",
        show_default="off; default where variants are invented",
        autocompletion=completion.refinements,
        rich_help_panel=_PROMPTS,
    ),
]
R1 = Annotated[
    float | None,
    typer.Option(help="Invented prompts are more similar than this.", show_default="0.45", rich_help_panel=_PROMPTS),
]
R2 = Annotated[
    float | None, typer.Option(help="And less similar than this.", show_default="0.95", rich_help_panel=_PROMPTS)
]
Similarity = Annotated[
    str | None,
    typer.Option(
        help="Similar in what: words, letters or mixed.",
        show_default="mixed",
        autocompletion=completion.similarities,
        rich_help_panel=_PROMPTS,
    ),
]
Dimension = Annotated[
    int | None,
    typer.Option(help="Coordinates of a soft prompt, D, at most.", show_default="50", rich_help_panel=_PROMPTS),
]

Method = Annotated[
    str | None,
    typer.Option(
        "--mode",
        help="default, or paper: the published method as a whole, from the search in the latent space to a batch of "
        "one; it refines only with --refine.",
        show_default="default",
        autocompletion=completion.modes,
        rich_help_panel=_METHOD,
    ),
]
SurrogateName = Annotated[
    str | None,
    typer.Option(
        "--surrogate",
        help="What learns from scores: auto, none, gp, gp-rank, blr, bnn, vae.",
        show_default="auto",
        autocompletion=completion.surrogates,
        rich_help_panel=_METHOD,
    ),
]
MaximizerName = Annotated[
    str | None,
    typer.Option(
        "--maximizer",
        help="How a surrogate's next prompt is found: argmax, or reinforce (PR-M-UCB).",
        show_default="auto",
        autocompletion=completion.maximizers,
        rich_help_panel=_METHOD,
    ),
]
Draws = Annotated[
    int | None,
    typer.Option(help="Posterior draws of a named surrogate, K.", show_default="100", rich_help_panel=_METHOD),
]
Seed = Annotated[
    int | None, typer.Option(help="Decides every random choice.", show_default="0", rich_help_panel=_METHOD)
]

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Folder of the run.", show_default="runs/TASK-TIME", rich_help_panel=_OUTPUT),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what the run may use, and stop.", rich_help_panel=_OUTPUT)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=_OUTPUT)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.", rich_help_panel=_OUTPUT)]

RunFolder = Annotated[
    Path,
    typer.Argument(
        help="Folder of the run (see: bestprompt status).", autocompletion=completion.runs, show_default=False
    ),
]
