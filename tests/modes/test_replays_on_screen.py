"""Replays in the real app: jumping to any tick, comparing, the list of replays, and records."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pygame
import pytest

from racer_env.engine import TICKS_PER_SECOND, Config, Driver, Simulation, Start, load_circuit
from racer_env.engine.car import ROAD
from racer_viewer.modes.replay_lists import RecordsScreen, ReplaysScreen
from racer_viewer.modes.replay_screen import ReplayScreen, open_replays
from racer_viewer.modes.screen import NOTICE_TICKS, MessageScreen
from racer_viewer.modes.waiting import WaitingScreen
from racer_viewer.render.camera import Mode
from racer_viewer.replays import MAX_COMPARED, Replay, ReplayError, ReplayRecorder, Trace, save_replay, trace_replay
from racer_viewer.timing import Stopwatch, fault_text
from racer_viewer.ui.item_list import Row
from tests.modes.person import FRAME, Person

HOUR = 60 * 60 * TICKS_PER_SECOND
TIMEOUT = 20.0
"""Timeout for conditions that usually hold much sooner [s]."""


@cache
def run(ticks: int = 1700, throttle: float = 1.0, driver: str = "Anna", circuit: str = "track-01") -> Replay:
    """Record the engine's own driver, with a wrong action now and then."""
    track = load_circuit(circuit)
    simulation, pilot = Simulation(track, config=Config()), Driver(track)
    assert track.circuit is not None
    recorder = ReplayRecorder(track.circuit, Config(), Start(), driver=driver)
    for tick in range(ticks):
        action = pilot.act(simulation.cars)[0] * (1.0, throttle, 1.0)
        if tick % 800 > 740:
            action = np.array((0.4, 1.0, 0.0))
        result = simulation.step(action[None])
        recorder.add(action, float(result.rewards[0]), int(result.finished_lap_ticks[0]))
    return recorder.replay()


@cache
def traced(throttle: float = 1.0, driver: str = "Anna") -> Trace:
    return trace_replay(run(throttle=throttle, driver=driver))


def kept(person: Person, replay: Replay, name: str, age: float = 0.0) -> Path:
    """Save a replay in the replay folder with a modification time `age` seconds ago."""
    path = person.data / "replays" / f"{name}.racer"
    save_replay(replay, path)
    os.utime(path, (1e9 - age, 1e9 - age))
    return path


def seen(person: Person, *traces: Trace) -> ReplayScreen:
    """Open replays, paused at the beginning."""
    screen = ReplayScreen(person.app.context, traces)
    screen.playback.paused = True
    person.app.context.push(screen)
    person.frames(2)
    return screen


def wait_until(person: Person, happened: Callable[[], bool], seconds: float = FRAME) -> None:
    """Draw frames, each `seconds` after the one before, until the condition holds."""
    end = time.monotonic() + TIMEOUT
    while not happened():
        assert time.monotonic() < end, "the condition does not hold"
        person.frames(seconds=seconds)


def pull(person: Person, screen: ReplayScreen, *shares: float) -> None:
    """Drag the mouse along the rail to shares of its length, then release it."""
    rail = screen.timeline.rail
    places = [(rail.left + round(rail.width * share), rail.centery) for share in shares]
    person.button_down(*places[0])
    for before, place in pairwise(places):
        moved = place[0] - before[0], 7
        post(pygame.MOUSEMOTION, pos=place, rel=moved, buttons=(1, 0, 0))
        person.frames()
    post(pygame.MOUSEBUTTONUP, pos=places[-1], button=pygame.BUTTON_LEFT)
    person.frames()


def post(kind: int, **values: object) -> None:
    pygame.event.post(pygame.event.Event(kind, values))


def shows(screen: ReplayScreen, tick: int) -> None:
    """Check that each car is at its row of this tick, or at its last."""
    assert screen.at == tick
    frame = screen.view.frame(0.3)
    assert frame.share == 1.0 or frame.before is frame.after
    for trace, car in zip(screen.traces, frame.after.cars, strict=True):
        assert same_bits(car, trace.rows[min(tick, trace.ticks)])


def same_bits(one: Any, other: Any) -> bool:
    return all(one[name].tobytes() == other[name].tobytes() for name in one.dtype.names)


