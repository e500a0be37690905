"""A result on the terminal: the prompt to use, how sure that is, the leaderboard. Plain values are all it needs.

A run that has just ended and one that is read from its record are shown by the same functions, from what
``Recommendation.as_dict`` holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.panel import Panel
from rich.table import Table

from bestprompt.cli.console import output, tell, words
from bestprompt.run.sources import source_in_words

WORSE, UNDECIDED = 5, 6


def show_result(result: Mapping[str, Any], title: str, most: int = 10) -> None:
    """The prompt to use, how sure that is, and the first ``most`` rows of the leaderboard; of a check, its outcome."""
    rows = result["leaderboard"]
    if result.get("check") is not None:
        _show_check(result["check"], title)
        output.print(leaderboard_table(rows[:most]))
        return
    kept = result["candidate_to_use"] != rows[0]["candidate"]
    shown = next(row for row in rows if row["candidate"] == result["candidate_to_use"])
    best = f": {shown['model']}" if shown["model"] else ""
    figures = [f"score {shown['estimate']:.3f}", f"95 % {shown['low']:.3f} to {shown['high']:.3f}"]
    if not kept:
        figures.append(f"best with probability {result['probability_best']:.2f}")
    while len("   ".join(figures)) > output.width - 6:  # what does not fit stands in the verdict, too
        figures.pop()
    output.print(
        Panel(
            words(result["prompt_to_use"]),
            title=words(f"{'keep your prompt' if kept else 'best prompt'} for {title}{best}", style="bold"),
            subtitle="   ".join(figures),
            border_style="cyan",
            padding=(1, 2),
        )
    )
    if kept:
        tell(f"Challenger: “{result['prompt']}”", "dim")
    tell(result["verdict"])
    tell(result["outlook"], "dim")
    if result["shortfall"]:
        tell(result["shortfall"], "yellow")
    output.print(leaderboard_table(rows[:most]))


def _show_check(check: Mapping[str, Any], title: str) -> None:
    style = "green" if check["passes"] else "red"
    tell(f"{'passed' if check['passes'] else 'failed'}: the new prompt for {title}", f"bold {style}")
    tell(check["sentence"])


def exit_code(result: Mapping[str, Any]) -> int:
    """0, or what a check found that a job should fail for: 5 for a worse prompt, 6 for one of which little is known.

    All else has a meaning of its own already (:mod:`bestprompt.cli.app`), so that a failing job says why it fails.
    """
    check = result.get("check")
    if check is None or check["passes"]:
        return 0
    return WORSE if check["outcome"] == "worse" else UNDECIDED


def leaderboard_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The rows as a table; a star marks what is tied with the winner. Where models differ, so do cost and time."""
    several = any(row["model"] for row in rows)
    priced, timed = (several and any(row[name] for row in rows) for name in ("cost", "latency"))
    heads = ["#", "", "score", "95 %", "evals", *(["$/1000"] if priced else []), *(["seconds"] if timed else [])]
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in heads:
        table.add_column(name, justify="left" if not name else "right", no_wrap=True)
    if several:
        table.add_column("model", overflow="fold")
    # Where prompts are of one origin, or it is plain from the verdict, their texts need the room.
    told = len({row["source"] for row in rows}) > 1 and any(": " in row["source"] for row in rows)
    if told:
        table.add_column("source", overflow="fold", max_width=18)
    table.add_column("prompt", overflow="fold")
    for row in rows:
        cells: list[Any] = [
            str(row["rank"]), "★" if row["tied"] else "", f"{row['estimate']:.3f}",
            f"{row['low']:.2f}–{row['high']:.2f}", str(row["evaluations"]),
        ]  # fmt: skip
        cells += ["" if row["cost"] is None else f"{1000 * row['cost']:.3g}"] if priced else []
        cells += ["" if row["latency"] is None else f"{row['latency']:.2f}"] if timed else []
        cells += [words(row["model"])] if several else []
        cells += [words(source_in_words(row["source"]).removeprefix("from "))] if told else []
        table.add_row(*cells, words(row["prompt"]))
    return table


def show_end(result: Mapping[str, Any]) -> None:
    """What was used, why the run ended, and what that saved."""
    saved = result["unspent"]
    tell(
        f"\n{result['calls']} calls, {result['tokens']:,} tokens, ${result['dollars']:.4f}; "
        f"ended because {result['stopped_because']}"
        + (f"; {saved} calls of the budget saved" if saved and not _spent(result["stopped_because"]) else "")
    )


def _spent(reason: str) -> bool:
    return "budget" in reason
