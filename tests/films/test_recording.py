"""Recording in the window: F10 starts and stops it, and the film shows every tick."""

import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import pygame
import pytest
from PIL import Image

from racer_viewer.agents import bundled_models
from racer_viewer.app.menu import MenuScreen
from racer_viewer.films import writers
from racer_viewer.films.maker import Clip, FilmLook
from racer_viewer.films.writers import Mp4Writer
from racer_viewer.modes import film_screen
from racer_viewer.modes.film_screen import FilmScreen
from racer_viewer.modes.play import PauseScreen, PlayScreen
from racer_viewer.modes.race_view import RaceView
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.watch import WatchScreen, open_watch
from racer_viewer.snapshot import InterpolatedFrame, Snapshot
from tests.films.conftest import WINDOW
from tests.films.drive import Pixels, pictures
from tests.films.film_files import difference, ffmpegs, nothing_in, watch
from tests.modes.person import Person

LIMIT = 3000
"""Frames of the window that a film may take to be made."""


def watching(person: Person) -> WatchScreen:
    open_watch(person.app.context, bundled_models()[:1], "track-01")
    return person.top(WatchScreen)


def press_record(person: Person) -> None:
    """Press the record key without time passing."""
    person.hold("f10")
    person.release("f10")
    person.app.frame(0.0)


def wait_for_film(person: Person) -> Path:
    """Wait until the film is made; return the path in the notice."""
    person.top(FilmScreen)
    for _ in range(LIMIT):
        if not isinstance(person.app.context.top, FilmScreen):
            break
        person.frames()
    said = person.app.context.notice
    assert "saved as" in said, said
    return Path(said.split("saved as ")[1])


def clip_of(person: Person) -> Clip:
    recorder = person.app.recorder
    assert recorder is not None
    assert recorder.clip is not None
    return recorder.clip


def window_look(person: Person, size: tuple[int, int] = WINDOW) -> FilmLook:
    return FilmLook(size=size, shown=person.app.context.settings.overlays)


def ticks(recorded: list[InterpolatedFrame]) -> list[int]:
    return [int(frame.after.car["step_count"]) for frame in recorded]


