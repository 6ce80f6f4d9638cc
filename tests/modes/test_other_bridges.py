"""Watching cars that a server simulates, through the real app and real sockets."""

import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pygame
import pytest

from racer_viewer.agents import bundled_models
from racer_viewer.modes.screen import BridgeAddress, MessageScreen
from racer_viewer.modes.waiting import WaitingScreen
from racer_viewer.modes.watch import WatchScreen, open_watch
from racer_viewer.replays import trace_replay
from racer_viewer.ui.paint import STATUS_HEIGHT
from tests.bridge.conftest import RunningBridge, running_bridge
from tests.bridge.old_server import OldServer, old_server
from tests.modes.person import Person

CHAMPION = next(path for path in bundled_models() if path.stem == "champion")
LIMIT = 60.0


@pytest.fixture
def server() -> Iterator[OldServer]:
    with old_server() as running:
        yield running


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RunningBridge]:
    (tmp_path / "bridge").mkdir()
    with running_bridge(tmp_path / "bridge") as running:
        yield running


def watching(person: Person, url: str) -> WatchScreen:
    person.app.context.bridge = BridgeAddress(url)
    open_watch(person.app.context, [CHAMPION], "track-01")
    person.top(WaitingScreen)
    person.frames(2)
    person.until(lambda: not isinstance(person.app.context.top, WaitingScreen), "the connection")
    screen = person.top(WatchScreen)
    screen.playback.chosen = 4
    return screen


def tick_of(screen: WatchScreen) -> int:
    return int(screen.view.after.car["step_count"])


