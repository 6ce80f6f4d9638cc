"""A process that runs some of a server's games: `python -m racer_env.games.worker`, messages on its pipes.

It exits when its input ends, so it never outlives its server. One thread reads commands; another one ticks the games
and answers. Ticks come first: a request for a frame delays a tick by one frame at most. On a machine that is too slow,
games tick in turn and one request is answered in each round, so every game and every request gets its share.
"""

from __future__ import annotations

import gc
import os
import queue
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from threading import Thread

import gymnasium

from racer_env.bridge.net import LatencyHistogram
from racer_env.errors import RacerError
from racer_env.games.game import Game, GameBackend, make_backends
from racer_env.games.worker_protocol import (
    ActionCommand,
    DrawQuery,
    DrawReply,
    FailureReply,
    ReadyReply,
    ServerMessage,
    SetupCommand,
    StateQuery,
    StateReply,
    StatsQuery,
    StatsReply,
    StopCommand,
    TickStats,
    TickUpdate,
    WorkerMessage,
    pack,
    read_message,
)

MAX_LAG = 0.1
"""Maximum delay that a game catches up on by ticking faster [s]; ticks of a longer delay are skipped."""
RATE_WINDOW = 5.0
"""Time over which the tick rate is measured [s]."""
STATS_INTERVAL = 1.0
"""Time between two unrequested StatsReply messages [s]."""
MAX_UNSENT = 4096
"""Maximum number of messages that wait to be written; beyond it, tick updates are dropped."""
WINDOWS_SLEEP = 0.001
"""Length of a sleep on Windows [s], where a wait with a timeout is accurate to 16 ms only."""

Commands = queue.SimpleQueue[ServerMessage | None]
"""Commands from the server; None is the end of the input."""
Send = Callable[[WorkerMessage], None]


class TickSchedule:
    """Due times of one game's ticks, and statistics of their lateness. Times are seconds of a monotonic clock."""

    def __init__(self, hz: float, now: float) -> None:
        self.hz = hz
        self.period = 1.0 / hz
        self.due = now + self.period
        self.ticks = self.skipped = 0
        self._late = LatencyHistogram()
        self._samples: deque[tuple[float, int, int]] = deque([(now, 0, 0)])
        """Time, ticks run and ticks due at each of the last reports."""

    def begin_tick(self, now: float) -> None:
        """Record that the tick that was due starts now."""
        self._late.add(max(0, round((now - self.due) * 1e9)))
        self.ticks += 1
        self.due += self.period
        if now - self.due > MAX_LAG:
            missed = int((now - self.due) / self.period)
            self.skipped += missed
            self.due += missed * self.period

    def report(self, game_id: int, now: float) -> TickStats:
        """Return the statistics; call it about once a second, because the rate is measured between reports."""
        late = (self._late.percentile(percent) / 1e6 for percent in (50, 99, 100))
        return TickStats(game_id, self.hz, self._rate(now), self.ticks, self.skipped, *late)

    def _rate(self, now: float) -> float:
        """Return hz times the share of due ticks that were run; exact even for a low hz."""
        while len(self._samples) > 1 and now - self._samples[0][0] > RATE_WINDOW:
            self._samples.popleft()
        _, ticks, due = self._samples[0]
        overdue = max(0, int((now - self.due) / self.period))
        all_due = self.ticks + self.skipped + overdue
        self._samples.append((now, self.ticks, all_due))
        return self.hz * min(1.0, (self.ticks - ticks) / (all_due - due)) if all_due > due else self.hz


