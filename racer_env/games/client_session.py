"""One client's session with a games server: messages in, replies out, in order.

`StateReporter` tracks what the client has received of each game, so that every end of an episode is reported once to
every client, and so is every loss of a game.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from racer_env.games.protocol import (
    CloseSession,
    ErrorMessage,
    GetState,
    GetStates,
    GetStats,
    HandshakeMessage,
    MessageError,
    RefusedActionError,
    Reply,
    Request,
    Reset,
    SetAction,
    StateMessage,
    StatesMessage,
    add_action_error,
    encode,
    parse_request,
    stats_message,
)
from racer_env.games.supervisor import GameStatus, GameSupervisor, log
from racer_env.games.worker_process import GamesError, WorkerLostError
from racer_env.games.worker_protocol import GameSnapshot, StateReply

INTERNAL_ERROR = "internal error: see the server's log"
SHUTDOWN = "the server is shutting down"
LINGER_TIMEOUT, LINGER_SIZE = 0.4, 2**20
"""Time [s] and amount [bytes] of input still read from a client that is disconnected, so that it gets the reason."""

CurrentState = tuple[GameSnapshot, str | None]
"""State of a game and its frame."""


class StateReporter:
    """Builds the STATE messages of one game for one client, beginning when the client connects."""

    def __init__(self, game: GameStatus) -> None:
        self._game = game
        self._end_count, self._loss_count = game.end_count, game.loss_count
        self._episode, self._total = 0, 0.0
        """Episode of the last reported state, and its total reward at that time."""

    def take_loss(self) -> str | None:
        """Return why the game was lost since the last report, once; None if it was not lost.

        An end before the loss remains to be reported.
        """
        if self._loss_count == self._game.loss_count:
            return None
        self._loss_count = self._game.loss_count
        return self._game.loss_message

    @property
    def has_end(self) -> bool:
        """True if the end of an episode is not yet reported."""
        return self._game.end_count != self._end_count and self._game.last_end is not None

    def take_end(self, frame: bool = True) -> StateMessage | None:
        """Return the state at the end of an episode, once; None if no end is to be reported.

        If several episodes ended, report the last one and their number. frame: whether to include the frame.
        """
        end = self._game.last_end
        if not self.has_end or end is None:
            return None
        snapshot = end.snapshot
        info = {**snapshot.info, "reset": True} if end.by_reset else snapshot.info
        return self._message(
            snapshot,
            end.frame if frame else None,
            done=True,
            truncated=end.truncated,
            reward_since=self._reward_since(snapshot),
            ended=self._take_end_count(),
            info=info,
        )

    def current(self, snapshot: GameSnapshot, frame: str | None) -> StateMessage:
        """Return the current state; no episode has ended since the last report."""
        return self._message(snapshot, frame, reward_since=self._reward_since(snapshot))

    def after_reset(self, reply: StateReply) -> StateMessage:
        """Return the state after the client's own RESET; ends before it are counted but not reported."""
        game, self._loss_count = self._game, self._game.loss_count
        last_episode = game.last_end.snapshot.episode if game.last_end is not None else 0
        ended_since = max(0, last_episode - reply.snapshot.episode + 1)  # new episodes that ended: reported next
        ended = self._take_end_count() - ended_since - reply.interrupted
        self._end_count -= ended_since
        self._episode, self._total = reply.snapshot.episode, 0.0
        return self._message(reply.snapshot, reply.frame, ended=max(0, ended))

    def _message(
        self,
        snapshot: GameSnapshot,
        frame: str | None,
        *,
        done: bool = False,
        truncated: bool = False,
        reward_since: float = 0.0,
        ended: int = 0,
        info: dict[str, Any] | None = None,
    ) -> StateMessage:
        return StateMessage(
            game_id=snapshot.game_id,
            telemetry=snapshot.telemetry,
            frame=frame,
            reward=snapshot.reward,
            done=done,
            info=snapshot.info if info is None else info,
            truncated=truncated,
            episode=snapshot.episode,
            reward_since=reward_since,
            ended=ended,
            human=self._game.human_action is not None,
        )

    def _take_end_count(self) -> int:
        ended = self._game.end_count - self._end_count
        self._end_count = self._game.end_count
        return ended

    def _reward_since(self, snapshot: GameSnapshot) -> float:
        """Return the rewards since the last report, within this episode."""
        before = self._total if snapshot.episode == self._episode else 0.0
        self._episode, self._total = snapshot.episode, snapshot.total_reward
        return snapshot.total_reward - before


