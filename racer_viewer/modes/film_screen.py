"""Recording a race in the window, and the screen that makes a film of it."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import pygame

from racer_env.errors import in_one_line
from racer_viewer.films.film import Film, FilmError, FilmProgress, can_write_mp4, check_film_path
from racer_viewer.films.maker import Clip, FilmExport, FilmLook, record_frame
from racer_viewer.films.writers import gif_size
from racer_viewer.modes.race_view import RaceView
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.paths import free_path
from racer_viewer.translation import _, mark
from racer_viewer.ui.bindings import FIXED_BINDINGS, key_name
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.paint import BAR_HEIGHT, FOOTER_HEIGHT, SHADE, STATUS_HEIGHT, draw_footer, draw_progress_bar, shade
from racer_viewer.ui.theme import CORNER, MARGIN, TEXT, TEXT_LARGE, TEXT_SMALL, Theme
from racer_viewer.ui.views import Key

TIME_BUDGET = 0.02
"""Time for drawing film frames between two frames of the window [s]."""
PREVIEW_WIDTH, AROUND_PREVIEW = 480, 180
"""Width of the last film frame and of the progress bar, and height of all around the frame, at scale 1 [px]."""
SIGN_WIDTH = 100
"""Width of the recording sign at the right end of the line of keys, at scale 1 [px]."""
RED = (236, 48, 40)
NO_FILM = mark("The film could not be made")
RECORD_KEY = key_name(FIXED_BINDINGS[Command.RECORD][0])


class FilmRecorder:
    """Records the view of one screen at a time, the one that was on top when recording began.

    clip: frames recorded so far; None while nothing is recorded.
    """

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self._clip: Clip | None = None
        self._exports: list[FilmExport] = []

    @property
    def clip(self) -> Clip | None:
        return self._clip

    @clip.setter
    def clip(self, clip: Clip | None) -> None:
        self._clip = clip
        self._app.sign_width = 0 if clip is None else SIGN_WIDTH

    @property
    def recording(self) -> bool:
        return self.clip is not None

    def toggle(self, size: tuple[int, int]) -> None:
        """Start or stop recording, in a window of this size [px]."""
        top = self._app.top
        if self.recording:
            self._make_film()
        elif top is not None and top.view is not None:
            self._start(top, top.view, size)
        else:
            self._app.notify(_("{key} records while a car is on screen").format(key=RECORD_KEY))

    def start_when_possible(self, screen: Screen, size: tuple[int, int], path: Path) -> Path | None:
        """Start recording to a file if the screen shows a car; returns the path if it does not yet."""
        if self.recording or screen.view is None:
            return path
        self._start(screen, screen.view, size, path)
        return None

    def _start(self, screen: Screen, view: RaceView, size: tuple[int, int], path: Path | None = None) -> None:
        try:
            self._path = path or _new_path(self._app.data / "films")
            check_film_path(self._path)
        except (FilmError, OSError) as error:
            self._app.push(MessageScreen(self._app, _(NO_FILM), in_one_line(error)))
            return
        self._screen, self._view, self._size, self.clip = screen, view, size, Clip()
        self._record_frame(self.clip)
        self._app.notify(_("Recording: press {key} again to make the film").format(key=RECORD_KEY))

    def after_tick(self, ticked: Screen) -> None:
        """Record the tick of a screen; the film is made when the clip is full or the screen is gone."""
        self._exports = [each for each in self._exports if not each.over]
        clip = self.clip
        if clip is None:
            return
        if ticked is self._screen:
            self._record_frame(clip)
            if clip.full:
                self._make_film()
                self._app.notify(_("A film has at most {minutes:.0f} minutes").format(minutes=clip.seconds / 60))
        elif self._screen not in self._app.screens:
            self._make_film()

    def draw(self, surface: pygame.Surface, bottom: int) -> None:
        """Draw a red dot and the recorded time at the right end of the line of keys, which ends at `bottom`."""
        if self.clip is not None:
            _draw_sign(surface, self._app.theme, self.clip.seconds, bottom)

    def close(self) -> None:
        """Finish all films after the window was closed, with a progress bar in the terminal."""
        if self.clip is not None:
            self._exports.append(self._export(self.clip))
            self.clip = None
        problem: FilmError | None = None
        for export in self._exports:
            if not export.over:
                try:
                    with FilmProgress() as progress:
                        film = export.finish(progress)
                    progress.print(film)
                except FilmError as error:
                    problem = error
        if problem is not None:
            raise problem

    def _record_frame(self, clip: Clip) -> None:
        clip.add(record_frame(self._view.frame(), self._view.camera, self._size, self._view.shown_overlays))

    def _make_film(self) -> None:
        clip, self.clip = self.clip, None
        if clip is not None:
            self._app.notice_ticks = 0
            export = self._export(clip)
            self._exports.append(export)
            self._app.push(FilmScreen(self._app, export))

    def _export(self, clip: Clip) -> FilmExport:
        settings = self._app.settings
        look = FilmLook(
            size=gif_size(self._size) if self._path.suffix.lower() == ".gif" else self._size,
            shown=settings.overlays,
            units=settings.units,
            palette=self._app.theme.palette,
            letters=settings.ui_scale,
        )
        return FilmExport(clip, self._path, look)


class FilmScreen(Screen):
    """Draws and writes a film while the window stays responsive."""

    see_through = True

    def __init__(self, app: AppContext, export: FilmExport) -> None:
        super().__init__(app)
        self.export = export
        self._shown = False
        """True if the window has drawn the progress since the last work."""

    def keys(self) -> tuple[Key, ...]:
        return (("Esc", _("cancel")),)

    def handle(self, intent: Intent) -> None:
        if intent == Command.BACK:
            self.export.cancel()
            self.app.pop()
            self.app.notify(_("Film cancelled, no file written"))

    def tick(self, controls: Controls) -> None:
        """Work once between two frames of the window, however many ticks that is."""
        if not self._shown:
            return
        self._shown = False
        end = time.perf_counter() + TIME_BUDGET
        try:
            film = self.export.step()
            while film is None and time.perf_counter() < end and self.export.done < self.export.total:
                film = self.export.step()
        except FilmError as error:
            self.app.pop()
            self.app.push(MessageScreen(self.app, _(NO_FILM), str(error)))
            return
        if film is not None:
            self.app.pop()
            self.app.notify(_saved_text(film))

    def draw(self, surface: pygame.Surface, share: float) -> None:
        self._shown = True
        export, shape = self.export, self.export.size[1] / self.export.size[0]
        room = surface.get_height() - self.app.theme.px(FOOTER_HEIGHT)
        theme = self.app.theme.fitting(lambda smaller: smaller.px(PREVIEW_WIDTH * shape + AROUND_PREVIEW) <= room)
        surface.blit(shade(surface.get_size(), 225), (0, 0))
        x, y = surface.get_width() // 2, theme.px(2.2 * MARGIN)
        title = theme.text(_("Making the film"), TEXT_LARGE)
        surface.blit(title, title.get_rect(midtop=(x, y)))
        y += title.get_height() + theme.px(MARGIN)
        y = self._draw_preview(surface, theme, x, y) + theme.px(MARGIN)
        width, share = theme.px(PREVIEW_WIDTH), export.done / export.total
        draw_progress_bar(surface, theme, (x, y + theme.px(BAR_HEIGHT) // 2), width, share)
        y += theme.px(BAR_HEIGHT) + theme.px(MARGIN)
        drawn = export.done < export.total
        line = (
            _("{done} of {total} frames").format(done=export.done, total=export.total)
            if drawn
            else _("Writing the last frames")
        )
        for words, size, colour in (
            (line, TEXT, theme.palette.text),
            (str(export.path), TEXT_SMALL, theme.palette.faint),
        ):
            text = theme.text(theme.truncate(words, surface.get_width() - 2 * theme.px(MARGIN), size), size, colour)
            surface.blit(text, text.get_rect(midtop=(x, y)))
            y += text.get_height() + theme.px(6)
        draw_footer(surface, self.app.theme, self.keys())

    def _draw_preview(self, surface: pygame.Surface, theme: Theme, x: int, y: int) -> int:
        """Draw the last film frame at reduced size; returns its lower edge [px]."""
        picture = self.export.picture
        width, height = self.export.size
        frame = pygame.Rect(0, 0, theme.px(PREVIEW_WIDTH), round(theme.px(PREVIEW_WIDTH) * height / width))
        frame.midtop = x, y
        pygame.draw.rect(surface, theme.palette.line, frame.inflate(2, 2), 1)
        if picture is not None:
            surface.blit(pygame.transform.smoothscale(picture, frame.size), frame)
        return frame.bottom


def _new_path(folder: Path) -> Path:
    """Return an unused film path."""
    folder.mkdir(parents=True, exist_ok=True)
    ending = "mp4" if can_write_mp4() else "gif"
    return free_path(folder / f"racer-{datetime.now():%Y%m%d-%H%M%S}.{ending}")


def _saved_text(film: Film) -> str:
    return _("{seconds:.1f} s of film saved as {path}").format(seconds=film.seconds, path=film.path)


def _draw_sign(surface: pygame.Surface, theme: Theme, seconds: float, bottom: int) -> None:
    """Draw the recording sign."""
    radius, gap = theme.px(5), theme.px(8)
    text = theme.text(f"REC {int(seconds) // 60}:{int(seconds) % 60:02}", TEXT_SMALL)
    plate = pygame.Rect(0, 0, 2 * radius + text.get_width() + 3 * gap, theme.px(STATUS_HEIGHT))
    plate.midright = surface.get_width() - gap, bottom - theme.px(FOOTER_HEIGHT) // 2
    pygame.draw.rect(surface, SHADE, plate, border_radius=theme.px(CORNER))
    pygame.draw.aacircle(surface, RED, (plate.left + gap + radius, plate.centery), radius)
    surface.blit(text, text.get_rect(midright=(plate.right - gap, plate.centery)))