class Worker:
    """The games of one process and their tick schedules."""

    def __init__(self, setup: SetupCommand, backends: list[GameBackend], send: Send) -> None:
        self._hz, self._send = setup.hz, send
        self._games = {
            game_id: Game(game_id, backend, setup.max_steps, setup.frames, episode)
            for game_id, episode, backend in zip(setup.game_ids, setup.episodes, backends, strict=True)
        }
        self._schedules: dict[int, TickSchedule] = {}
        self._report_due = time.perf_counter() + STATS_INTERVAL

    def set_action(self, command: ActionCommand) -> None:
        """Set the action of a game; called by the reading thread, so it does not wait for other commands."""
        self._games[command.game_id].action = command.action

    def run(self, commands: Commands) -> None:
        """Tick the games and answer commands until the end of the input or a StopCommand."""
        while True:
            now = time.perf_counter()
            if now >= self._report_due:
                self._report(now)
            late = self._run_due_ticks(now)
            try:
                command = _next_command(commands, 0.0 if late else self._idle_time())
            except queue.Empty:
                continue
            if command is None:
                return
            if isinstance(command, StopCommand):
                self._report(time.perf_counter())
                return
            self._handle(command)

    def _run_due_ticks(self, now: float) -> bool:
        """Tick every game that is due once, most overdue first; return whether any was due."""
        due = sorted((schedule.due, game_id) for game_id, schedule in self._schedules.items() if schedule.due <= now)
        for _, game_id in due:
            self._schedules[game_id].begin_tick(time.perf_counter())
            game = self._games[game_id]
            end = game.tick()
            self._send(TickUpdate(game.snapshot(), end))
        return bool(due)

    def _idle_time(self) -> float:
        due = min((schedule.due for schedule in self._schedules.values()), default=self._report_due)
        return max(0.0, min(due, self._report_due) - time.perf_counter())

    def _handle(self, command: ServerMessage) -> None:
        if isinstance(command, StateQuery):
            self._reply_state(command)
        elif isinstance(command, StatsQuery):
            self._report(time.perf_counter(), command.query_id)
        elif isinstance(command, DrawQuery):
            game = self._games[command.game_id]
            self._start(game)
            data = game.draw_data(command.width, command.height)
            self._send(DrawReply(command.query_id, game.snapshot(), data.kind, data.width, data.height, data.content))

    def _reply_state(self, query: StateQuery) -> None:
        game = self._games[query.game_id]
        interrupted = None
        if query.restart and query.game_id in self._schedules:
            interrupted = game.restart()
            self._send(TickUpdate(game.snapshot(), interrupted))
        self._start(game)
        frame = game.frame() if query.frame else None
        self._send(StateReply(query.query_id, game.snapshot(), frame, interrupted is not None))

    def _start(self, game: Game) -> None:
        """Let a game run freely from now on, if it does not yet."""
        if game.game_id not in self._schedules:
            game.restart()
            self._send(TickUpdate(game.snapshot(), None))
            self._schedules[game.game_id] = TickSchedule(self._hz, time.perf_counter())

    def _report(self, now: float, query_id: int | None = None) -> None:
        self._report_due = now + STATS_INTERVAL
        stats = [schedule.report(game_id, now) for game_id, schedule in self._schedules.items()]
        self._send(StatsReply(query_id, stats))


def _next_command(commands: Commands, timeout: float) -> ServerMessage | None:
    """Return the next command; raise queue.Empty if none arrives within the timeout [s]."""
    if os.name != "nt" or timeout <= 0.0:
        return commands.get(timeout > 0.0, timeout or None)
    deadline = time.perf_counter() + timeout
    while commands.empty() and (left := deadline - time.perf_counter()) > 0.0:
        time.sleep(min(left, WINDOWS_SLEEP))
    return commands.get_nowait()


def _read_commands(worker: Worker, commands: Commands) -> None:
    while (command := read_message(sys.stdin.buffer.read)) is not None:
        if isinstance(command, ActionCommand):
            worker.set_action(command)
        else:
            commands.put(command)
    commands.put(None)


class _Replies:
    """Messages to the server, written to what was stdout; output of libraries goes to stderr.

    A thread of its own writes, so ticks do not wait while a large image is written.
    """

    def __init__(self) -> None:
        self._output = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self._unsent: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = Thread(target=self._write_all, name="games-replies", daemon=True)
        self._thread.start()

    def send(self, message: WorkerMessage) -> None:
        """Queue a message; if the server does not read, drop tick updates but keep replies and episode ends."""
        if self._unsent.qsize() > MAX_UNSENT and isinstance(message, TickUpdate) and message.ended is None:
            return
        self._unsent.put(pack(message))

    def close(self) -> None:
        """Return when all messages are written."""
        self._unsent.put(None)
        self._thread.join()

    def _write_all(self) -> None:
        try:
            while (content := self._unsent.get()) is not None:
                self._output.write(content)
                self._output.flush()
        except OSError:
            os._exit(1)  # the server has exited


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the server, which then stops this process
    os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"
    replies = _Replies()
    setup = read_message(sys.stdin.buffer.read)
    if setup is not None:
        assert isinstance(setup, SetupCommand), "the first message is a SetupCommand"
        _run_games(setup, replies.send)
    replies.close()


def _run_games(setup: SetupCommand, send: Send) -> None:
    try:
        worker = Worker(setup, make_backends(setup), send)
    except (RacerError, ImportError, gymnasium.error.Error) as error:
        send(FailureReply(str(error)))
        return
    gc.collect()
    gc.freeze()  # long-lived objects would be traversed at every collection, which delays ticks
    commands: Commands = queue.SimpleQueue()
    Thread(target=_read_commands, args=(worker, commands), name="games-commands", daemon=True).start()
    send(ReadyReply())
    worker.run(commands)


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # does not wait for the reading thread, whose input may stay open
