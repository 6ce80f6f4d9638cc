"""When a game ticks: at an even rate, however long other things take.

A process that plays some of a server's games: `python -m racer_env.games.worker`, messages on its pipes.

It ends when its input does, so it never outlives its server, however that ended. One thread reads; another one ticks
the games and answers. Ticks come first: whoever asks for pictures can delay a tick by one picture at most. Where the
machine does not keep up, games tick in turn and one request is answered in each round, so that nobody starves.
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

from racer_env.bridge.net import Latencies
from racer_env.errors import RacerError
from racer_env.games.game import Game, Playable
from racer_env.games.kinds import make_playables
from racer_env.games.worker_protocol import (
    Act,
    Answer,
    Ask,
    ClockReport,
    Count,
    Counted,
    Failed,
    Finish,
    FromWorker,
    Look,
    Ready,
    Seen,
    Setup,
    Ticked,
    ToWorker,
    packed,
    read_packed,
    to_worker,
)

CATCH_UP = 0.1
"""A game that is late by at most so much ticks faster until it is on time; of a longer pause, ticks are skipped [s]."""
WINDOW = 5.0
"""Over which the rate is counted [s]."""


class TickClock:
    """The due times of one game's ticks, and how well they were kept. Times are in seconds of a steady clock."""

    def __init__(self, hz: float, now: float) -> None:
        self.hz = hz
        self.period = 1.0 / hz
        self.due = now + self.period
        self.ticks = self.skipped = 0
        self._late = Latencies()
        self._marks: deque[tuple[float, int, int]] = deque([(now, 0, 0)])
        """At earlier reports: the time, the ticks until then and the ticks that were due until then."""

    def begin_tick(self, now: float) -> None:
        """The tick that was due begins now."""
        self._late.add(max(0, round((now - self.due) * 1e9)))
        self.ticks += 1
        self.due += self.period
        if now - self.due > CATCH_UP:
            missed = int((now - self.due) / self.period)
            self.skipped += missed
            self.due += missed * self.period

    def report(self, game_id: int, now: float) -> ClockReport:
        """How it went; to be asked about once a second, since the rate is counted from one report to later ones."""
        milliseconds = (self._late.percentile(50), self._late.percentile(99), self._late.percentile(100))
        return ClockReport(
            game_id, self.hz, self._rate(now), self.ticks, self.skipped, *(value / 1e6 for value in milliseconds)
        )

    def _rate(self, now: float) -> float:
        """Of the ticks that were due in the last seconds, as many as there were: exact, however few those are."""
        while len(self._marks) > 1 and now - self._marks[0][0] > WINDOW:
            self._marks.popleft()
        _, ticks, due = self._marks[0]
        overdue = max(0, int((now - self.due) / self.period))
        all_due = self.ticks + self.skipped + overdue
        self._marks.append((now, self.ticks, all_due))
        return self.hz * min(1.0, (self.ticks - ticks) / (all_due - due)) if all_due > due else self.hz


REPORT_SECONDS = 1.0
MOST_WAITING = 4096
"""Messages that wait to be written; beyond that, ticks are not told."""
SLICE = 0.001
"""How long to sleep at once on Windows, where sleeping is exact and waiting with a limit is right to 16 ms only [s]."""

Commands = queue.SimpleQueue[ToWorker | None]
"""None is the end of the input."""
Send = Callable[[FromWorker], None]


