"""The camera: what it keeps in the picture, and how smoothly."""

import math

import numpy as np
import pytest

from racer_env.engine import CAR, Driver, Simulation, Track, load_circuit
from racer_viewer.render.camera import FAST_SCALE, GLIDE_TICKS, REST_SCALE, Camera, Insets, Mode
from racer_viewer.snapshot import CarStyle, Snapshot, cars_between

SIZE = (1280, 720)
LOOKS = (CarStyle("one", (200, 40, 40)),)


@pytest.fixture(scope="module")
def track() -> Track:
    return load_circuit("track-01")


def snapshot_of(track: Track, **values: float) -> Snapshot:
    cars = np.zeros(1, CAR)
    for name, value in values.items():
        cars[name] = value
    return Snapshot(track, cars, LOOKS)


def drive(track: Track, ticks: int) -> list[Snapshot]:
    simulation, driver = Simulation(track), Driver(track)
    snapshots = []
    for _ in range(ticks):
        simulation.step(driver.act(simulation.cars))
        snapshots.append(Snapshot(track, np.array(simulation.cars, CAR), LOOKS))
    return snapshots


def ticked(camera: Camera, snapshot: Snapshot, ticks: int) -> Camera:
    for _ in range(ticks):
        camera.tick(snapshot)
    return camera


def test_a_point_goes_to_the_screen_and_back(track: Track) -> None:
    camera = ticked(Camera(), snapshot_of(track, x=40.0, y=-30.0), 1)
    view = camera.look(SIZE)
    assert view.to_screen(40.0, -30.0) == pytest.approx((640, 360))
    assert view.to_screen(40.0, -29.0)[1] < 360, "y is up on the track and down on the screen"
    assert view.to_world(*view.to_screen(12.0, 7.0)) == pytest.approx((12.0, 7.0))
    points = np.array([[12.0, 7.0], [40.0, -30.0]])
    np.testing.assert_allclose(view.points_to_screen(points), [view.to_screen(*point) for point in points.tolist()])


def test_a_fast_car_is_seen_from_farther_away_and_has_room_ahead(track: Track) -> None:
    slow = ticked(Camera(), snapshot_of(track), 1).look(SIZE)
    fast = ticked(Camera(), snapshot_of(track, vx=160.0, speed=160.0), 1).look(SIZE)
    assert slow.scale == pytest.approx(REST_SCALE)
    assert fast.scale == pytest.approx(FAST_SCALE)
    assert fast.to_screen(0.0, 0.0)[0] == pytest.approx(0.25 * SIZE[0])


def test_where_it_does_not_zoom_every_car_is_looked_at_as_a_fast_one(track: Track) -> None:
    camera = Camera()
    camera.zooms = False
    for speed in (0.0, 160.0, 30.0):
        assert ticked(camera, snapshot_of(track, speed=speed), 60).look(SIZE).scale == pytest.approx(FAST_SCALE)


def test_no_panel_lies_on_the_followed_car(track: Track) -> None:
    for direction in (-1.0, 1.0):
        camera = ticked(Camera(), snapshot_of(track, vx=160.0 * direction, speed=160.0), 1)
        camera.insets = Insets(left=248, right=248)
        assert 248 < camera.look((720, 600)).to_screen(0.0, 0.0)[0] < 720 - 248
        wide = camera.look(SIZE).to_screen(0.0, 0.0)[0]
        assert wide == pytest.approx((0.5 - 0.25 * direction) * SIZE[0]), "where there is room, it looks ahead as ever"


def test_the_followed_car_drives_beside_a_menu(track: Track) -> None:
    camera = ticked(Camera(), snapshot_of(track, vx=160.0, speed=160.0), 1)
    camera.insets = Insets(left=348)
    assert camera.look(SIZE).to_screen(0.0, 0.0)[0] == pytest.approx(348 + 0.05 * SIZE[0])
    camera = ticked(Camera(), snapshot_of(track, vx=-160.0, speed=160.0), 1)
    camera.insets = Insets(left=348)
    assert camera.look(SIZE).to_screen(0.0, 0.0)[0] == pytest.approx(0.75 * SIZE[0]), "with all of its room ahead"


