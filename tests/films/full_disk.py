"""Make films in a process whose files cannot grow beyond MAX_FILE_SIZE."""

import resource
import sys
from pathlib import Path

from racer_viewer.films.film import FilmError
from racer_viewer.films.maker import FilmLook, FilmMaker
from tests.films.drive import drive

MAX_FILE_SIZE = 8_000
"""Less than one second of any film, or one PNG, takes [bytes]."""


def main(folder: Path) -> None:
    frames = drive(90)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_SIZE, MAX_FILE_SIZE))
    for ending in ("mp4", "gif", "png"):
        maker = FilmMaker(folder / f"film.{ending}", FilmLook(size=(640, 360)))
        try:
            for frame in frames:
                maker.add(frame)
            maker.finish()
        except FilmError as error:
            print(f"{ending}: {error}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
