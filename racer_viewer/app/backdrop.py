"""Moving background and cards of the main menu. A module of its own: it needs the engine, which the menu must not."""

from __future__ import annotations

import itertools

import numpy as np
import pygame

from racer_env.engine import CAR, circuits, load_circuit
from racer_env.engine.circuits import assets_folder
from racer_env.errors import RacerError
from racer_viewer.agents import CHAMPION, Agent, load_agent
from racer_viewer.modes.career import EVENTS
from racer_viewer.modes.circuits import MEDALS, circuit_of, fixed_circuits
from racer_viewer.modes.drive import Drive, open_drive
from racer_viewer.modes.ladder import CircuitMedal, medal_overview
from racer_viewer.modes.race import ENDLESS, NO_ACTION, Entrant, RaceSetup
from racer_viewer.modes.screen import AppContext
from racer_viewer.modes.train.run_facts import RunFacts, RunScanner, fastest_laps
from racer_viewer.render.camera import Insets
from racer_viewer.render.plots import Sparkline
from racer_viewer.render.scene import Scene, SceneOptions
from racer_viewer.snapshot import CarStyle, Snapshot
from racer_viewer.timing import NO_TIME, lap_time
from racer_viewer.translation import _
from racer_viewer.ui.paint import FOOTER_HEIGHT, draw_medal
from racer_viewer.ui.theme import MARGIN, PADDING, TEXT, TEXT_SMALL, Theme

TICKS_PER_CIRCUIT = 1500
LAP_CIRCUIT = "track-01"
"""Circuit of the recorded lap."""
LAP_COLUMNS = (
    "x", "y", "heading", "vx", "vy", "speed", "yaw_rate", "steer", "throttle", "brake", "slip_angle", "surface", "rays",
)  # fmt: skip
"""Columns of `CAR` that are drawn, and recorded."""
CARD_WIDTH, CURVE_HEIGHT, MEDAL_RADIUS = 330, 84, 6
"""Width of the cards, height of the curve in one, and radius of a medal, at scale 1 [px]."""


class RecordedLap:
    """A flying lap of the champion, shown while the engine is compiled; `tools/menu_lap.py` records it."""

    def __init__(self, theme: Theme) -> None:
        with np.load(assets_folder() / "menu_lap.npz", allow_pickle=False) as recorded:
            self._rows = np.zeros((len(recorded["x"]), 1), CAR)
            for name in LAP_COLUMNS:
                self._rows[name][:, 0] = recorded[name]
        self._rows["step_count"][:, 0] = np.arange(len(self._rows))
        self._track = load_circuit(LAP_CIRCUIT)
        self._styles = (CarStyle(CHAMPION, theme.palette.player),)

    def snapshot(self, tick: int) -> Snapshot:
        """Return what is visible after a tick from 0; laps follow each other without a gap."""
        lap, row = divmod(tick, len(self._rows))
        cars = self._rows[row].copy()
        cars["step_count"] += lap * len(self._rows)
        return Snapshot(self._track, cars, self._styles)

    def is_over(self, tick: int) -> bool:
        """Return whether a lap ends with this tick."""
        return tick > 0 and tick % len(self._rows) == 0


class MenuBackdrop:
    """The champion driving on one circuit after another; first a recorded lap, until the engine is ready.

    ticks: ticks driven on this circuit.
    """

    def __init__(self, app: AppContext) -> None:
        self._app = app
        first, *others = [circuit.id for circuit in circuits()]
        self._circuits = itertools.cycle([*others, first])
        self._scene = Scene(app.theme)
        self._lap = RecordedLap(app.theme)
        self._agent: Agent | None = None
        self._drive: Drive | None = None
        self.ticks = 0
        self._before = self._after = self._lap.snapshot(0)

    @property
    def recorded(self) -> bool:
        """True while the recorded lap is shown."""
        return self._drive is None

    def tick(self) -> None:
        if self._drive is None:
            self.ticks += 1
            self._advance(self._lap.snapshot(self.ticks))
            if self._lap.is_over(self.ticks) and self._app.warmup.ready:
                self._open_next()
            return
        if self.ticks >= TICKS_PER_CIRCUIT:
            self._drive.close()
            self._open_next()
        for tick in self._drive.advance(1, NO_ACTION):
            self.ticks += 1
            self._advance(tick.snapshot)

    def draw(self, surface: pygame.Surface, share: float, left: int) -> None:
        """Draw the race, with the car at the right of a menu that ends at `left` [px]."""
        self._scene.use(self._app.theme)
        self._scene.camera.insets = Insets(left=left)
        self._scene.draw(surface, self._before, self._after, share, SceneOptions(rays=True, names=False))

    def draw_ahead(self) -> bool:
        return self._scene.draw_ahead()

    def close(self) -> None:
        if self._drive is not None:
            self._drive.close()

    def _advance(self, snapshot: Snapshot) -> None:
        self._before, self._after = self._after, snapshot
        self._scene.tick(snapshot)

    def _open_next(self) -> None:
        """Open a drive on the next circuit and show its start."""
        self.ticks = 0
        if self._agent is None:
            self._agent = load_agent(CHAMPION)
        entrant = Entrant(CHAMPION, self._app.theme.palette.player, self._agent)
        self._drive = open_drive(RaceSetup(next(self._circuits), (entrant,), config=ENDLESS))
        self._before = self._after = self._drive.first.snapshot


