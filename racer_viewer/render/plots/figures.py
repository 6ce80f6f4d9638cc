"""Definitions of all charts of a run: their names and their content."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import REWARD_COMPONENTS, TICKS_PER_SECOND, Component, circuit_name, component_colours
from racer_env.engine.rewards import MAX_TERMS, TermComponent
from racer_env.engine.terms import is_term_name, term_components
from racer_viewer.render.overlays.panel import blend
from racer_viewer.render.plots.axes import (
    PLAIN,
    SECONDS,
    SHARE,
    Limits,
    Unit,
    all_values,
    figure_limits,
    lap_limits,
    span_of,
)
from racer_viewer.render.plots.drawing import EVERYWHERE
from racer_viewer.render.plots.series import ChartLine, ChartMark, Content, Dots, Stack, running_best
from racer_viewer.run_history import RunHistory
from racer_viewer.timing import SECTORS
from racer_viewer.translation import _, mark
from racer_viewer.ui.theme import Colour, Palette

Floats = NDArray[np.float64]

REWARD_KEY = "reward/"
"""Prefix of the metrics of reward components and terms."""
COMPONENT_KEYS = tuple(REWARD_KEY + component.wire_name for component in REWARD_COMPONENTS)
"""Metrics of the reward components."""
EPISODE_REWARD = "rollout/ep_rew_mean"
BEST_LAP = "racer/best_lap_time_sec"
MEDIANS = 80
"""Maximum number of points of a sector line."""
MIN_LAPS_PER_MEDIAN, SHARE_OF_LAPS = 9, 8
"""Smallest number of laps per median, and its share of all laps if there are few."""
SECTOR_DASHES = (0.0, 6.0, 2.0)
"""Dash lengths that distinguish sectors where colours distinguish runs, at scale 1 [px]."""
SECTOR_STROKES = mark("1 solid, 2 dashed, 3 dotted")


@dataclass(frozen=True)
class Figure:
    """Chart of one training metric.

    key: tag of the metric.
    usual: shown even if no run has it yet, because PPO, the usual algorithm, will.
    sign: -1 shows the negative.
    sparse: not every update has it; the line continues over those that do not.
    """

    title: str
    key: str
    unit: Unit = PLAIN
    include: tuple[float, ...] = ()
    usual: bool = True
    sign: float = 1.0
    sparse: bool = False
    limits: Limits = figure_limits


FIGURES: Mapping[str, Figure] = {
    "completion": Figure(
        mark("COMPLETION RATE"), "racer/completion_rate", SHARE, (0.0, 1.0), sparse=True, limits=all_values
    ),
    "episode": Figure(mark("EPISODE REWARD"), EPISODE_REWARD, usual=False, sparse=True),
    "entropy": Figure(mark("ENTROPY"), "train/entropy_loss", sign=-1.0),
    "loss": Figure(mark("POLICY LOSS"), "train/policy_gradient_loss", include=(0.0,)),
    "actor": Figure(mark("ACTOR LOSS"), "train/actor_loss", usual=False, sparse=True),
    "critic": Figure(mark("CRITIC LOSS"), "train/critic_loss", include=(0.0,), usual=False, sparse=True),
    "temperature": Figure(mark("ENTROPY COEFFICIENT"), "train/ent_coef", include=(0.0,), usual=False, sparse=True),
    "kl": Figure(mark("KL DIVERGENCE"), "train/approx_kl", include=(0.0,)),
    "explained": Figure(mark("EXPLAINED VARIANCE"), "train/explained_variance", include=(0.0, 1.0)),
    "clone": Figure(mark("CLONING LOSS"), "clone/held_out_loss", include=(0.0,), usual=False, sparse=True),
    "speed": Figure(mark("STEPS PER SECOND"), "time/fps", include=(0.0,), limits=all_values),
}
CHARTS = (
    "reward", "laps", "completion", "sectors", "clone", "episode",
    "entropy", "loss", "actor", "critic", "temperature", "kl", "explained", "speed",
)  # fmt: skip
"""Names of all charts, most important first."""
_OF_PPO = ("entropy", "loss", "kl", "explained")
_SAC_KEY = FIGURES["actor"].key


def charts_of(runs: Sequence[RunHistory]) -> tuple[str, ...]:
    """Return the names of the charts that these runs have or will have, most important first."""
    names = {key for run in runs for key in run.values}
    usual = not any(_SAC_KEY in run.values for run in runs)

    def has(chart: str) -> bool:
        figure = FIGURES.get(chart)
        if figure is None or figure.key in names:
            return True
        return figure.usual and (usual or chart not in _OF_PPO)

    return tuple(chart for chart in CHARTS if has(chart))


def span(runs: Sequence[RunHistory]) -> tuple[float, float]:
    """Return the first and last step of all runs."""
    return span_of(*(steps for run in runs for steps in (run.steps, run.laps[:, 0], run.sectors[:, 0])))


def run_colours(runs: Sequence[RunHistory], palette: Palette) -> list[Colour]:
    return [palette.cars[number % len(palette.cars)] for number in range(len(runs))]


def content_of(chart: str, runs: Sequence[RunHistory], palette: Palette, circuit: str = "") -> Content:
    """Return the content of one of the `CHARTS`.

    circuit: circuit whose times are shown for runs that train on several; times of different circuits are not
    comparable.
    """
    if chart in _TIMES:
        return _TIMES[chart](runs, palette, circuit)
    return _reward(runs, palette) if chart == "reward" else _figure(FIGURES[chart], runs, palette)


def _figure(figure: Figure, runs: Sequence[RunHistory], palette: Palette) -> Content:
    lines = tuple(
        ChartLine(_name(run, runs), colour, run.steps, figure.sign * _values(run, figure.key), joined=figure.sparse)
        for run, colour in zip(runs, run_colours(runs, palette), strict=True)
    )
    return Content(
        figure.title,
        figure.unit,
        lines,
        marks=_marks(runs, palette, EVERYWHERE),
        limits=figure.limits,
        include=figure.include,
        latest=_latest(lines, figure.unit, palette),
    )


def _reward(runs: Sequence[RunHistory], palette: Palette) -> Content:
    """Return reward components per second; means per step are too small to read."""
    parts, several = [_reward_parts(run) for run in runs], len(runs) > 1
    components: tuple[Component, ...] = (*REWARD_COMPONENTS, *terms_of(runs[0]))
    names = tuple(_(component.label) for component in components)
    colours_of_components = component_colours(palette.colour_blind, components)
    colours = run_colours(runs, palette) if several else [palette.text]
    lines = tuple(
        ChartLine(_name(run, runs) if several else _("total"), colour, run.steps, part.sum(axis=1))
        for run, colour, part in zip(runs, colours, parts, strict=True)
    )
    stack = None if several else Stack(names, colours_of_components, runs[0].steps, parts[0])
    seen = [number for number in range(len(names)) if stack and np.nan_to_num(stack.parts[:, number]).any()]
    return Content(
        _("REWARD PER SECOND"),
        PLAIN,
        lines,
        stack=stack,
        marks=_marks(runs, palette),
        include=(0.0,),
        latest=_latest(lines, PLAIN, palette),
        legend=tuple((names[number], colours_of_components[number]) for number in seen),
    )


def terms_of(run: RunHistory) -> tuple[TermComponent, ...]:
    """Return the terms of a run's reward, as its metrics name them; a run may have changed its terms."""
    names = (key.removeprefix(REWARD_KEY) for key in run.values if key.startswith(REWARD_KEY))
    found = [name for name in names if REWARD_KEY + name not in COMPONENT_KEYS and is_term_name(name)]
    return term_components(dict.fromkeys(found[:MAX_TERMS], ""))


