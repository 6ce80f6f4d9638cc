"""The world in a picture: cars are where the state says, and what is asked for is drawn."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pygame
import pytest

from racer_env.engine import CAR, Driver, Simulation, Start, Track, load_circuit
from racer_viewer.render.camera import Mode
from racer_viewer.render.car import ENLARGED, REACH
from racer_viewer.render.scene import Scene, SceneOptions
from racer_viewer.snapshot import CarStyle, Snapshot
from racer_viewer.ui.theme import Theme

SIZE = (1280, 720)
RED, BLUE, GREEN = (226, 62, 44), (58, 134, 255), (46, 196, 120)
BARE = SceneOptions(rays=False, gates=False, names=False)


@pytest.fixture(scope="module")
def track() -> Track:
    return load_circuit("track-01")


def snapshot_of(track: Track, *cars: dict[str, Any], ghosts: tuple[int, ...] = (), focus: int = 0) -> Snapshot:
    """Cars near the start, each with these values besides."""
    x, y, heading = track.start
    rows = np.zeros(len(cars), CAR)
    rows["heading"], rows["rays"] = heading, 200.0
    for row, values in zip(rows, cars, strict=True):
        row["x"], row["y"] = x + 80.0 + values.pop("ahead", 0.0), y
        for name, value in values.items():
            row[name] = value
    colours = (RED, BLUE, GREEN)
    looks = tuple(CarStyle(f"car {number}", colours[number % 3], number in ghosts) for number in range(len(cars)))
    return Snapshot(track, rows, looks, focus)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(Theme(), patient=True)


@pytest.fixture
def draw(scene: Scene) -> Callable[..., np.ndarray]:
    def drawn(
        snapshot: Snapshot, options: SceneOptions = BARE, size: tuple[int, int] = SIZE, ticks: int = 1
    ) -> np.ndarray:
        surface = pygame.Surface(size, depth=32)
        for _ in range(ticks):
            scene.tick(snapshot)
        scene.draw(surface, snapshot, snapshot, 1.0, options)
        return pygame.surfarray.array3d(surface).swapaxes(0, 1).astype(int)

    return drawn


def places_of(picture: np.ndarray, colour: tuple[int, int, int], tolerance: int = 24) -> np.ndarray:
    """Return the centre of the pixels of a colour as x, y."""
    return np.argwhere((np.abs(picture - colour) <= tolerance).all(axis=2))[:, ::-1]


@pytest.mark.parametrize("size", [(960, 540), (1280, 720), (2000, 900)])
def test_cars_are_where_the_state_says(
    track: Track, scene: Scene, draw: Callable[..., np.ndarray], size: tuple[int, int]
) -> None:
    picture = draw(snapshot_of(track, {}, {"ahead": 14.0}, {"ahead": -20.0}), size=size)
    scale = scene.camera.view.scale
    for number, colour in enumerate((BLUE, GREEN), start=1):
        x, y = scene.car_on_screen(number)
        body = np.median(places_of(picture, colour), axis=0)
        np.testing.assert_allclose(body, (x, y), atol=1.3 * scale)
    assert scene.car_on_screen(0) == pytest.approx((size[0] / 2, size[1] / 2))
    red = places_of(picture, RED)
    assert (np.abs(red - np.array(size) / 2).max(axis=1) < 4.0 * scale).sum() > 40
    assert scene.car_on_screen(1)[0] - scene.car_on_screen(0)[0] == pytest.approx(14.0 * scale)


def test_the_followed_car_is_on_top(track: Track, draw: Callable[..., np.ndarray]) -> None:
    for focus, colour, other in ((0, RED, BLUE), (1, BLUE, RED)):
        picture = draw(snapshot_of(track, {}, {}, focus=focus), ticks=40)
        middle = picture[330:390, 610:670]
        assert len(places_of(middle, colour)) > 5 * max(1, len(places_of(middle, other, 10)))


def test_a_ghost_is_see_through(track: Track, draw: Callable[..., np.ndarray]) -> None:
    solid = draw(snapshot_of(track, {}, {"ahead": 14.0}))
    faint = draw(snapshot_of(track, {}, {"ahead": 14.0}, ghosts=(1,)))
    body = places_of(solid, BLUE)
    assert len(body) > 40
    assert len(places_of(faint, BLUE)) == 0
    x, y = np.median(body, axis=0).astype(int)
    ground = draw(snapshot_of(track, {}))[y, x]
    assert ground[2] < faint[y, x][2] < solid[y, x][2]


@pytest.mark.parametrize("number", [0, 1])
def test_front_wheels_steer_and_brakes_light_up(track: Track, draw: Callable[..., np.ndarray], number: int) -> None:
    plain: list[dict[str, Any]] = [{}, {"ahead": 14.0}]
    before = draw(snapshot_of(track, *(dict(car) for car in plain)))
    for change in ({"steer": 1.0}, {"brake": 1.0}):
        cars = [dict(car) for car in plain]
        cars[number].update(change)
        changed = draw(snapshot_of(track, *cars))
        there = np.argwhere((changed != before).any(axis=2))[:, ::-1]
        assert len(there) >= 8
        middle = (640 + 14.0 * 6.5 * number, 360)
        assert (np.abs(there - middle) < REACH * ENLARGED * 6.5).all()


def test_rays_gates_and_names_are_drawn_when_asked_for(track: Track, draw: Callable[..., np.ndarray]) -> None:
    snapshot = snapshot_of(track, {"rays": 40.0}, {"ahead": 20.0})
    bare = draw(snapshot)
    for name in ("rays", "gates", "names"):
        changed = (draw(snapshot, replace(BARE, **{name: True})) != bare).any(axis=2)
        assert 200 < changed.sum() < 60_000, name
    np.testing.assert_array_equal(draw(snapshot), bare)


def test_a_ray_ends_with_a_dot_and_its_length_where_it_meets_the_wall(
    track: Track, scene: Scene, draw: Callable[..., np.ndarray]
) -> None:
    lengths = np.linspace(30.0, 45.0, 9)
    snapshot = snapshot_of(track, {"rays": lengths, "heading": 0.0})
    changed = (draw(snapshot, replace(BARE, rays=True)) != draw(snapshot)).any(axis=2)
    for length, angle in zip(lengths, np.linspace(-math.pi / 2, math.pi / 2, 9), strict=True):
        x = round(640 + length * 6.5 * math.cos(angle))
        y = round(360 - length * 6.5 * math.sin(angle))
        assert changed[y - 2 : y + 3, x - 2 : x + 3].all()
        beyond = round(x + 16 * math.cos(angle)), round(y - 16 * math.sin(angle))
        assert changed[beyond[1] - 4 : beyond[1] + 5, beyond[0] - 5 : beyond[0] + 6].mean() > 0.9


def test_lengths_of_rays_stay_in_the_window(track: Track, draw: Callable[..., np.ndarray]) -> None:
    snapshot = snapshot_of(track, {"rays": 150.0, "heading": math.pi / 4})
    with_rays, bare = draw(snapshot, replace(BARE, rays=True)), draw(snapshot)
    plates = (with_rays < bare - 20).all(axis=2)
    assert plates[8:30, :].any() or plates[-30:-8, :].any()
    assert not plates[:4].any()
    assert not plates[-4:].any()


def test_the_next_gate_stands_out(track: Track, draw: Callable[..., np.ndarray]) -> None:
    accent = Theme().palette.accent
    options = replace(BARE, gates=True)
    here = [places_of(draw(snapshot_of(track, {"checkpoint": gate}), options), accent, 10) for gate in (0, 1, 20)]
    assert len(here[0]) > 100
    assert len(here[1]) > 100
    assert np.median(here[0][:, 0]) < np.median(here[1][:, 0]), "gate 2 is further along than gate 1"
    assert len(here[2]) == 0, "gate 21 is not in the picture"


def test_a_name_covers_no_car(track: Track, scene: Scene, draw: Callable[..., np.ndarray]) -> None:
    snapshot = snapshot_of(track, {}, {"ahead": 9.0}, {"ahead": 18.0})
    bare, named = draw(snapshot), draw(snapshot, replace(BARE, names=True))
    for colour in (RED, BLUE, GREEN):
        body = places_of(bare, colour, 12)
        near = body[np.abs(body - (640, 360)).max(axis=1) < 200]
        np.testing.assert_array_equal(named[near[:, 1], near[:, 0]], bare[near[:, 1], near[:, 0]])


def test_between_two_ticks_the_car_is_between_its_places(track: Track, scene: Scene) -> None:
    simulation, driver = Simulation(track, 2, start=Start(arc=(0.0, 0.05), speed=(60.0, 60.0))), Driver(track)
    surface = pygame.Surface(SIZE, depth=32)
    before = after = None
    for _ in range(30):
        simulation.step(driver.act(simulation.cars))
        before, after = (
            after,
            Snapshot(track, np.array(simulation.cars, CAR), (CarStyle("a", RED), CarStyle("b", BLUE))),
        )
        scene.tick(after)
    assert before is not None
    assert after is not None
    worlds = []
    for share in (0.0, 0.5, 1.0):
        scene.draw(surface, before, after, share, BARE)
        worlds.append(scene.camera.view.to_world(*scene.car_on_screen(1)))
    np.testing.assert_allclose(worlds[0], (before.cars["x"][1], before.cars["y"][1]))
    np.testing.assert_allclose(worlds[2], (after.cars["x"][1], after.cars["y"][1]))
    np.testing.assert_allclose(worlds[1], np.mean([worlds[0], worlds[2]], axis=0))


def test_cars_can_still_be_seen_when_the_whole_track_is(
    track: Track, scene: Scene, draw: Callable[..., np.ndarray]
) -> None:
    snapshot = snapshot_of(track, {}, {"ahead": 60.0})
    draw(snapshot)
    scene.camera.mode = Mode.WHOLE
    try:
        picture = draw(snapshot, ticks=40)
        assert scene.camera.view.scale < 2.5
        assert len(places_of(picture, BLUE)) > 12
        x, y = scene.car_on_screen(1)
        np.testing.assert_allclose(np.median(places_of(picture, BLUE), axis=0), (x, y), atol=6.0)
    finally:
        scene.camera.mode = Mode.FOLLOW
        draw(snapshot, ticks=40)


def test_hundreds_of_cars_are_drawn_each_in_its_colour(track: Track, draw: Callable[..., np.ndarray]) -> None:
    cars = [{"ahead": 6.0 * (k % 20) - 60.0, "y": track.start[1] + 5.0 * (k // 20) - 30.0} for k in range(240)]
    picture = draw(snapshot_of(track, *cars))
    for colour in (RED, BLUE, GREEN):
        assert len(places_of(picture, colour)) > 2000


def test_another_track_is_another_picture(track: Track, scene: Scene, draw: Callable[..., np.ndarray]) -> None:
    other = load_circuit("track-03")
    first, second = draw(snapshot_of(track, {})), draw(snapshot_of(other, {}))
    assert (first != second).mean() > 0.3
    np.testing.assert_array_equal(draw(snapshot_of(track, {})), first)


def test_nothing_drawn_yet_is_said() -> None:
    with pytest.raises(LookupError):
        Scene(Theme()).car_on_screen(0)


def test_a_window_of_another_height_gets_ground_of_its_own_once_it_keeps_that(track: Track) -> None:
    scene, snapshot = Scene(Theme()), snapshot_of(track, {})
    for height, frames in ((720, 3), (800, 3), (900, 60)):
        surface = pygame.Surface((1280, height), depth=32)
        for _ in range(frames):
            scene.draw(surface, snapshot, snapshot, 1.0, BARE)
        assert scene.ground is not None
        expected = {720: 6.5, 800: 6.5, 900: 6.5 * 900 / 720}[height]
        assert scene.ground.base == pytest.approx(expected)
    assert scene.camera.view.scale == pytest.approx(scene.ground.base)


@pytest.mark.parametrize("size", [(640, 360), (1280, 720), (1920, 1080)])
def test_ground_that_turns_with_the_car_shows_the_same_world(track: Track, size: tuple[int, int]) -> None:
    x, y, heading = track.start
    here = snapshot_of(track, {"x": x, "y": y, "heading": heading + 0.7})
    pictures = []
    for mode in (Mode.FOLLOW, Mode.TURN):
        scene, surface = Scene(Theme(), patient=True), pygame.Surface(size, depth=32)
        scene.camera.mode = mode
        scene.tick(here)
        scene.draw(surface, here, here, 1.0, BARE)
        smooth = pygame.transform.box_blur(surface, max(2, size[1] // 180))
        pictures.append((scene.camera.view, pygame.surfarray.array3d(smooth).astype(int)))
    (north_up, expected), (turned, seen) = pictures
    assert turned.turn == pytest.approx(math.pi / 2.0 - heading - 0.7)
    differences = []
    for dx, dy in np.random.default_rng(0).uniform(-28.0, 28.0, (200, 2)).tolist():
        if math.hypot(dx, dy) > 12.0:
            places = [tuple(map(round, view.to_screen(x + dx, y + dy))) for view in (north_up, turned)]
            differences.append(np.abs(expected[places[0]] - seen[places[1]]).max())
    assert np.median(differences) <= 6
    assert np.percentile(differences, 90) < 30, "only at edges of the road"


def test_turned_ground_is_the_same_in_a_part_of_a_window(track: Track) -> None:
    here = snapshot_of(track, {"heading": 1.0})
    window, size = pygame.Surface((800, 400), depth=32), (640, 360)
    part = window.subsurface((130, 20, *size))
    whole = pygame.Surface(size, depth=32)
    for surface in (part, whole):
        scene = Scene(Theme(), patient=True)
        scene.camera.mode = Mode.TURN
        scene.tick(here)
        scene.draw(surface, here, here, 1.0, BARE)
    assert (pygame.surfarray.array3d(part) == pygame.surfarray.array3d(whole)).all()
    assert not pygame.surfarray.array3d(window.subsurface((0, 0, 130, 400))).any()


def test_turned_ground_of_a_car_that_drives_is_that_of_its_place(track: Track) -> None:
    """The board of tiles is used again and again, also after a jump and far from the origin."""
    scene = Scene(Theme(), patient=True)
    scene.camera.mode = Mode.TURN
    for ahead, heading in ((0.0, 0.3), (150.0, 1.7), (-400.0, 3.0), (-380.0, 3.2)):
        here = snapshot_of(track, {"ahead": ahead, "heading": heading})
        fresh = Scene(Theme(), patient=True)
        fresh.camera.mode = Mode.TURN
        pictures = []
        for each in (scene, fresh):
            surface = pygame.Surface(SIZE, depth=32)
            for _ in range(200):
                each.tick(here)
            each.draw(surface, here, here, 1.0, BARE)
            pictures.append(pygame.surfarray.array3d(surface).astype(int))
        assert np.abs(pictures[0] - pictures[1]).mean() < 0.5


def test_cars_and_rays_turn_with_the_view(track: Track) -> None:
    here = snapshot_of(track, {"heading": 1.0}, {"heading": 1.0, "ahead": 12.0})
    scene, surface = Scene(Theme(), patient=True), pygame.Surface(SIZE, depth=32)
    scene.camera.mode = Mode.TURN
    scene.tick(here)
    scene.draw(surface, here, here, 1.0, BARE)
    for number, colour in ((0, RED), (1, BLUE)):
        px, py = scene.car_on_screen(number)
        area = pygame.Rect(round(px) - 50, round(py) - 50, 100, 100)
        pixels = pygame.surfarray.array3d(surface.subsurface(area)).astype(int)
        body = (np.abs(pixels - colour) < 40).all(axis=2)
        across, down = (np.ptp(np.flatnonzero(body.any(axis=axis))) for axis in (1, 0))
        assert down > 1.4 * across, "the car points up or down the picture"


def test_ground_at_half_resolution_shows_the_same_world_under_sharp_cars(track: Track) -> None:
    snapshot = snapshot_of(track, {})
    pictures = {}
    for resolution in ("full", "half"):
        scene = Scene(Theme())
        scene.resolution = resolution
        pictures[resolution] = drawn_when_ready(scene, snapshot, SIZE)
    full, half = pictures["full"], pictures["half"]
    assert (half[::2, ::2] == half[1::2, 1::2]).all(axis=2).mean() > 0.97, "the ground has pixels of 2×2"
    blurred = [picture.reshape(90, 8, 160, 8, 3).mean(axis=(1, 3)) for picture in (full, half)]
    assert np.abs(blurred[0] - blurred[1]).mean() < 3.0
    body = np.abs(full - RED).max(axis=2) < 12
    assert body.sum() > 50
    assert np.abs(half[body] - full[body]).max() < 3


@pytest.mark.slow
@pytest.mark.parametrize("mode", [Mode.FOLLOW, Mode.TURN])
@pytest.mark.parametrize("size", [(960, 540), (1920, 1080), (2560, 1440)])
def test_terrain_is_sharp_within_two_seconds_at_every_size(track: Track, size: tuple[int, int], mode: Mode) -> None:
    snapshot, scene = snapshot_of(track, {}), Scene(Theme())
    scene.camera.mode = mode
    for _ in range(40):
        scene.tick(snapshot)
    soon = drawn_when_ready(scene, snapshot, size, frames=120, ahead=3)
    assert scene.ground is not None
    assert scene.ground.base == pytest.approx(6.5 * size[1] / 720)
    assert scene.ground.complete
    assert (drawn_when_ready(scene, snapshot, size) == soon).all(), "120 frames with time for three tiles are enough"


def test_a_film_has_ground_at_full_resolution_whatever_is_set(track: Track) -> None:
    pictures = []
    for resolution in ("auto", "half"):
        scene = Scene(Theme(), patient=True)
        scene.resolution = resolution
        pictures.append(drawn_when_ready(scene, snapshot_of(track, {}), SIZE))
    assert (pictures[0] == pictures[1]).all()


def drawn_when_ready(
    scene: Scene, snapshot: Snapshot, size: tuple[int, int], frames: int = 400, ahead: int = 4
) -> np.ndarray:
    """Draw frames, each followed by preparing some ground, until all of it is there; return the last picture."""
    surface = pygame.Surface(size, depth=32)
    for _ in range(frames):
        scene.draw(surface, snapshot, snapshot, 1.0, BARE)
        if not all(scene.draw_ahead() for _ in range(ahead)):
            break
    scene.draw(surface, snapshot, snapshot, 1.0, BARE)
    return pygame.surfarray.array3d(surface).swapaxes(0, 1).astype(int)
