"""How one budget is shared between selecting in the set and refining outside it.

The paper refines with I additional evaluations after selection has used up the budget and leaves the split open: that
is ``"on-top"``, for which a budget of T + I is declared. Otherwise T is all there is. The default rule: at regular
looks the most promising prompt outside the set is found, and it joins the set when a call to it is expected to gain
more than the best next call inside the set; both are measured as the gain per call of the best investment of m calls
(``value_per_call``, ``value_of_next_call``). Looking costs no call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from bestprompt.errors import ConfigError

Turn = Literal["select", "refine"]
Kind = Literal["rule", "share", "tail", "on-top", "direct"]

LOOKS_PER_RUN = 20


@dataclass(frozen=True, slots=True)
class BudgetSplit:
    """When a new prompt is looked for, and whether it is taken.

    Attributes:
        kind: ``"rule"`` (default): refine when the suggestion is worth more per call than the best call in the set;
            ``"share"``: the last ``share`` of the budget refines; ``"tail"``: the last ``additional`` evaluations
            (M-UCB-r in default mode); ``"on-top"``: each of the last ``additional`` evaluations is a new prompt, as
            published; ``"direct"``: every evaluation after the warm-up is a new prompt (PSK-EI).
        share: Of the budget, for ``"share"``.
        additional: I, for ``"on-top"`` and ``"tail"``; in the latter at most half of the budget.
        pause: For ``"rule"``, the most evaluations between two looks, where looks are cheap and a large budget shall
            have more of them; ``None``: a share of the budget.
    """

    kind: Kind = "rule"
    share: float = 0.2
    additional: int = 20
    pause: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ConfigError(f"refinement: {self.kind!r} is unknown: choose one of {', '.join(get_args(Kind))}")
        if not 0.0 <= self.share < 1.0 or self.additional < 0:
            raise ConfigError(f"refinement: share must lie in [0, 1) and additional must not be negative ({self!r})")

    def selecting_until(self, budget: int) -> int:
        """Evaluations that belong to selection alone."""
        if self.kind == "share":
            return budget - round(self.share * budget)
        if self.kind == "on-top":
            return max(budget - self.additional, 0)
        if self.kind == "tail":
            return budget - min(self.additional, budget // 2)
        return budget

    def due(self, spent: int, budget: int, asked: int) -> bool:
        """Whether to look for a new prompt now.

        Args:
            spent: Evaluations made.
            budget: Evaluations allowed.
            asked: Evaluations made at the last look; -1 if there was none.
        """
        if self.kind == "direct":
            return spent < budget
        if self.kind == "on-top":
            return self.selecting_until(budget) <= spent < budget
        if self.kind == "rule":
            pause = max(2, budget // LOOKS_PER_RUN)
            pause = pause if self.pause is None else min(pause, self.pause)
            return spent < budget - 2 and (asked < 0 or spent - asked >= pause)
        # Half of what belongs to refinement looks at new prompts, half confirms them against the best of the set.
        begin = self.selecting_until(budget)
        return begin <= spent < budget - (budget - begin) // 4 and (asked < begin or spent - asked >= 2)

    def turn(self, selection_value: float, refinement_value: float) -> Turn:
        """Whose turn it is, given the expected gain per call of either; 0 means that no new prompt was found."""
        if refinement_value <= 0.0 and self.kind == "rule":
            return "select"
        return "refine" if self.kind != "rule" or refinement_value > selection_value else "select"
