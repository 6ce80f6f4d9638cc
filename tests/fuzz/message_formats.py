"""Formats of messages: valid examples, their mutations and their readers."""

import json
import socket
import struct
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import cache
from multiprocessing import Pipe
from pathlib import Path

import gymnasium
import numpy as np
import websocket

from racer_env.bridge.batch_format import decode_result, encode_step
from racer_env.bridge.client import checked_track
from racer_env.bridge.messages import ResetReply, StepReply, TrackReply, decode_reply
from racer_env.bridge.session import ServerLimits, Session
from racer_env.bridge.track_cache import TrackCache, TrackNotBuiltError
from racer_env.bridge.ws_client import FastWebSocket
from racer_env.engine.config import Config
from racer_env.games.protocol import (
    GameStats,
    HandshakeMessage,
    LateMs,
    StateMessage,
    StatesMessage,
    StatsMessage,
    parse_handshake,
    parse_line,
    parse_request,
    parse_state,
    parse_states,
    parse_stats,
)
from racer_env.games.protocol import encode as encode_game_message
from racer_env.stdio.client import parse_reply
from racer_env.stdio.host import EnvHost
from racer_env.stdio.schema import Expected, check_description
from racer_viewer.training.control import receive
from tests.fuzz.limited import Format
from tests.fuzz.mutations import mutate_bytes, mutate_json

BATCH_RESET = b'{"type": "batch_reset", "seed": 1, "numCars": 3}'


@cache
def tracks() -> TrackCache:
    found = TrackCache()
    found.build("track-01")
    return found


def answer(session: Session, message: bytes, binary: bool = False) -> bytes:
    """Answer a message as the server does, except that no other circuit is built."""
    try:
        return session.answer_binary(message) if binary else session.answer_text(message)
    except TrackNotBuiltError:
        return b""


MESSAGES = (
    {"type": "describe"},
    {"type": "reset", "trackId": "track-01", "seed": 3, "config": Config().to_json(), "start": {"arc": 0.5}},
    {"type": "step", "action": [0.1, 1.0, 0.0]},
    {"type": "batch_reset", "numCars": 3, "seed": 1, "trackId": "track-01"},
    {"type": "track", "trackId": "track-01"},
    {"type": "close"},
    {"type": "reset", "seed": 3, "config": {"terms": {"own": "speed * abs(slip) if lap > 1 else -0.5", "more": "1"}}},
    {"type": "batch_reset", "numCars": 2, "config": {"terms": {"own": "clip(heading_error, -1, 1) ** 2"}}},
)


def messages(folder: Path) -> Sequence[bytes]:
    return [json.dumps(message).encode() for message in MESSAGES]


def send_message(data: bytes, folder: Path) -> None:
    session = Session(tracks(), ServerLimits())
    answer(session, b'{"type": "reset", "seed": 1}')
    answer(session, data)
    reply = answer(session, b'{"type": "step", "action": [0.1, 1.0, 0.0]}')
    assert b"null" not in reply, "orjson writes null for what is not finite"


def send_batch_step(data: bytes, folder: Path) -> None:
    session = Session(tracks(), ServerLimits())
    answer(session, BATCH_RESET)
    answer(session, data, binary=True)


def replies(folder: Path) -> Sequence[bytes]:
    session = Session(tracks(), ServerLimits())
    return [answer(session, json.dumps(message).encode()) for message in MESSAGES[1:3]]


def read_reply(data: bytes, folder: Path) -> None:
    decode_reply(data, StepReply if b"step_result" in data[:40] else ResetReply)


def track_replies(folder: Path) -> Sequence[bytes]:
    session = Session(tracks(), ServerLimits())
    return [answer(session, b'{"type": "track", "trackId": "track-01"}')]


def read_track(data: bytes, folder: Path) -> None:
    checked_track("track-01", decode_reply(data, TrackReply).track)


def batch_results(folder: Path) -> Sequence[bytes]:
    session = Session(tracks(), ServerLimits())
    answer(session, BATCH_RESET)
    return [answer(session, encode_step(np.full((3, 3), 0.5, np.float32)), binary=True)]


REQUESTS = (b'{"cmd":"describe"}', b'{"cmd":"reset","seed":1,"options":{"a":1}}', b'{"cmd":"step","action":0}')


