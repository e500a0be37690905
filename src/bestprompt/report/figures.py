"""Drawing: one function per figure, each from the values of ``data.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from bestprompt.report.data import CandidateMap, LeaderboardRow, Predictions, RunProgress, Turns
from bestprompt.types import SoftPromptSet

INK, MUTED, ACCENT, GRID = "#1f2933", "#9aa5b1", "#0b7285", "#e4e7eb"


def _layout(figure: Any, x: str, y: str, height: int = 380) -> Any:
    figure.update_layout(
        template="plotly_white",
        height=height,
        margin={"l": 60, "r": 20, "t": 20, "b": 50},
        font={"family": "system-ui, sans-serif", "size": 13, "color": INK},
        showlegend=False,
        xaxis={"title": x, "gridcolor": GRID},
        yaxis={"title": y, "gridcolor": GRID},
    )
    return figure


def draw_leaderboard(rows: Sequence[LeaderboardRow], most: int = 20) -> Any:
    """Estimated scores with 95 % intervals, best on top; the winner and what is tied with it are coloured."""
    shown = list(rows)[:most][::-1]
    figure = go.Figure(
        go.Scatter(
            x=[r.estimate for r in shown],
            y=[f"{r.rank}. {_short(r.prompt)}" for r in shown],
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [r.high - r.estimate for r in shown],
                "arrayminus": [r.estimate - r.low for r in shown],
                "color": MUTED,
            },
            mode="markers",
            marker={"size": 9, "color": [ACCENT if r.tied else MUTED for r in shown]},
            customdata=[[r.prompt, r.evaluations] for r in shown],
            hovertemplate="%{customdata[0]}<br>estimate %{x:.3f}, %{customdata[1]} evaluations<extra></extra>",
        )
    )
    _layout(figure, "estimated mean score", "", height=90 + 26 * len(shown))
    figure.update_layout(margin={"l": 340})
    return figure


def draw_progress(values: RunProgress) -> Any:
    """The leader's shrunken mean against the number of evaluations."""
    figure = go.Figure(go.Scatter(x=values.call, y=values.running_best, mode="lines", line={"color": ACCENT}))
    return _layout(figure, "evaluations", "score of the leader so far")


def draw_allocation(values: RunProgress, n_candidates: int) -> Any:
    """Which candidate each evaluation went to: exploration first, then the finalists."""
    figure = go.Figure(
        go.Scatter(
            x=values.call,
            y=values.candidate,
            mode="markers",
            marker={"size": 5, "color": values.score, "colorscale": "Viridis", "colorbar": {"title": "score"}},
        )
    )
    _layout(figure, "evaluations", "candidate")
    figure.update_yaxes(range=[-1, n_candidates])
    return figure


def draw_map(values: CandidateMap, prompts: Sequence[str], colour: str = "estimate") -> Any:
    """Candidates in the plane of the first two soft-prompt coordinates, children linked to parents."""
    figure = go.Figure()
    lines_x: list[float | None] = []
    lines_y: list[float | None] = []
    for child, parent in values.edges:
        lines_x += [values.x[child], values.x[parent], None]
        lines_y += [values.y[child], values.y[parent], None]
    figure.add_trace(go.Scatter(x=lines_x, y=lines_y, mode="lines", line={"color": GRID, "width": 1}, hoverinfo="skip"))
    figure.add_trace(
        go.Scatter(
            x=values.x,
            y=values.y,
            mode="markers",
            marker={
                "size": 7 + 3 * np.sqrt(values.evaluations),
                "color": values.estimate,
                "colorscale": "Viridis",
                "colorbar": {"title": colour},
                "line": {"width": 1, "color": "white"},
            },
            text=list(prompts),
            hovertemplate="%{text}<br>" + colour + " %{marker.color:.3g}<extra></extra>",
        )
    )
    return _layout(figure, "first coordinate", "second coordinate", height=460)


def draw_predictions(values: Predictions) -> Any:
    """Refined prompts: observed against predicted mean score, with the prediction's 95 % interval and the diagonal."""
    figure = go.Figure(
        go.Scatter(x=[0, 1], y=[0, 1], mode="lines", line={"color": GRID, "dash": "dash"}, hoverinfo="skip")
    )
    figure.add_trace(
        go.Scatter(
            x=values.predicted,
            y=values.observed,
            error_x={"type": "data", "array": 1.96 * values.std, "color": MUTED, "thickness": 1},
            mode="markers",
            marker={
                "size": 6 + 3 * np.sqrt(values.evaluations),
                "color": ACCENT,
                "line": {"width": 1, "color": "white"},
            },
            customdata=[[_short(p, 90), n] for p, n in zip(values.prompts, values.evaluations.tolist(), strict=True)],
            hovertemplate="%{customdata[0]}<br>predicted %{x:.3f}, observed %{y:.3f} in %{customdata[1]} evaluations"
            "<extra></extra>",
        )
    )
    return _layout(figure, "predicted mean score", "observed mean score")


def draw_turns(values: Turns) -> Any:
    """Expected gain per call of selecting and of refining at each look; filled dots: a new prompt was tried."""
    figure = go.Figure()
    for name, gains, colour in (("selecting", values.selecting, MUTED), ("refining", values.refining, ACCENT)):
        taken = values.refined if name == "refining" else ~values.refined
        figure.add_trace(
            go.Scatter(
                x=values.call,
                y=gains,
                name=name,
                mode="lines+markers",
                line={"color": colour},
                marker={"size": 9, "symbol": ["circle" if yes else "circle-open" for yes in taken], "color": colour},
                hovertemplate=f"{name}: %{{y:.2g}} per call after %{{x}} evaluations<extra></extra>",
            )
        )
    _layout(figure, "evaluations", "expected gain in score per call")
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": 1.1})
    return figure


def draw_search(candidates: SoftPromptSet) -> Any:
    """A candidate set before anything was evaluated: the map, coloured by the order of discovery."""
    order = np.arange(len(candidates.prompts), dtype=float)
    Z = np.pad(candidates.Z, ((0, 0), (0, max(0, 2 - candidates.Z.shape[1]))))
    edges = tuple((n, int(p)) for n, p in enumerate(candidates.parents) if p >= 0)
    return draw_map(
        CandidateMap(Z[:, 0], Z[:, 1], order, np.ones(len(order), dtype=np.int64), edges), candidates.prompts, "found"
    )


def draw_growth(candidates: SoftPromptSet) -> Any:
    """How the search stage went: candidates found and the share of proposals accepted, against proposals made."""
    rounds = np.array(candidates.details["history"], dtype=float).reshape(-1, 3)
    if len(rounds) and rounds[0, 0] == 1:  # one proposal at a time: the shares of fifty
        rounds = np.array([part.sum(axis=0) for part in np.array_split(rounds, max(1, len(rounds) // 50))])
    made, accepted = rounds[:, 0], rounds[:, 1]
    figure = go.Figure()
    for name, values, axis, colour in (
        ("candidates found", np.cumsum(accepted), "y", ACCENT),
        ("share accepted", accepted / made, "y2", MUTED),
    ):
        figure.add_trace(
            go.Scatter(x=np.cumsum(made), y=values, yaxis=axis, name=name, mode="lines+markers", line={"color": colour})
        )
    _layout(figure, "proposals", "candidates found", height=300)
    second = {"title": "share accepted", "overlaying": "y", "side": "right", "range": [0, 1], "showgrid": False}
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": 1.15}, yaxis2=second, margin={"r": 60})
    return figure


def _short(prompt: str, most: int = 46) -> str:
    line = " ".join(prompt.split())
    return line if len(line) <= most else line[: most - 1] + "…"
