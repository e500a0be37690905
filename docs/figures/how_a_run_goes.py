"""Two figures of docs/default-method.md: what is believed as a run goes on, and where its calls go.

    python docs/figures/how_a_run_goes.py

Forty prompts on a line, neighbours alike, right-or-wrong answers, the truth known.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
mpl.rcParams.update({"svg.hashsalt": "bestprompt", "svg.fonttype": "none", "font.size": 9})
import matplotlib.pyplot as plt  # noqa: E402 - after the back end was chosen

from bestprompt.rng import stream  # noqa: E402
from bestprompt.selection import SelectionResult, Selector, SelectorConfig  # noqa: E402
from bestprompt.types import Observation  # noqa: E402

HERE = Path(__file__).parent
N, BUDGET, STOPS = 40, 240, (30, 90, 240)
WHERE = np.linspace(0, 3, N)
TRUTH = 0.45 + 0.3 * np.sin(2.2 * WHERE + 0.4) + 0.06 * stream(2, "own").normal(size=N)
INK, ACCENT = "#555b66", "#0f6674"


def standings() -> tuple[list[SelectionResult], list[int]]:
    """The result at each of ``STOPS``, and whom each call went to."""
    selector = Selector(WHERE[:, None], SelectorConfig(budget=BUDGET))
    state, asked, seen = selector.initial(), [], []
    while len(asked) < BUDGET:
        (proposal,) = selector.ask(state, 1)
        n = proposal.candidate
        score = float(stream(0, "answer", n, proposal.replication).random() < TRUTH[n])
        state = selector.tell(state, [Observation(n, proposal.replication, score)])
        asked.append(n)
        if len(asked) in STOPS:
            seen.append(selector.recommend(state))
    return seen, asked


def main() -> None:
    """Draws both."""
    results, asked = standings()
    figure, axes = plt.subplots(1, len(STOPS), figsize=(10, 2.8), sharey=True)
    for axis, result, calls in zip(axes, results, STOPS, strict=True):
        half = 1.96 * result.deviations
        axis.vlines(WHERE, result.estimates - half, result.estimates + half, color=INK, alpha=0.35)
        axis.scatter(WHERE, result.estimates, s=4 + 3 * result.counts, color=INK, zorder=2)
        axis.plot(WHERE, TRUTH, "_", color="black", markersize=6)
        axis.scatter(WHERE[result.candidate], result.estimates[result.candidate], s=70, color=ACCENT, zorder=3)
        axis.set(title=f"after {calls} calls", xlabel="prompts, neighbours alike", ylim=(0, 1))
        axis.set_xticks([])
    axes[0].set_ylabel("score")
    figure.tight_layout()
    figure.savefig(HERE / "belief.svg", metadata={"Date": None})
    figure, axis = plt.subplots(figsize=(10, 2.4))
    rank = np.argsort(np.argsort(-TRUTH))
    axis.scatter(range(1, BUDGET + 1), rank[asked] + 1, s=6, color=ACCENT)
    axis.set(xlabel="call", ylabel="true rank of the prompt asked", ylim=(N + 1, 0))
    figure.tight_layout()
    figure.savefig(HERE / "calls.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
