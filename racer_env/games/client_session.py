"""What one client has been told of one game, so that it hears of every end once, and of every loss.

One client of a games server: lines in, lines out, in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from racer_env.games.protocol import (
    CloseRequest,
    GetState,
    GetStates,
    GetStats,
    MessageError,
    Request,
    Reset,
    SetAction,
    State,
    error_message,
    parse_request,
    state_message,
    states_message,
    stats_message,
)
from racer_env.games.supervisor import Arcade, GameView, log
from racer_env.games.worker_process import GamesError, WorkerLostError
from racer_env.games.worker_protocol import Answer, Ending, Moment


class Told:
    """A client's knowledge of a game begins when it connects."""

    def __init__(self, view: GameView) -> None:
        self._view = view
        self._endings, self._losses = view.endings, view.losses
        self._episode, self._total = 0, 0.0
        """The last episode that it was told of, and the sum of its rewards by then."""

    def loss(self) -> str | None:
        """How the game was lost since the client last heard of it; None if it was not. Told once.

        An end before that is still to be told.
        """
        if self._losses == self._view.losses:
            return None
        self._losses = self._view.losses
        return self._view.loss

    @property
    def has_ending(self) -> bool:
        """Whether an episode has ended and the client does not know yet."""
        return self._view.endings != self._endings and self._view.ending is not None

    def ending(self, frame: bool = True) -> State | None:
        """The state that says that an episode has ended, if the client does not know yet. Told once.

        Of several that ended since, the last is told, and their number. frame: whether a picture is wanted.
        """
        ending = self._view.ending
        if not self.has_ending or ending is None:
            return None
        return self._of_ending(ending, self._count(), ending.frame if frame else None)

    def now(self, moment: Moment, frame: str | None) -> State:
        """How the game is; no episode has ended since the client last heard of it."""
        return State(moment, frame, False, False, self._since(moment), 0, self._human, moment.info)

    def restarted(self, answer: Answer) -> State:
        """The state after the client's own RESET. Ends before it are counted, not told: it has begun anew."""
        view, self._losses = self._view, self._view.losses
        last = view.ending.moment.episode if view.ending is not None else 0
        since = max(0, last - answer.moment.episode + 1)  # new ones that have ended already: to be told next
        ended = self._count() - since - answer.broke_off
        self._endings -= since
        self._episode, self._total = answer.moment.episode, 0.0
        return State(answer.moment, answer.frame, False, False, 0.0, max(0, ended), self._human, answer.moment.info)

    def _of_ending(self, ending: Ending, count: int, frame: str | None) -> State:
        moment = ending.moment
        info = {**moment.info, "reset": True} if ending.by_reset else moment.info
        since = self._since(moment)
        return State(moment, frame, True, ending.truncated, since, count, self._human, info)

    def _count(self) -> int:
        ended = self._view.endings - self._endings
        self._endings = self._view.endings
        return ended

    def _since(self, moment: Moment) -> float:
        """Rewards since the client last heard of this game; of this episode only."""
        before = self._total if moment.episode == self._episode else 0.0
        self._episode, self._total = moment.episode, moment.total_reward
        return moment.total_reward - before

    @property
    def _human(self) -> bool:
        return self._view.by_person is not None


INTERNAL_ERROR = "internal error: the server's log has the details"
LINGER_SECONDS, LINGER_BYTES = 0.4, 2**20
"""How long, and how much, is still read from a client that is sent away: else it might not get to read why."""
GOODBYE = "the server is shutting down"
Now = tuple[Moment, str | None]
"""How a game is, and its picture."""


@dataclass(frozen=True)
class Limits:
    """line_bytes: of a client's message. clients: at once.
    unread_bytes: replies that may wait for a client; unread_seconds: for how long, before it is disconnected.
    silent_seconds: after which a client must go if others want its place."""

    line_bytes: int = 64 * 1024
    clients: int = 64
    unread_bytes: int = 256 * 1024
    unread_seconds: float = 10.0
    silent_seconds: float = 60.0


class SentAwayError(Exception):
    """The client is disconnected, and told why."""