def pixels_like(person: Person, colour: tuple[int, int, int]) -> int:
    """Count the pixels of this colour in the right half of the status line."""
    picture = pygame.surfarray.array3d(person.picture())
    corner = picture[picture.shape[0] // 2 :, : person.app.context.theme.px(STATUS_HEIGHT)].astype(int)
    return int((np.abs(corner - np.array(colour)).max(axis=2) < 12).sum())


@pytest.mark.slow
def test_a_car_on_an_existing_server_is_in_sync_for_a_whole_lap_with_wall_contacts(
    person: Person, server: OldServer
) -> None:
    screen = watching(person, server.url)
    walls: list[int] = []

    def note(until: int) -> bool:
        if screen.view.after.car["wall_contact"]:
            walls.append(tick_of(screen))
        assert screen.live.tick.bridge is not None
        assert screen.live.tick.bridge.exact, screen.live.tick.bridge
        return tick_of(screen) >= until

    person.until(lambda: note(30), "half a second")
    person.press("t")
    person.hold("right", "up")
    person.until(lambda: note(44), "a turn towards the wall")
    person.release("right")
    person.until(lambda: note(0) and len(walls) > 0, "the wall")
    person.release("up")
    person.press("t")
    screen.playback.chosen = 4
    person.until(lambda: note(0) and len(screen.live.tick.laps) == 1, "a lap")
    assert walls
    assert pixels_like(person, person.app.context.theme.palette.good) > 20
    assert not screen.view.after.styles[0].ghost
    assert {request["type"] for request in server.requests} == {"describe", "reset", "step"}
    replay = screen.live.tick.followed.replay()
    assert replay is not None
    trace = trace_replay(replay)
    assert tuple(lap.ticks for lap in trace.laps) == replay.laps
    assert trace.mismatch is None


def test_wrong_observations_after_tick_500_are_shown_as_out_of_sync(person: Person, server: OldServer) -> None:
    def lie(reply: dict[str, Any]) -> dict[str, Any]:
        if reply["type"] == "step_result" and reply["info"]["stepCount"] > 500:
            reply["observation"][13] = min(1.0, reply["observation"][13] + 0.01)
        return reply

    server.distort = lie
    screen = watching(person, server.url)
    person.until(lambda: tick_of(screen) >= 480, "tick 480")
    assert screen.live.tick.bridge is not None
    assert screen.live.tick.bridge.exact
    assert pixels_like(person, person.app.context.theme.palette.bad) == 0
    person.until(lambda: tick_of(screen) >= 510, "tick 510")
    assert screen.live.tick.bridge.out_of_sync_since == 501
    assert pixels_like(person, person.app.context.theme.palette.bad) > 20
    assert screen.view.after.styles[0].ghost, "an estimated car is drawn as a ghost"


def test_a_lost_connection_is_shown_and_can_be_reopened(person: Person) -> None:
    with old_server() as server:
        first = watching(person, server.url)
        person.until(lambda: tick_of(first) >= 30, "some ticks")
        server.distort = lambda reply: b"]]"
        person.until(lambda: person.app.context.top is not first, "the loss")
        lost = person.top(MessageScreen)
        assert lost.title == "Connection lost"
        drawn = person.app.frames
        person.frames(10)
        assert person.app.frames == drawn + 10
        server.distort = lambda reply: reply
        person.choose("Reconnect")
        person.until(lambda: person.app.context.top is first, "the connection")
        before = tick_of(first)
        person.until(lambda: before < tick_of(first) < 30, "ticks of the new episode")
        assert [episode.ending for episode in first.episodes] == ["left"]


@pytest.mark.slow
def test_a_server_that_stops_answering_counts_as_lost(
    person: Person, server: OldServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = watching(person, server.url)
    person.until(lambda: tick_of(screen) >= 10, "some ticks")
    monkeypatch.setattr("racer_viewer.modes.race_view.MAX_SILENCE", 1.0)
    answer = Event()

    def fall_silent(reply: dict[str, Any]) -> dict[str, Any]:
        answer.wait(LIMIT)
        return reply

    server.distort = fall_silent
    try:
        person.until(lambda: screen.live.silence > 0.6, "half a second of silence")
        assert person.app.context.top is screen
        assert any("no answer" in text for text, _ in screen.live.connection_words())
        person.until(lambda: person.app.context.top is not screen, "the lost connection")
        assert "No answer" in person.top(MessageScreen).text
    finally:
        answer.set()


def test_a_failed_connection_can_be_retried(person: Person) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
    person.app.context.bridge = BridgeAddress(url)
    open_watch(person.app.context, [CHAMPION], "track-01")
    person.until(lambda: isinstance(person.app.context.top, MessageScreen), "the message")
    message = person.top(MessageScreen)
    assert url in message.text
    person.choose("Try again")

    def is_another_message() -> bool:
        return isinstance(person.app.context.top, MessageScreen) and person.app.context.top is not message

    person.until(is_another_message, "the next message")
    person.choose("Back")


def test_a_circuit_unknown_to_the_server_is_reported_in_its_words(person: Person, server: OldServer) -> None:
    person.app.context.bridge = BridgeAddress(server.url)
    open_watch(person.app.context, [CHAMPION], "track-06")
    person.until(lambda: isinstance(person.app.context.top, MessageScreen), "the message")
    assert "Unknown track" in person.top(MessageScreen).text


def test_with_telemetry_the_car_is_seen_and_its_replay_is_the_same_to_the_bit(
    person: Person, own_server: RunningBridge
) -> None:
    screen = watching(person, own_server.url)
    assert screen.live.tick.bridge is not None
    assert screen.live.tick.bridge.telemetry
    assert screen.view.after.track.circuit is not None
    assert screen.view.after.track.circuit.name == "Meadow Ring", "it is the circuit that we know by this id"
    screen.playback.chosen = 5
    person.until(lambda: len(screen.live.tick.laps) == 2, "two laps")
    person.press("space")
    person.until(lambda: screen.live.drive.waiting_since is None, "the last answer")
    replay = screen.live.tick.followed.replay()
    assert replay is not None
    trace = trace_replay(replay)
    assert tuple(lap.ticks for lap in trace.laps) == replay.laps == (502, 400)
    assert trace.reward == replay.reward
    row = screen.view.after.car
    assert np.allclose(trace.rows[replay.ticks]["x"], row["x"])
    assert row["components"][0] > 0.0


def test_episodes_on_a_slow_server_are_counted_once(person: Person, server: OldServer) -> None:
    def short_episodes(reply: dict[str, Any]) -> dict[str, Any]:
        if reply["type"] == "step_result" and reply["info"]["stepCount"] >= 20:
            reply["truncated"] = True
        return reply

    server.distort = short_episodes
    screen = watching(person, server.url)
    person.until(lambda: screen.number > 3, "three episodes")
    assert [(each.number, each.ending) for each in screen.episodes[:3]] == [(n, "time up") for n in (1, 2, 3)]
    assert all(each.replay is not None for each in screen.episodes)


def test_the_circuit_is_switched_on_a_server_that_has_room_for_one(person: Person, server: OldServer) -> None:
    screen = watching(person, server.url)
    person.until(lambda: tick_of(screen) >= 5, "some ticks")
    person.press("page down")
    person.until(lambda: person.app.context.top is screen and tick_of(screen) > 3, "the other circuit")
    assert screen.setup.circuit == "track-02"
    assert [each.ending for each in screen.episodes] == ["left"]


def test_a_server_with_more_gates_does_not_end_the_app(person: Person, server: OldServer) -> None:
    def more_gates(reply: dict[str, Any]) -> dict[str, Any]:
        if reply["type"] == "step_result":
            reply["observation"][13] = 1.0
            reply["info"]["checkpoint"] = reply["info"]["stepCount"] // 2
        return reply

    server.distort = more_gates
    screen = watching(person, server.url)
    person.until(lambda: tick_of(screen) >= 80 or person.app.context.top is not screen, "80 ticks")
    assert person.app.context.top is screen
    assert screen.live.tick.bridge is not None
    assert not screen.live.tick.bridge.exact
