"""The trials of a search as a picture (SVG): lap time over steps, the best one bright."""

from __future__ import annotations

import math
from collections.abc import Sequence

from racer_viewer.training.ray.tune import NO_LAP, Trial

WIDTH, HEIGHT = 960, 540
LEFT, RIGHT, TOP, BOTTOM = 78, 24, 56, 56
"""Margins [px]."""
TICKS = 5
PAPER, GRID, TEXT, OTHERS, BEST, GIVEN = "#14181f", "#2a313c", "#c6ccd6", "#5d6b80", "#35d07f", "#f0b43c"
FONT = "font-family='system-ui, sans-serif'"


def plot_trials(trials: Sequence[Trial]) -> str:
    """trials: the best first. Evaluations without a clean lap are left out: they have no place on the axis."""
    curves = {each.number: [(steps, lap) for steps, lap in each.curve if lap < NO_LAP] for each in trials}
    points = [point for curve in curves.values() for point in curve]
    if not points:
        return _page([_text(WIDTH / 2, HEIGHT / 2, "No trial has driven a clean lap yet", "middle", 18)])
    steps, laps = _nice_to(max(x for x, _ in points)), [lap for _, lap in points]
    low, high = _limits(min(laps), max(laps))
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(step: float, lap: float) -> tuple[float, float]:
        return LEFT + width * step / steps, TOP + height * (high - lap) / (high - low)

    parts = _axes(steps, low, high, place)
    best = trials[0]
    for each in reversed(trials):
        colour = BEST if each is best else GIVEN if each.number == 0 else OTHERS
        parts += _curve([place(*point) for point in curves[each.number]], colour, 3.0 if each is best else 1.5)
    without = sum(not curve for curve in curves.values())
    title = f"{len(trials)} trials, {without} without a clean lap; the best, number {best.number}: {best.best:.2f} s"
    parts.append(_text(LEFT, 32, title, "start", 18))
    parts.append(_text(WIDTH - RIGHT, 32, "the best", "end", 14, BEST))
    parts.append(_text(WIDTH - RIGHT - 72, 32, "as given", "end", 14, GIVEN))
    return _page(parts)


def _axes(steps: float, low: float, high: float, place: object) -> list[str]:
    assert callable(place)
    parts = []
    for number in range(TICKS + 1):
        lap, step = low + (high - low) * number / TICKS, steps * number / TICKS
        (left, y), (x, bottom) = place(0.0, lap), place(step, low)
        parts.append(f"<path d='M{left:.1f} {y:.1f}H{WIDTH - RIGHT}' stroke='{GRID}'/>")
        parts.append(_text(left - 10, y + 5, f"{lap:.2f} s", "end", 14))
        parts.append(_text(x, bottom + 24, f"{step / 1000:,.0f}k", "middle", 14))
    parts.append(_text(WIDTH / 2, HEIGHT - 10, "steps", "middle", 14))
    return parts


def _curve(points: Sequence[tuple[float, float]], colour: str, width: float) -> list[str]:
    if not points:
        return []
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    return [
        f"<polyline points='{line}' fill='none' stroke='{colour}' stroke-width='{width}' stroke-linejoin='round'/>",
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{2.0 + width:.1f}' fill='{colour}'/>",
    ]


def _limits(low: float, high: float) -> tuple[float, float]:
    """Of the axis, with some air."""
    air = max(0.05, 0.06 * (high - low))
    return low - air, high + air


def _nice_to(value: float) -> float:
    """The next number above with one digit or two that TICKS divide well."""
    size = 10.0 ** math.floor(math.log10(value))
    return next(size * times for times in (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 10.0) if size * times >= value)


def _text(x: float, y: float, text: str, anchor: str, size: int, colour: str = TEXT) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' {FONT} font-size='{size}' fill='{colour}' text-anchor='{anchor}'>{text}</text>"
    )


def _page(parts: Sequence[str]) -> str:
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}'>"
    return "\n".join((head, f"<rect width='{WIDTH}' height='{HEIGHT}' fill='{PAPER}'/>", *parts, "</svg>")) + "\n"
