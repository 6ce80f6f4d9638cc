"""Where the games of a window are.

The window of a games server: its games, who drives them, and a wheel for whoever sits in front of it.

A games server with a window: the window in the main thread, as some systems want it, the server in another."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from threading import Thread

import pygame

from racer_env.bridge.net import SWITCH_INTERVAL, Address, ended_by_signals
from racer_env.errors import RacerError
from racer_env.games.server import GamesServer
from racer_env.games.supervisor import GameView
from racer_env.games.worker_protocol import REST, Action
from racer_viewer.games.pictures import FRAME, Feed, Picture, Pictures, least_interval
from racer_viewer.modes.controls import SteeringInput
from racer_viewer.paths import data_folder
from racer_viewer.settings import Settings, SettingsFile
from racer_viewer.ui.adapter import InputAdapter
from racer_viewer.ui.bindings import key_name
from racer_viewer.ui.display import NoDisplayError, start_video
from racer_viewer.ui.intents import Click, CloseWindow, Command, Intent, KeyPress
from racer_viewer.ui.paint import (
    FOOTER_HEIGHT,
    STATUS_HEIGHT,
    ColouredWords,
    draw_centred,
    draw_footer,
    draw_status_line,
)
from racer_viewer.ui.theme import COLOUR_BLIND, MARGIN, ORDINARY, TEXT_LARGE, TEXT_SMALL, Colour, Theme, fitting_scale


def tiles(area: pygame.Rect, count: int, aspect: float, gap: int) -> list[pygame.Rect]:
    """So many rectangles of one size, row by row, with as much room as there can be for pictures of this shape.

    aspect: width / height of a picture. gap: between rectangles [px].
    """
    columns = max(range(1, count + 1), key=lambda number: _picture_height(area, number, count, aspect, gap))
    rows = -(-count // columns)
    width, height = _size(area, columns, rows, gap)
    return [
        pygame.Rect(
            area.x + number % columns * (width + gap), area.y + number // columns * (height + gap), width, height
        )
        for number in range(count)
    ]


def _size(area: pygame.Rect, columns: int, rows: int, gap: int) -> tuple[int, int]:
    width = (area.width - (columns - 1) * gap) // columns
    height = (area.height - (rows - 1) * gap) // rows
    return max(1, width), max(1, height)


def _picture_height(area: pygame.Rect, columns: int, count: int, aspect: float, gap: int) -> float:
    width, height = _size(area, columns, -(-count // columns), gap)
    return min(height, width / aspect)


TITLE = "Racer games"
LEAST_SIZE = (640, 400)
"""[px]"""
ASPECT = 1.25
"""Of CarRacing's pictures; a racer fills any shape."""
GROUND = (16, 20, 22)
CAPTION_GROUND = (26, 32, 35)
CAPTION_HEIGHT = 28
"""At scale 1 [px]."""
GAP = 6
"""Between games, at scale 1 [px]."""
BAR_WIDTH, BAR_HEIGHT = 54, 8
"""Of the wheel and of a pedal, at scale 1 [px]."""


class Stand:
    """One game in the window."""

    def __init__(self, server: GamesServer, game_id: int, interval: float) -> None:
        self.game_id = game_id
        self.feed = Feed(server, game_id, interval)
        self.picture: Picture | None = None


