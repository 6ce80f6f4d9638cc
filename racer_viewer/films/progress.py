"""How far a film is, for somebody at the terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from racer_viewer.films.film import Film


class FilmProgress:
    """A bar where something can move; elsewhere nothing but the line at the end. Both go to stderr.

    known: whether it is known beforehand how long the film will be; else the bar only shows that something goes on.
    """

    def __init__(self, title: str = "Making the film", known: bool = True) -> None:
        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=1.0 if known else None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._bar.stop()

    def __call__(self, share: float) -> None:
        """So much is done, 0 to 1."""
        self._bar.update(self._task, completed=share)

    def tell(self, film: Film) -> None:
        """Where it is."""
        self._console.print(str(film), soft_wrap=True, highlight=False, markup=False)
