"""Films without a window: a driving screen is ticked for every frame, and nothing else is needed."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from racer_viewer.agents import bundled_models
from racer_viewer.app.offscreen import film_lap, film_screen, offscreen_context
from racer_viewer.films.film import FilmError
from racer_viewer.films.maker import FilmLook
from racer_viewer.modes.race_view import RaceView
from racer_viewer.modes.screen import Screen
from racer_viewer.modes.watch import open_watch
from racer_viewer.settings import Settings, SettingsFile
from racer_viewer.snapshot import InterpolatedFrame
from racer_viewer.ui.intents import Controls
from tests.films.drive import pictures
from tests.films.film_files import nothing_in, watch

SMALL = FilmLook(size=(192, 108))


class Driven(Screen):
    """Shows what was driven already."""

    view: RaceView

    def __init__(self, folder: Path, frames: list[InterpolatedFrame]) -> None:
        super().__init__(offscreen_context(folder))
        self.recorded, self.ticks = frames, 0
        self.view = RaceView(self, frames[0].after)

    def tick(self, controls: Controls) -> None:
        self.ticks += 1
        self.view.show(self.recorded[self.ticks].after)


def test_a_stage_without_a_window_has_the_settings_and_is_silent(tmp_path: Path) -> None:
    SettingsFile(tmp_path).save(Settings(units="mph"))
    context = offscreen_context(tmp_path)
    assert context.settings.units == "mph"
    assert context.data == tmp_path
    assert not context.warmup.ready
    context.sound.play("accept")
    context.sound.resume()
    assert context.sound.playing == {}


def test_the_first_frame_is_the_screen_as_it_is_and_each_other_one_a_tick_later(
    tmp_path: Path, folder: Path, ten_seconds: list[InterpolatedFrame]
) -> None:
    screen = Driven(tmp_path, ten_seconds)
    parts: list[float] = []
    film = film_screen(screen, folder / "a.png", SMALL, 20, progress=parts.append)
    assert (film.frames, screen.ticks) == (20, 19)
    assert parts == [number / 20 for number in range(2, 21)]
    for number, right in enumerate(pictures(ten_seconds[:20], SMALL, range(20)), 1):
        assert np.array_equal(np.asarray(Image.open(folder / f"a-{number:04}.png")), right), number


@pytest.mark.slow
def test_a_film_ends_with_the_frame_that_meets_its_condition(
    tmp_path: Path, folder: Path, ten_seconds: list[InterpolatedFrame]
) -> None:
    screen = Driven(tmp_path, ten_seconds)
    film = film_screen(screen, folder / "a.mp4", SMALL, None, until=lambda: screen.ticks == 30)
    assert film.frames == watch(film.path).frames == 31


def test_a_screen_that_fails_leaves_nothing(tmp_path: Path, folder: Path, ten_seconds: list[InterpolatedFrame]) -> None:
    with pytest.raises(IndexError):
        film_screen(Driven(tmp_path, ten_seconds[:10]), folder / "a.mp4", SMALL, 60)
    assert nothing_in(folder)


def test_an_agent_is_filmed_from_the_first_tick_on(tmp_path: Path, folder: Path) -> None:
    context = offscreen_context(tmp_path)
    context.warmup.wait()
    open_watch(context, bundled_models()[:1], "track-01")
    screen = context.top
    assert screen is not None
    assert screen.view is not None
    film_screen(screen, folder / "a.gif", SMALL, 60)
    assert watch(folder / "a.gif").seconds == 1.0
    assert int(screen.view.after.car["step_count"]) == 59
    context.quit()


def test_a_lap_that_cannot_be_filmed_gives_its_reason(folder: Path) -> None:
    with pytest.raises(FilmError, match="track-99"):
        film_lap(folder / "lap.gif", "track-99")