@pytest.mark.parametrize("seconds", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_a_film_has_60_frames_a_second_however_slow_the_window_is(person: Person, seconds: int) -> None:
    """Six ticks between two frames of the window: none is missing in the film."""
    frames = 60 * seconds
    screen = watching(person)
    recorded = [screen.view.frame()]
    screen.view.show = _recording(screen.view, recorded)  # type: ignore[method-assign]
    press_record(person)
    while len(recorded) < frames - 6:
        person.frames(1, seconds=0.1)
    while len(recorded) < frames:
        person.frames(1, seconds=1 / 60)
    press_record(person)
    path = wait_for_film(person)
    assert ticks(recorded) == list(range(frames))
    assert path.parent == person.data / "films"
    assert path.suffix == ".mp4"
    seen = watch(path)
    assert (seen.frames, seen.seconds) == (frames, seconds)
    numbers = [0, frames // 2, frames - 2, frames - 1]
    first, later, before_last, last = pictures(recorded, window_look(person), numbers, screen.view.camera.insets)
    assert difference(seen.first, first) < 0.6 * difference(seen.first, later)
    assert difference(seen.last, last) < 0.6 * difference(seen.last, before_last)
    assert not ffmpegs(path.parent)


def _recording(view: RaceView, recorded: list[InterpolatedFrame]):  # type: ignore[no-untyped-def]
    show = view.show

    def show_and_record(snapshot: Snapshot) -> None:
        show(snapshot)
        recorded.append(InterpolatedFrame(view.before, view.after))

    return show_and_record


def test_pngs_are_to_the_pixel_what_was_to_be_seen(person: Person, folder: Path) -> None:
    """Record from the first car on the road on, as `play --record` does."""
    person.app.record_to(folder / "drive.png")
    person.frames(5)
    screen = watching(person)
    recorded = [screen.view.frame()]
    for _ in range(11):
        person.frames()
        recorded.append(screen.view.frame())
    press_record(person)
    assert wait_for_film(person) == folder / "drive-0001.png"
    assert len(list(folder.iterdir())) == 12
    for number, right in enumerate(pictures(recorded, window_look(person), range(12)), 1):
        assert np.array_equal(_read(folder / f"drive-{number:04}.png"), right), number


def _read(path: Path) -> Pixels:
    return np.asarray(Image.open(path))


@pytest.mark.slow
def test_a_film_shows_the_overlays_and_the_view_of_each_frame(person: Person, folder: Path) -> None:
    person.app.record_to(folder / "drive.png")
    screen = watching(person)
    person.frames(3)
    person.press("c", "7", "6", "9", "1")
    person.frames(26)
    press_record(person)
    wait_for_film(person)
    shown = _read(sorted(folder.iterdir())[-1])
    surface = pygame.Surface(WINDOW, depth=32)
    screen.view.scene.patient = True
    screen.draw(surface, 1.0)
    whole = pygame.surfarray.array3d(surface).swapaxes(0, 1)
    middle = slice(150, 400), slice(200, 760)
    assert difference(shown[middle], whole[middle]) < 0.5, "the whole circuit from afar, without panels"
    assert difference(_read(folder / "drive-0001.png")[middle], whole[middle]) > 20.0, "and near at first"


def test_without_ffmpeg_it_is_a_gif_of_modest_size(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    screen = watching(person)
    recorded = [screen.view.frame()]
    press_record(person)
    for _ in range(29):
        person.frames()
        recorded.append(screen.view.frame())
    press_record(person)
    path = wait_for_film(person)
    assert path.suffix == ".gif"
    seen = watch(path)
    assert (seen.frames, seen.seconds) == (10, 0.5)
    assert seen.first.shape == (405, writers.MAX_GIF_WIDTH, 3)
    (last,) = pictures(recorded, window_look(person, (writers.MAX_GIF_WIDTH, 405)), [27])
    assert difference(seen.last, last) < 8.0


def test_a_notice_says_when_f10_works(person: Person) -> None:
    person.press("f10")
    assert "while a car is on screen" in person.app.context.notice
    person.choose("Settings")
    person.press("f10")
    person.frames(3)
    assert not (person.data / "films").exists()


def test_a_red_dot_is_shown_while_recording_and_is_not_in_the_film(person: Person) -> None:
    watching(person)
    person.frames(2)
    assert not _has_red_dot(person.picture())
    press_record(person)
    person.frames(2)
    assert _has_red_dot(person.picture())
    press_record(person)
    assert not _has_red_dot(person.picture())
    film = watch(wait_for_film(person))
    corner = film.last[490:, 760:]
    assert not (corner == film_screen.RED).all(axis=2).any()
    assert difference(corner, np.full(corner.shape, film_screen.RED)) > 50


def _has_red_dot(picture: pygame.Surface) -> bool:
    pixels = pygame.surfarray.array3d(picture)
    return bool((pixels[760:, 490:] == film_screen.RED).all(axis=2).any())


def test_the_window_stays_alive_while_a_film_is_made(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ticks are due, it works once between two pictures, and no longer than it may."""
    watching(person)
    press_record(person)
    person.frames(20)
    press_record(person)
    making = person.top(FilmScreen)
    steps: list[int] = []
    step = making.export.step
    monkeypatch.setattr(making.export, "step", lambda: (steps.append(1), step())[1])
    monkeypatch.setattr(film_screen, "TIME_BUDGET", 0.0)
    person.frames(1, seconds=0.25)
    person.frames(1, seconds=0.25)
    assert len(steps) == 2
    assert making.export.done == 2
    monkeypatch.undo()
    wait_for_film(person)


def test_pausing_adds_no_frames(person: Person) -> None:
    person.choose("Play")
    person.choose("Start")
    person.top(PlayScreen)
    press_record(person)
    person.frames(10)
    person.press("escape")
    person.top(PauseScreen)
    person.frames(20)
    assert len(clip_of(person)) == 11
    person.choose("Resume")
    person.frames(5)
    assert len(clip_of(person)) == 11 + 1 + 5, "the first tick came with the key"


def test_the_tick_that_ends_a_drive_is_in_the_film(person: Person) -> None:
    """Results may cover the screen in the same tick, as after the last lap."""
    screen = watching(person)
    show = screen.view.show

    def show_and_end(snapshot: Snapshot) -> None:
        show(snapshot)
        if snapshot.car["step_count"] == 5:
            person.app.context.push(MessageScreen(person.app.context, "Results", ""))

    screen.view.show = show_and_end  # type: ignore[method-assign]
    press_record(person)
    person.frames(10)
    person.top(MessageScreen)
    clip = clip_of(person)
    assert ticks([clip[number].frame for number in range(len(clip))]) == [0, 1, 2, 3, 4, 5]


def test_leaving_the_road_makes_the_film(person: Person) -> None:
    person.choose("Play")
    person.choose("Start")
    press_record(person)
    person.frames(4)
    person.press("escape")
    frames = len(clip_of(person))
    person.choose("Main menu")
    person.frames(2)
    path = wait_for_film(person)
    person.top(MenuScreen)
    assert watch(path).frames == frames


def test_a_full_clip_makes_the_film_and_says_why(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(film_screen, "Clip", lambda: Clip(max_seconds=0.2))
    watching(person)
    press_record(person)
    person.frames(11)
    person.top(FilmScreen)
    assert "at most" in person.app.context.notice
    assert watch(wait_for_film(person)).frames == 12


def test_escape_cancels_and_leaves_nothing(person: Person) -> None:
    screen = watching(person)
    press_record(person)
    person.frames(20)
    press_record(person)
    making = person.top(FilmScreen)
    while making.export.done < 5:
        person.frames()
    assert ffmpegs(person.data) or sys.platform != "linux"
    person.press("escape")
    assert person.app.context.top is screen
    assert nothing_in(person.data / "films")
    person.app.close()
    assert nothing_in(person.data / "films")


@pytest.mark.parametrize("when", ["while it is recorded", "while it is made"])
def test_closing_the_window_loses_nothing(when: str, person: Person, capsys: pytest.CaptureFixture[str]) -> None:
    watching(person)
    press_record(person)
    person.frames(20)
    if when == "while it is made":
        press_record(person)
        making = person.top(FilmScreen)
        while making.export.done < 5:
            person.frames()
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    person.frames()
    assert person.app.context.top is None
    person.app.close()
    (path,) = (person.data / "films").iterdir()
    assert watch(path).frames == 21
    assert capsys.readouterr().err == f"{path}: 21 frames, 0.35 s\n"
    assert not ffmpegs(person.data)


def test_a_path_that_cannot_be_written_is_a_message_at_once(person: Person, tmp_path: Path) -> None:
    person.app.record_to(tmp_path / "nowhere" / "film.mp4")
    watching(person)
    person.frames(2)
    assert "nowhere" in person.top(MessageScreen).text
    person.press("return")
    person.top(WatchScreen)
    person.frames(5)
    press_record(person)
    person.frames(2)
    press_record(person)
    wait_for_film(person)


def test_a_film_that_fails_is_a_message_and_the_drive_goes_on(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = watching(person)
    press_record(person)
    person.frames(10)

    def fail(writer: Mp4Writer, picture: pygame.Surface) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Mp4Writer, "add", fail)
    press_record(person)
    person.frames(3)
    assert "No space left" in person.top(MessageScreen).text
    assert nothing_in(person.data / "films")
    person.press("return")
    assert person.app.context.top is screen
    person.app.close()


def test_two_recordings_are_two_films_even_in_the_same_second(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime(2031, 5, 7, 12, 30, 15)

    monkeypatch.setattr(film_screen, "datetime", Stopped)
    watching(person)
    places = []
    for _ in range(2):
        press_record(person)
        person.frames(3)
        press_record(person)
        places.append(wait_for_film(person))
    assert [path.name for path in places] == ["racer-20310507-123015.mp4", "racer-20310507-123015-2.mp4"]
    assert [watch(path).frames for path in places] == [4, 4]