def test_a_drag_along_the_timeline_shows_the_tick_under_the_mouse(person: Person) -> None:
    screen = seen(person, traced())
    length, width = traced().ticks, screen.timeline.rail.width
    for shares in ((0.5,), (0.1, 0.4, 0.73), (0.9, 0.2), (0.3, -0.5), (0.3, 1.5)):
        pull(person, screen, *shares)
        goal = min(1.0, max(0.0, shares[-1])) * length
        assert abs(screen.at - goal) <= 0.5 + length / width
        shows(screen, screen.at)


def test_keys_skip_seconds_and_ticks_but_not_beyond_the_ends(person: Person) -> None:
    screen = seen(person, traced())
    person.press("right", "right", "right")
    shows(screen, 180)
    person.press("left")
    shows(screen, 120)
    person.press(".", ".", ".")
    shows(screen, 123)
    person.press(",")
    shows(screen, 122)
    person.press("r", ",", "left")
    shows(screen, 0)
    screen.go_to(traced().ticks - 1)
    person.press(".", ".", "right")
    shows(screen, traced().ticks)


def test_a_tick_back_pauses(person: Person) -> None:
    screen = seen(person, traced())
    person.press("space")
    person.frames(20)
    before = screen.at
    person.press(",")
    person.frames(10)
    shows(screen, before - 1)


def test_panels_show_the_same_after_a_jump_as_after_playing(person: Person) -> None:
    screen = seen(person, traced(), traced(0.5, "Bob"))
    person.press("=", "=", "=", "=", "space")
    wait_until(person, lambda: screen.at > traced().laps[1].last + 130)
    person.press("space")
    tick, played = screen.at, screen.view.after
    memory = [getattr(screen.view.history, name).copy() for name in ("rewards", "speeds", "asked", "done")]
    count = screen.view.history.ticks
    clock = Stopwatch(len(traced().track.gates))
    for row in traced().rows[: tick + 1]:
        fault = fault_text(bool(row["wall_contact"]), row["surface"] != ROAD)
        clock.tick(*(int(row[name]) for name in ("lap", "lap_ticks", "checkpoint", "finished_lap_ticks")), fault)
    assert played.timing == clock.timing()
    assert played.timing.delta is not None
    for start in (0.95, 0.02):
        pull(person, screen, start)
        assert screen.view.after.timing != played.timing
        screen.go_to(tick)
        assert screen.view.after.timing == played.timing
        assert screen.view.after.gaps == played.gaps
        assert np.array_equal(screen.view.after.totals, played.totals)
        assert np.array_equal(screen.view.after.observation, played.observation)
        assert screen.view.history.ticks == count
        for name, values in zip(("rewards", "speeds", "asked", "done"), memory, strict=True):
            assert np.array_equal(getattr(screen.view.history, name), values), name


def test_speed_and_pause(person: Person) -> None:
    screen = seen(person, traced())
    person.press("space")
    start = screen.at
    person.frames(10)
    assert screen.at - start == 10
    person.press("=", "=", "=", "=")
    assert screen.timeline.speed == "16×"
    start = screen.at
    person.frames(10)
    assert screen.at - start == 160
    person.press("-", "-", "-", "-", "-", "-")
    assert screen.timeline.speed == "¼×"
    start = screen.at
    person.frames(40)
    assert screen.at - start == 10
    person.press("p")
    start = screen.at
    person.frames(10)
    shows(screen, start)


def test_resuming_at_the_end_starts_again(person: Person) -> None:
    screen = seen(person, traced())
    screen.go_to(traced().ticks - 5)
    person.press("space")
    person.frames(20)
    shows(screen, traced().ticks)
    person.press("space")
    person.frames(9)
    assert 5 <= screen.at <= 10
    button = screen.timeline.button.center
    person.click(*button)
    start = screen.at
    person.frames(5)
    shows(screen, start)
    person.click(*button)
    person.frames(5)
    assert screen.at > start


def test_time_stands_still_while_the_timeline_is_dragged(person: Person) -> None:
    screen = seen(person, traced())
    person.press("space")
    rail = screen.timeline.rail
    person.button_down(*rail.center)
    dragged = screen.at
    person.frames(30)
    shows(screen, dragged)
    post(pygame.MOUSEBUTTONUP, pos=rail.center, button=pygame.BUTTON_LEFT)
    person.frames(5)
    assert screen.at == dragged + 5


