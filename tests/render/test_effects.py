"""Skid marks, dust and sparks: who leaves them, where, and for how long."""

import numpy as np
import pygame
import pytest

from racer_env.engine import CAR, Track, load_circuit
from racer_env.engine.car import ROAD, RUNOFF
from racer_viewer.render.camera import View
from racer_viewer.render.car import ENLARGED
from racer_viewer.render.effects import DUST_LIFE, MARK_LIFE, MARKS, PUFFS, SPARKS, Effects
from racer_viewer.snapshot import CarStyle, Snapshot

VIEW = View(0.0, 0.0, 6.0, (640, 360))
GREY = (120, 120, 120)


@pytest.fixture(scope="module")
def track() -> Track:
    return load_circuit("track-01")


def snapshots(track: Track, ticks: int, ghost: bool = False, cars: int = 1, **values: float) -> list[Snapshot]:
    """Cars that drive to the right at 60 units/s, through the origin, with these values."""
    found = []
    for tick in range(ticks):
        rows = np.zeros(cars, CAR)
        rows["speed"] = rows["vx"] = 60.0
        rows["x"], rows["step_count"] = tick - 20.0, tick + 1
        rows["y"] = 4.0 * np.arange(cars)
        for name, value in values.items():
            rows[name] = value
        found.append(Snapshot(track, rows, (CarStyle("a car", (200, 40, 40), ghost),) * cars))
    return found


def after(driven: list[Snapshot]) -> Effects:
    effects = Effects()
    for snapshot in driven:
        effects.tick(snapshot)
    return effects


def picture_of(effects: Effects, share: float = 1.0) -> np.ndarray:
    surface = pygame.Surface(VIEW.size, depth=32)
    surface.fill(GREY)
    effects.draw_marks(surface, VIEW)
    effects.draw_dust(surface, VIEW, share)
    effects.draw_sparks(surface, VIEW, share)
    return pygame.surfarray.array3d(surface).swapaxes(0, 1).astype(int)


def test_a_car_that_rolls_along_the_road_leaves_nothing(track: Track) -> None:
    effects = after(snapshots(track, 40, surface=ROAD, slip_angle=0.01, brake=0.1))
    assert effects.counts == (0, 0, 0)
    assert (picture_of(effects) == GREY).all()


@pytest.mark.parametrize("sliding", [{"slip_angle": 0.2}, {"brake": 1.0}])
def test_sliding_tyres_leave_two_dark_lines_where_the_wheels_were(track: Track, sliding: dict[str, float]) -> None:
    effects = after(snapshots(track, 40, **sliding))
    picture = picture_of(effects)
    assert effects.counts[0] > 10
    column = picture[:, 320 - 30, 0]
    dark = np.flatnonzero(column < GREY[0] - 8)
    assert np.abs(dark - 180).max() < 7.5 * ENLARGED
    assert np.diff(dark).max() > 8, "one for each wheel"
    assert (picture <= GREY).all()


def test_marks_fade_and_go(track: Track) -> None:
    driven = snapshots(track, 30, slip_angle=0.2)
    effects = after(driven)
    fresh = picture_of(effects).min()
    for tick in range(MARK_LIFE):
        effects.tick(snapshots(track, 1, x=1e4, step_count=31 + tick)[0])
        if tick == MARK_LIFE // 2:
            assert fresh < picture_of(effects).min() < GREY[0]
    assert effects.counts[0] == 0
    assert (picture_of(effects) == GREY).all()


def test_dust_rises_beside_the_road_and_settles(track: Track) -> None:
    effects = after(snapshots(track, 20, surface=RUNOFF))
    assert effects.counts[1] > 5
    picture = picture_of(effects)
    brown = picture[(picture != GREY).any(axis=2)]
    assert len(brown) > 100
    assert (brown[:, 0] >= brown[:, 2]).all()
    for tick in range(DUST_LIFE + 1):
        effects.tick(snapshots(track, 1, surface=ROAD, step_count=30 + tick)[0])
    assert effects.counts[1] == 0


def test_sparks_fly_at_the_wall(track: Track) -> None:
    effects = after(snapshots(track, 20, wall_contact=True))
    assert effects.counts[2] > 20
    assert (picture_of(effects)[..., 0] > 220).sum() > 20
    assert after(snapshots(track, 20, wall_contact=True, speed=1.0, vx=1.0)).counts[2] == 0


def test_ghosts_leave_nothing(track: Track) -> None:
    driven = snapshots(track, 40, ghost=True, slip_angle=0.3, surface=RUNOFF, wall_contact=True)
    assert after(driven).counts == (0, 0, 0)


def test_the_same_ticks_give_the_same_picture(track: Track) -> None:
    driven = snapshots(track, 40, cars=3, slip_angle=0.3, surface=RUNOFF, wall_contact=True)
    again = after(driven)
    again.clear()
    for snapshot in driven:
        again.tick(snapshot)
    np.testing.assert_array_equal(picture_of(after(driven), 0.5), picture_of(again, 0.5))


def test_a_new_episode_and_another_track_clear_everything(track: Track) -> None:
    driven = snapshots(track, 40, slip_angle=0.3, surface=RUNOFF, wall_contact=True)
    effects = after(driven)
    effects.tick(snapshots(track, 1)[0])
    assert effects.counts == (0, 0, 0)
    effects = after(driven)
    effects.tick(snapshots(load_circuit("track-03"), 1, step_count=41)[0])
    assert effects.counts == (0, 0, 0)


def test_a_car_that_was_put_elsewhere_draws_no_line_to_there(track: Track) -> None:
    effects = Effects()
    for number, snapshot in enumerate(snapshots(track, 60, cars=2, slip_angle=0.3)):
        if number >= 30:
            snapshot.cars["y"][1] += 400.0
            snapshot.cars["step_count"][1] -= 30
        effects.tick(snapshot)
    rows = effects.marks.rows
    assert len(rows) > 40
    assert np.abs(rows[:, 3] - rows[:, 1]).max() < 1.0


def test_there_are_never_more_than_so_many(track: Track) -> None:
    effects = after(snapshots(track, 300, cars=64, slip_angle=0.3, surface=RUNOFF, wall_contact=True))
    marks, puffs, sparks = effects.counts
    assert 0 < marks <= MARKS
    assert 0 < puffs <= PUFFS
    assert 0 < sparks <= SPARKS


def test_dust_moves_evenly_between_ticks(track: Track) -> None:
    effects = after(snapshots(track, 20, surface=RUNOFF))
    early, late = (picture_of(effects, share) for share in (0.0, 1.0))
    middle = picture_of(effects, 0.5)
    assert (early != late).any()
    assert np.abs(middle - early).mean() <= np.abs(late - early).mean() * 1.2
