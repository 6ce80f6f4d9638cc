"""The window of a games server: it shows the games and lets a person drive one of them.

The window runs in the main thread, which some systems require, and the server in another thread.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pygame

from racer_env.bridge.net import SWITCH_INTERVAL, ServerAddress, stop_on_signals
from racer_env.errors import RacerError
from racer_env.games.server import GamesServer
from racer_env.games.supervisor import GameStatus
from racer_env.games.worker_protocol import NEUTRAL, Action
from racer_viewer.clock import FixedStepClock
from racer_viewer.games.pictures import FRAME_RATE, DrawFeed, GamePicture, PictureFactory, min_image_interval
from racer_viewer.modes.controls import SteeringInput
from racer_viewer.settings import Settings, SettingsFile
from racer_viewer.translation import _, ngettext
from racer_viewer.ui.adapter import InputAdapter
from racer_viewer.ui.bindings import key_name
from racer_viewer.ui.display import NoDisplayError, new_window_size, start_video, use_language, use_renderer
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
    """Divide an area into `count` rectangles of one size, row by row, so that pictures are as large as possible.

    aspect: width / height of a picture.
    gap: distance between rectangles [px].
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
MIN_SIZE = (640, 400)
"""Minimum window size [px]."""
ASPECT = 1.25
"""Aspect ratio of CarRacing's pictures; a racer fills any shape."""
BACKGROUND = (16, 20, 22)
CAPTION_BACKGROUND = (26, 32, 35)
CAPTION_HEIGHT = 28
"""Height of the caption at scale 1 [px]."""
GAP = 6
"""Distance between games at scale 1 [px]."""
BAR_WIDTH, BAR_HEIGHT = 54, 8
"""Size of the steering bar at scale 1 [px]; a pedal bar has half the width."""


class GameTile:
    """One game in the window."""

    def __init__(self, server: GamesServer, game_id: int, interval: float) -> None:
        self.game_id = game_id
        self.feed = DrawFeed(server, game_id, interval)
        self.picture: GamePicture | None = None


