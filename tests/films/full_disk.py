"""Run as a process of its own: no file may be longer than so many bytes, and films are made nevertheless."""

import resource
import sys
from pathlib import Path

from racer_viewer.films.film import FilmError
from racer_viewer.films.maker import FilmLook, FilmMaker
from tests.films.drive import drive

MOST = 8_000
"""Bytes: less than one second of any film, or one PNG, takes."""


def main(folder: Path) -> None:
    moments = drive(90)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST, MOST))
    for ending in ("mp4", "gif", "png"):
        maker = FilmMaker(folder / f"film.{ending}", FilmLook(size=(640, 360)))
        try:
            for moment in moments:
                maker.add(moment)
            maker.finish()
        except FilmError as error:
            print(f"{ending}: {error}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
