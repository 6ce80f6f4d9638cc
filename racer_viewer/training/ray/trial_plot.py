"""The trials of a search as a picture (SVG): lap time over steps, the best one bright."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from racer_viewer.training.ray.tune import NO_LAP, Trial

WIDTH, HEIGHT = 960, 540
LEFT, RIGHT, TOP, BOTTOM = 84, 40, 92, 60
"""Margins [px]."""
NONE_AT = 70
"""Where evaluations without a clean lap are marked [px from above]."""
MOST_LINES = 8
"""Of a grid, across one axis."""
LEAST_SPAN = 0.1
"""Of the axis of lap times [s]."""
PAPER, GRID, TEXT, OTHERS, BEST, GIVEN = "#14181f", "#2a313c", "#c6ccd6", "#6f7f97", "#35d07f", "#f0b43c"
FONT = "font-family='system-ui, sans-serif'"

Place = Callable[[float, float], tuple[float, float]]
"""From steps and seconds to pixels."""


def plot_trials(trials: Sequence[Trial]) -> str:
    """trials: the best first."""
    laps = [lap for each in trials for _, lap in each.curve if lap < NO_LAP]
    if not laps:
        return _page([_text(WIDTH / 2, HEIGHT / 2, "No trial has driven a clean lap yet", "middle", 18)])
    step = nice_step(max(max(laps) - min(laps), LEAST_SPAN))
    low, high = math.floor(min(laps) / step) * step, math.ceil(max(laps) / step + 1e-9) * step
    most = max(each.steps for each in trials)

    def place(steps: float, lap: float) -> tuple[float, float]:
        down = (high - lap) / (high - low)
        return LEFT + (WIDTH - LEFT - RIGHT) * steps / most, TOP + (HEIGHT - TOP - BOTTOM) * down

    parts = _axes(most, low, high, step, place)
    best = trials[0]
    for each in reversed(trials):
        colour = BEST if each is best else GIVEN if each.number == 0 else OTHERS
        parts += _curve(each, colour, 3.0 if each is best else 1.5, place)
    return _page([*_title(trials), *parts])


def nice_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, a few of which make up the span."""
    least = span / MOST_LINES
    size = 10.0 ** math.floor(math.log10(least))
    return next(size * times for times in (1.0, 2.0, 5.0, 10.0) if size * times >= least * (1.0 - 1e-9))


def _title(trials: Sequence[Trial]) -> list[str]:
    best, count = trials[0], len(trials)
    without = sum(all(lap >= NO_LAP for _, lap in each.curve) for each in trials)
    words = f"{count} trial{'s' if count > 1 else ''}, {without} without a clean lap"
    return [
        _text(LEFT, 34, f"{words}; the best, number {best.number}: {best.best:.2f} s", "start", 18),
        _text(WIDTH - RIGHT, 34, "the best", "end", 14, BEST),
        _text(WIDTH - RIGHT - 72, 34, "as given", "end", 14, GIVEN),
    ]


def _axes(most: int, low: float, high: float, step: float, place: Place) -> list[str]:
    parts = [_text(LEFT - 10, NONE_AT + 5, "no lap", "end", 14)]
    digits = max(0, -math.floor(math.log10(step)))
    for number in range(round((high - low) / step) + 1):
        left, y = place(0.0, low + number * step)
        parts.append(f"<path d='M{left:.1f} {y:.1f}H{WIDTH - RIGHT}' stroke='{GRID}'/>")
        parts.append(_text(left - 10, y + 5, f"{low + number * step:.{digits}f} s", "end", 14))
    apart = nice_step(most)
    for number in range(int(most / apart + 1e-9) + 1):
        x, bottom = place(number * apart, low)
        parts.append(_text(x, bottom + 24, f"{number * apart / 1000:,g}k", "middle", 14))
    parts.append(_text(WIDTH / 2, HEIGHT - 10, "steps", "middle", 14))
    return parts


def _curve(trial: Trial, colour: str, width: float, place: Place) -> list[str]:
    """A line through the clean laps; what has none is a dot above. The trial's number is at the end."""
    points = [place(steps, lap) for steps, lap in trial.curve if lap < NO_LAP]
    others = [(place(steps, 0.0)[0], float(NONE_AT)) for steps, lap in trial.curve if lap >= NO_LAP]
    parts = [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='2' fill='{colour}'/>" for x, y in (*points, *others)]
    if points:
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f"<polyline points='{line}' fill='none' stroke='{colour}' stroke-width='{width}'/>")
        x, y = points[-1]
        parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{2.0 + width:.1f}' fill='{colour}'/>")
        parts.append(_text(x + 10, y + 5, str(trial.number), "start", 14, colour))
    return parts


def _text(x: float, y: float, text: str, anchor: str, size: int, colour: str = TEXT) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' {FONT} font-size='{size}' fill='{colour}' text-anchor='{anchor}'>{text}</text>"
    )


def _page(parts: Sequence[str]) -> str:
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}'>"
    return "\n".join((head, f"<rect width='{WIDTH}' height='{HEIGHT}' fill='{PAPER}'/>", *parts, "</svg>")) + "\n"