class GamesWindow:
    """Shows games and takes what is pressed. It asks the server for all and never waits for it."""

    def __init__(self, server: GamesServer, game_ids: range, settings: Settings) -> None:
        self._server = server
        interval = least_interval(server.arcade.plan.hz, len(game_ids))
        self._stands = [Stand(server, game_id, interval) for game_id in game_ids]
        self._pictures = Pictures()
        self._settings = settings
        self._palette = COLOUR_BLIND if settings.colour_blind else ORDINARY
        self._theme = Theme(1.0, self._palette)
        self._adapter, self._wheel = InputAdapter(settings.bindings), SteeringInput()
        self._chosen = 0
        self.at_the_wheel = False
        self.is_open = True
        pygame.joystick.init()
        self._window = pygame.Window(TITLE, tuple(map(max, settings.window, LEAST_SIZE)), resizable=True)
        self._window.minimum_size = LEAST_SIZE
        self._window.get_surface()

    @property
    def surface(self) -> pygame.Surface:
        return self._window.get_surface()

    def run_frame(self, playing: bool) -> None:
        """Take what was pressed, drive, and draw. Before the games have started there is little to show."""
        for intent in self._adapter.intents(pygame.event.get()):
            self._handle(intent, playing)
        if playing and self.at_the_wheel:
            self._drive()
        self.draw(playing)
        self._window.flip()

    def close(self) -> None:
        self._window.destroy()

    def draw(self, playing: bool) -> None:
        surface = self.surface
        scale = fitting_scale(surface.get_size(), self._settings.ui_scale)
        if scale != self._theme.scale:
            self._theme = Theme(scale, self._palette)
        surface.fill(GROUND)
        if playing:
            for stand, area in zip(self._stands, self._areas(), strict=True):
                self._draw_stand(surface.subsurface(area), stand)
        else:
            draw_centred(surface, self._theme, "Starting the games …", surface.get_height() // 2, TEXT_LARGE)
        draw_status_line(surface, self._theme, *self._status(playing))
        draw_footer(surface, self._theme, self._keys())

    def _areas(self) -> list[pygame.Rect]:
        theme, (width, height) = self._theme, self.surface.get_size()
        top, bottom = theme.px(STATUS_HEIGHT), theme.px(FOOTER_HEIGHT)
        area = pygame.Rect(0, top, width, max(1, height - top - bottom))
        return tiles(area, len(self._stands), ASPECT, theme.px(GAP))

    def _handle(self, intent: Intent, playing: bool) -> None:
        match intent:
            case CloseWindow() | KeyPress(
                "escape"
            ):  # not whatever means "back": ending the server takes more than a slip
                self.is_open = False
            case Command.FULL_SCREEN:
                self._change_full_screen()
            case Command.WHEEL if playing:
                self._take_wheel(not self.at_the_wheel)
            case Command.RESTART if playing:
                self._server.submit(self._server.arcade.ask(self._stands[self._chosen].game_id, restart=True))
            case Command.NEXT_CAR:
                self._choose((self._chosen + 1) % len(self._stands))
            case Click(x, y) if playing:
                for number, area in enumerate(self._areas()):
                    if area.collidepoint(x, y):
                        self._choose(number)

    def _choose(self, number: int) -> None:
        """The game to take the wheel of; the one that was driven is handed back."""
        if number != self._chosen:
            if self.at_the_wheel:
                self._take_wheel(False)
            self._chosen = number

    def _take_wheel(self, at_the_wheel: bool) -> None:
        self.at_the_wheel = at_the_wheel
        self._wheel.let_go()
        self._steer(REST if at_the_wheel else None)

    def _drive(self) -> None:
        moment = self._view(self._stands[self._chosen]).moment
        self._steer(self._wheel.turn(self._adapter.controls(), moment.telemetry["speed"] if moment else 0.0))

    def _steer(self, action: Action | None) -> None:
        self._server.submit(self._server.arcade.take_wheel(self._stands[self._chosen].game_id, action))

    def _change_full_screen(self) -> None:
        display = pygame.display.get_desktop_sizes()[0]
        if self._window.size == display:
            self._window.set_windowed()
        else:
            self._window.set_fullscreen(desktop=True)

    def _view(self, stand: Stand) -> GameView:
        return self._server.arcade.views[stand.game_id]

    def _key(self, what: str) -> str:
        return key_name(self._settings.bindings[what][0])

    def _keys(self) -> list[tuple[str, str]]:
        steer = f"{self._key('steer_left')} {self._key('steer_right')}"
        pedals = f"{self._key('throttle')} {self._key('brake')}"
        return [
            ("Esc", "end the server"),
            (self._key(Command.WHEEL), "hand back" if self.at_the_wheel else "take the wheel"),
            *([(steer, "steer"), (pedals, "gas, brake")] if self.at_the_wheel else []),
            (self._key(Command.RESTART), "restart"),
            *([(self._key(Command.NEXT_CAR), "next game")] if len(self._stands) > 1 else []),
            ("F11", "full screen"),
        ]

    def _status(self, playing: bool) -> tuple[ColouredWords, ColouredWords]:
        palette, server = self._palette, self._server
        count = server.guest_count
        left = (
            (server.arcade.plan.game, palette.text),
            (str(server.address), palette.faint),
            ("nobody is connected" if not count else f"{count} client{'s' * (count > 1)}", palette.faint),
        )
        clocks = server.arcade.clocks
        if not playing or not clocks:
            return left, ()
        rate, late = min(clock.rate for clock in clocks), max(clock.late_p99 for clock in clocks)
        keeps_up = all(clock.keeps_up for clock in clocks)
        speed = f"{rate:.1f} of {server.arcade.plan.hz:g} ticks/s"
        words: ColouredWords = (
            (speed if keeps_up else f"too slow: {speed}", palette.text if keeps_up else palette.bad),
        )
        return left, (*words, (f"99 % late by less than {late:.1f} ms", palette.faint))

    def _draw_stand(self, surface: pygame.Surface, stand: Stand) -> None:
        width, height = surface.get_size()
        caption = min(height, self._theme.px(CAPTION_HEIGHT))
        place = surface.subsurface(0, 0, width, height - caption)
        seen = stand.feed.poll(place.get_size())
        if seen is not None:
            if stand.picture is None:
                stand.picture = self._pictures.new(seen, self._theme)
            stand.picture.take(seen)
        if stand.picture is not None:
            stand.picture.draw(place)
        self._draw_caption(surface.subsurface(0, height - caption, width, caption), stand)
        if len(self._stands) > 1 and stand is self._stands[self._chosen]:
            pygame.draw.rect(surface, self._palette.accent, surface.get_rect(), self._theme.px(2))

    def _draw_caption(self, band: pygame.Surface, stand: Stand) -> None:
        """Under the picture: who drives, and how; the score."""
        theme, view = self._theme, self._view(stand)
        height, margin = band.get_height(), theme.px(MARGIN / 2)
        band.fill(CAPTION_GROUND)
        action = view.action if view.by_person is None else view.by_person
        end = self._draw_inputs(band, action, band.get_width() - margin)
        x = margin
        for text, colour in self._caption(view, stand):
            if x + theme.width(text, TEXT_SMALL) > end - margin:
                continue
            words = theme.text(text, TEXT_SMALL, colour)
            band.blit(words, (x, (height - words.get_height()) // 2))
            x += words.get_width() + margin * 2

    def _caption(self, view: GameView, stand: Stand) -> ColouredWords:
        """In the order of their weight: what has no room is left out."""
        palette = self._palette
        if view.by_person is not None:
            driver: tuple[str, Colour] = ("You have the wheel", palette.accent)
        else:
            driver = (f"{view.driver} drives" if view.driver else "Nobody drives", palette.text)
        game = (f"Game {stand.game_id}", palette.faint)
        if view.moment is None:
            return game, ("was lost, and starts again" if view.loss else "is about to start", palette.faint)
        told = view.moment.telemetry
        score = f"score {told['total_reward']:.{1 if abs(told['total_reward']) >= 10.0 else 3}f}"
        when = f"episode {view.moment.episode}, step {told['steps']}"
        return game, driver, (score, palette.faint), (when, palette.faint)

    def _draw_inputs(self, band: pygame.Surface, action: Action, right: int) -> int:
        """A bar that goes left and right for the wheel and one for each pedal; returns where they begin [px]."""
        theme, palette = self._theme, self._palette
        width, height = theme.px(BAR_WIDTH), theme.px(BAR_HEIGHT)
        y = (band.get_height() - height) // 2
        steer, gas, brake = action
        x = right
        for share, colour in ((brake, palette.bad), (gas, palette.good)):
            x -= width // 2
            pygame.draw.rect(band, palette.line, (x, y, width // 2, height), border_radius=height // 2)
            if share > 0.0:
                pygame.draw.rect(
                    band, colour, (x, y, max(height, round(width / 2 * share)), height), border_radius=height // 2
                )
            x -= theme.px(GAP)
        x -= width
        pygame.draw.rect(band, palette.line, (x, y, width, height), border_radius=height // 2)
        middle, reach = x + width // 2, round(width / 2 * steer)
        pygame.draw.rect(band, palette.text, (min(middle, middle + reach), y, max(2, abs(reach)), height))
        return x


def wait_for_frame(due: float) -> float:
    """Sleep until the next picture is due; returns when that was."""
    now = time.perf_counter()
    due = max(due + FRAME, now - FRAME)
    if due > now:
        time.sleep(due - now)
    return due


def check_display() -> None:
    """Raise if there is nothing to open a window on."""
    try:
        start_video()
    except NoDisplayError as error:
        raise RacerError(
            f"no display to open a window on ({error}): use --render rgb_array for frames without one, or none"
        ) from None


def show(server: GamesServer, game_ids: range, started: Callable[[Address], None]) -> None:
    """Serve and show these games until the window is closed, or SIGINT or SIGTERM comes."""
    sys.setswitchinterval(SWITCH_INTERVAL)  # clients do not wait for drawing
    window = GamesWindow(server, game_ids, SettingsFile(data_folder()).load())

    def close_window() -> None:
        window.is_open = False

    with ended_by_signals(close_window):
        serving = ServerThread(server, started)
        serving.start()
        due = time.perf_counter()
        try:
            while window.is_open and serving.is_alive():
                window.run_frame(serving.is_playing)
                due = wait_for_frame(due)
        finally:
            window.close()
            server.stop()
            serving.join()
    if serving.problem is not None:
        raise serving.problem


class ServerThread(Thread):
    """Runs a server until it is told to stop.

    is_playing: whether its games are there.
    problem: why it ended, if nobody told it to.
    """

    def __init__(self, server: GamesServer, started: Callable[[Address], None]) -> None:
        super().__init__(name="games-server")
        self._server, self._say_where = server, started
        self.is_playing = False
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._server.serve(self._say_started))
        except BaseException as problem:
            self.problem = problem
        finally:
            self.is_playing = False

    def _say_started(self, address: Address) -> None:
        self._say_where(address)
        self.is_playing = True
