"""A film shows every source frame once and in order."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from racer_viewer.films.film import Film
from racer_viewer.films.maker import FilmLook, FilmMaker
from racer_viewer.render.camera import Mode
from racer_viewer.snapshot import InterpolatedFrame
from tests.films.drive import Pixels, pictures
from tests.films.film_files import difference, ffmpegs, watch

SMALL = FilmLook(size=(192, 108))
CLOSE = 8.0
"""Difference that MP4 and GIF make to a picture as small as this, at most; of 255."""


def film(path: Path, source: list[InterpolatedFrame], look: FilmLook = SMALL) -> Film:
    maker = FilmMaker(path, look)
    for frame in source:
        maker.add(frame)
    return maker.finish()


@pytest.mark.parametrize(
    ("ending", "frames"), [("mp4", 600), ("gif", 200), pytest.param("png", 600, marks=pytest.mark.slow)]
)
def test_ten_seconds_are_exactly_ten_seconds_and_begin_and_end_as_they_should(
    ending: str, frames: int, folder: Path, ten_seconds: list[InterpolatedFrame]
) -> None:
    path = folder / f"drive.{ending}"
    made = film(path, ten_seconds)
    seen = watch(path)
    assert (made.frames, made.seconds) == (frames, 10.0)
    assert (seen.frames, seen.seconds) == (frames, pytest.approx(10.0, abs=1e-9))
    last = 600 - 600 // frames
    first_picture, later, before_last, last_picture = pictures(ten_seconds, SMALL, [0, 90, last - 1, last])
    if ending == "png":
        assert np.array_equal(seen.first, first_picture)
        assert np.array_equal(seen.last, last_picture)
    for shown, right, wrong in ((seen.first, first_picture, later), (seen.last, last_picture, before_last)):
        assert difference(shown, right) < CLOSE
        assert difference(shown, right) < 0.6 * difference(shown, wrong)
    assert [each.suffix for each in folder.iterdir()] == [f".{ending}"] * (frames if ending == "png" else 1)
    assert not ffmpegs(folder)


def test_each_picture_is_the_source_frame_of_its_number(folder: Path, ten_seconds: list[InterpolatedFrame]) -> None:
    source = ten_seconds[200:230]
    film(folder / "drive.png", source)
    for number, right in enumerate(pictures(source, SMALL, range(30)), 1):
        assert np.array_equal(np.asarray(Image.open(folder / f"drive-{number:04}.png")), right), number


def test_a_slow_motion_shows_what_lies_between_ticks(folder: Path, ten_seconds: list[InterpolatedFrame]) -> None:
    """Four pictures from each snapshot to the next: the world moves on in all of them, and panels tick once."""
    source = [
        InterpolatedFrame(each.before, each.after, (part + 1) / 4) for each in ten_seconds[300:306] for part in range(4)
    ]
    film(folder / "slow.png", source)
    shown = [np.asarray(Image.open(folder / f"slow-{number:04}.png")) for number in range(1, 25)]
    for number, right in enumerate(pictures(source, SMALL, range(24))):
        assert np.array_equal(shown[number], right), number
    assert all(not np.array_equal(a, b) for a, b in pairwise(shown))


def test_an_mp4_has_an_even_size(folder: Path, ten_seconds: list[InterpolatedFrame]) -> None:
    film(folder / "odd.mp4", ten_seconds[:5], FilmLook(size=(321, 181)))
    assert watch(folder / "odd.mp4").first.shape == (180, 320, 3)


def test_a_film_of_one_moment_is_a_picture_with_the_name_as_it_was_given(
    folder: Path, ten_seconds: list[InterpolatedFrame]
) -> None:
    made = film(folder / "still.png", ten_seconds[:1])
    assert made == Film(folder / "still.png", 1, 1 / 60)
    assert [each.name for each in folder.iterdir()] == ["still.png"]


def test_a_shorter_film_replaces_all_of_a_longer_one(folder: Path, ten_seconds: list[InterpolatedFrame]) -> None:
    (folder / "drive-1999.png").write_text("a picture from that year")
    film(folder / "drive.png", ten_seconds[:6])
    film(folder / "drive.png", ten_seconds[:3])
    assert sorted(each.name for each in folder.iterdir()) == [
        *(f"drive-000{number}.png" for number in (1, 2, 3)),
        "drive-1999.png",
    ]


def test_what_stands_still_takes_no_room_in_a_gif_but_its_time(
    folder: Path, ten_seconds: list[InterpolatedFrame]
) -> None:
    film(folder / "one.gif", ten_seconds[:1])
    film(folder / "still.gif", ten_seconds[:1] * 180)
    seen = watch(folder / "still.gif")
    assert (seen.frames, seen.seconds) == (60, 3.0)
    assert np.array_equal(seen.first, seen.last)
    assert (folder / "still.gif").stat().st_size < (folder / "one.gif").stat().st_size + 60 * 40


def test_a_gif_from_afar_changes_only_where_the_car_is_and_looks_the_same(
    folder: Path, ten_seconds: list[InterpolatedFrame]
) -> None:
    look = FilmLook(size=(640, 360), shown=(), camera=Mode.WHOLE)
    source = ten_seconds[100:250]
    film(folder / "far.gif", source, look)
    first, right = pictures(source, look, [0, 147])
    last = watch(folder / "far.gif").last
    assert difference(last, right) < CLOSE
    assert far_off(last, right) < 0.3 * far_off(last, first), "the car is where it should be and nowhere else"
    with Image.open(folder / "far.gif") as read:
        read.seek(40)
        left, top, right_edge, bottom = read.dispose_extent
    assert (right_edge - left) * (bottom - top) < 640 * 360 / 4


def far_off(a: Pixels, b: Pixels) -> int:
    """Number of pixels whose colour is another one."""
    return int((np.abs(a.astype(int) - b.astype(int)).max(axis=2) > 60).sum())
