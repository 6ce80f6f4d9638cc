"""From a roll to a film, a little at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pygame

from racer_viewer.films.film import Film, FilmError
from racer_viewer.films.maker import FilmLook, FilmMaker
from racer_viewer.films.roll import Roll


class Development:
    """Can be left and taken up again. If it is interrupted in the middle of a picture it begins anew.

    over: there is a film now, or there will be none.
    """

    def __init__(self, roll: Roll, path: Path, look: FilmLook) -> None:
        self.path = path
        self.over = False
        self._roll, self._look = roll, look
        self._maker: FilmMaker | None = None

    @property
    def done(self) -> int:
        """Moments that are drawn."""
        return self._maker.moments if self._maker is not None else 0

    @property
    def total(self) -> int:
        """Moments on the roll."""
        return len(self._roll)

    @property
    def size(self) -> tuple[int, int]:
        """Of the film, about [px]."""
        return self._look.size

    @property
    def picture(self) -> pygame.Surface | None:
        """The last one of the film."""
        return self._maker.picture if self._maker is not None else None

    def step(self) -> Film | None:
        """Draw one more moment; when all are drawn, the film as soon as it is in its place."""
        with self._given_up_after_errors():
            maker = self._begun()
            if maker.moments < self.total:
                maker.add(*self._roll[maker.moments])
                return None
            maker.end()
            return self._end(maker) if maker.ended else None

    def finish(self, progress: Callable[[float], None]) -> Film:
        """All the rest at once; `progress` is told the part that is done."""
        while self.done < self.total:
            self.step()
            progress(self.done / self.total)
        with self._given_up_after_errors():
            return self._end(self._begun())

    def cancel(self) -> None:
        """Nothing is left of it."""
        self.over = True
        if self._maker is not None:
            self._maker.cancel()

    def _begun(self) -> FilmMaker:
        if self._maker is None:
            self._maker = FilmMaker(self.path, self._look)
        return self._maker

    def _end(self, maker: FilmMaker) -> Film:
        film = maker.finish()
        self.over = True
        return film

    @contextmanager
    def _given_up_after_errors(self) -> Iterator[None]:
        """A film that cannot be written will not be written later either; all else is an interruption."""
        try:
            yield
        except BaseException as error:
            self.over = isinstance(error, FilmError)
            self._maker = None
            raise