class GamesWindow:
    """Shows games and handles input. It sends commands to the server but never waits for it."""

    def __init__(self, server: GamesServer, game_ids: range, settings: Settings) -> None:
        self._server = server
        interval = min_image_interval(server.supervisor.config.hz, len(game_ids))
        self._tiles = [GameTile(server, game_id, interval) for game_id in game_ids]
        self._pictures = PictureFactory()
        self._settings = settings
        self._palette = COLOUR_BLIND if settings.colour_blind else ORDINARY
        self._theme = Theme(1.0, self._palette)
        self._adapter, self._wheel = InputAdapter(settings.bindings), SteeringInput()
        self._selected = 0
        self.is_driving = False
        self.is_open = True
        pygame.joystick.init()
        use_renderer(settings.renderer)
        self._window = pygame.Window(TITLE, new_window_size(settings.window, MIN_SIZE), resizable=True)
        self._window.minimum_size = MIN_SIZE
        self._window.get_surface()

    @property
    def surface(self) -> pygame.Surface:
        return self._window.get_surface()

    def run_frame(self, playing: bool) -> None:
        """Handle input, drive, and draw. `playing`: whether the games are set up."""
        for intent in self._adapter.intents(pygame.event.get()):
            self._handle(intent, playing)
        if playing and self.is_driving:
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
        surface.fill(BACKGROUND)
        if playing:
            for tile, area in zip(self._tiles, self._areas(), strict=True):
                self._draw_tile(surface.subsurface(area), tile)
        else:
            draw_centred(surface, self._theme, _("Starting the games …"), surface.get_height() // 2, TEXT_LARGE)
        draw_status_line(surface, self._theme, *self._status(playing))
        draw_footer(surface, self._theme, self._keys())

    def _areas(self) -> list[pygame.Rect]:
        theme, (width, height) = self._theme, self.surface.get_size()
        top, bottom = theme.px(STATUS_HEIGHT), theme.px(FOOTER_HEIGHT)
        area = pygame.Rect(0, top, width, max(1, height - top - bottom))
        return tiles(area, len(self._tiles), ASPECT, theme.px(GAP))

    def _handle(self, intent: Intent, playing: bool) -> None:
        match intent:
            case CloseWindow() | KeyPress("escape"):  # not every key for "back": it stops the server
                self.is_open = False
            case Command.FULL_SCREEN:
                self._change_full_screen()
            case Command.WHEEL if playing:
                self._set_driving(not self.is_driving)
            case Command.RESTART if playing:
                game_id = self._tiles[self._selected].game_id
                self._server.submit(self._server.supervisor.query_state(game_id, restart=True))
            case Command.NEXT_CAR:
                self._select((self._selected + 1) % len(self._tiles))
            case Click(x, y) if playing:
                for number, area in enumerate(self._areas()):
                    if area.collidepoint(x, y):
                        self._select(number)

    def _select(self, number: int) -> None:
        """Select the game to drive; stop driving the one selected before."""
        if number != self._selected:
            if self.is_driving:
                self._set_driving(False)
            self._selected = number

    def _set_driving(self, is_driving: bool) -> None:
        self.is_driving = is_driving
        self._wheel.release()
        self._steer(NEUTRAL if is_driving else None)

    def _drive(self) -> None:
        snapshot = self._status_of(self._tiles[self._selected]).snapshot
        self._steer(self._wheel.update(self._adapter.controls(), snapshot.telemetry["speed"] if snapshot else 0.0))

    def _steer(self, action: Action | None) -> None:
        self._server.submit(self._server.supervisor.set_human_action(self._tiles[self._selected].game_id, action))

    def _change_full_screen(self) -> None:
        display = pygame.display.get_desktop_sizes()[0]
        if self._window.size == display:
            self._window.set_windowed()
        else:
            self._window.set_fullscreen(desktop=True)

    def _status_of(self, tile: GameTile) -> GameStatus:
        return self._server.supervisor.games[tile.game_id]

    def _key(self, action: str) -> str:
        return key_name(self._settings.bindings[action][0])

    def _keys(self) -> list[tuple[str, str]]:
        steer = f"{self._key('steer_left')} {self._key('steer_right')}"
        pedals = f"{self._key('throttle')} {self._key('brake')}"
        return [
            ("Esc", _("stop the server")),
            (self._key(Command.WHEEL), _("stop driving") if self.is_driving else _("drive")),
            *([(steer, _("steer")), (pedals, _("gas, brake"))] if self.is_driving else []),
            (self._key(Command.RESTART), _("restart")),
            *([(self._key(Command.NEXT_CAR), _("next game"))] if len(self._tiles) > 1 else []),
            ("F11", _("full screen")),
        ]

    def _status(self, playing: bool) -> tuple[ColouredWords, ColouredWords]:
        palette, server = self._palette, self._server
        count = server.client_count
        left = (
            (server.supervisor.config.game, palette.text),
            (str(server.address), palette.faint),
            (
                _("no clients")
                if not count
                else ngettext("{count} client", "{count} clients", count).format(count=count),
                palette.faint,
            ),
        )
        stats = server.supervisor.tick_stats
        if not playing or not stats:
            return left, ()
        rate, late = min(each.rate for each in stats), max(each.late_p99 for each in stats)
        keeps_up = all(each.keeps_up for each in stats)
        speed = _("{rate:.1f} of {hz:g} ticks/s").format(rate=rate, hz=server.supervisor.config.hz)
        words: ColouredWords = (
            (
                speed if keeps_up else _("too slow: {speed}").format(speed=speed),
                palette.text if keeps_up else palette.bad,
            ),
        )
        return left, (*words, (_("99 % late by less than {late:.1f} ms").format(late=late), palette.faint))

    def _draw_tile(self, surface: pygame.Surface, tile: GameTile) -> None:
        width, height = surface.get_size()
        caption = min(height, self._theme.px(CAPTION_HEIGHT))
        area = surface.subsurface(0, 0, width, height - caption)
        reply = tile.feed.poll(area.get_size())
        if reply is not None:
            if tile.picture is None:
                tile.picture = self._pictures.new(reply, self._theme)
            tile.picture.update(reply)
        if tile.picture is not None:
            tile.picture.draw(area)
        self._draw_caption(surface.subsurface(0, height - caption, width, caption), tile)
        if len(self._tiles) > 1 and tile is self._tiles[self._selected]:
            pygame.draw.rect(surface, self._palette.accent, surface.get_rect(), self._theme.px(2))

    def _draw_caption(self, band: pygame.Surface, tile: GameTile) -> None:
        """Draw the driver, the score and the action below the picture."""
        theme, status = self._theme, self._status_of(tile)
        height, margin = band.get_height(), theme.px(MARGIN / 2)
        band.fill(CAPTION_BACKGROUND)
        end = self._draw_action(band, status.action, band.get_width() - margin)
        x = margin
        for text, colour in self._caption(status, tile):
            if x + theme.width(text, TEXT_SMALL) > end - margin:
                continue
            words = theme.text(text, TEXT_SMALL, colour)
            band.blit(words, (x, (height - words.get_height()) // 2))
            x += words.get_width() + margin * 2

    def _caption(self, status: GameStatus, tile: GameTile) -> ColouredWords:
        """Return the texts of the caption, most important first; those without room are left out."""
        palette = self._palette
        if status.human_action is not None:
            driver: tuple[str, Colour] = (_("You drive"), palette.accent)
        else:
            driver = (
                _("{driver} drives").format(driver=status.driver) if status.driver else _("No driver"),
                palette.text,
            )
        game = (_("Game {number}").format(number=tile.game_id), palette.faint)
        if status.snapshot is None:
            return game, (_("restarting after a crash") if status.loss_message else _("not started"), palette.faint)
        telemetry = status.snapshot.telemetry
        total = telemetry["total_reward"]
        score = f"score {total:.{1 if abs(total) >= 10.0 else 3}f}"
        progress = _("episode {episode}, step {step}").format(episode=status.snapshot.episode, step=telemetry["steps"])
        return game, driver, (score, palette.faint), (progress, palette.faint)

    def _draw_action(self, band: pygame.Surface, action: Action, right: int) -> int:
        """Draw a bar for the steering wheel and one for each pedal; return their left edge [px]."""
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


def check_display() -> None:
    """Raise RacerError if there is no display."""
    try:
        start_video()
    except NoDisplayError as error:
        raise RacerError(
            f"no display to open a window on ({error}): use --render rgb_array for frames without one, or none"
        ) from None


def show(server: GamesServer, game_ids: range, started: Callable[[ServerAddress], None], data: Path) -> None:
    """Serve and show these games until the window is closed, or until SIGINT or SIGTERM; `data` has the settings."""
    sys.setswitchinterval(SWITCH_INTERVAL)  # clients do not wait while the window draws
    settings_file = SettingsFile(data)
    settings = settings_file.load()
    use_language(settings.language)
    window = GamesWindow(server, game_ids, settings)
    if settings_file.problem:
        print(f"racer-viewer: {settings_file.problem}", file=sys.stderr)

    def close_window() -> None:
        window.is_open = False

    with stop_on_signals(close_window):
        serving = ServerThread(server, started)
        serving.start()
        pacer = FixedStepClock.pacing(FRAME_RATE)
        try:
            while window.is_open and serving.is_alive():
                window.run_frame(serving.is_playing)
                pacer.wait()
        finally:
            window.close()
            server.stop()
            serving.join()
    if serving.problem is not None:
        raise serving.problem


class ServerThread(Thread):
    """Runs a server until it is stopped.

    is_playing: whether the games are set up.
    problem: exception that ended the server, if any.
    """

    def __init__(self, server: GamesServer, started: Callable[[ServerAddress], None]) -> None:
        super().__init__(name="games-server")
        self._server, self._when_set_up = server, started
        self.is_playing = False
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._server.serve(self._on_started))
        except BaseException as problem:
            self.problem = problem
        finally:
            self.is_playing = False

    def _on_started(self, address: ServerAddress) -> None:
        self._when_set_up(address)
        self.is_playing = True
