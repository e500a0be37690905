"""Drawing: one function per figure, each from the plain values beside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from bestprompt.report.course import Course, Strip
from bestprompt.report.refining import Predictions, Turns
from bestprompt.report.svg import Plot, Scale, bar, level, strip
from bestprompt.report.texts import one_line, visible
from bestprompt.report.wording import Landmark, WordingMap
from bestprompt.run.leaderboard import LeaderboardRow
from bestprompt.types import FloatArray, SoftPromptSet

# Widths that words on the map must not collide at: a telephone's, then a desk's.
NARROW, WIDE, MAP_HEIGHT = 330, 860, 380
NUMBERED = 8  # prompts of the map that carry their rank


def score_scale(values: Sequence[float]) -> Scale:
    """An axis that holds ``values`` with some air, within [0, 1] where they are."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    air = 0.05 * max(high - low, 0.1)
    return Scale(max(0.0, low - air) if low >= 0 else low - air, min(1.0, high + air) if high <= 1 else high + air)


def draw_interval(row: LeaderboardRow, scale: Scale) -> Markup:
    """A row's estimate and interval."""
    return bar(row.low, row.estimate, row.high, scale, "tied" if row.tied else "")


def draw_course(values: Course, verdict: tuple[float, float, float] | None) -> Markup:
    """The leader's estimate with its 95 % band against calls and cost; at the end the verdict (low, score, high)."""
    kept = values.thinned()
    calls, estimate, half = values.calls[kept], values.estimate[kept], 1.96 * values.deviation[kept]
    lows, highs = np.maximum(estimate - half, 0.0), np.minimum(estimate + half, 1.0)
    last = float(calls[-1]) if len(kept) else 1.0
    x = Scale(0.0, last * (1.04 if verdict else 1.0))
    ends = [0.0, 1.0] if not len(kept) else [float(lows.min()), float(highs.max()), *(verdict or ())]
    y = score_scale(ends)
    label = "Score of the leading prompt after each call"
    if len(kept):
        label += f": {estimate[0]:.2f} at first, {estimate[-1]:.2f} ± {half[-1]:.2f} after {last:.0f} calls"
    plot = Plot(x, y, label)
    paid = "dollars" if len(kept) and values.dollars[-1] > 0 else "tokens"
    plot.axes(
        f"calls, and {paid} used by then", "score", [(tick, _cost(values, tick)) for tick in x.ticks() if tick > 0]
    )
    if len(kept):
        plot.band(calls.tolist(), lows.tolist(), highs.tolist(), "band")
        plot.line(calls.tolist(), estimate.tolist(), "course")
    if verdict and len(kept):
        low, score, high = verdict
        end = last * 1.02
        plot.rule(end, low, end, high, "verdict")
        plot.dot(end, score, 5, "winner", f"The verdict: {score:.3f}, 95 % {low:.3f} to {high:.3f}")
    return plot.render()


def _cost(values: Course, calls: float) -> str:
    """What so many calls had cost: dollars or, where they are free, tokens."""
    at = min(int(np.searchsorted(values.calls, calls)), len(values) - 1)
    if values.dollars[-1] > 0:
        return f"${values.dollars[at]:.2g}"
    tokens = int(values.tokens[at])
    return f"{tokens / 1000:.3g}k" if tokens >= 1000 else str(tokens or "")


