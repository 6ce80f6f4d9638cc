"""Overlay history: recorded values, and when they are cleared."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pygame
import pytest

from racer_env.engine import load_circuit
from racer_env.engine.rewards import COMPONENT_CAPACITY
from racer_viewer.render.overlays import OVERLAYS, Overlays
from racer_viewer.render.overlays.panel import TICKS, History
from racer_viewer.render.overlays.reward import COLUMNS, stacked_columns
from racer_viewer.snapshot import PolicyInsight, Snapshot
from racer_viewer.ui.theme import COLOUR_BLIND, Theme

MakeSnapshot = Callable[..., Snapshot]


def filled(snapshot_of: MakeSnapshot, ticks: int = 10) -> History:
    history = History()
    for step in range(1, ticks + 1):
        history.tick(
            snapshot_of(2, step_count=step, speed=step, components=[step] * 6, action=[0.5, 1.0, 0.0], throttle=0.25)
        )
    return history


def test_the_newest_tick_is_last(snapshot_of: MakeSnapshot) -> None:
    history = filled(snapshot_of)
    assert history.ticks == 10
    np.testing.assert_array_equal(history.speeds[-11:], range(11))
    np.testing.assert_array_equal(history.rewards[-1, :6], [10] * 6)
    np.testing.assert_array_equal(history.asked[-1], [0.5, 1.0, 0.0])
    np.testing.assert_array_equal(history.done[-1], [0.0, 0.25, 0.0])
    assert np.isnan(history.values).all()


def test_what_the_agent_expected_is_remembered(snapshot_of: MakeSnapshot, thought: PolicyInsight) -> None:
    history = History()
    history.tick(snapshot_of(insight=thought))
    history.tick(snapshot_of(insight=dataclasses.replace(thought, value=None), step_count=1))
    np.testing.assert_array_equal(history.values[-2:], [1.5, np.nan])


@pytest.mark.parametrize("change", ["episode", "track", "focus"])
def test_a_new_episode_another_track_and_another_car_start_from_nothing(snapshot_of: MakeSnapshot, change: str) -> None:
    history = filled(snapshot_of)
    following = {
        "episode": lambda: snapshot_of(2, step_count=0, speed=77.0),
        "track": lambda: snapshot_of(2, step_count=11, speed=77.0, track_=load_circuit("track-02")),
        "focus": lambda: snapshot_of(2, step_count=11, speed=77.0, focus=1),
    }[change]()
    history.tick(following)
    assert history.ticks == 1
    assert history.speeds[-1] == 77.0
    assert not history.speeds[:-1].any()
    assert not history.rewards[:-1].any()
    assert not history.asked[:-1].any()


def test_the_same_episode_goes_on(snapshot_of: MakeSnapshot) -> None:
    history = filled(snapshot_of)
    history.tick(snapshot_of(2, step_count=11))
    assert history.ticks == 11


def test_another_theme_has_the_same_past(snapshot_of: MakeSnapshot) -> None:
    overlays = Overlays(Theme(1.0))
    overlays.tick(snapshot_of(speed=42.0))
    other = overlays.with_theme(Theme(2.0, COLOUR_BLIND))
    assert other.theme.palette is COLOUR_BLIND
    other.tick(snapshot_of(speed=43.0, step_count=1))
    np.testing.assert_array_equal(other.history.speeds[-2:], [42.0, 43.0])


@pytest.mark.parametrize("ticks", [1, 3, 4, 6, 400])
def test_columns_of_the_reward_graph_are_means_of_four_ticks(snapshot_of: MakeSnapshot, ticks: int) -> None:
    history = filled(snapshot_of, ticks)
    columns = stacked_columns(history)
    assert columns.shape == (COLUMNS, COMPONENT_CAPACITY)
    newest = range((ticks - 1) // 4 * 4 + 1, ticks + 1)
    assert columns[-1, 0] == np.mean(newest)
    if ticks > 4:
        assert columns[-2, 0] == np.mean(range(newest[0] - 4, newest[0]))
    assert (columns[:, 0] > 0.0).sum() == min(COLUMNS, -(-ticks // 4))
    assert len(history.rewards) == TICKS


def test_a_full_column_never_changes_it_only_moves(snapshot_of: MakeSnapshot) -> None:
    history, seen = History(), set()
    values = np.random.default_rng(0).normal(size=40)
    for step, value in enumerate(values):
        history.tick(snapshot_of(step_count=step, components=[value] * 6))
        seen |= {round(column, 9) for column in stacked_columns(history)[:-1, 0] if column}
    assert len(seen) == 9


def test_within_four_frames_everything_that_is_shown_is_new(snapshot_of: MakeSnapshot, thought: PolicyInsight) -> None:
    old = snapshot_of(4, insight=thought, gaps=(0.0, 1.0, 2.0, 3.0))
    new = snapshot_of(
        4, step_count=1, insight=dataclasses.replace(thought, value=-3.0), gaps=(0.0, -1.0, -2.0, 5.0), speed=80.0,
        steer=0.5, brake=0.7, components=[5e-5, 0, 0, 0, 0, 0], surface=1, lap_ticks=50,
    )  # fmt: skip
    overlays, surface = Overlays(Theme(1.0)), pygame.Surface((1280, 720), depth=32)
    for snapshot in (old, new):
        overlays.tick(snapshot)
        overlays.draw(surface, snapshot, OVERLAYS)
    fresh, wanted = overlays.with_theme(overlays.theme), pygame.Surface((1280, 720), depth=32)
    fresh.draw(wanted, new, OVERLAYS)
    for _ in range(4):
        surface.fill((0, 0, 0))
        overlays.draw(surface, new, OVERLAYS)
    np.testing.assert_array_equal(pygame.surfarray.array3d(surface), pygame.surfarray.array3d(wanted))


def test_a_panel_that_was_hidden_comes_back_with_what_is_now(snapshot_of: MakeSnapshot, thought: PolicyInsight) -> None:
    old, new = snapshot_of(insight=thought), snapshot_of(insight=dataclasses.replace(thought, value=-3.0))
    overlays, surface = Overlays(Theme(1.0)), pygame.Surface((1280, 720), depth=32)
    overlays.draw(surface, old, ["agent"])
    overlays.draw(surface, new, [])
    wanted = pygame.Surface((1280, 720), depth=32)
    for each, where in ((overlays, surface), (Overlays(Theme(1.0)), wanted)):
        where.fill((0, 0, 0))
        each.draw(where, new, ["agent"])
    np.testing.assert_array_equal(pygame.surfarray.array3d(surface), pygame.surfarray.array3d(wanted))