def test_dragging_the_timeline_leaves_a_free_camera_where_it_is(person: Person) -> None:
    screen = seen(person, traced())
    person.press("c", "c", "c")
    person.frames(40)
    camera = screen.view.scene.camera
    assert camera.mode is Mode.FREE
    before = camera.view
    pull(person, screen, 0.2, 0.6, 0.4)
    person.button_down(screen.timeline.button.centerx, screen.timeline.button.centery)
    post(pygame.MOUSEMOTION, pos=(400, 200), rel=(90, -90), buttons=(1, 0, 0))
    person.frames(30)
    assert camera.view == before
    person.point(500, 300)
    person.click(500, 300)
    post(pygame.MOUSEMOTION, pos=(560, 300), rel=(60, 0), buttons=(1, 0, 0))
    person.frames(30)
    assert camera.view.x < before.x


def test_the_camera_moves_to_another_car_while_paused(person: Person) -> None:
    screen = seen(person, traced(), traced(0.5, "Bob"))
    screen.go_to(400)
    person.press("tab")
    person.frames(60)
    x, y = screen.view.scene.car_on_screen(1)
    width, height = person.app.surface.get_size()
    assert 0 < x < width
    assert 0 < y < height
    shows(screen, 400)


def test_two_replays_are_compared_one_as_a_ghost(person: Person) -> None:
    fast, slow = traced(), traced(0.5, "Bob")
    screen = seen(person, fast, slow)
    screen.go_to(900)
    assert [(look.name.split()[0], look.ghost) for look in screen.view.after.styles] == [("Anna", False), ("Bob", True)]
    ours, theirs = ([row for row in trace.gate_rows.tolist() if row <= 900] for trace in (fast, slow))
    last = min(len(ours), len(theirs)) - 1
    gap = (theirs[last] - ours[last]) / TICKS_PER_SECOND
    assert screen.view.after.gaps == (0.0, gap)
    assert gap > 0.0
    assert screen.timeline.marks[0].at == fast.laps[0].last
    person.press("tab")
    assert [look.ghost for look in screen.view.after.styles] == [True, False]
    assert screen.view.after.focus == 1
    assert screen.view.after.gaps == (-gap, 0.0)
    assert screen.view.after.timing is not None
    assert screen.view.after.timing.lap_ticks == slow.rows["lap_ticks"][900]
    assert screen.timeline.marks[0].at == slow.laps[0].last
    shows(screen, 900)


def test_the_note_below_the_timeline_shows_the_standing_after_a_lap(person: Person) -> None:
    fast, slow = traced(), traced(0.5, "Bob")
    screen = seen(person, slow, fast)
    behind = (slow.laps[0].last - fast.laps[0].last) / TICKS_PER_SECOND
    screen.go_to(slow.laps[0].last - 1)
    person.frames()
    assert "lap" not in screen.timeline.note
    screen.go_to(slow.laps[0].last)
    person.frames()
    first = fast.laps[0].ticks / TICKS_PER_SECOND
    assert screen.timeline.note == f"After lap 1: Anna {first:.2f} s, Bob +{behind:.2f}"


def test_the_shorter_of_two_replays_stays_at_its_end(person: Person) -> None:
    short = trace_replay(run(600, driver="Carl"))
    screen = seen(person, short, traced())
    assert screen.length == traced().ticks
    assert screen.timeline.marks[-1].at == 600
    screen.go_to(1000)
    shows(screen, 1000)
    person.press("space")
    person.frames(10)
    assert screen.at > 1000
    assert same_bits(screen.view.after.car, short.rows[-1])


def test_laps_and_walls_are_marked_on_the_timeline(person: Person) -> None:
    screen = seen(person, traced())
    laps = [mark for mark in screen.timeline.marks if mark.label]
    assert [(mark.at, mark.label) for mark in laps] == [
        (lap.last, f"{'' if lap.clean else '* '}{lap.ticks / TICKS_PER_SECOND:.2f}") for lap in traced().laps
    ]
    walls = [mark.at for mark in screen.timeline.marks if mark.small]
    assert walls
    assert walls == traced().wall_rows.tolist()
    picture, rail = person.picture(), screen.timeline.rail
    bad = pygame.Color(*person.app.context.theme.palette.bad)
    x = rail.left + round(rail.width * walls[0] / traced().ticks)
    assert any(picture.get_at((x, y)) == bad for y in range(rail.bottom, rail.bottom + 10))