@cache
def host() -> EnvHost:
    return EnvHost(gymnasium.make("CartPole-v1"))


def ask_host(data: bytes, folder: Path) -> None:
    if b"close" not in data:
        host().answer(data.replace(b"\n", b" "))


def read_description(data: bytes, folder: Path) -> None:
    parse_reply(data, lambda reply: check_description(reply, Expected()))


def frames(folder: Path) -> Sequence[bytes]:
    """Return what a server may send: messages in one frame and in several, pings, and a close frame."""
    ping, close, size = b"\x89\x02hi", b"\x88\x05\x03\xe8bye", struct.pack(">H", 300)
    return [
        b"\x81\x05hello" + close, b"\x82\x7e" + size + bytes(300) + close,
        ping + b"\x01\x02he" + ping + b"\x80\x03llo" + close, b"\x81\x85abcd" + b"hello" + close,
    ]  # fmt: skip


def receive_frames(data: bytes, folder: Path) -> None:
    ours, theirs = socket.socketpair()
    with theirs, closing(FastWebSocket(skip_utf8_validation=True)) as client:
        client.sock = ours
        client.settimeout(10.0)
        client.connected = True
        theirs.setblocking(False)
        with suppress(BlockingIOError):
            theirs.send(data)
        theirs.shutdown(socket.SHUT_WR)
        while client.connected and client.recv_data()[0] != websocket.ABNF.OPCODE_CLOSE:
            pass


def receive_command(data: bytes, folder: Path) -> None:
    receiver, sender = Pipe(duplex=False)
    with receiver, sender:
        sender.send_bytes(data[:60_000])
        receive(receiver)


GAME_REQUESTS = (
    b'{"type": "SET_ACTION", "game_id": 1, "action": {"steer": 0.1, "gas": 1.0, "brake": 0.0}}',
    b'{"type": "GET_STATE", "game_id": 0, "frame": false}',
    b'{"type": "GET_STATES", "game_ids": [0, 1]}',
    b'{"type": "RESET", "game_id": 2}',
)


def game_replies(folder: Path) -> Sequence[bytes]:
    state = StateMessage(
        game_id=0, telemetry={"car_x": 1.0, "steps": 3}, frame="AAAA" * 4, frame_shape=(2, 2, 3), reward=0.5,
        done=False, info={}, truncated=False, episode=1, reward_since=0.5, ended=0, human=False,
    )  # fmt: skip
    stats = StatsMessage(game="racer", hz=50.0, clients=1, keeps_up=True,
                         games=[GameStats(0, 50.0, 100, 0, LateMs(0.1, 0.2, 0.3))])  # fmt: skip
    handshake = HandshakeMessage(1, "racer", 50.0, True, ("GET_STATES",))
    return [encode_game_message(message) for message in (handshake, state, StatesMessage([state]), stats)]


def read_game_reply(data: bytes, folder: Path) -> None:
    message = parse_line(data)
    match message.get("type"):
        case "HANDSHAKE":
            parse_handshake(message)
        case "STATES":
            parse_states(message, range(1), frames=True)
        case "STATS":
            parse_stats(message, 1)
        case _:
            parse_state(message, 0, frames=True)


MESSAGE_FORMATS = (
    Format("bridge request", messages, mutate_json, send_message),
    Format("batch step", lambda folder: [encode_step(np.ones((3, 3), np.float32))], mutate_bytes, send_batch_step),
    Format("bridge reply", replies, mutate_json, read_reply),
    Format("track of a bridge", track_replies, mutate_json, read_track, share=0.3),
    Format("batch result", batch_results, mutate_bytes, lambda data, folder: decode_result(data, 3)),
    Format("frames of a bridge", frames, mutate_bytes, receive_frames,
           allowed=(websocket.WebSocketException, OSError)),
    Format("learner command", lambda folder: [b'{"do": "pace", "times": 2.0}'], mutate_json, receive_command,
           allowed=(ValueError,)),
    Format("games request", lambda folder: GAME_REQUESTS, mutate_json, lambda data, folder: parse_request(data, 4)),
    Format("games reply", game_replies, mutate_json, read_game_reply),
    Format("stdio request", lambda folder: REQUESTS, mutate_json, ask_host),
    Format("stdio reply", lambda folder: [host().answer(REQUESTS[0])], mutate_json, read_description),
)  # fmt: skip