class Worker:
    """The games of one process and their clocks."""

    def __init__(self, setup: Setup, playables: list[Playable], send: Send) -> None:
        self._hz, self._send = setup.hz, send
        self._games = {
            game_id: Game(game_id, playable, setup.max_steps, setup.frames, episode)
            for game_id, episode, playable in zip(setup.game_ids, setup.episodes, playables, strict=True)
        }
        self._clocks: dict[int, TickClock] = {}
        self._report_due = time.perf_counter() + REPORT_SECONDS

    def act(self, order: Act) -> None:
        """From the thread that reads: the latest action counts, whatever else is waiting."""
        self._games[order.game_id].action = order.action

    def run(self, commands: Commands) -> None:
        """Until the end of the input, or a Finish."""
        while True:
            now = time.perf_counter()
            if now >= self._report_due:
                self._report(now)
            late = self._tick_what_is_due(now)
            try:
                command = _next(commands, 0.0 if late else self._idle_seconds())
            except queue.Empty:
                continue
            if command is None:
                return
            if isinstance(command, Finish):
                self._report(time.perf_counter())
                return
            self._follow(command)

    def _tick_what_is_due(self, now: float) -> bool:
        """Every game whose time has come, once, those that have waited longest first; whether there was one."""
        due = sorted((clock.due, game_id) for game_id, clock in self._clocks.items() if clock.due <= now)
        for _, game_id in due:
            self._clocks[game_id].begin_tick(time.perf_counter())
            game = self._games[game_id]
            ending = game.tick()
            self._send(Ticked(game.moment(), ending))
        return bool(due)

    def _idle_seconds(self) -> float:
        due = min((clock.due for clock in self._clocks.values()), default=self._report_due)
        return max(0.0, min(due, self._report_due) - time.perf_counter())

    def _follow(self, command: ToWorker) -> None:
        if isinstance(command, Ask):
            self._answer(command)
        elif isinstance(command, Count):
            self._report(time.perf_counter(), command.number)
        elif isinstance(command, Look):
            game = self._games[command.game_id]
            self._start(game)
            sight = game.sight(command.width, command.height)
            self._send(Seen(command.number, game.moment(), sight.kind, sight.width, sight.height, sight.content))

    def _answer(self, ask: Ask) -> None:
        game = self._games[ask.game_id]
        broken_off = None
        if ask.restart and ask.game_id in self._clocks:
            broken_off = game.restart()
            self._send(Ticked(game.moment(), broken_off))
        self._start(game)
        frame = game.frame() if ask.frame else None
        self._send(Answer(ask.number, game.moment(), frame, broken_off is not None))

    def _start(self, game: Game) -> None:
        """Free run, from now on, if it has not started yet."""
        if game.game_id not in self._clocks:
            game.restart()
            self._send(Ticked(game.moment(), None))
            self._clocks[game.game_id] = TickClock(self._hz, time.perf_counter())

    def _report(self, now: float, number: int | None = None) -> None:
        self._report_due = now + REPORT_SECONDS
        self._send(Counted(number, [clock.report(game_id, now) for game_id, clock in self._clocks.items()]))


def _next(commands: Commands, seconds: float) -> ToWorker | None:
    """The next command, waiting for it for so long; raises queue.Empty if there is none by then."""
    if os.name != "nt" or seconds <= 0.0:
        return commands.get(seconds > 0.0, seconds or None)
    until = time.perf_counter() + seconds
    while commands.empty() and (left := until - time.perf_counter()) > 0.0:
        time.sleep(min(left, SLICE))
    return commands.get_nowait()


def _read_on(worker: Worker, commands: Commands) -> None:
    while (content := read_packed(sys.stdin.buffer.read)) is not None:
        command = to_worker(content)
        if isinstance(command, Act):
            worker.act(command)
        else:
            commands.put(command)
    commands.put(None)


class _Replies:
    """To the server, over what was stdout; whatever libraries print goes to stderr.

    A thread of its own writes: a picture for a window takes its time, and no tick waits for that.
    """

    def __init__(self) -> None:
        self._output = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = Thread(target=self._write_on, name="games-replies", daemon=True)
        self._thread.start()

    def send(self, message: FromWorker) -> None:
        """A server that reads nothing, since it was stopped, misses ticks; what it asked for and ends are kept."""
        if self._waiting.qsize() > MOST_WAITING and isinstance(message, Ticked) and message.ending is None:
            return
        self._waiting.put(packed(message))

    def close(self) -> None:
        """Return when all is written."""
        self._waiting.put(None)
        self._thread.join()

    def _write_on(self) -> None:
        try:
            while (content := self._waiting.get()) is not None:
                self._output.write(content)
                self._output.flush()
        except OSError:
            os._exit(1)  # the server has gone: nobody is there to be told


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then ends this process
    os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"
    replies = _Replies()
    content = read_packed(sys.stdin.buffer.read)
    if content is not None:
        setup = to_worker(content)
        assert isinstance(setup, Setup), "the server says what to play before all else"
        _play(setup, replies.send)
    replies.close()


def _play(setup: Setup, send: Send) -> None:
    try:
        worker = Worker(setup, make_playables(setup), send)
    except (RacerError, ImportError, gymnasium.error.Error) as error:
        send(Failed(str(error)))
        return
    gc.collect()
    gc.freeze()  # what is there stays: looking through it again and again makes ticks late
    commands: Commands = queue.SimpleQueue()
    Thread(target=_read_on, args=(worker, commands), name="games-orders", daemon=True).start()
    send(Ready())
    worker.run(commands)


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # without waiting for the thread that reads, whose input may stay open
