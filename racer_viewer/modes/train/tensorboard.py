"""TensorBoard for a run, in a process that ends with the window; a browser opens as soon as it is ready."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from racer_env.errors import RacerError, in_one_line
from racer_viewer.optional import SB3
from racer_viewer.translation import _, mark

HOST = "127.0.0.1"
STARTING, FAILED = mark("Starting TensorBoard"), mark("TensorBoard ended before it was ready")

Notify = Callable[[str], None]
"""Callback that shows a notice; it is called from other threads too."""


class TensorBoardProcess:
    """A TensorBoard process for one folder.

    url: address of its server; empty until it is ready.
    """

    def __init__(self, folder: Path, notify: Notify) -> None:
        context = multiprocessing.get_context("spawn")
        self._answer, there = context.Pipe(duplex=False)
        self._process = context.Process(target=serve, args=(str(folder), there), name="tensorboard", daemon=True)
        self._process.start()
        there.close()
        self.url = ""
        self._in_thread(self._wait, notify)

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.is_alive()

    def show(self, notify: Notify) -> None:
        """Open a browser if the server is ready; else notify that it is starting."""
        if self.url:
            self._in_thread(browse, self.url, notify)
        else:
            notify(_(STARTING))

    def stop(self) -> None:
        self._process.terminate()
        self._process.join()

    def _wait(self, notify: Notify) -> None:
        try:
            url, problem = self._answer.recv()
        except (EOFError, OSError):
            url, problem = "", _(FAILED)
        if problem:
            notify(problem)
        else:
            self.url = url
            browse(url, notify)

    @staticmethod
    def _in_thread(function: Callable[..., None], *arguments: object) -> None:
        """Run a function in a thread: opening a browser may block until it is closed."""
        threading.Thread(target=function, args=arguments, name="racer-tensorboard", daemon=True).start()


_processes: dict[Path, TensorBoardProcess] = {}
"""Processes by folder; they run until the app ends."""


def open_tensorboard(folder: Path, notify: Notify) -> TensorBoardProcess:
    """Start TensorBoard for a folder, or open the browser again if it is running already."""
    SB3.require()
    board = _processes.get(folder)
    if board is None or not board.is_running:
        board = _processes[folder] = TensorBoardProcess(folder, notify)
    board.show(notify)
    return board


def show_tensorboard(folder: Path, notify: Notify) -> None:
    """Start TensorBoard; notify instead of raising if that fails."""
    try:
        open_tensorboard(folder, notify)
    except (RacerError, OSError) as error:
        notify(in_one_line(error))


def browse(url: str, notify: Notify) -> None:
    """Open a browser, or ask the user to open one; whether a page appears is not known."""
    try:
        opened = webbrowser.open(url)
    except webbrowser.Error:
        opened = False
    notify(
        _("Opening TensorBoard in your browser: {url}").format(url=url)
        if opened
        else _("TensorBoard: open {url} in a browser").format(url=url)
    )


def serve(folder: str, answer: Connection) -> None:
    """Run the TensorBoard process: send its address or an error, then serve until the parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the window; this process ends with it
    watcher = threading.Thread(target=_end_with_parent, name="parent", daemon=True)
    watcher.start()
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    try:
        from tensorboard import program  # type: ignore[import-untyped]

        board = program.TensorBoard()
        board.configure(argv=["", "--logdir", folder, "--host", HOST, "--port", "0", "--load_fast", "false"])
        answer.send((board.launch(), ""))
    except (Exception, SystemExit) as error:
        answer.send(("", _("TensorBoard cannot be started: {reason}").format(reason=in_one_line(error))))
        return
    watcher.join()


def _end_with_parent() -> None:
    """Exit when the parent process ends, however it ends."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(0)
