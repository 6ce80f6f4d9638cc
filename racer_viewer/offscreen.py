"""Films without a window: of any driving screen, and of a lap of the champion where there is no display."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from racer_env.engine import TICKS_PER_SECOND
from racer_viewer.agents import bundled_models
from racer_viewer.engine_room import EngineRoom
from racer_viewer.films.film import Film, FilmError
from racer_viewer.films.maker import FilmLook, FilmMaker
from racer_viewer.modes.driving import DrivingScreen
from racer_viewer.modes.message import MessageScreen
from racer_viewer.modes.screen import Stage
from racer_viewer.modes.watch import open_watch
from racer_viewer.settings import SettingsFile
from racer_viewer.sound import SoundStage
from racer_viewer.ui.intents import IDLE

LAP_LOOK = FilmLook(size=(720, 404), shown=("timing", "map", "rays", "reward"))
LONGEST_LAP = 40 * TICKS_PER_SECOND
"""That is filmed [ticks]."""

Progress = Callable[[float], None]
"""Told the part that is done, 0 to 1."""


@dataclass(frozen=True)
class LapFilm:
    """What was filmed; a lap of 0 ticks did not get round."""

    film: Film
    circuit: str
    lap_ticks: int


def offscreen_stage(data: Path) -> Stage:
    """For screens that nobody sees: with the user's settings, silent, and with an engine that nobody has started."""
    settings_file = SettingsFile(data)
    return Stage(settings_file, settings_file.load(), data, EngineRoom(), SoundStage())


def film_screen(
    screen: DrivingScreen,
    path: Path,
    look: FilmLook,
    frames: int | None = None,
    until: Callable[[], bool] = lambda: False,
    progress: Progress = lambda share: None,
) -> Film:
    """The screen as it is now, then a tick for each sixtieth of a second, with nobody at the keys.

    frames: sixtieths of a second, or None if only `until` tells the end, which is asked after each of them.
    """
    with FilmMaker(path, look) as maker:
        maker.add(screen.moment())
        while maker.moments != frames and not until():
            screen.tick(IDLE)
            maker.add(screen.moment())
            if frames is not None:
                progress(maker.moments / frames)
        return maker.finish()


def film_lap(path: Path, circuit: str = "track-01") -> LapFilm:
    """Write the champion's first lap on a circuit as a film."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stage = offscreen_stage(path.parent)
    stage.room.wait()
    open_watch(stage, bundled_models()[:1], circuit)
    screen = stage.top
    if not isinstance(screen, DrivingScreen):
        raise FilmError(screen.text if isinstance(screen, MessageScreen) else stage.room.problem)
    try:
        film = film_screen(screen, path, LAP_LOOK, LONGEST_LAP, lambda: _lap_of(screen) > 0)
        return LapFilm(film, circuit, _lap_of(screen))
    finally:
        stage.quit()


def _lap_of(screen: DrivingScreen) -> int:
    """The last one that the followed car has ended [ticks], 0 if there is none."""
    timing = screen.after.timing
    return timing.last or 0 if timing else 0