def draw_strip(values: Strip) -> Markup:
    """Where along the run the calls to one prompt lie."""
    when = np.flatnonzero(values.counts)
    label = "not asked"
    if when.size:
        first, last = (100 * (int(end) + add) // values.counts.size for end, add in ((when[0], 0), (when[-1], 1)))
        label = f"{values.calls} calls, from {first} % to {last} % of the run"
    return strip(values.counts.tolist(), values.scores.tolist(), label)


def draw_map(values: WordingMap, rows: Sequence[LeaderboardRow]) -> Markup:
    """The prompts by wording, children linked to parents, with words where the prompts that use them lie."""
    plot = _map_plot(values, f"Map of {len(rows)} prompts by wording; the ten best lead to their rows above")
    for row in sorted(rows, key=lambda r: -r.rank):  # the best on top
        x, y = float(values.x[row.candidate]), float(values.y[row.candidate])
        style = f"f{level(row.estimate)} place" if row.evaluations else "unasked place"
        said = f"{row.rank}. {visible(row.prompt)} — {row.estimate:.3f}, {row.evaluations} answers"
        radius = min(4.0 + float(np.sqrt(row.evaluations)), 13.0)
        link = f"#p{row.candidate}" if row.rank <= 10 else None
        plot.dot(x, y, radius, f"{style} winner-ring" if row.rank == 1 else style, said, link)
        if row.rank <= NUMBERED:
            plot.text(x, y, str(row.rank), "rank", "middle", dy=-radius - 4)
    return plot.render()


def draw_search(candidates: SoftPromptSet, values: WordingMap) -> Markup:
    """A candidate set before anything was evaluated: the same map, the darker the later a prompt was found."""
    plot = _map_plot(values, f"Map of {len(candidates.prompts)} prompts by wording")
    for n, prompt in enumerate(candidates.prompts):
        style = f"f{level(n / len(candidates.prompts))} place"
        plot.dot(float(values.x[n]), float(values.y[n]), 5, style, f"{n}. {visible(prompt)} ({candidates.sources[n]})")
    return plot.render()


def _map_plot(values: WordingMap, label: str) -> Plot:
    plot = Plot(Scale(-0.04, 1.04), Scale(-0.08, 1.08), label, MAP_HEIGHT, linked=True)
    for child, parent in values.edges:
        (x1, y1), (x2, y2) = ((float(values.x[n]), float(values.y[n])) for n in (child, parent))
        plot.rule(x1, y1, x2, y2, "edge")
    always = _apart(values.landmarks, NARROW)
    wide = _apart([*always, *(mark for mark in values.landmarks if mark not in always)], WIDE)
    for mark in wide:
        plot.text(mark.x, mark.y, one_line(mark.word, 18), "word" if mark in always else "word wide", "middle", dy=4)
    return plot


def _apart(marks: Sequence[Landmark], width: int) -> list[Landmark]:
    """The first of the ``marks`` that can stand side by side on a map of so many pixels."""
    taken: list[tuple[float, float, float]] = []
    kept = []
    for mark in marks:
        x, y, half = mark.x * width, mark.y * MAP_HEIGHT, 4.5 * len(mark.word) + 6
        if all(abs(x - tx) > half + th or abs(y - ty) > 20 for tx, ty, th in taken) and half < x < width - half:
            taken.append((x, y, half))
            kept.append(mark)
    return kept


def draw_predictions(values: Predictions) -> Markup:
    """Refined prompts: observed against predicted mean score, with the prediction's 95 % interval and the diagonal."""
    half = 1.96 * values.std
    ends = score_scale(
        [*(values.predicted - half).tolist(), *(values.predicted + half).tolist(), *values.observed.tolist()]
    )
    plot = Plot(ends, ends, f"Predicted and observed scores of {len(values.prompts)} refined prompts", 260)
    plot.axes("predicted", "observed")
    plot.line([ends.low, ends.high], [ends.low, ends.high], "diagonal")
    for n, prompt in enumerate(values.prompts):
        x, y = float(values.predicted[n]), float(values.observed[n])
        plot.rule(max(x - float(half[n]), ends.low), y, min(x + float(half[n]), ends.high), y, "spread")
        said = f"{one_line(prompt)} — predicted {x:.3f}, observed {y:.3f} in {int(values.evaluations[n])} answers"
        plot.dot(x, y, min(3.0 + float(np.sqrt(values.evaluations[n])), 10.0), "winner", said)
    return plot.render()


def draw_turns(values: Turns) -> Markup:
    """Expected gain per call of selecting and of refining at each look; filled dots: whose turn it was."""
    both = [*values.selecting.tolist(), *values.refining.tolist()]
    plot = Plot(
        Scale(0.0, float(values.call.max())),
        Scale(0.0, max([*both, 1e-6]) * 1.1),
        f"Expected gain per call at {values.call.size} looks; refining had {int(values.refined.sum())} turns",
    )
    plot.axes("answers", "gain per call")
    for name, gains, taken in (
        ("selecting", values.selecting, ~values.refined),
        ("refining", values.refining, values.refined),
    ):
        style = "winner" if name == "refining" else "other"
        plot.line(values.call.tolist(), gains.tolist(), f"course {style}-line")
        for call, gain, filled in zip(values.call.tolist(), gains.tolist(), taken.tolist(), strict=True):
            plot.dot(call, gain, 4, style if filled else f"{style} hollow", f"{name}: {gain:.2g} after {call} answers")
        plot.text(float(values.call[-1]), float(gains[-1]), name, f"{style}-text", "end", dy=-10)
    return plot.render()


def rounds(history: Sequence[Sequence[float]]) -> tuple[FloatArray, FloatArray]:
    """(R,) proposals made and accepted in each round of a search; fifty together where they were made one at a time."""
    each = np.array(history, dtype=float).reshape(-1, 3)
    if len(each) and each[0, 0] == 1:
        each = np.array([part.sum(axis=0) for part in np.array_split(each, max(1, len(each) // 50))])
    return each[:, 0], each[:, 1]


def draw_growth(made: FloatArray, accepted: FloatArray) -> Markup:
    """How the search stage went: candidates found against proposals made, (R,) of each round."""
    x, y = np.cumsum(made), np.cumsum(accepted)
    plot = Plot(
        Scale(0.0, float(x[-1])), Scale(0.0, float(max(y[-1], 1.0)) * 1.05), "Candidates found per proposal made"
    )
    plot.axes("proposals", "found")
    plot.line([0.0, *x.tolist()], [0.0, *y.tolist()], "course")
    for at, found, share in zip(x.tolist(), y.tolist(), (accepted / made).tolist(), strict=True):
        plot.dot(at, found, 4, "winner", f"{found:.0f} found in {at:.0f} proposals; {share:.0%} accepted in this round")
    return plot.render()
