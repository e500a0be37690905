"""A small drawing kit: plots whose letters keep their size at any width.

Places are per cent of the plot, so that circles, rules and words move with it and are never stretched; lines and bands
lie in an inner picture that is stretched, with strokes that are not. Colours are classes, which the style sheet gives
for light, dark and print. Every text is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

_INNER = 1000.0


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from ``low`` to ``high``; of no width, it puts everything in the middle."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """Where ``value`` lies: 0 at the low end, 1 at the high one."""
        return (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5

    def ticks(self, most: int = 5) -> list[float]:
        """At most ``most`` round values inside."""
        span = self.high - self.low
        if span <= 0.0:
            return [self.low]
        power = 10.0 ** math.floor(math.log10(span / most))
        step = next(s * power for s in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0) if span / (s * power) <= most - 1 + 1e-9)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [n * step for n in range(first, last + 1)]


def number(value: float) -> str:
    """A tick's label: as many digits as it needs."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.4g}"


@dataclass
class Plot:
    """A plot under construction; y grows upwards.

    Attributes:
        x: The horizontal axis.
        y: The vertical one.
        label: What a reader who cannot see it is told.
        height: In pixels.
        linked: Whether something in it can be reached by keyboard, so that it is a group and not one picture.
    """

    x: Scale
    y: Scale
    label: str
    height: int = 240
    linked: bool = False
    _lines: list[Markup] = field(default_factory=list)
    _marks: list[Markup] = field(default_factory=list)

    def line(self, xs: Sequence[float], ys: Sequence[float], style: str) -> None:
        """A line through points."""
        points = " ".join(self._point(x, y) for x, y in zip(xs, ys, strict=True))
        self._lines.append(Markup('<polyline class="{}" points="{}"/>').format(style, points))

    def band(self, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], style: str) -> None:
        """The area between two lines."""
        around = [*zip(xs, highs, strict=True), *reversed(list(zip(xs, lows, strict=True)))]
        points = " ".join(self._point(x, y) for x, y in around)
        self._lines.append(Markup('<polygon class="{}" points="{}"/>').format(style, points))

    def rule(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """A straight line."""
        ends = (self._left(x1), self._top(y1), self._left(x2), self._top(y2))
        self._marks.append(Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(style, *ends))

    def dot(
        self, x: float, y: float, radius: float, style: str, title: str | None = None, link: str | None = None
    ) -> None:
        """A circle; with a title that is shown when pointed at, and a place on the page it leads to."""
        named = Markup("<title>{}</title>").format(title) if title else Markup("")
        made = Markup('<circle class="{}" cx="{}" cy="{}" r="{:.1f}">{}</circle>').format(
            style, self._left(x), self._top(y), radius, named
        )
        if link:
            made = Markup('<a href="{}" aria-label="{}">{}</a>').format(link, title or "", made)
        self._marks.append(made)

    def text(
        self, x: float, y: float, text: str, style: str = "", anchor: str = "start", dx: float = 0, dy: float = 0
    ) -> None:
        """Words at a place, moved by pixels."""
        self._marks.append(
            Markup('<text class="{}" x="{}" y="{}" dx="{:g}" dy="{:g}" text-anchor="{}">{}</text>').format(
                style, self._left(x), self._top(y), dx, dy, anchor, text
            )
        )

    def axes(self, x_name: str, y_name: str, below: Sequence[tuple[float, str]] = ()) -> None:
        """Rules and labels of both axes; ``below`` are further labels under those of the horizontal one."""
        for value in self.y.ticks():
            self.rule(self.x.low, value, self.x.high, value, "grid")
            self.text(self.x.low, value, number(value), "tick", "end", dx=-8, dy=4)
        for value in self.x.ticks():
            self.text(value, self.y.low, number(value), "tick", "middle", dy=18)
        for value, label in below:
            self.text(value, self.y.low, label, "tick", "middle", dy=34)
        self.text(self.x.high, self.y.low, x_name, "axis", "end", dy=52 if below else 36)
        self.text(self.x.low, self.y.high, y_name, "axis", "start", dx=-34, dy=-10)

    def render(self) -> Markup:
        """The SVG element."""
        inner = Markup(
            '<svg class="inner" viewBox="0 0 {0:g} {0:g}" preserveAspectRatio="none" width="100%" height="100%">'
            "{1}</svg>"
        ).format(_INNER, Markup("").join(self._lines))
        return Markup('<svg class="plot" role="{}" aria-label="{}" height="{}">{}{}</svg>').format(
            "group" if self.linked else "img", self.label, self.height, inner, Markup("").join(self._marks)
        )

    def _point(self, x: float, y: float) -> str:
        return f"{_INNER * self.x.share(x):.1f},{_INNER * (1.0 - self.y.share(y)):.1f}"

    def _left(self, x: float) -> str:
        return f"{100.0 * self.x.share(x):.2f}%"

    def _top(self, y: float) -> str:
        return f"{100.0 * (1.0 - self.y.share(y)):.2f}%"


def bar(low: float, value: float, high: float, scale: Scale, style: str) -> Markup:
    """An interval and the value in it, in a line: for a cell of a table that has the numbers, too."""
    ends = [f"{100.0 * scale.share(v):.1f}%" for v in (low, value, high)]
    return Markup(
        '<svg class="bar {0}" aria-hidden="true" height="12"><line class="whole" x1="0" x2="100%" y1="6" y2="6"/>'
        '<line class="interval" x1="{1}" x2="{3}" y1="6" y2="6"/><circle cx="{2}" cy="6" r="4"/></svg>'
    ).format(style, *ends)


def strip(counts: Sequence[int], scores: Sequence[float], label: str) -> Markup:
    """Calls along a run: a mark for each stretch that has some, coloured by score, the darker the more there are."""
    wide, most = 100.0 / max(len(counts), 1), max([1, *counts])
    marks = [
        Markup('<rect class="{}" x="{:.2f}%" width="{:.2f}%" height="100%" opacity="{:.2f}"/>').format(
            f"f{level(score)}", n * wide, max(wide * 0.8, 0.4), 0.4 + 0.6 * count / most
        )
        for n, (count, score) in enumerate(zip(counts, scores, strict=True))
        if count
    ]
    return Markup('<svg class="strip" role="img" aria-label="{}" height="14">{}</svg>').format(
        label, Markup("").join(marks)
    )


def level(score: float) -> int:
    """The colour of a score, 0 to 4."""
    return min(4, max(0, math.floor(5.0 * score)))
