"""A games server with a window: the window in the main thread, as some systems want it, the server in another."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from threading import Thread

from racer_env.bridge.listening import Address
from racer_env.bridge.serving import SWITCH_INTERVAL, ended_by_signals
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

    def close_window() -> None:
        window.is_open = False

    with ended_by_signals(close_window):
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