class MenuCards:
    """Cards at the right of the main menu: medals won on every circuit, and the curve of a run that is learning.

    The medals are shown from the first race on.

    medals: what is shown of the circuits.
    career: how far the career has come; empty before its first win.
    """

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self._scanner = RunScanner(app.data / "runs")
        self._sparkline = Sparkline(app.theme)
        self.medals: tuple[CircuitMedal, ...] = ()
        self.career = ""
        self.circuit_name = ""
        """Name of the circuit that was raced last."""

    @property
    def learning(self) -> RunFacts | None:
        """Newest run that is learning in the background; None without one."""
        return next((run for run in self._scanner.facts if run.learning and run.config is not None), None)

    def refresh(self) -> None:
        """Read the medals and the circuit again, and look for runs until `stop`."""
        circuit_id = circuit_of(self._app)
        circuit = fixed_circuits(self._app.data, circuit_id).get(circuit_id)
        self.circuit_name = circuit.name if circuit is not None else circuit_id
        try:
            self.medals, won = medal_overview(self._app), self._app.records.events_won()
        except (RacerError, OSError):
            self.medals, won = (), frozenset()  # the records screen says what is wrong with the file
        self.career = f"{len(won)} / {len(EVENTS)}" if won else ""
        self._scanner.start()

    def stop(self) -> None:
        self._scanner.stop()

    def draw(self, surface: pygame.Surface, theme: Theme, left: int) -> pygame.Rect:
        """Draw the cards above the key line, at the right of `left` [px]; return their area.

        They get smaller where there is little room. The area is the whole picture if none is drawn.
        """
        margin, run = theme.px(MARGIN), self.learning
        room = pygame.Rect(left + margin, margin, surface.get_width() - left - 2 * margin, 0)
        room.height = surface.get_height() - theme.px(FOOTER_HEIGHT) - 2 * margin

        def fits(theme: Theme) -> bool:
            height = (0 if run is None else _run_height(theme) + margin) + has_medals * self._medal_height(theme)
            return theme.px(CARD_WIDTH) <= room.width and height <= room.height

        has_medals = bool(self.medals) and (self._app.settings.raced or any(each.best for each in self.medals))
        theme = theme.fitting(fits)
        width, bottom = theme.px(CARD_WIDTH), room.bottom
        if not fits(theme) or (run is None and not has_medals):
            return surface.get_rect()
        cards = [] if run is None else [self._run_card(theme, width, run)]
        if has_medals:
            cards.append(self._medal_card(theme, width))
        for card in reversed(cards):
            bottom -= card.get_height()
            surface.blit(card, (room.right - width, bottom))
            bottom -= margin
        return pygame.Rect(room.right - width, bottom + margin, width, room.bottom - bottom - margin)

    def _medal_height(self, theme: Theme) -> int:
        rows = len(self.medals) * (theme.line_height() + theme.px(4))
        return 2 * theme.px(PADDING) + theme.line_height(TEXT_SMALL) + theme.px(6) + rows

    def _medal_card(self, theme: Theme, width: int) -> pygame.Surface:
        """Return a card with a row for each circuit: best lap, medal, and the time of the next medal."""
        pad, row = theme.px(PADDING), theme.line_height() + theme.px(4)
        title = theme.line_height(TEXT_SMALL) + theme.px(6)
        card = theme.panel(width, self._medal_height(theme))
        won = sum(each.medal is not None for each in self.medals)
        card.blit(
            theme.text(
                _("Medals on {won} of {number} circuits").format(won=won, number=len(self.medals)),
                TEXT_SMALL,
                theme.palette.faint,
            ),
            (pad, pad),
        )
        for number, each in enumerate(self.medals):
            y = pad + title + number * row
            centre = pad + theme.px(MEDAL_RADIUS), y + theme.line_height() // 2
            if each.medal:
                draw_medal(card, MEDALS[each.medal], centre, theme.px(MEDAL_RADIUS + 2))
            else:
                pygame.draw.aacircle(card, theme.palette.line, centre, theme.px(MEDAL_RADIUS), theme.px(2))
            name_end = width - pad - theme.px(90)
            name = theme.truncate(each.circuit.name, name_end - 3 * pad)
            card.blit(theme.text(name, TEXT), (pad + theme.px(22), y))
            best = lap_time(each.best) if each.best is not None else NO_TIME
            time = theme.text(best, TEXT, theme.palette.text if each.best is not None else theme.palette.faint)
            card.blit(time, (width - pad - time.get_width(), y))
        return card

    def _run_card(self, theme: Theme, width: int, run: RunFacts) -> pygame.Surface:
        """Return a card with the progress and the curve of a run."""
        if self._sparkline.theme is not theme:
            self._sparkline = Sparkline(theme)
        pad, height = theme.px(PADDING), theme.px(CURVE_HEIGHT)
        line, small = theme.line_height() + theme.px(4), theme.line_height(TEXT_SMALL) + theme.px(4)
        card = theme.panel(width, _run_height(theme))
        percent = theme.text(run.progress, TEXT, theme.palette.good)
        card.blit(theme.text(_("Training in background"), TEXT_SMALL, theme.palette.faint), (pad, pad))
        name = theme.truncate(run.folder.name, width - 3 * pad - percent.get_width())
        card.blit(theme.text(name, TEXT), (pad, pad + small))
        card.blit(percent, (width - pad - percent.get_width(), pad + small))
        laps = fastest_laps(run.curves) or _("{steps:,} steps").format(steps=run.steps)
        card.blit(
            theme.text(theme.truncate(laps, width - 2 * pad, TEXT_SMALL), TEXT_SMALL, theme.palette.faint),
            (pad, pad + small + line),
        )
        self._sparkline.draw(card, pygame.Rect(pad, pad + 2 * small + line, width - 2 * pad, height), run.curves)
        return card


def _run_height(theme: Theme) -> int:
    lines = theme.line_height() + 2 * theme.line_height(TEXT_SMALL) + 3 * theme.px(4)
    return 2 * theme.px(PADDING) + lines + theme.px(CURVE_HEIGHT)
