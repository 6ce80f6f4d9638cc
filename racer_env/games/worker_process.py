"""The server's side of a worker process: start it, query it, and detect that it hangs or exits."""

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

from racer_env.errors import RacerError, os_reason
from racer_env.games.worker_protocol import (
    LENGTH_SIZE,
    Action,
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
    WorkerMessage,
    decode_worker_message,
    pack,
    unpack_length,
)

COMMAND = (sys.executable, "-P", "-m", "racer_env.games.worker")
REPLY_TIMEOUT = 60.0
"""Time in which a worker must start or reply [s]; generous, because the machine may be very busy."""
HANG_TIMEOUT = 3.0
"""Time without a StatsReply, which is sent every second, after which a worker counts as hung [s]."""
STOP_TIMEOUT = 2.0
"""Time in which a worker must report and exit before it is killed [s]."""
READ_BUFFER_SIZE = 2**22
"""Buffer for messages of a worker [bytes]; an image for a window has a few million."""

Reply = TypeVar("Reply", StateReply, DrawReply, StatsReply)


class GamesError(RacerError):
    """The games cannot be started, or a game cannot be queried now."""


class WorkerLostError(GamesError):
    """A worker process exited unexpectedly."""


class WorkerProcess:
    """One worker process, and its replacement after it exits.

    make_setup: creates the first message for each process; the episode numbers change over time.
    on_message: called with every message of the process except ReadyReply.
    silent_seconds: time since the last StatsReply, as counted by `add_silence` [s].
    """

    def __init__(
        self, number: int, make_setup: Callable[[], SetupCommand], on_message: Callable[[WorkerMessage], None]
    ) -> None:
        self.number = number
        self._make_setup, self._on_message = make_setup, on_message
        self._process: Process | None = None
        self._ready = asyncio.Event()
        self._queries: dict[int, asyncio.Future[StateReply | DrawReply | StatsReply]] = {}
        self._query_ids = count()
        self.silent_seconds = 0.0

    @property
    def is_hung(self) -> bool:
        """True if the process has sent no statistics for too long, so that its last state is out of date."""
        return self.silent_seconds >= HANG_TIMEOUT

    async def start(self) -> None:
        """Start the process and wait until its games are set up; raise GamesError if that fails."""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                limit=READ_BUFFER_SIZE,
                start_new_session=True,  # Ctrl-C does not reach it
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except OSError as error:
            raise GamesError(f"worker {self.number} cannot be started: {os_reason(error)}") from None
        try:
            self._send(self._make_setup())
            async with asyncio.timeout(REPLY_TIMEOUT):
                first = await self._receive()
        except TimeoutError:
            self.kill()
            raise GamesError(f"worker {self.number} did not start within {REPLY_TIMEOUT:g} s") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise GamesError(f"worker {self.number} did not start ({await self._exit_status()})") from None
        except msgspec.DecodeError as error:
            self.kill()
            raise GamesError(f"worker {self.number} sent an invalid message: {error}") from None
        if isinstance(first, FailureReply):
            raise GamesError(first.message)
        assert isinstance(first, ReadyReply), "a worker first reports whether its games are set up"
        self.silent_seconds = 0.0
        self._ready.set()

    async def listen(self) -> str:
        """Pass on messages until the process exits; fail pending queries and return the exit status."""
        problem = ""
        try:
            while True:
                self._receive_message(await self._receive())
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except msgspec.DecodeError as error:
            problem = f"it sent an invalid message: {error}; "
            self.kill()
        self._ready.clear()
        status = problem + await self._exit_status()
        for query in self._queries.values():
            if not query.done():
                query.set_exception(WorkerLostError(f"worker process {self.number} ended ({status})"))
        self._queries.clear()
        return status

    def add_silence(self, seconds: float) -> None:
        """Count time without statistics, and kill a process that has been silent for too long.

        The caller counts in fixed intervals instead of reading a clock: after a pause of the server itself, all workers
        would seem to be silent.
        """
        if self._ready.is_set():
            self.silent_seconds += seconds
            if self.silent_seconds > REPLY_TIMEOUT:
                self.kill()

    async def set_action(self, game_id: int, action: Action) -> None:
        """Set the action from the next tick on; return when the process has room for more input."""
        if self._ready.is_set() and self._process is not None and self._process.stdin is not None:
            self._send(ActionCommand(game_id, action))
            with suppress(ConnectionError):
                await self._process.stdin.drain()

    def resume(self, game_id: int, action: Action, start: bool) -> None:
        """Restore the action of a game in a new process; start the game if it ran before."""
        self._send(ActionCommand(game_id, action))
        if start:
            self._send(StateQuery(next(self._query_ids), game_id, restart=False, frame=False))

    async def query_state(self, game_id: int, restart: bool, frame: bool) -> StateReply:
        return await self._query(lambda query_id: StateQuery(query_id, game_id, restart, frame), StateReply)

    async def query_drawing(self, game_id: int, width: int, height: int) -> DrawReply:
        return await self._query(lambda query_id: DrawQuery(query_id, game_id, width, height), DrawReply)

    async def query_stats(self) -> StatsReply | None:
        """Return the tick statistics; None if the process does not run or is hung."""
        if not self._ready.is_set() or self.is_hung:
            return None
        try:
            return await self._query(StatsQuery, StatsReply, HANG_TIMEOUT)
        except WorkerLostError:
            return None
        except GamesError:
            self.silent_seconds = max(self.silent_seconds, HANG_TIMEOUT)
            return None

    async def stop(self) -> None:
        """Let the process report and exit; kill it if it does not, or if it has not finished starting."""
        if self._process is None or self._process.returncode is not None:
            return
        if self._ready.is_set():
            self._send(StopCommand())
        else:
            self.kill()
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()

    def kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def _query(
        self, make: Callable[[int], ServerMessage], kind: type[Reply], timeout: float | None = None
    ) -> Reply:
        timeout = REPLY_TIMEOUT if timeout is None else timeout
        query_id = next(self._query_ids)
        try:
            async with asyncio.timeout(timeout):
                await self._ready.wait()
                self._queries[query_id] = asyncio.get_running_loop().create_future()
                self._send(make(query_id))
                reply = await self._queries[query_id]
        except TimeoutError:
            raise GamesError(f"worker process {self.number} did not answer within {timeout:g} s") from None
        finally:
            self._queries.pop(query_id, None)
        assert isinstance(reply, kind), "the reply has the type that belongs to the query"
        return reply

    def _receive_message(self, message: WorkerMessage) -> None:
        """Pass a message on, and complete the query that it answers."""
        if isinstance(message, StatsReply):
            self.silent_seconds = 0.0
        self._on_message(message)
        if isinstance(message, (StateReply, DrawReply, StatsReply)) and message.query_id is not None:
            query = self._queries.pop(message.query_id, None)
            if query is not None and not query.done():
                query.set_result(message)

    def _send(self, message: ServerMessage) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(pack(message))

    async def _receive(self) -> WorkerMessage:
        assert self._process is not None
        assert self._process.stdout is not None
        length = unpack_length(await self._process.stdout.readexactly(LENGTH_SIZE))
        return decode_worker_message(await self._process.stdout.readexactly(length))

    async def _exit_status(self) -> str:
        assert self._process is not None
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                code = await self._process.wait()
        except TimeoutError:  # it closed its output but still runs
            self.kill()
            code = await self._process.wait()
        return f"signal {-code}" if code < 0 else f"exit code {code}"
