"""A worker process without games, which fails when a game is to start anew: `python scripted_worker.py HOW`.

It answers for all games at once that they stand still, reports often, and ends an episode with every restart.
"""

import os
import sys
import threading
import time

from racer_env.games.worker_protocol import (
    Answer,
    Ask,
    ClockReport,
    Count,
    Counted,
    Ending,
    Finish,
    Moment,
    Ready,
    Setup,
    Ticked,
    packed,
    read_packed,
    to_worker,
)

REPORT_SECONDS = 0.05
WHOLE, DIES, BABBLES, STRAYS, HANGS, DIES_DRAWING_1 = "whole", "dies", "babbles", "strays", "hangs", "dies drawing 1"
"""What it does when a game is restarted; the last one dies when game 1 is to be drawn."""
PICTURE = "AAAA"
NO_SUCH_GAME = 99


class ScriptedWorker:
    def __init__(self, how: str, setup: Setup) -> None:
        self._how, self._hz = how, setup.hz
        self._episodes = dict(zip(setup.game_ids, setup.episodes, strict=True))
        self._started: set[int] = set()
        self._lock = threading.Lock()
        self._hangs = False

    def report_on(self) -> None:
        while True:
            self.report(None)
            time.sleep(REPORT_SECONDS)

    def report(self, number: int | None) -> None:
        clocks = [ClockReport(game_id, self._hz, self._hz, 1, 0, 0.0, 0.0, 0.0) for game_id in sorted(self._started)]
        self.say(Counted(number, clocks))

    def say(self, message: Ready | Counted | Ticked | Answer) -> None:
        if not self._hangs:
            self.write(packed(message))

    def write(self, content: bytes) -> None:
        with self._lock:
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()

    def answer(self, ask: Ask) -> None:
        if self._how == DIES_DRAWING_1 and ask.frame and ask.game_id == 1:
            os._exit(3)
        if ask.restart:
            self._fail()
        broke_off = ask.restart and ask.game_id in self._started
        ending = Ending(self._moment(ask.game_id), True, True, PICTURE) if broke_off else None
        if ask.restart or ask.game_id not in self._started:
            self._episodes[ask.game_id] += 1
            self._started.add(ask.game_id)
        self.say(Ticked(self._moment(ask.game_id), ending))
        self.say(Answer(ask.number, self._moment(ask.game_id), PICTURE if ask.frame else None, broke_off))

    def _fail(self) -> None:
        if self._how == DIES:
            os._exit(3)
        if self._how == BABBLES:
            self.write(b"\3\0\0\0\xc1\xc1\xc1")
        if self._how == STRAYS:
            self.say(Ticked(self._moment(NO_SUCH_GAME), None))
        self._hangs = self._how == HANGS

    def _moment(self, game_id: int) -> Moment:
        telemetry = {"total_reward": 0.0, "steps": 1, "speed": 0.0}
        return Moment(game_id, self._episodes.get(game_id, 1), 0.0, telemetry, {})


def main() -> None:
    content = read_packed(sys.stdin.buffer.read)
    assert content is not None
    setup = to_worker(content)
    assert isinstance(setup, Setup)
    worker = ScriptedWorker(sys.argv[1], setup)
    worker.say(Ready())
    threading.Thread(target=worker.report_on, daemon=True).start()
    while (content := read_packed(sys.stdin.buffer.read)) is not None:
        command = to_worker(content)
        if isinstance(command, Finish):
            break
        if isinstance(command, Ask):
            worker.answer(command)
        elif isinstance(command, Count):
            worker.report(command.number)
    os._exit(0)


if __name__ == "__main__":
    main()
