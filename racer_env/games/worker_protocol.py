"""Messages between a games server and its worker processes.

Each message is MessagePack with its length in front, sent over the worker's pipes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import msgspec

FRAME_SIZE = 96
"""Width and height of a frame [px]."""
FRAME_SHAPE = (FRAME_SIZE, FRAME_SIZE, 3)
"""Rows from the top, columns, and red, green and blue."""

Action = tuple[float, float, float]
"""Steer (right is positive), gas, brake."""
NEUTRAL: Action = (0.0, 0.0, 0.0)
MIN_ACTION, MAX_ACTION = (-1.0, 0.0, 0.0), (1.0, 1.0, 1.0)
MIN_RATE_SHARE = 0.97
"""Minimum share of the requested tick rate; below it, a game counts as too slow."""

_LENGTH = struct.Struct("<I")


class GameSnapshot(msgspec.Struct, frozen=True, array_like=True):
    """State of a game after a tick.

    episode: episode number, counted from 1 over the life of the game.
    reward: reward of the last tick; 0 before the first one.
    """

    game_id: int
    episode: int
    reward: float
    telemetry: dict[str, Any]
    info: dict[str, Any]

    @property
    def total_reward(self) -> float:
        """Sum of the rewards of the episode so far."""
        return float(self.telemetry["total_reward"])


class EpisodeEnd(msgspec.Struct, frozen=True, array_like=True):
    """Last state of an episode.

    truncated: the step limit or a RESET ended the episode, not the game itself.
    by_reset: a RESET ended the episode.
    frame: last frame in base64; None if the server draws no frames.
    """

    snapshot: GameSnapshot
    truncated: bool
    by_reset: bool
    frame: str | None


class TickStats(msgspec.Struct, frozen=True, array_like=True):
    """Tick rate and lateness of one game since it started.

    rate: ticks per second over the last seconds; at most `hz`, the requested rate.
    skipped: ticks left out because the machine was too slow.
    late_p50, late_p99, late_max: delay between a tick's due time and its start [ms].
    """

    game_id: int
    hz: float
    rate: float
    ticks: int
    skipped: int
    late_p50: float
    late_p99: float
    late_max: float

    @property
    def keeps_up(self) -> bool:
        return self.rate >= MIN_RATE_SHARE * self.hz


class SetupCommand(msgspec.Struct, frozen=True, tag=True):
    """First message to a worker: the games to run.

    episodes: number of episodes that each game had in an earlier worker that was lost.
    frames: whether frames may be requested.
    """

    game: str
    game_ids: list[int]
    episodes: list[int]
    seed: int | None
    hz: float
    max_steps: int
    frames: bool


class ActionCommand(msgspec.Struct, frozen=True, tag=True):
    """Sets the action of a game from the next tick on."""

    game_id: int
    action: Action


class StateQuery(msgspec.Struct, frozen=True, tag=True):
    """Requests a StateReply; starts the game if it has not started.

    restart: begin a new episode first.
    """

    query_id: int
    game_id: int
    restart: bool
    frame: bool


class DrawQuery(msgspec.Struct, frozen=True, tag=True):
    """Requests a DrawReply for an area of this size in a window [px]."""

    query_id: int
    game_id: int
    width: int
    height: int


class StatsQuery(msgspec.Struct, frozen=True, tag=True):
    """Requests a StatsReply."""

    query_id: int


class StopCommand(msgspec.Struct, frozen=True, tag=True):
    """Makes the worker send a last StatsReply and exit."""


class ReadyReply(msgspec.Struct, frozen=True, tag=True):
    """The games are set up; none has started."""


class FailureReply(msgspec.Struct, frozen=True, tag=True):
    """The games cannot be set up; `message` is one line for the user."""

    message: str


class TickUpdate(msgspec.Struct, frozen=True, tag=True):
    """State of a game after a tick, and the end of the previous episode if a new one has just begun."""

    snapshot: GameSnapshot
    ended: EpisodeEnd | None


class StateReply(msgspec.Struct, frozen=True, tag=True):
    """Reply to a StateQuery.

    interrupted: the restart ended a running episode; the TickUpdate sent before has its EpisodeEnd.
    """

    query_id: int
    snapshot: GameSnapshot
    frame: str | None
    interrupted: bool


class DrawReply(msgspec.Struct, frozen=True, tag=True):
    """Reply to a DrawQuery; see `racer_env.games.game.DrawData` for kind and content."""

    query_id: int
    snapshot: GameSnapshot
    kind: str
    width: int
    height: int
    content: bytes


class StatsReply(msgspec.Struct, frozen=True, tag=True):
    """Tick statistics of the started games: reply to a StatsQuery, or with query_id None about once a second."""

    query_id: int | None
    games: list[TickStats]


ServerMessage = SetupCommand | ActionCommand | StateQuery | DrawQuery | StatsQuery | StopCommand
WorkerMessage = ReadyReply | FailureReply | TickUpdate | StateReply | DrawReply | StatsReply

LENGTH_SIZE = _LENGTH.size
"""Size of the length in front of a message [bytes]."""

_encoder = msgspec.msgpack.Encoder()
_server_decoder = msgspec.msgpack.Decoder(ServerMessage)
_worker_decoder = msgspec.msgpack.Decoder(WorkerMessage)


def pack(message: ServerMessage | WorkerMessage) -> bytes:
    """Encode a message with its length in front."""
    content = _encoder.encode(message)
    return _LENGTH.pack(len(content)) + content


def unpack_length(head: bytes) -> int:
    """Return the length of the message that follows [bytes]."""
    length: int = _LENGTH.unpack(head)[0]
    return length


def decode_server_message(content: bytes) -> ServerMessage:
    message: ServerMessage = _server_decoder.decode(content)
    return message


def decode_worker_message(content: bytes) -> WorkerMessage:
    message: WorkerMessage = _worker_decoder.decode(content)
    return message


def read_message(read: Callable[[int], Any]) -> ServerMessage | None:
    """Read the next message of the server from a blocking stream; None at the end of the stream."""
    head = read(LENGTH_SIZE)
    if len(head) < LENGTH_SIZE:
        return None
    length = unpack_length(head)
    content: bytes = read(length)
    return decode_server_message(content) if len(content) == length else None