@pytest.mark.parametrize("size", [(960, 540), (1920, 1080)])
def test_neither_keys_nor_panels_cover_the_timeline(person: Person, size: tuple[int, int]) -> None:
    person.app.window.size = size
    person.frames()
    screen = seen(person, traced(), traced(0.5, "Bob"))
    top = size[1] - screen.timeline.height(person.app.context.theme)
    person.app.context.change(overlays=())
    person.point(300, 200)
    with_keys = pygame.surfarray.array3d(person.picture())
    screen.view.hide_keys()
    without = pygame.surfarray.array3d(person.picture())
    assert not np.array_equal(with_keys[:, top - 30 : top], without[:, top - 30 : top])
    assert np.array_equal(with_keys[:, top:], without[:, top:])
    person.app.context.change(overlays=("timing", "map", "inputs", "reward", "physics"))
    person.picture()
    assert screen.view.panels
    assert all(panel.bottom < top for panel in screen.view.panels)


def test_a_replay_of_another_engine_version_has_a_warning(person: Person) -> None:
    other = trace_replay(replace(run(), engine_version=99, laps=(300, 400)))
    screen = seen(person, traced(), other)
    person.press("space")
    person.frames(1 + NOTICE_TICKS // 15, seconds=0.25)
    assert not person.app.context.notice_ticks
    warning = screen.timeline.warning
    assert "engine version 99" in warning
    assert "lap times recorded: 300, 400 ticks; re-simulated" in warning
    accent = np.array(person.app.context.theme.palette.accent)
    line = pygame.surfarray.array3d(person.picture())[:, -18:]
    assert (line == accent).all(axis=2).sum() > 300


def test_a_reward_that_is_not_reproduced_has_a_warning(person: Person) -> None:
    assert seen(person, traced()).timeline.warning == ""
    lying = trace_replay(replace(run(), reward=1e6))
    assert "reward recorded: 1e+06; re-simulated" in seen(person, lying).timeline.warning


def test_replays_on_different_circuits_give_a_message(person: Person) -> None:
    here = kept(person, run(), "here")
    there = kept(person, run(300, circuit="track-02", driver="Bob"), "there")
    open_replays(person.app.context, [here, there])
    text = person.top(MessageScreen).text
    assert "different circuits" in text
    assert "Anna" in text
    assert "Bob" in text
    with pytest.raises(ReplayError):
        ReplayScreen(person.app.context, [traced(), trace_replay(run(300, circuit="track-02", driver="Bob"))])


def test_the_list_shows_the_newest_first_and_damaged_files_with_their_reason(person: Person) -> None:
    kept(person, run(), "old", age=30)
    kept(person, run(300, driver="", circuit="track-02"), "new", age=10)
    broken = kept(person, run(), "broken", age=20)
    broken.write_bytes(broken.read_bytes()[:200])
    os.utime(broken, (1e9 - 20, 1e9 - 20))
    person.choose("Replays")
    person.frames(5)
    new, damaged, old, _browse = person.top(ReplaysScreen).list.items
    assert isinstance(new, Row)
    assert isinstance(damaged, Row)
    assert isinstance(old, Row)
    best = f"{min(run().laps) / TICKS_PER_SECOND:.2f}"
    date = f"{run().date.astimezone():%Y-%m-%d %H:%M}"
    assert (old.label, *old.cells) == ("Meadow Ring", "Anna", best, str(len(run().laps)), "28.33", date)
    assert (new.label, *new.cells[:4]) == ("Speedway", "Unknown", "–", "0", "5.00")
    assert (damaged.label, damaged.cells) == ("broken.racer", ("is damaged or truncated",))
    assert damaged.marked is None
    person.press("down", "right", "return")
    text = person.top(MessageScreen).text
    assert str(broken) in text
    assert "damaged" in text
    person.press("return", "down", "return")
    assert person.top(ReplayScreen).traces[0].replay.laps == run().laps


def test_marked_replays_are_opened_with_the_chosen_one_first(person: Person) -> None:
    for number in range(MAX_COMPARED + 1):
        kept(person, run(300, driver=f"No. {number}"), f"run-{number}", age=number)
    person.choose("Replays")
    screen = person.top(ReplaysScreen)
    wait_until(person, lambda: all(item.marked is not None for item in screen.list.items[:-1]))  # type: ignore[attr-defined]
    person.press("right", "down", "down", "left", "up", "return")
    opened = person.top(ReplayScreen)
    assert [trace.replay.driver for trace in opened.traces] == ["No. 1", "No. 0", "No. 2"]
    person.press("escape")
    assert "2 marked" in screen.content.subtitle
    person.press("right", *["down", "right"] * 7)
    assert [item.marked for item in screen.list.items[:-1]] == [  # type: ignore[attr-defined]
        True, True, False, True, True, True, True, True, True,
    ]  # fmt: skip
    person.press("up", "up", "up", "up", "up", "up", "right")
    assert "At most 8" in person.app.context.notice
    assert not screen.list.items[2].marked  # type: ignore[attr-defined]
    person.press("return")
    assert "at most 8" in person.top(MessageScreen).text


def test_a_replay_is_deleted_when_that_is_confirmed(person: Person) -> None:
    first, second = kept(person, run(300), "first", age=1), kept(person, run(300), "second", age=2)
    person.choose("Replays")
    person.press("down", "delete")
    person.choose("Cancel")
    assert second.exists()
    person.press("delete")
    person.choose("Delete")
    assert not second.exists()
    assert first.exists()
    assert len(person.top(ReplaysScreen).list.items) == 2, "and the button for other files"
    person.press("up", "delete")
    person.choose("Delete")
    nothing, _browse = person.top(ReplaysScreen).list.items
    assert "Save replay after a race" in nothing.label
    assert not nothing.enabled
    person.press("delete", "return")
    person.top(ReplaysScreen)


def test_many_files_are_listed_at_once_and_read_between_frames(person: Person) -> None:
    file = kept(person, run(), "run-0")
    for number in range(1, 200):
        (file.parent / f"run-{number}.racer").write_bytes(file.read_bytes())
    person.choose("Replays")
    items = person.top(ReplaysScreen).list.items[:-1]
    assert len(items) == 200
    assert not items[-1].cells  # type: ignore[attr-defined]
    wait_until(person, lambda: bool(items[-1].cells))  # type: ignore[attr-defined]
    assert all(item.label == "Meadow Ring" for item in items)


def test_records_of_a_circuit_are_compared(person: Person) -> None:
    for throttle, driver in ((1.0, "Anna"), (0.7, "Bob"), (0.5, "Carl")):
        person.app.context.records.enter(run(throttle=throttle, driver=driver))
    person.choose("Records")
    screen = person.top(RecordsScreen)
    assert [item.label.split()[-1] for item in screen.list.items[1:]] == ["Anna", "Bob", "Carl"]
    person.press("down", "right", "down", "down", "return")
    assert [trace.replay.driver for trace in person.top(ReplayScreen).traces] == ["Carl", "Anna"]
    person.press("escape", "up", "up", "left", "return")
    assert [trace.replay.driver for trace in person.top(ReplayScreen).traces] == ["Anna"]


@pytest.mark.slow
@pytest.mark.timing
def test_an_hour_is_re_simulated_between_frames_and_then_scrubbed_at_once(person: Person) -> None:
    actions = np.resize(run().actions, (HOUR, 3))
    path = kept(person, replace(run(), actions=actions), "hour")
    open_replays(person.app.context, [path])
    waiting = person.top(WaitingScreen)
    person.frames(3)
    assert person.top(WaitingScreen) is waiting
    wait_until(person, lambda: person.app.context.top is not waiting, seconds=0.25)
    screen = person.top(ReplayScreen)
    assert screen.length == HOUR
    assert "re-simulated" in screen.timeline.warning
    screen.playback.paused = True
    begun = time.perf_counter()
    for jump in range(200):
        screen.go_to(jump * 7919 * 131 % HOUR)
    assert time.perf_counter() - begun < 2.0
    pull(person, screen, 0.1, 0.6)
    shows(screen, screen.at)
    open_replays(person.app.context, [path])
    person.press("escape")
    assert person.top(ReplayScreen) is screen
