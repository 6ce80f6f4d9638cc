"""A games server with a window: the window in the main thread, as some systems want it, the server in another."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from types import FrameType

from racer_env.bridge.server import SWITCH_INTERVAL, Address
from racer_env.errors import RacerError
from racer_env.games.server import GamesServer
from racer_viewer.folders import data_folder
from racer_viewer.games.window import GamesWindow, wait_for_frame
from racer_viewer.settings import SettingsFile
from racer_viewer.ui.display import NoDisplayError, start_video


def check_display() -> None:
    """Raise if there is nothing to open a window on."""
    try:
        start_video()
    except NoDisplayError as error:
        raise RacerError(
            f"no display to open a window on ({error}): use --render rgb_array for frames without one, or none"
        ) from None


def show(server: GamesServer, game_ids: range, started: Callable[[Address], None]) -> None:
    """Serve and show these games until the window is closed, or SIGINT or SIGTERM comes."""
    sys.setswitchinterval(SWITCH_INTERVAL)  # clients do not wait for drawing
    window = GamesWindow(server, game_ids, SettingsFile(data_folder()).load())
    with _stopped_by_signals(window):
        serving = ServerThread(server, started)
        serving.start()
        due = time.perf_counter()
        try:
            while window.is_open and serving.is_alive():
                window.run_frame(serving.is_playing)
                due = wait_for_frame(due)
        finally:
            window.close()
            server.stop()
            serving.join()
    if serving.problem is not None:
        raise serving.problem


class ServerThread(Thread):
    """Runs a server until it is told to stop.

    is_playing: whether its games are there.
    problem: why it ended, if nobody told it to.
    """

    def __init__(self, server: GamesServer, started: Callable[[Address], None]) -> None:
        super().__init__(name="games-server")
        self._server, self._say_where = server, started
        self.is_playing = False
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._server.serve(self._say_started))
        except BaseException as problem:
            self.problem = problem
        finally:
            self.is_playing = False

    def _say_started(self, address: Address) -> None:
        self._say_where(address)
        self.is_playing = True


@contextmanager
def _stopped_by_signals(window: GamesWindow) -> Iterator[None]:
    """SIGINT and SIGTERM close the window; those that come after the first change nothing."""

    def stop(number: int, frame: FrameType | None) -> None:
        window.is_open = False

    handlers = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
        handlers = dict.fromkeys(handlers, signal.SIG_IGN)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