def test_a_larger_window_shows_the_same_larger(track: Track) -> None:
    camera = ticked(Camera(), snapshot_of(track, vx=90.0, speed=90.0), 1)
    small, large = camera.look((640, 360)), camera.look((2560, 1440))
    assert (small.x, small.y) == pytest.approx((large.x, large.y))
    assert large.scale == pytest.approx(4.0 * small.scale)


def test_the_followed_car_moves_evenly_between_ticks_and_stays_in_the_picture(track: Track) -> None:
    camera, before, places = Camera(), None, []
    for snapshot in drive(track, 240):
        camera.tick(snapshot)
        for share in (0.25, 0.5, 0.75, 1.0):
            car = cars_between(before or snapshot, snapshot, share)[0]
            view = camera.look(SIZE, share, (float(car["x"]), float(car["y"])))
            places.append(view.to_screen(float(car["x"]), float(car["y"])))
        before = snapshot
    steps = np.diff(np.array(places), axis=0)
    assert np.abs(steps).max() < 3.0
    assert np.abs(np.diff(steps, axis=0)).max() < 1.0, "no jitter"
    assert (np.array(places) > (150, 100)).all()
    assert (np.array(places) < (1130, 620)).all()


def test_what_was_not_driven_is_cut_and_not_glided(track: Track) -> None:
    fast = snapshot_of(track, vx=160.0, speed=160.0, step_count=500)
    camera = ticked(Camera(), fast, 50)
    restarted = snapshot_of(track, x=300.0, y=80.0, step_count=0)
    camera.tick(restarted)
    fresh = ticked(Camera(), restarted, 1)
    for share in (0.0, 0.5, 1.0):
        assert camera.look(SIZE, share) == fresh.look(SIZE, share)


def test_the_whole_track_fits_between_panels(track: Track) -> None:
    camera = Camera()
    camera.mode, camera.insets = Mode.WHOLE, Insets(left=200, bottom=120)
    camera.look(SIZE)
    view = ticked(camera, snapshot_of(track), GLIDE_TICKS + 1).look(SIZE)
    places = view.points_to_screen(track.outer)
    assert (places > (200, 0)).all()
    assert (places < (1280, 600)).all()
    assert np.ptp(places[:, 0]) > 900 or np.ptp(places[:, 1]) > 450, "and not smaller than it must be"


def test_a_free_view_starts_where_the_view_was_and_is_dragged_with_the_ground(track: Track) -> None:
    camera = ticked(Camera(), snapshot_of(track, x=20.0), 1)
    before = camera.look(SIZE)
    camera.mode = Mode.FREE
    assert camera.look(SIZE) == before
    held = before.to_world(500, 300)
    camera.drag(-120, 45)
    assert camera.look(SIZE).to_screen(*held) == pytest.approx((380, 345))
    ticked(camera, snapshot_of(track, x=100.0, step_count=1), 20)
    assert camera.look(SIZE).to_screen(*held) == pytest.approx((380, 345)), "the car drives on without it"


@pytest.mark.parametrize("factor", [1.5, 0.5])
def test_a_zoom_keeps_the_point_under_the_pointer_at_every_moment(track: Track, factor: float) -> None:
    camera = ticked(Camera(), snapshot_of(track), 1)
    scale = camera.look(SIZE).scale
    camera.mode = Mode.FREE
    pointed = camera.look(SIZE).to_world(900, 200)
    camera.zoom(factor, (900, 200))
    for tick in range(60):
        camera.tick(snapshot_of(track, step_count=tick))
        for share in (0.3, 1.0):
            assert camera.look(SIZE, share).to_screen(*pointed) == pytest.approx((900, 200), abs=0.01)
    assert camera.look(SIZE).scale == pytest.approx(scale * factor, rel=1e-3)


