"""The server's end of its worker processes: starting them, asking them, and starting them again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import TypeVar

import msgspec

from racer_env.errors import RacerError
from racer_env.games.worker_protocol import (
    LENGTH,
    Act,
    Action,
    Answer,
    Ask,
    Count,
    Counted,
    Failed,
    Finish,
    FromWorker,
    Look,
    Ready,
    Seen,
    Setup,
    ToWorker,
    from_worker,
    packed,
)

COMMAND = (sys.executable, "-P", "-m", "racer_env.games.worker")
ANSWER_SECONDS = 60.0
"""In which a worker must have started, and in which it must answer; a machine may be very busy."""
SILENT_SECONDS = 3.0
"""Without a report, which comes every second: then a worker is taken for one that hangs."""
END_SECONDS = 2.0
"""That a worker has to report and end before it is killed."""
BUFFER = 2**22
"""Bytes that may wait to be read from a worker: a picture for a window is a few million."""

Reply = TypeVar("Reply", Answer, Seen, Counted)


class GamesError(RacerError):
    """The games cannot be started, or one of them cannot be asked now."""


class WorkerLostError(GamesError):
    """A worker process ended by itself."""


class WorkerProcess:
    """One process at a time.

    setup: made anew for every process, since the games have gone on.
    heard: told of everything that the process says but Ready.
    silent_seconds: since its last report, as `grow_silent` counts them.
    """

    def __init__(self, number: int, setup: Callable[[], Setup], heard: Callable[[FromWorker], None]) -> None:
        self.number = number
        self._setup, self._heard = setup, heard
        self._process: Process | None = None
        self._ready = asyncio.Event()
        self._questions: dict[int, asyncio.Future[Answer | Seen | Counted]] = {}
        self._numbers = count()
        self.silent_seconds = 0.0

    @property
    def is_silent(self) -> bool:
        """It hangs, or so it seems: nothing that it said is how things are now."""
        return self.silent_seconds >= SILENT_SECONDS

    async def start(self) -> None:
        """Start the process and wait until its games are there; raises GamesError if that cannot be."""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                limit=BUFFER,
                start_new_session=True,  # so that Ctrl-C does not reach it
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except OSError as error:
            raise GamesError(f"worker {self.number} cannot be started: {error.strerror or error}") from None
        try:
            self._send(self._setup())
            async with asyncio.timeout(ANSWER_SECONDS):
                first = await self._receive()
        except TimeoutError:
            self.kill()
            raise GamesError(f"worker {self.number} did not start within {ANSWER_SECONDS:g} s") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise GamesError(f"worker {self.number} did not start ({await self._exit_code()})") from None
        except msgspec.DecodeError as error:
            self.kill()
            raise GamesError(f"worker {self.number} says what nobody understands: {error}") from None
        if isinstance(first, Failed):
            raise GamesError(first.message)
        assert isinstance(first, Ready), "a worker first says whether it can play"
        self.silent_seconds = 0.0
        self._ready.set()

    async def listen(self) -> str:
        """Pass on what the process says until it ends; returns how it ended. Who waits for an answer is told."""
        garbled = ""
        try:
            while True:
                self._take(await self._receive())
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except msgspec.DecodeError as error:
            garbled = f"it said what nobody understands: {error}; "
            self.kill()
        self._ready.clear()
        how = garbled + await self._exit_code()
        for question in self._questions.values():
            if not question.done():
                question.set_exception(WorkerLostError(f"worker process {self.number} ended ({how})"))
        self._questions.clear()
        return how

    def grow_silent(self, seconds: float) -> None:
        """To be called every so many seconds. A process that has long said nothing is killed, and so replaced.

        The calls are counted and not the time: after a pause of the server itself, all workers seem to be silent.
        """
        if self._ready.is_set():
            self.silent_seconds += seconds
            if self.silent_seconds > ANSWER_SECONDS:
                self.kill()

    async def act(self, game_id: int, action: Action) -> None:
        """From the next tick on. Returns when the process is not behind with reading."""
        if self._ready.is_set() and self._process is not None and self._process.stdin is not None:
            self._send(Act(game_id, action))
            with suppress(ConnectionError):
                await self._process.stdin.drain()

    def resume(self, game_id: int, action: Action, start: bool) -> None:
        """Drive a game of a new process as it was driven in the one before; start it if it ran there."""
        self._send(Act(game_id, action))
        if start:
            self._send(Ask(next(self._numbers), game_id, restart=False, frame=False))

    async def ask(self, game_id: int, restart: bool, frame: bool) -> Answer:
        return await self._question(lambda number: Ask(number, game_id, restart, frame), Answer)

    async def look(self, game_id: int, width: int, height: int) -> Seen:
        return await self._question(lambda number: Look(number, game_id, width, height), Seen)

    async def count(self) -> Counted | None:
        """How steadily the games tick; None if the process is not there now, or hangs."""
        if not self._ready.is_set() or self.is_silent:
            return None
        try:
            return await self._question(Count, Counted, SILENT_SECONDS)
        except WorkerLostError:
            return None
        except GamesError:
            self.silent_seconds = max(self.silent_seconds, SILENT_SECONDS)
            return None

    async def end(self) -> None:
        """Let it report and end; kill it if it does not, or if it has not even started."""
        if self._process is None or self._process.returncode is not None:
            return
        if self._ready.is_set():
            self._send(Finish())
        else:
            self.kill()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()

    def kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def _question(
        self, make: Callable[[int], ToWorker], kind: type[Reply], seconds: float | None = None
    ) -> Reply:
        seconds = ANSWER_SECONDS if seconds is None else seconds
        number = next(self._numbers)
        try:
            async with asyncio.timeout(seconds):
                await self._ready.wait()
                self._questions[number] = asyncio.get_running_loop().create_future()
                self._send(make(number))
                answer = await self._questions[number]
        except TimeoutError:
            raise GamesError(f"worker process {self.number} did not answer within {seconds:g} s") from None
        finally:
            self._questions.pop(number, None)
        assert isinstance(answer, kind), "a question's answer is of its kind"
        return answer

    def _take(self, message: FromWorker) -> None:
        """Pass it on, also to whoever has asked for it."""
        if isinstance(message, Counted):
            self.silent_seconds = 0.0
        self._heard(message)
        if isinstance(message, (Answer, Seen, Counted)) and message.number is not None:
            question = self._questions.pop(message.number, None)
            if question is not None and not question.done():
                question.set_result(message)

    def _send(self, message: ToWorker) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(packed(message))

    async def _receive(self) -> FromWorker:
        assert self._process is not None
        assert self._process.stdout is not None
        (length,) = LENGTH.unpack(await self._process.stdout.readexactly(LENGTH.size))
        return from_worker(await self._process.stdout.readexactly(length))

    async def _exit_code(self) -> str:
        assert self._process is not None
        try:
            async with asyncio.timeout(END_SECONDS):
                code = await self._process.wait()
        except TimeoutError:  # it closed its output and lives on
            self.kill()
            code = await self._process.wait()
        return f"signal {-code}" if code < 0 else f"exit code {code}"
