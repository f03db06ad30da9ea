"""Small plots as inline SVG: axes, lines, marks and cells, coloured by the page's style sheet."""

from __future__ import annotations

import math
from html import escape

Point = tuple[float, float]

WIDTH = 1000.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 14.0, 34.0, 42.0


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round values between the two."""
    span = high - low
    if span <= 0:
        return [low]
    unit = 10.0 ** math.floor(math.log10(span / about))
    unit *= next((m for m in (1, 2, 5, 10) if span / (unit * m) <= about), 10)
    first = math.ceil(low / unit - 1e-9)
    return [n * unit for n in range(first, math.floor(high / unit + 1e-9) + 1)]


def decades(low: float, high: float) -> list[float]:
    """Powers of ten that hold both between them."""
    return [10.0**n for n in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def label(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.3g}"


class Plot:
    """One plot; draw from the back to the front, then take `svg()`."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        height: float = 300.0,
        log: bool = False,
        name: str = "",
    ) -> None:
        self.height, self.log, self.name = height, log, name
        self.x_low, self.x_high = x
        self.y_low, self.y_high = (math.log10(y[0]), math.log10(y[1])) if log else y
        self._parts: list[str] = []

    def px(self, x: float) -> float:
        share = (x - self.x_low) / max(1e-12, self.x_high - self.x_low)
        return _LEFT + share * (WIDTH - _LEFT - _RIGHT)

    def py(self, y: float) -> float:
        value = math.log10(max(y, 1e-12)) if self.log else y
        share = (value - self.y_low) / max(1e-12, self.y_high - self.y_low)
        return self.height - _BOTTOM - share * (self.height - _TOP - _BOTTOM)

    def axes(self, x_name: str, y_name: str) -> None:
        """Grid lines, their values, and what they are of."""
        low, high = (10**self.y_low, 10**self.y_high) if self.log else (self.y_low, self.y_high)
        for value in decades(low, high) if self.log else ticks(low, high, 5):
            y = self.py(value)
            self._line(_LEFT, y, WIDTH - _RIGHT, y, "grid")
            self.text(_LEFT - 8, y + 4, label(value), "axis end")
        self.text(4, 14, y_name, "axis")
        self.x_axis(x_name)

    def x_axis(self, name: str) -> None:
        """The line below the plot, its values, and what they are of."""
        bottom = self.height - _BOTTOM
        for value in ticks(self.x_low, self.x_high, 12):
            self.text(self.px(value), bottom + 18, label(value), "axis middle")
        self._line(_LEFT, bottom, WIDTH - _RIGHT, bottom, "base")
        self.text(WIDTH - _RIGHT, self.height - 6, name, "axis end")

    def line(self, points: list[Point], style: str) -> None:
        """A line through the points in their order; one alone is a dot."""
        if len(points) == 1:
            self.dot(*points[0], style)
        elif points:
            path = " ".join(f"{self.px(x):.1f},{self.py(y):.1f}" for x, y in points)
            self._parts.append(f'<polyline class="{style}" points="{path}"/>')

    def dot(self, x: float, y: float, style: str, title: str = "") -> None:
        self._parts.append(
            f'<circle class="{style} dot" cx="{self.px(x):.1f}" cy="{self.py(y):.1f}" r="2.4">'
            f"<title>{escape(title)}</title></circle>"
        )

    def band(self, low: float, high: float, style: str) -> None:
        """A span of x over the whole height."""
        x = self.px(low)
        self._rect(x, _TOP, self.px(high) - x, self.height - _TOP - _BOTTOM, style)

    def mark(self, x: float, style: str, words: str, *, row: int = 0, end: bool = False) -> None:
        """An upright line with words at its top."""
        at = self.px(x)
        self._line(at, _TOP - 4, at, self.height - _BOTTOM, style)
        place = f"{style} {'end' if end else ''}"
        self.text(at - 5 if end else at + 5, _TOP + 10 + 15 * row, words, place)

    def cell(self, x: float, y: float, right: float, top: float, style: str, title: str) -> None:
        """A filled box in plot coordinates."""
        left, upper = self.px(x), self.py(top)
        self._rect(left, upper, self.px(right) - left, self.py(y) - upper, style, title)

    def text(self, x: float, y: float, words: str, style: str = "") -> None:
        """Words at a place of the drawing, not of the plot."""
        self._parts.append(f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>')

    def _line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        self._parts.append(
            f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
        )

    def _rect(
        self, x: float, y: float, width: float, height: float, style: str, title: str = ""
    ) -> None:
        inner = f"<title>{escape(title)}</title>" if title else ""
        self._parts.append(
            f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}" '
            f'height="{max(0.0, height):.1f}">{inner}</rect>'
        )

    def svg(self) -> str:
        return (
            f'<svg viewBox="0 0 {WIDTH:.0f} {self.height:.0f}" role="img" '
            f'aria-label="{escape(self.name)}">' + "".join(self._parts) + "</svg>"
        )