def _reward_parts(run: RunHistory) -> Floats:
    """Return the reward of each component and term per second, (n, k); a term pays nothing before it is added."""
    fixed = [_values(run, key) for key in COMPONENT_KEYS]
    known = np.isfinite(fixed[0])
    terms = [_values(run, REWARD_KEY + term.name) for term in terms_of(run)]
    own = [np.where(known & ~np.isfinite(term), 0.0, term) for term in terms]
    return np.stack([*fixed, *own], axis=1) * TICKS_PER_SECOND


def _laps(runs: Sequence[RunHistory], palette: Palette, circuit: str) -> Content:
    several = len(runs) > 1
    dots, lines = [], []
    for run, colour in zip(runs, run_colours(runs, palette), strict=True):
        steps, times = lap_times(run, circuit)
        name = _("{name} lap").format(name=_name(run, runs)).strip()
        shade = blend(palette.panel[:3], colour, 0.6) if several else colour
        dots.append(Dots(name, shade, steps, times))
        best = colour if several else palette.accent
        lines.append(
            ChartLine(
                _("{name} fastest").format(name=_name(run, runs)).strip(),
                best,
                *running_best(steps, times, span((run,))[1]),
                False,
                stepped=True,
            )
        )
    return Content(
        _("LAP TIMES") + _on(runs, circuit),
        SECONDS,
        tuple(lines),
        tuple(dots),
        marks=_marks(runs, palette),
        limits=lap_limits,
        latest=_latest_laps(dots, lines, palette),
        empty=_("no laps yet"),
    )


def lap_times(run: RunHistory, circuit: str = "") -> tuple[Floats, Floats]:
    """Return steps and times [s] of all laps on a circuit, or the best one per update if laps were not logged."""
    if len(run.laps):
        laps = run.laps_on(circuit)
        return laps[:, 0], laps[:, 1]
    best = _values(run, BEST_LAP)
    there = np.isfinite(best)
    return run.steps[there], best[there]


