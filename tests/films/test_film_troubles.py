"""What can go wrong with a film: it is told in one line, and nothing is left, no file and no ffmpeg."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from racer_viewer.films import film
from racer_viewer.films.film import FilmError, FilmProgress, check_place
from racer_viewer.films.maker import Development, FilmLook, FilmMaker, Roll, take_shot
from racer_viewer.films.writers import Mp4Writer
from racer_viewer.render.camera import Camera
from racer_viewer.snapshot import InterpolatedFrame
from tests.films.film_files import ffmpegs, nothing_in, watch

SMALL = FilmLook(size=(256, 144))
ENDINGS = ("mp4", "gif", "png")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full and limits of files are Linux's")


def make(path: Path, moments: list[InterpolatedFrame]) -> None:
    maker = FilmMaker(path, SMALL)
    for moment in moments:
        maker.add(moment)
    maker.finish()


def roll_of(moments: list[InterpolatedFrame]) -> Roll:
    roll, camera = Roll(), Camera()
    for moment in moments:
        camera.tick(moment.after)
        view = camera.view
        roll.add(take_shot(moment, camera, SMALL.size, SMALL.shown))
        assert camera.view is view, "whoever looks at the window sees no difference"
    return roll


@pytest.mark.parametrize("name", ["film.avi", "film", "film.mp4.txt"])
def test_an_unknown_ending_is_refused_with_those_that_are_known(name: str, folder: Path) -> None:
    with pytest.raises(FilmError, match=rf"{name}.*\.mp4, \.gif or \.png"):
        FilmMaker(folder / name, SMALL)
    assert nothing_in(folder)


def test_endings_may_be_in_capitals(folder: Path, ten_seconds: list[InterpolatedFrame]) -> None:
    make(folder / "FILM.GIF", ten_seconds[:3])
    assert [each.name for each in folder.iterdir()] == ["FILM.GIF"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_missing_folder_is_named(ending: str, folder: Path) -> None:
    with pytest.raises(FilmError, match=r"no folder .*nowhere"):
        FilmMaker(folder / "nowhere" / f"film.{ending}", SMALL)
    assert nothing_in(folder)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_folder_that_takes_no_files_is_named(ending: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):  # whoever may write everywhere
        monkeypatch.setattr(os, "access", lambda path, mode: path != folder)
    with pytest.raises(FilmError, match="Nothing can be written in the folder"):
        FilmMaker(folder / f"film.{ending}", SMALL)
    folder.chmod(0o755)


def test_a_folder_of_that_name_is_not_replaced(folder: Path) -> None:
    (folder / "film.gif").mkdir()
    with pytest.raises(FilmError, match="is a folder"):
        FilmMaker(folder / "film.gif", SMALL)


def test_without_ffmpeg_it_is_told_what_to_install_and_what_needs_nothing(
    folder: Path, ten_seconds: list[InterpolatedFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(FilmError, match=r'pip install "racer-viewer\[video\]".*GIF and PNG need none'):
        check_place(folder / "film.mp4")
    make(folder / "film.gif", ten_seconds[:3])
    make(folder / "film.png", ten_seconds[:1])


def test_an_ffmpeg_that_cannot_be_run_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(folder / "not-there"))
    with pytest.raises(FilmError, match=r"ffmpeg cannot be started.*not-there"):
        FilmMaker(folder / "film.mp4", SMALL)
    assert nothing_in(folder)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_film_without_moments_is_none(ending: str, folder: Path) -> None:
    with pytest.raises(FilmError, match="nothing in it"):
        FilmMaker(folder / f"film.{ending}", SMALL).finish()
    assert nothing_in(folder)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_cancelled_film_leaves_nothing(ending: str, folder: Path, ten_seconds: list[InterpolatedFrame]) -> None:
    maker = FilmMaker(folder / f"film.{ending}", SMALL)
    for moment in ten_seconds[:100]:
        maker.add(moment)
    assert list(folder.iterdir())
    maker.cancel()
    maker.cancel()
    assert nothing_in(folder)


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_interrupted_film_leaves_nothing_and_the_older_one_as_it_was(
    ending: str, folder: Path, ten_seconds: list[InterpolatedFrame]
) -> None:
    path = folder / f"film.{ending}"
    path.write_text("an older film")

    def interrupted() -> None:
        with FilmMaker(path, SMALL) as maker:
            maker.add(ten_seconds[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [each.read_text() for each in folder.iterdir()] == ["an older film"]
    assert not ffmpegs(folder)


@pytest.mark.parametrize("ending", ["mp4", "gif"])
@linux_only
def test_a_full_disk_is_one_clear_error(
    ending: str, folder: Path, ten_seconds: list[InterpolatedFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written to a device that is always full."""

    @contextmanager
    def full(path: Path) -> Iterator[Path]:
        yield Path("/dev/full")

    monkeypatch.setattr(film, "atomic_write", full)
    with pytest.raises(FilmError, match=r"The film .*film\.... could not be written: .*[Nn]o space left") as told:
        make(folder / f"film.{ending}", ten_seconds[:200])
    assert "\n" not in str(told.value)
    assert nothing_in(folder)


