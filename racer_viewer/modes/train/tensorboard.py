"""TensorBoard on a run, in a process of its own that ends with the window. A browser opens as soon as it answers."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Callable
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path

from racer_env.errors import RacerError

HOST = "127.0.0.1"
STARTS, ENDED = "TensorBoard starts", "TensorBoard has ended before it could answer"

Say = Callable[[str], None]


class Board:
    """A TensorBoard process for one folder. url: where it answers, empty until it does."""

    def __init__(self, folder: Path, say: Say) -> None:
        context = multiprocessing.get_context("spawn")
        self._answer, there = context.Pipe(duplex=False)
        self._process = context.Process(target=serve, args=(str(folder), there), name="tensorboard", daemon=True)
        self._process.start()
        there.close()
        self.url = ""
        self._in_a_thread(self._wait, say)

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def is_live(self) -> bool:
        return self._process.is_alive()

    def show(self, say: Say) -> None:
        """In a browser, now; or say that it will be as soon as there is something to see."""
        if self.url:
            self._in_a_thread(_browse, self.url, say)
        else:
            say(STARTS)

    def end(self) -> None:
        self._process.terminate()
        self._process.join()

    def _wait(self, say: Say) -> None:
        try:
            url, problem = self._answer.recv()
        except (EOFError, OSError):
            url, problem = "", ENDED
        if problem:
            say(problem)
        else:
            self.url = url
            _browse(url, say)

    @staticmethod
    def _in_a_thread(do: Callable[..., None], *arguments: object) -> None:
        """Some browsers are waited for until they are closed."""
        threading.Thread(target=do, args=arguments, name="racer-tensorboard", daemon=True).start()


_BOARDS: dict[Path, Board] = {}
"""One for each folder, for as long as the window is there."""


def open_tensorboard(folder: Path, say: Say) -> Board:
    """Begin it, or show again what has begun. say: told how far it is, from another thread too."""
    if find_spec("tensorboard") is None:
        raise RacerError('TensorBoard is not installed: pip install "racer-viewer[train]"')
    board = _BOARDS.get(folder)
    if board is None or not board.is_live:
        board = _BOARDS[folder] = Board(folder, say)
    board.show(say)
    return board


def show_tensorboard(folder: Path, say: Say) -> None:
    """The same for a window, which goes on without it."""
    try:
        open_tensorboard(folder, say)
    except (RacerError, OSError) as error:
        say(str(error))


def _browse(url: str, say: Say) -> None:
    try:
        opened = webbrowser.open(url)
    except webbrowser.Error:
        opened = False
    say(f"TensorBoard is open in your browser: {url}" if opened else f"TensorBoard: open {url} in a browser")


def serve(folder: str, answer: Connection) -> None:
    """What the process does: tell its address, or what went wrong, and stay for as long as its parent is there."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the window, and this ends with it
    watching = threading.Thread(target=_end_with_parent, name="parent", daemon=True)
    watching.start()
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    try:
        from tensorboard import program  # type: ignore[import-untyped]

        board = program.TensorBoard()
        board.configure(argv=["", "--logdir", folder, "--host", HOST, "--port", "0", "--load_fast", "false"])
        answer.send((board.launch(), ""))
    except (Exception, SystemExit) as error:
        answer.send(("", f"TensorBoard does not start: {error}"))
        return
    watching.join()


def _end_with_parent() -> None:
    """However that ends."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(0)