@dataclass(frozen=True)
class SessionLimits:
    """Limits for clients.

    line_size: maximum length of a client's message [bytes].
    clients: maximum number of clients at a time.
    unread_size, unread_timeout: replies that may wait to be read [bytes], and for how long [s].
    silent_timeout: time without a message after which a client may be replaced by a new one [s].
    """

    line_size: int = 64 * 1024
    clients: int = 64
    unread_size: int = 256 * 1024
    unread_timeout: float = 10.0
    silent_timeout: float = 60.0


class DisconnectError(Exception):
    """The client must be disconnected; the text is the reason that it gets."""


class ClientSession:
    """Answers the messages of one client. It reads no further message while a reply waits to be read."""

    def __init__(
        self,
        supervisor: GameSupervisor,
        limits: SessionLimits,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        count_clients: Callable[[], int],
    ) -> None:
        self._supervisor, self._limits, self._count_clients = supervisor, limits, count_clients
        self._reader, self._writer = reader, writer
        self._reporters = [StateReporter(game) for game in supervisor.games]
        peer = writer.get_extra_info("peername")
        self.name = "{}:{}".format(*peer[:2]) if peer else "unknown"
        self._waiting_since: float | None = None
        self._cancel_reason = SHUTDOWN
        self._action_error, self._refused_count = "", 0
        """Reason of the last refused SET_ACTION, and number of those that are not yet reported."""
        self._has_logged_refusal = False
        writer.transport.set_write_buffer_limits(high=limits.unread_size)

    @property
    def silent_seconds(self) -> float:
        """Time that the server has waited for a message [s]."""
        return 0.0 if self._waiting_since is None else asyncio.get_running_loop().time() - self._waiting_since

    def set_cancel_reason(self, reason: str) -> None:
        """Set the reason that the client gets when its task is cancelled."""
        self._cancel_reason = reason

    async def serve(self, handshake: HandshakeMessage) -> None:
        """Answer messages until the client leaves or must leave; the server cancels this when it stops."""
        try:
            await self._send(handshake)
            while (line := await self._read_line()) is not None:
                if not await self._handle(line):
                    break
        except DisconnectError as error:
            await self.disconnect(str(error))
        except asyncio.CancelledError:
            await self.disconnect(self._cancel_reason)
        except (ConnectionError, TimeoutError):
            pass
        finally:
            self._writer.close()

    async def disconnect(self, reason: str) -> None:
        """Send the reason, give the client time to read it, and close the connection."""
        log.info("%s is disconnected: %s", self.name, reason)
        with suppress(ConnectionError, TimeoutError, OSError):
            async with asyncio.timeout(LINGER_TIMEOUT):
                self._writer.write(encode(ErrorMessage(reason)))
                await self._writer.drain()
                self._writer.write_eof()
                left = LINGER_SIZE
                while left > 0 and (part := await self._reader.read(left)):
                    left -= len(part)
        self._writer.close()

    async def _read_line(self) -> bytes | None:
        """Return the next message; None if the client has left."""
        self._waiting_since = asyncio.get_running_loop().time()
        try:
            return await self._reader.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return None
        except asyncio.LimitOverrunError:
            reason = f"a message has at most {self._limits.line_size:,} bytes and ends with a newline"
            raise DisconnectError(reason) from None
        finally:
            self._waiting_since = None

    async def _handle(self, line: bytes) -> bool:
        """Answer one message, then let other clients run; return whether the session continues."""
        request: Request | None = None
        reply: Reply | None = None
        try:
            if not line.isspace():
                request = parse_request(line, self._supervisor.config.num_games)
                reply = await self._reply_to(request)
        except RefusedActionError as error:
            self._refuse_action(str(error))
        except (MessageError, GamesError) as error:
            reply = ErrorMessage(str(error))
        except (ConnectionError, DisconnectError):
            raise
        except Exception:
            log.exception("internal error while answering %s: %r", self.name, line[:200])
            if isinstance(request, SetAction):
                self._refuse_action(INTERNAL_ERROR)
            else:
                reply = ErrorMessage(INTERNAL_ERROR)
        if reply is not None:
            await self._send(self._with_action_error(reply) if self._refused_count else reply)
        await asyncio.sleep(0)
        return not isinstance(request, CloseSession)

    def _refuse_action(self, reason: str) -> None:
        """Keep the reason for the next reply: an unrequested line would shift all later replies of the client."""
        self._action_error, self._refused_count = reason, self._refused_count + 1
        if not self._has_logged_refusal:
            self._has_logged_refusal = True
            log.warning("%s: SET_ACTION refused: %s (logged once per client)", self.name, reason)

    def _with_action_error(self, reply: Reply) -> Reply:
        """Report refused actions with a reply; if it cannot carry the reason, keep it for the next one."""
        count = f" ({self._refused_count} actions were refused)" if self._refused_count > 1 else ""
        extended = add_action_error(reply, self._action_error + count)
        if extended is None:
            return reply
        self._refused_count = 0
        return extended

    async def _send(self, reply: Reply) -> None:
        self._writer.write(encode(reply))
        if self._writer.transport.get_write_buffer_size() <= self._limits.unread_size:
            return
        try:
            async with asyncio.timeout(self._limits.unread_timeout):
                await self._writer.drain()
        except TimeoutError:
            log.info("%s is disconnected: it does not read its replies", self.name)
            self._writer.transport.abort()
            raise

    async def _reply_to(self, request: Request) -> Reply | None:
        """Carry out a request; return the reply, None if it gets none."""
        match request:
            case CloseSession():
                return None
            case SetAction():
                await self._supervisor.set_action(request.game_id, request.clamped, self.name)
                return None
            case GetState(game_id, frame):
                self._raise_losses((game_id,))
                with self._reporting_losses((game_id,)):
                    current = await self._query(game_id, frame)
                return self._state(game_id, current, frame)
            case GetStates(named, frame):
                game_ids = tuple(named) if isinstance(named, list) else tuple(range(len(self._reporters)))
                self._raise_losses(game_ids)
                return StatesMessage(await self._states(game_ids, frame))
            case Reset(game_id, frame):
                with self._reporting_losses((game_id,)):
                    reply = await self._supervisor.query_state(game_id, restart=True, frame=frame)
                return self._reporters[game_id].after_reset(reply)
            case GetStats():
                config, stats = self._supervisor.config, await self._supervisor.query_stats()
                return stats_message(config.game, config.hz, self._count_clients(), stats)
            case _:
                raise AssertionError(request)

    def _raise_losses(self, game_ids: tuple[int, ...]) -> None:
        """Raise GamesError if games were lost since their last report."""
        losses = [loss for game_id in game_ids if (loss := self._reporters[game_id].take_loss())]
        if losses:
            raise GamesError("; ".join(losses))

    @contextmanager
    def _reporting_losses(self, game_ids: tuple[int, ...]) -> Iterator[None]:
        """Report games that are lost during a query."""
        try:
            yield
        except WorkerLostError:
            self._raise_losses(game_ids)
            raise

    async def _states(self, game_ids: tuple[int, ...], frame: bool) -> list[StateMessage]:
        """Query all games before any end counts as reported; if one query fails, all ends stay unreported."""
        results = await asyncio.gather(*(self._query(each, frame) for each in game_ids), return_exceptions=True)
        states: list[CurrentState | None] = []
        with self._reporting_losses(game_ids):
            for result in results:
                if isinstance(result, BaseException):
                    raise result
                states.append(result)
        return [self._state(game_id, state, frame) for game_id, state in zip(game_ids, states, strict=True)]

    async def _query(self, game_id: int, frame: bool) -> CurrentState | None:
        """Return the current state of a game; None if the end of an episode must be reported first."""
        snapshot, frame = self._supervisor.games[game_id].snapshot, frame and self._supervisor.config.frames
        if self._reporters[game_id].has_end:
            return None
        if snapshot is not None and not frame and not self._supervisor.is_hung(game_id):
            return snapshot, None
        reply = await self._supervisor.query_state(game_id, frame=frame)
        return reply.snapshot, reply.frame

    def _state(self, game_id: int, current: CurrentState | None, frame: bool) -> StateMessage:
        reporter = self._reporters[game_id]
        end = reporter.take_end(frame)
        if end is not None:
            return end
        assert current is not None, "without an end to report, the state was queried"
        return reporter.current(*current)