def test_a_disk_that_fills_up_between_pngs_is_one_clear_error(
    folder: Path, ten_seconds: list[InterpolatedFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    save = Image.Image.save

    def save_few(image: Image.Image, path: Path, **options: int) -> None:
        if path.name == "5.png":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save(image, path, **options)

    monkeypatch.setattr(Image.Image, "save", save_few)
    with pytest.raises(FilmError, match=r"film\.png could not be written: No space left"):
        make(folder / "film.png", ten_seconds[:10])
    assert nothing_in(folder)


@pytest.mark.slow
@linux_only
def test_real_files_that_may_not_grow_are_one_clear_error_each(folder: Path) -> None:
    command = [sys.executable, "-m", "tests.films.full_disk", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2])
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    told = [line for line in result.stdout.splitlines() if "could not be written" in line]
    assert [line.split(":")[0] for line in told] == list(ENDINGS), result.stdout
    assert nothing_in(folder)


def test_an_ffmpeg_that_dies_is_one_clear_error(folder: Path, ten_seconds: list[InterpolatedFrame]) -> None:
    maker = FilmMaker(folder / "film.mp4", SMALL)
    writer = maker._writer
    assert isinstance(writer, Mp4Writer)
    maker.add(ten_seconds[0])
    writer._ffmpeg.kill()
    writer._ffmpeg.wait()
    with pytest.raises(FilmError, match="ffmpeg failed: it ended with code"):
        maker.add(ten_seconds[1])
    assert nothing_in(folder)


def test_a_roll_takes_ten_minutes_and_shares_what_it_keeps(ten_seconds: list[InterpolatedFrame]) -> None:
    roll = roll_of(ten_seconds)
    while not roll.full:
        roll.add(roll[0])
    roll.add(roll[0])
    assert (len(roll), roll.seconds) == (36_000, 600.0)
    assert all(roll[n].moment.before is roll[n - 1].moment.after for n in range(1, 600))


def test_a_development_that_was_interrupted_begins_anew_and_is_whole(
    folder: Path, ten_seconds: list[InterpolatedFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    development = Development(roll_of(ten_seconds[:40]), folder / "film.mp4", SMALL)
    while development.done < 20:
        development.step()
    with monkeypatch.context() as patched:
        patched.setattr(Mp4Writer, "add", lambda writer, picture: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            development.step()
    assert nothing_in(folder)
    assert not development.over
    parts: list[float] = []
    assert development.finish(parts.append).frames == 40
    assert development.over
    assert parts == sorted(parts)
    assert parts[-1] == 1.0
    assert watch(folder / "film.mp4").frames == 40


def test_where_nothing_can_move_progress_is_one_line_at_the_end(
    folder: Path, ten_seconds: list[InterpolatedFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    development = Development(roll_of(ten_seconds[:3]), folder / "film.gif", SMALL)
    with FilmProgress() as progress:
        film = development.finish(progress)
    assert capsys.readouterr().err == ""
    progress.tell(film)
    assert capsys.readouterr() == ("", f"{folder / 'film.gif'}: 1 frame, 0.05 s\n")
