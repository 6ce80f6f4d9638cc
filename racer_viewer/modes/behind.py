"""Something that takes a while, done behind the window."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Behind(Generic[Result]):
    """Begins at once, in a thread of its own. Who wants to know what came of it looks once in a tick."""

    def __init__(self, do: Callable[[], Result], name: str) -> None:
        """name: of the thread."""
        self._do = do
        self._results: list[Result] = []
        self._problem: Exception | None = None
        self._undo: Callable[[Result], None] | None = None
        self._lock = Lock()
        self.done = False
        Thread(target=self._run, name=name, daemon=True).start()

    def result(self) -> Result:
        """Once it is done: what came of it. What went wrong is raised."""
        if self._problem is not None:
            raise self._problem
        return self._results[0]

    def give_up(self, undo: Callable[[Result], None]) -> None:
        """Nobody wants it any more: undo what came of it, or will come; nobody waits for that either."""
        with self._lock:
            self._undo = undo
            done = self.done
        if done:
            Thread(target=self._undo_all, name="racer-undo", daemon=True).start()

    def _run(self) -> None:
        try:
            self._results.append(self._do())
        except Exception as error:  # whoever asks for the result gets it
            self._problem = error
        with self._lock:
            self.done = True
            given_up = self._undo is not None
        if given_up:
            self._undo_all()

    def _undo_all(self) -> None:
        for result in self._results:
            assert self._undo is not None
            self._undo(result)