def test_from_one_way_of_looking_to_another_it_glides(track: Track) -> None:
    here = snapshot_of(track, x=-150.0, y=100.0)
    camera = ticked(Camera(), here, 1)
    scales = [camera.look(SIZE).scale]
    camera.mode = Mode.WHOLE
    for _ in range(GLIDE_TICKS + 2):
        camera.tick(here)
        scales.append(camera.look(SIZE).scale)
    assert (np.diff(scales) <= 1e-9).all()
    assert max(-np.diff(np.log(scales))) < 0.15
    assert scales[-1] < scales[0] / 2
    assert scales[-1] == scales[-2]


def test_a_free_view_does_not_get_lost(track: Track) -> None:
    camera = ticked(Camera(), snapshot_of(track), 1)
    camera.look(SIZE)
    camera.mode = Mode.FREE
    for _ in range(100):
        camera.drag(-5000, 0)
    camera.zoom(1e9, (640, 360))
    view = ticked(camera, snapshot_of(track, step_count=1), 60).look(SIZE)
    assert view.x < track.outer[:, 0].max() + 500.0
    assert math.isfinite(view.scale)
    assert view.scale <= 41.0


def test_a_view_that_turns_has_the_car_below_the_middle_and_pointing_up(track: Track) -> None:
    for heading in (0.0, 1.0, -2.5):
        moving = {"vx": 160.0 * math.cos(heading), "vy": 160.0 * math.sin(heading), "speed": 160.0}
        camera = Camera()
        camera.mode = Mode.TURN
        view = ticked(camera, snapshot_of(track, x=50.0, y=20.0, heading=heading, **moving), 1).look(SIZE)
        x, y = view.to_screen(50.0, 20.0)
        assert (x, y) == pytest.approx((640.0, (0.5 + 0.26) * 720.0))
        ahead = view.to_screen(50.0 + 10.0 * math.cos(heading), 20.0 + 10.0 * math.sin(heading))
        assert ahead == pytest.approx((x, y - 10.0 * view.scale))
        assert view.to_world(*view.to_screen(12.0, 7.0)) == pytest.approx((12.0, 7.0))
        points = np.array([[12.0, 7.0], [40.0, -30.0]])
        np.testing.assert_allclose(view.points_to_screen(points), [view.to_screen(*point) for point in points.tolist()])


def test_a_view_turns_smoothly_with_the_car_also_through_south(track: Track) -> None:
    camera, turns = Camera(), []
    camera.mode = Mode.TURN
    for snapshot in drive(track, 900):
        camera.tick(snapshot)
        for share in (0.5, 1.0):
            turns.append(camera.look(SIZE, share).turn)
    steps = (np.diff(turns) + math.pi) % (2.0 * math.pi) - math.pi
    assert np.ptp(np.unwrap(turns)) > 2.0 * math.pi, "a lap and more"
    assert np.abs(steps).max() < 0.05
    assert np.abs(np.diff(steps)).max() < 0.006, "it never jerks"


def test_the_view_turns_back_when_another_camera_is_chosen(track: Track) -> None:
    here = snapshot_of(track, heading=2.0)
    camera = Camera()
    camera.mode = Mode.TURN
    ticked(camera, here, 1).look(SIZE)
    for mode in (Mode.WHOLE, Mode.TURN, Mode.FREE, Mode.TURN, Mode.FOLLOW):
        before = camera.look(SIZE)
        camera.mode = mode
        assert camera.look(SIZE, 0.0).turn == pytest.approx(before.turn, abs=0.02), "it glides"
        for _ in range(GLIDE_TICKS + 1):
            ticked(camera, here, 1).look(SIZE)
        assert camera.look(SIZE).turn == (math.pi / 2.0 - 2.0 if mode is Mode.TURN else 0.0)