class Guest:
    """Answers one message after the other. While it waits for a reply to be read, it reads nothing more."""

    def __init__(
        self,
        arcade: Arcade,
        limits: Limits,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        count_clients: Callable[[], int],
    ) -> None:
        self._arcade, self._limits, self._count_clients = arcade, limits, count_clients
        self._reader, self._writer = reader, writer
        self._told = [Told(view) for view in arcade.views]
        peer = writer.get_extra_info("peername")
        self.name = "{}:{}".format(*peer[:2]) if peer else "unknown"
        self._quiet_since: float | None = None
        self._farewell = GOODBYE
        writer.transport.set_write_buffer_limits(high=limits.unread_bytes)

    @property
    def silent_seconds(self) -> float:
        """For which the server has waited for a message."""
        return 0.0 if self._quiet_since is None else asyncio.get_running_loop().time() - self._quiet_since

    def explain_end(self, why: str) -> None:
        """What the client is told when its task is cancelled."""
        self._farewell = why

    async def serve(self, greeting: bytes) -> None:
        """Until the client goes or must go, or until the server ends, which cancels this."""
        try:
            await self._send(greeting)
            while (line := await self._line()) is not None:
                if not await self._answer(line):
                    break
        except SentAwayError as error:
            await self.send_away(str(error))
        except asyncio.CancelledError:
            await self.send_away(self._farewell)
        except (ConnectionError, TimeoutError):
            pass
        finally:
            self._writer.close()

    async def send_away(self, why: str) -> None:
        """Say why, and give the client a moment to read it."""
        log.info("%s is disconnected: %s", self.name, why)
        with suppress(ConnectionError, TimeoutError, OSError):
            async with asyncio.timeout(LINGER_SECONDS):
                self._writer.write(error_message(why))
                await self._writer.drain()
                self._writer.write_eof()
                left = LINGER_BYTES
                while left > 0 and (part := await self._reader.read(left)):
                    left -= len(part)
        self._writer.close()

    def drop(self) -> None:
        """At once."""
        self._writer.transport.abort()

    async def _line(self) -> bytes | None:
        """The next message; None if the client has gone."""
        self._quiet_since = asyncio.get_running_loop().time()
        try:
            return await self._reader.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return None
        except asyncio.LimitOverrunError:
            why = f"a message may have {self._limits.line_bytes:,} bytes, and ends with a newline"
            raise SentAwayError(why) from None
        finally:
            self._quiet_since = None

    async def _answer(self, line: bytes) -> bool:
        """Whether the client goes on. Others get their turn after each message."""
        try:
            request = parse_request(line, self._arcade.plan.num_games)
            if isinstance(request, CloseRequest):
                return False
            reply = await self._reply_to(request)
        except (MessageError, GamesError) as error:
            reply = error_message(str(error))
        except (ConnectionError, SentAwayError):
            raise
        except Exception:
            log.exception("internal error with a message of %s: %r", self.name, line[:200])
            reply = error_message(INTERNAL_ERROR)
        if reply:
            await self._send(reply)
        await asyncio.sleep(0)
        return True

    async def _send(self, reply: bytes) -> None:
        self._writer.write(reply)
        if self._writer.transport.get_write_buffer_size() <= self._limits.unread_bytes:
            return
        try:
            async with asyncio.timeout(self._limits.unread_seconds):
                await self._writer.drain()
        except TimeoutError:
            log.info("%s is disconnected: it reads nothing", self.name)
            self.drop()
            raise

    async def _reply_to(self, request: Request) -> bytes:
        """The line to send, empty if there is none."""
        match request:
            case SetAction(game_id, action):
                await self._arcade.act(game_id, action, self.name)
                return b""
            case GetState(game_id, frame):
                self._tell_losses((game_id,))
                with self._lost((game_id,)):
                    now = await self._now(game_id, frame)
                return state_message(self._state(game_id, now, frame))
            case GetStates(game_ids, frame):
                self._tell_losses(game_ids)
                return states_message(await self._states(game_ids, frame))
            case Reset(game_id, frame):
                with self._lost((game_id,)):
                    answer = await self._arcade.ask(game_id, restart=True, frame=frame)
                return state_message(self._told[game_id].restarted(answer))
            case GetStats():
                plan = self._arcade.plan
                return stats_message(plan.game, plan.hz, self._count_clients(), await self._arcade.count())
            case _:
                raise AssertionError(request)

    def _tell_losses(self, game_ids: tuple[int, ...]) -> None:
        """Raise if games were lost since the client last heard of them."""
        losses = [loss for game_id in game_ids if (loss := self._told[game_id].loss())]
        if losses:
            raise GamesError("; ".join(losses))

    @contextmanager
    def _lost(self, game_ids: tuple[int, ...]) -> Iterator[None]:
        """Tell of games that are lost while they are asked for."""
        try:
            yield
        except WorkerLostError:
            self._tell_losses(game_ids)
            raise

    async def _states(self, game_ids: tuple[int, ...], frame: bool) -> list[State]:
        """Nothing counts as told before all have answered: if one of them fails, the ends of others are told next."""
        asked = await asyncio.gather(*(self._now(each, frame) for each in game_ids), return_exceptions=True)
        found: list[Now | None] = []
        with self._lost(game_ids):
            for now in asked:
                if isinstance(now, BaseException):
                    raise now
                found.append(now)
        return [self._state(game_id, now, frame) for game_id, now in zip(game_ids, found, strict=True)]

    async def _now(self, game_id: int, frame: bool) -> Now | None:
        """How a game is; None if the client is to hear of an end first."""
        moment, frame = self._arcade.views[game_id].moment, frame and self._arcade.plan.frames
        if self._told[game_id].has_ending:
            return None
        if moment is not None and not frame and not self._arcade.hangs(game_id):
            return moment, None
        answer = await self._arcade.ask(game_id, frame=frame)
        return answer.moment, answer.frame

    def _state(self, game_id: int, now: Now | None, frame: bool) -> State:
        told = self._told[game_id]
        ending = told.ending(frame)
        if ending is not None:
            return ending
        assert now is not None, "there is an end to tell instead"
        return told.now(*now)
