"""What a game looks like at one tick, and how an episode ended: said by workers, told to clients.

What a server and its workers say to each other: MessagePack, with its length in front, over the worker's pipes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import msgspec

FRAME_SIZE = 96
"""Width and height of a frame [px]."""
FRAME_SHAPE = (FRAME_SIZE, FRAME_SIZE, 3)
FRAME_BYTES = FRAME_SIZE * FRAME_SIZE * 3
"""Of red, green and blue, row by row from the top."""

Action = tuple[float, float, float]
"""Steer (right is positive), gas, brake."""
REST: Action = (0.0, 0.0, 0.0)
LOWEST, HIGHEST = (-1.0, 0.0, 0.0), (1.0, 1.0, 1.0)
"""Of an action."""


class Moment(msgspec.Struct, frozen=True, array_like=True):
    """A game after a tick.

    episode: counts from 1 over the life of a game.
    reward: of the last tick; 0 before the first one.
    """

    game_id: int
    episode: int
    reward: float
    telemetry: dict[str, Any]
    info: dict[str, Any]

    @property
    def total_reward(self) -> float:
        """Of the episode until now."""
        return float(self.telemetry["total_reward"])


class Ending(msgspec.Struct, frozen=True, array_like=True):
    """The last moment of an episode.

    truncated: it was stopped, by its length or by a RESET, where the game itself would have gone on.
    by_reset: somebody's RESET stopped it.
    frame: the last picture in base64, where pictures are drawn.
    """

    moment: Moment
    truncated: bool
    by_reset: bool
    frame: str | None


class ClockReport(msgspec.Struct, frozen=True, array_like=True):
    """How steadily a game ticks. Lateness is how long after its due time a tick began, since the game's start [ms].

    rate: ticks per second in the last seconds, at most the wanted `hz`.
    skipped: ticks that were left out because the machine was too far behind.
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
        return self.rate >= KEEPS_UP * self.hz


KEEPS_UP = 0.97
"""Of the wanted rate: what is less is told."""


LENGTH = struct.Struct("<I")


class Setup(msgspec.Struct, frozen=True, tag=True):
    """The first message to a worker: its games.

    episodes: how many each game has had before, if an earlier worker was lost.
    frames: whether pictures may be asked for.
    """

    game: str
    game_ids: list[int]
    episodes: list[int]
    seed: int | None
    hz: float
    max_steps: int
    frames: bool


class Act(msgspec.Struct, frozen=True, tag=True):
    """Drive a game like this from the next tick on."""

    game_id: int
    action: Action


class Ask(msgspec.Struct, frozen=True, tag=True):
    """How is this game? One that has not started yet is started first. Gets an Answer."""

    number: int
    game_id: int
    restart: bool
    frame: bool


class Look(msgspec.Struct, frozen=True, tag=True):
    """What is there to see, for so many pixels of a window? Gets a Seen."""

    number: int
    game_id: int
    width: int
    height: int


class Count(msgspec.Struct, frozen=True, tag=True):
    """How steadily do the games tick? Gets a Counted."""

    number: int


class Finish(msgspec.Struct, frozen=True, tag=True):
    """Report once more, and end."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The games are there, and none has started."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The games cannot be made: a line for whoever started the server."""

    message: str


class Ticked(msgspec.Struct, frozen=True, tag=True):
    """A game after a tick; with the end of the episode before, if it has just begun a new one."""

    moment: Moment
    ending: Ending | None


class Answer(msgspec.Struct, frozen=True, tag=True):
    """To an Ask. What it broke off is in the Ticked before it."""

    number: int
    moment: Moment
    frame: str | None
    broke_off: bool


class Seen(msgspec.Struct, frozen=True, tag=True):
    """To a Look: see `game.Sight`."""

    number: int
    moment: Moment
    kind: str
    width: int
    height: int
    content: bytes


class Counted(msgspec.Struct, frozen=True, tag=True):
    """To a Count, and unasked about once a second, then without its number: of the started games."""

    number: int | None
    clocks: list[ClockReport]


ToWorker = Setup | Act | Ask | Look | Count | Finish
FromWorker = Ready | Failed | Ticked | Answer | Seen | Counted

_encoder = msgspec.msgpack.Encoder()
_to_worker = msgspec.msgpack.Decoder(ToWorker)
_from_worker = msgspec.msgpack.Decoder(FromWorker)


def packed(message: ToWorker | FromWorker) -> bytes:
    content = _encoder.encode(message)
    return LENGTH.pack(len(content)) + content


def to_worker(content: bytes) -> ToWorker:
    message: ToWorker = _to_worker.decode(content)
    return message


def from_worker(content: bytes) -> FromWorker:
    message: FromWorker = _from_worker.decode(content)
    return message


def read_packed(read: Callable[[int], Any]) -> bytes | None:
    """The next message from a blocking stream, None at its end."""
    head = read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    content: bytes = read(length)
    return content if len(content) == length else None
