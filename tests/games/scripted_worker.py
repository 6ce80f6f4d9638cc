"""A worker process without games that fails on a given command: `python scripted_worker.py MODE`.

Its cars do not move. It reports often, and every restart ends an episode.
"""

import sys
import threading

from racer_env.games.worker_protocol import (
    EpisodeEnd,
    GameSnapshot,
    ReadyReply,
    SetupCommand,
    StateQuery,
    StateReply,
    StatsQuery,
    StatsReply,
    StopCommand,
    TickStats,
    TickUpdate,
    pack,
    read_message,
)

REPORT_INTERVAL = 0.05
WORKS, EXITS, SENDS_GARBAGE, UNKNOWN_GAME, HANGS, EXITS_DRAWING_1 = (
    "works", "exits", "sends garbage", "unknown game", "hangs", "exits drawing 1",
)  # fmt: skip
"""Modes: the failure when a game is restarted; the last one exits when game 1 is drawn."""
FRAME = "AAAA"
NO_SUCH_GAME = 99


class ScriptedWorker:
    def __init__(self, mode: str, setup: SetupCommand) -> None:
        self._mode, self._hz = mode, setup.hz
        self._episodes = dict(zip(setup.game_ids, setup.episodes, strict=True))
        self._started: set[int] = set()
        self._lock = threading.Lock()
        self._hangs = False
        self._stopped = threading.Event()
        self._reporter = threading.Thread(target=self._report_regularly, daemon=True)

    def start(self) -> None:
        self.send(ReadyReply())
        self._reporter.start()

    def exit(self, code: int) -> None:
        self._stopped.set()
        self._reporter.join()
        sys.exit(code)

    def report(self, query_id: int | None) -> None:
        stats = [TickStats(game_id, self._hz, self._hz, 1, 0, 0.0, 0.0, 0.0) for game_id in sorted(self._started)]
        self.send(StatsReply(query_id, stats))

    def send(self, message: ReadyReply | StatsReply | TickUpdate | StateReply) -> None:
        if not self._hangs:
            self._write(pack(message))

    def reply_state(self, query: StateQuery) -> None:
        if self._mode == EXITS_DRAWING_1 and query.frame and query.game_id == 1:
            self.exit(3)
        if query.restart:
            self._fail()
        interrupted = query.restart and query.game_id in self._started
        end = EpisodeEnd(self._snapshot(query.game_id), True, True, FRAME) if interrupted else None
        if query.restart or query.game_id not in self._started:
            self._episodes[query.game_id] += 1
            self._started.add(query.game_id)
        snapshot = self._snapshot(query.game_id)
        self.send(TickUpdate(snapshot, end))
        self.send(StateReply(query.query_id, snapshot, FRAME if query.frame else None, interrupted))

    def _report_regularly(self) -> None:
        self.report(None)
        while not self._stopped.wait(REPORT_INTERVAL):
            self.report(None)

    def _write(self, content: bytes) -> None:
        with self._lock:
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()

    def _fail(self) -> None:
        if self._mode == EXITS:
            self.exit(3)
        if self._mode == SENDS_GARBAGE:
            self._write(b"\3\0\0\0\xc1\xc1\xc1")
        if self._mode == UNKNOWN_GAME:
            self.send(TickUpdate(self._snapshot(NO_SUCH_GAME), None))
        self._hangs = self._mode == HANGS

    def _snapshot(self, game_id: int) -> GameSnapshot:
        telemetry = {"total_reward": 0.0, "steps": 1, "speed": 0.0}
        return GameSnapshot(game_id, self._episodes.get(game_id, 1), 0.0, telemetry, {})


def main() -> None:
    setup = read_message(sys.stdin.buffer.read)
    assert isinstance(setup, SetupCommand)
    worker = ScriptedWorker(sys.argv[1], setup)
    worker.start()
    while (command := read_message(sys.stdin.buffer.read)) is not None:
        if isinstance(command, StopCommand):
            break
        if isinstance(command, StateQuery):
            worker.reply_state(command)
        elif isinstance(command, StatsQuery):
            worker.report(command.query_id)
    worker.exit(0)


if __name__ == "__main__":
    main()