def _latest_laps(dots: Sequence[Dots], lines: Sequence[ChartLine], palette: Palette) -> tuple[tuple[str, Colour], ...]:
    there = [(dot, line) for dot, line in zip(dots, lines, strict=True) if len(line.ys)]
    if len(dots) > 1:
        return tuple((SECONDS.read(float(line.ys[-1])), line.colour) for _, line in there)
    return tuple(
        word
        for dot, line in there
        for word in (
            (_("last {lap}").format(lap=SECONDS.read(float(dot.ys[-1]))), palette.text),
            (_("fastest {lap} s").format(lap=SECONDS.read(float(line.ys[-1]))), line.colour),
        )
    )


def _sectors(runs: Sequence[RunHistory], palette: Palette, circuit: str) -> Content:
    """Return the median of the latest laps, sector by sector."""
    several = len(runs) > 1
    lines = []
    for run, colour in zip(runs, run_colours(runs, palette), strict=True):
        steps, medians = sector_medians(run.sectors_on(circuit))
        for number in range(SECTORS):
            name = _("{name} sector {number}").format(name=_name(run, runs), number=number + 1).strip()
            own = colour if several else palette.series[_SECTOR_SERIES[number]]
            dash = SECTOR_DASHES[number] if several else 0.0
            lines.append(ChartLine(name, own, steps, medians[:, number], joined=True, dash=dash))
    return Content(
        _("SECTOR TIMES") + _on(runs, circuit),
        SECONDS,
        tuple(lines),
        marks=_marks(runs, palette, EVERYWHERE),
        limits=lap_limits,
        latest=[(_(SECTOR_STROKES), palette.faint)] if several else _latest(lines, SECONDS, palette),
        legend=() if several else tuple((line.name, line.colour) for line in lines if len(line.xs)),
        empty=_("no sector times yet"),
    )


_SECTOR_SERIES = (1, 3, 4)
"""Indices of the sector colours among the series colours: neither good nor bad."""


def sector_medians(sectors: Floats) -> tuple[Floats, Floats]:
    """Return steps (n,) and median times (n, SECTORS) [s] of consecutive laps.

    Incomplete laps contribute their complete sectors. NaN where no lap has the sector.
    """
    rows = sectors[np.isfinite(sectors[:, 1:]).any(axis=1)]
    together = min(max(MIN_LAPS_PER_MEDIAN, len(rows) // MEDIANS), max(1, len(rows) // SHARE_OF_LAPS))
    count = len(rows) // together
    last = rows[len(rows) - count * together :].reshape(count, together, 1 + SECTORS)
    return last[:, -1, 0], _medians(last[:, :, 1:])


def _medians(groups: Floats) -> Floats:
    """Return medians (n, k) of groups (n, m, k), ignoring NaN; much faster than `numpy.nanmedian`."""
    if not len(groups):
        return np.zeros((0, groups.shape[2]))
    rising = np.sort(groups, axis=1)  # NaN sorts last
    there = np.isfinite(groups).sum(axis=1, keepdims=True)
    low, high = (np.take_along_axis(rising, np.maximum(0, each), axis=1) for each in ((there - 1) // 2, there // 2))
    return np.where(there > 0, (low + high) / 2.0, np.nan)[:, 0]


def _on(runs: Sequence[RunHistory], circuit: str) -> str:
    """Return the title suffix of a chart that does not show all circuits."""
    return (
        _(" ON {circuit}").format(circuit=circuit_name(circuit).upper())
        if any(len(run.circuits) > 1 for run in runs)
        else ""
    )


def _values(run: RunHistory, key: str) -> Floats:
    values = run.values.get(key)
    return np.full(len(run.steps), np.nan) if values is None else np.where(np.isfinite(values), values, np.nan)


def _name(run: RunHistory, runs: Sequence[RunHistory]) -> str:
    """Return the name of a run among others; empty if it is the only one."""
    return run.name if len(runs) > 1 else ""


def _latest(lines: Sequence[ChartLine], unit: Unit, palette: Palette) -> tuple[tuple[str, Colour], ...]:
    words = []
    for line in lines:
        there = line.ys[np.isfinite(line.ys)]
        if len(there):
            text = f"{unit.read(float(there[-1]))} {unit.name}".strip()
            words.append((text, palette.text if len(lines) == 1 else line.colour))
    return tuple(words)


def _marks(runs: Sequence[RunHistory], palette: Palette, kinds: Sequence[str] | None = None) -> tuple[ChartMark, ...]:
    """Return event marks; for several runs only those that changed the run, in the run's colour."""
    if len(runs) == 1:
        return tuple(
            ChartMark(event.steps, event.kind, event.text)
            for event in runs[0].events
            if kinds is None or event.kind in kinds
        )
    return tuple(
        ChartMark(event.steps, event.kind, f"{run.name}: {event.text}", colour)
        for run, colour in zip(runs, run_colours(runs, palette), strict=True)
        for event in run.events
        if event.kind in EVERYWHERE
    )


_TIMES: Mapping[str, Callable[[Sequence[RunHistory], Palette, str], Content]] = {"laps": _laps, "sectors": _sectors}
