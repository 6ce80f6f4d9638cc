"""Two laps side by side: their lines on the map, speed, inputs and gap over distance, and where they differ most."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pygame

from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.render.explanations import LAP_EXPLANATIONS, Explanation, draw_explanation
from racer_viewer.render.overlays import SPEED_UNITS
from racer_viewer.render.plots.axes import PLAIN, SECONDS, SHARE, all_values
from racer_viewer.render.plots.chart import Chart
from racer_viewer.render.plots.hover import draw_crosshair, draw_hover
from racer_viewer.render.plots.lap_map import MapWindow, draw_lap_map, whole_circuit
from racer_viewer.render.plots.series import ChartLine, ChartMark, Content
from racer_viewer.replays import ReplayLap, Trace
from racer_viewer.replays.lap_profile import MIN_DIFFERENCE, LapComparison, LapDifference, LapProfile, lap_profile
from racer_viewer.timing import lap_time, signed
from racer_viewer.translation import _, mark
from racer_viewer.ui.intents import Intent, MouseMove
from racer_viewer.ui.item_list import ROW_GAP, ROW_HEIGHT, Button, Choice, Item
from racer_viewer.ui.theme import TEXT_SMALL, Colour, Theme
from racer_viewer.ui.views import Key, ListView, translated

LIST_WIDTH = 500
"""Width of the list and the maps at scale 1 [px]."""
MIN_MAP, MIN_CHART = 90, 200
"""Smallest height of a map and width of a chart at scale 1 [px]; where there is less room, they are left out."""
GAP = 10
"""Distance between charts and maps at scale 1 [px]."""
CHARTS = {"gap": 1.25, "speed": 1.25, "steering": 1.0, "pedals": 1.0}
"""Charts from top to bottom, and their relative heights."""
INCLUDED = {"gap": (0.0,), "pedals": (0.0, 1.0), "steering": (0.0,)}
"""Values that the axis of a chart always has."""
NEAR_WIDTH = 110.0
"""Width of the circuit that the second map shows [units]."""
MARKER, DOT = 9, 5
"""Radius of a place's number and of a car, at scale 1 [px]."""
FIRST_PLACE = 2
"""Index of the first place in the list."""
UNITS = mark("{steps} units")
KEYS: tuple[Key, ...] = (
    ("Up Down", mark("choose a place")),
    ("Left Right", mark("another lap")),
    ("Esc", mark("back")),
    ("?", mark("explain")),
)


def open_lap_comparison(app: AppContext, traces: Sequence[Trace], followed: int = 0) -> None:
    """Compare the best lap of a drive with the best one of the others; say so if there are no two laps."""
    laps = [(number, lap) for number, trace in enumerate(traces) for lap in trace.laps]
    if len(laps) < 2:
        app.notify(_("Two whole laps are needed to compare: there are {count}").format(count=len(laps)))
        return
    app.push(LapComparisonScreen(app, traces, followed))


