"""A film that fails gives one clear error and leaves nothing behind: no file and no ffmpeg process."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from racer_viewer.films import film
from racer_viewer.films.film import FilmError, FilmProgress, check_film_path
from racer_viewer.films.maker import Clip, FilmExport, FilmLook, FilmMaker, record_frame
from racer_viewer.films.writers import Mp4Writer
from racer_viewer.render.camera import Camera
from racer_viewer.snapshot import InterpolatedFrame
from tests.films.film_files import ffmpegs, nothing_in, watch
from tests.processes import wait_for

SMALL = FilmLook(size=(256, 144))
ENDINGS = ("mp4", "gif", "png")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full and limits of files are Linux's")


def make(path: Path, frames: list[InterpolatedFrame]) -> None:
    maker = FilmMaker(path, SMALL)
    for frame in frames:
        maker.add(frame)
    maker.finish()


def clip_of(frames: list[InterpolatedFrame]) -> Clip:
    clip, camera = Clip(), Camera()
    for frame in frames:
        camera.tick(frame.after)
        view = camera.view
        clip.add(record_frame(frame, camera, SMALL.size, SMALL.shown))
        assert camera.view is view, "the window's own view does not change"
    return clip


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
    with pytest.raises(FilmError, match=r"folder .*nowhere .*does not exist"):
        FilmMaker(folder / "nowhere" / f"film.{ending}", SMALL)
    assert nothing_in(folder)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_folder_that_takes_no_files_is_named(ending: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):  # whoever may write everywhere
        monkeypatch.setattr(os, "access", lambda path, mode: path != folder)
    with pytest.raises(FilmError, match=r"The folder .* is not writable"):
        FilmMaker(folder / f"film.{ending}", SMALL)
    folder.chmod(0o755)


def test_a_folder_of_that_name_is_not_replaced(folder: Path) -> None:
    (folder / "film.gif").mkdir()
    with pytest.raises(FilmError, match="is a folder"):
        FilmMaker(folder / "film.gif", SMALL)


def test_without_ffmpeg_the_error_says_what_to_install(
    folder: Path, ten_seconds: list[InterpolatedFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(FilmError, match=r'pip install "racer-viewer\[video\]".*GIF and PNG need none'):
        check_film_path(folder / "film.mp4")
    make(folder / "film.gif", ten_seconds[:3])
    make(folder / "film.png", ten_seconds[:1])


def test_an_ffmpeg_that_cannot_be_started_is_one_clear_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(folder / "not-there"))
    with pytest.raises(FilmError, match=r"ffmpeg cannot be started.*not-there"):
        FilmMaker(folder / "film.mp4", SMALL)
    assert nothing_in(folder)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_film_without_frames_is_refused(ending: str, folder: Path) -> None:
    with pytest.raises(FilmError, match="has no frames"):
        FilmMaker(folder / f"film.{ending}", SMALL).finish()
    assert nothing_in(folder)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_cancelled_film_leaves_nothing(ending: str, folder: Path, ten_seconds: list[InterpolatedFrame]) -> None:
    maker = FilmMaker(folder / f"film.{ending}", SMALL)
    for frame in ten_seconds[:100]:
        maker.add(frame)
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
    """Write to a device that is always full."""

    @contextmanager
    def full(path: Path) -> Iterator[Path]:
        yield Path("/dev/full")

    monkeypatch.setattr(film, "atomic_write", full)
    with pytest.raises(FilmError, match=r"The film .*film\.... could not be written: .*[Nn]o space left") as raised:
        make(folder / f"film.{ending}", ten_seconds[:200])
    assert "\n" not in str(raised.value)
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
    errors = [line for line in result.stdout.splitlines() if "could not be written" in line]
    assert [line.split(":")[0] for line in errors] == list(ENDINGS), result.stdout
    assert nothing_in(folder)


@linux_only
def test_an_ffmpeg_that_dies_is_one_clear_error(folder: Path, ten_seconds: list[InterpolatedFrame]) -> None:
    maker = FilmMaker(folder / "film.mp4", SMALL)
    maker.add(ten_seconds[0])
    (process,) = ffmpegs(folder)
    os.kill(process, signal.SIGKILL)
    wait_for(lambda: not ffmpegs(folder), "ffmpeg has ended")
    with pytest.raises(FilmError, match="ffmpeg failed: it ended with code"):
        maker.add(ten_seconds[1])
    assert nothing_in(folder)


def test_a_clip_takes_ten_minutes_and_shares_snapshots(ten_seconds: list[InterpolatedFrame]) -> None:
    clip = clip_of(ten_seconds)
    while not clip.full:
        clip.add(clip[0])
    clip.add(clip[0])
    assert (len(clip), clip.seconds) == (36_000, 600.0)
    assert all(clip[n].frame.before is clip[n - 1].frame.after for n in range(1, 600))


def test_an_export_that_was_interrupted_starts_again_and_is_complete(
    folder: Path, ten_seconds: list[InterpolatedFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    export = FilmExport(clip_of(ten_seconds[:40]), folder / "film.mp4", SMALL)
    while export.done < 20:
        export.step()
    with monkeypatch.context() as patched:
        patched.setattr(Mp4Writer, "add", lambda writer, picture: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            export.step()
    assert nothing_in(folder)
    assert not export.over
    parts: list[float] = []
    assert export.finish(parts.append).frames == 40
    assert export.over
    assert parts == sorted(parts)
    assert parts[-1] == 1.0
    assert watch(folder / "film.mp4").frames == 40


def test_where_nothing_can_move_progress_is_one_line_at_the_end(
    folder: Path, ten_seconds: list[InterpolatedFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    export = FilmExport(clip_of(ten_seconds[:3]), folder / "film.gif", SMALL)
    with FilmProgress() as progress:
        film = export.finish(progress)
    assert capsys.readouterr().err == ""
    progress.print(film)
    assert capsys.readouterr() == ("", f"{folder / 'film.gif'}: 1 frame, 0.05 s\n")