class LapComparisonScreen(Screen):
    """Comparison of two laps of some drives.

    laps: all laps of the drives, as (number of the trace, lap). chosen: indices of the two that are compared.
    comparison: the two laps over distance, and where they differ.
    """

    def __init__(self, app: AppContext, traces: Sequence[Trace], followed: int = 0) -> None:
        super().__init__(
            app, ListView(_("Compare laps"), width=LIST_WIDTH, darkness=250, draw_beside=self._draw_beside)
        )
        self._traces, self._track = tuple(traces), traces[0].track
        self.laps = tuple((number, lap) for number, trace in enumerate(traces) for lap in trace.laps)
        self.chosen = list(_first_choice(self.laps, followed))
        self._profiles: dict[int, LapProfile] = {}
        self._pictures: dict[tuple[object, ...], pygame.Surface] = {}
        self._charts: dict[str, Chart] = {}
        self._places: dict[str, pygame.Rect] = {}
        self._mouse: tuple[int, int] | None = None
        self._compare()

    def keys(self) -> Sequence[Key]:
        return translated(KEYS)

    def handle(self, intent: Intent) -> None:
        if isinstance(intent, MouseMove):
            self._mouse = intent.x, intent.y
        super().handle(intent)

    def explanations(self) -> Sequence[Explanation]:
        return tuple(LAP_EXPLANATIONS.values())

    @property
    def distance(self) -> float:
        """Distance of the place that is looked at: below the mouse, else the chosen one [units]."""
        name = self._chart_below_mouse()
        if name is not None and self._mouse is not None:
            return self._charts[name].axes.steps_at(self._mouse[0] - self._places[name].left)
        number = self.list.chosen - FIRST_PLACE
        found = self.comparison.differences
        if not found:
            return 0.0
        return found[number].middle if 0 <= number < len(found) else found[0].middle

    def name_of(self, number: int) -> str:
        """Return the driver and the number of a lap, and its time."""
        trace, lap = self.laps[number]
        laps = self._traces[trace].laps
        driver = self._traces[trace].replay.driver or _("Unknown driver")
        which = _("{driver}, lap {lap}").format(driver=driver, lap=laps.index(lap) + 1) if len(laps) > 1 else driver
        return f"{which}: {lap_time(lap.ticks)} s" + ("" if lap.clean else " *")

    def describe(self, difference: LapDifference) -> str:
        """Return what is different at a place, in one sentence."""
        factor, unit = SPEED_UNITS[self.app.settings.units], self.app.settings.units
        first, second = (self._driver(number) for number in self.chosen)
        parts = [
            _("{driver} {change} s").format(driver=second, change=signed(difference.seconds)),
            _("{speed} {unit} at the slowest point").format(speed=signed(difference.speed * factor, 0), unit=unit),
            _("lines {distance:.1f} units apart").format(distance=difference.apart),
        ]
        if difference.brakes_later is not None and abs(difference.brakes_later) >= 1.0:
            later = difference.brakes_later > 0.0
            text = _("brakes {distance:.0f} units later") if later else _("brakes {distance:.0f} units earlier")
            parts.append(text.format(distance=abs(difference.brakes_later)))
        return _("Against {driver}: {facts}").format(driver=first, facts=", ".join(parts))

    def _driver(self, number: int) -> str:
        return self._traces[self.laps[number][0]].replay.driver or _("Unknown driver")

    def _compare(self) -> None:
        """Compare the two chosen laps."""
        for number in self.chosen:
            if number not in self._profiles:
                trace, lap = self.laps[number]
                self._profiles[number] = lap_profile(self._traces[trace], lap)
        self.comparison = LapComparison(*(self._profiles[number] for number in self.chosen))
        self._pictures.clear()
        self._charts.clear()
        options = [self.name_of(number) for number in range(len(self.laps))]
        items: list[Item] = [
            Choice(label, options=options, chosen=number, on_change=partial(self._choose, which))
            for which, (label, number) in enumerate(zip((_("Lap"), _("Against")), self.chosen, strict=True))
        ]
        for number, difference in enumerate(self.comparison.differences, 1):
            label = _("{number}: at {distance:.0f} units").format(number=number, distance=difference.middle)
            items.append(Button(label, self.describe(difference), note=f"{signed(difference.seconds)} s"))
        if not self.comparison.differences:
            items.append(
                Button(_("These laps differ nowhere by {seconds} s").format(seconds=MIN_DIFFERENCE), enabled=False)
            )
        self.list.items = items

    def _choose(self, which: int, number: int) -> None:
        """Compare another lap; a lap is not compared with itself."""
        if number == self.chosen[1 - which]:
            number = (number + (1 if (number - self.chosen[which]) % len(self.laps) == 1 else -1)) % len(self.laps)
        if number != self.chosen[1 - which]:
            self.chosen[which] = number
        self._compare()

    def _chart_below_mouse(self) -> str | None:
        """Return the chart whose curves are below the mouse."""
        if self._mouse is None:
            return None
        for name, chart in self._charts.items():
            if name in self._places and chart.axes.frame.move(self._places[name].topleft).collidepoint(self._mouse):
                return name
        return None

    @property
    def _colours(self) -> tuple[Colour, Colour]:
        palette = self.app.theme.palette
        return palette.player, palette.cars[0]

    def _draw_beside(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        """Draw the maps below the list, and the charts at the right."""
        theme = self.app.theme
        gap, rows = theme.px(GAP), len(self.list.items)
        top = area.y + rows * theme.px(ROW_HEIGHT + ROW_GAP) + gap
        maps = pygame.Rect(area.x, top, area.width, area.bottom - top)
        half = (maps.width - gap) // 2
        left = area.right + 2 * gap
        charts = pygame.Rect(left, area.y, surface.get_width() - left - area.x // 2, area.height)
        self._places = _stacked(charts, gap) if charts.width >= theme.px(MIN_CHART) else {}
        if maps.height >= theme.px(MIN_MAP):
            self._places["whole"] = pygame.Rect(maps.x, maps.y, half, maps.height)
            self._places["near"] = pygame.Rect(maps.right - half, maps.y, half, maps.height)
            self._draw_maps(surface, theme)
        if "gap" in self._places:
            self._draw_charts(surface, theme, charts)
        self._draw_explanation(surface, theme)

    def _draw_maps(self, surface: pygame.Surface, theme: Theme) -> None:
        whole, near = self._places["whole"], self._places["near"]
        first, here = self.comparison.first, self.comparison.first.index_at(self.distance)
        window = whole_circuit(self._track, theme, whole.size)
        close = MapWindow(float(first.xs[here]), float(first.ys[here]), near.width / NEAR_WIDTH, near.size)
        surface.blit(self._map(theme, window), whole)
        surface.blit(self._map(theme, close), near)
        for place, shown in ((whole, window), (near, close)):
            clip = surface.get_clip()
            surface.set_clip(place)
            for profile, colour in zip((self.comparison.first, self.comparison.second), self._colours, strict=True):
                x, y = _point(shown, profile, here)
                pygame.draw.aacircle(surface, theme.palette.panel[:3], (place.x + x, place.y + y), theme.px(DOT + 2))
                pygame.draw.aacircle(surface, colour, (place.x + x, place.y + y), theme.px(DOT))
            surface.set_clip(clip)
        for number, difference in enumerate(self.comparison.differences, 1):
            x, y = _point(window, first, first.index_at(difference.middle))
            self._draw_number(surface, theme, number, (whole.x + x, whole.y + y))

    def _draw_number(self, surface: pygame.Surface, theme: Theme, number: int, centre: tuple[int, int]) -> None:
        """Draw the number of a place beside it."""
        radius, chosen = theme.px(MARKER), self.list.chosen == number - 1 + FIRST_PLACE
        middle = centre[0] + radius, centre[1] - 2 * radius
        colour = theme.palette.accent if chosen else theme.palette.text
        pygame.draw.aacircle(surface, colour, middle, radius)
        words = theme.text(str(number), TEXT_SMALL, theme.palette.on_accent)
        surface.blit(words, words.get_rect(center=middle))

    def _map(self, theme: Theme, window: MapWindow) -> pygame.Surface:
        """Return a map; the two drawn last are kept."""
        key = theme, window
        if key not in self._pictures:
            while len(self._pictures) >= 2:
                self._pictures.pop(next(iter(self._pictures)))
            laps = self.comparison.second, self.comparison.first
            lines = [(lap.xs, lap.ys, colour) for lap, colour in zip(laps, self._colours[::-1], strict=True)]
            self._pictures[key] = draw_lap_map(theme, self._track, window, lines)
        self._pictures[key] = self._pictures.pop(key)
        return self._pictures[key]

    def _draw_charts(self, surface: pygame.Surface, theme: Theme, area: pygame.Rect) -> None:
        for name in CHARTS:
            place, chart = self._places[name], self._charts.get(name)
            if chart is None or chart.theme is not theme or chart.picture.get_size() != place.size:
                chart = self._charts[name] = self._chart(name, theme, place.size)
            surface.blit(chart.picture, place)
        below = self._chart_below_mouse()
        for name, chart in self._charts.items():
            if name != below:
                draw_crosshair(surface, chart, self._places[name].topleft, chart.axes.x(self.distance), None)
        if below is not None and self._mouse is not None:
            draw_hover(surface, self._charts[below], self._places[below].topleft, self._mouse, area)

    def _draw_explanation(self, surface: pygame.Surface, theme: Theme) -> None:
        """Explain the map, or the chart whose edge is below the mouse."""
        if self._mouse is None or self._chart_below_mouse() is not None:
            return
        name = next((name for name, place in self._places.items() if place.collidepoint(self._mouse)), None)
        if name is not None:
            explanation = LAP_EXPLANATIONS.get(name, LAP_EXPLANATIONS["lines"])
            draw_explanation(surface, theme, explanation, pygame.Rect(self._mouse, (0, 0)))

    def _chart(self, name: str, theme: Theme, size: tuple[int, int]) -> Chart:
        comparison, factor = self.comparison, SPEED_UNITS[self.app.settings.units]
        laps, xs = (comparison.first, comparison.second), comparison.first.distances
        title, unit, columns = {
            "gap": (_("GAP"), SECONDS, [comparison.gaps]),
            "speed": (_("SPEED"), PLAIN, [lap.speeds * factor for lap in laps]),
            "steering": (_("STEERING"), SHARE, [lap.steering for lap in laps]),
            "pedals": (_("THROTTLE AND BRAKE"), SHARE, [lap.pedals for lap in laps]),
        }[name]
        if name == "gap":
            lines = [ChartLine(_("gap"), theme.palette.text, xs, columns[0], smooth=False)]
        else:
            named = zip(self.chosen, self._colours, columns, strict=True)
            lines = [ChartLine(self.name_of(lap), colour, xs, ys, smooth=False) for lap, colour, ys in named]
        marks = [
            ChartMark(each.middle, "flag", f"{number}: {signed(each.seconds)} s", theme.palette.accent)
            for number, each in enumerate(comparison.differences, 1)
        ]  # fmt: skip
        content = Content(
            title, unit, tuple(reversed(lines)), marks=tuple(marks) if name == "gap" else (), limits=all_values,
            include=INCLUDED.get(name, ()), latest=self._latest(name, theme), along=UNITS,
        )  # fmt: skip
        return Chart(theme, size, content, (0.0, float(xs[-1])), 0.0)

    def _latest(self, name: str, theme: Theme) -> list[tuple[str, Colour]]:
        """Return the words beside the title of a chart: whose curve is whose, or the gap at the end."""
        if name == "gap":
            driver = self._driver(self.chosen[1])
            return [(f"{driver} {signed(float(self.comparison.gaps[-1]))} s", self._colours[1])]
        if name != "speed":
            return []
        return [(self.name_of(number), colour) for number, colour in zip(self.chosen, self._colours, strict=True)]


def _first_choice(laps: Sequence[tuple[int, ReplayLap]], followed: int) -> tuple[int, int]:
    """Return the laps to compare at first: the best one of the followed drive, and the best of the others.

    Without a lap of another drive it is the second best of the same one.
    """
    order = sorted(range(len(laps)), key=lambda number: (not laps[number][1].clean, laps[number][1].ticks))
    first = next((number for number in order if laps[number][0] == followed), order[0])
    rest = [number for number in order if number != first]
    return first, next((number for number in rest if laps[number][0] != laps[first][0]), rest[0])


def _stacked(area: pygame.Rect, gap: int) -> dict[str, pygame.Rect]:
    """Return the places of the charts, one above the other."""
    room, y = area.height - gap * (len(CHARTS) - 1), float(area.y)
    places = {}
    for name, share in CHARTS.items():
        height = room * share / sum(CHARTS.values())
        places[name] = pygame.Rect(area.x, round(y), area.width, round(height))
        y += height + gap
    return places


def _point(window: MapWindow, lap: LapProfile, index: int) -> tuple[int, int]:
    """Return the pixel of a lap's position in a map."""
    xs, ys = window.place(lap.xs[index : index + 1], lap.ys[index : index + 1])
    return round(float(xs[0])), round(float(ys[0]))
