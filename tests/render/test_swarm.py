"""The swarm in a picture: who is drawn, where, in which colour, and what stays behind them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pygame
import pytest

from racer_env.engine import ANYWHERE, Driver, Simulation, Track, load_circuit
from racer_viewer.render.camera import Insets
from racer_viewer.render.swarm import SwarmOptions, SwarmScene
from racer_viewer.render.swarm_backdrop import REFRESHED, Heat
from racer_viewer.render.swarm_legend import Legend, quality_colours
from racer_viewer.render.swarm_motion import MARK_LIFE, MARKS, MAX_GLIDE, RECENT, TRAIL, SwarmMotion
from racer_viewer.run_history import SWARM_CAR, Swarm
from racer_viewer.ui.theme import COLOUR_BLIND, ORDINARY, Palette, Theme

SIZE = (640, 360)
CARS = SwarmOptions(heat=False, marks=False, trails=False, legend=False)
TRAILS = SwarmOptions(heat=False, marks=False, legend=False)
ENDS = SwarmOptions(heat=False, trails=False, legend=False)
HEAT = SwarmOptions(marks=False, trails=False, legend=False)
LEGEND = SwarmOptions(heat=False, marks=False, trails=False)

Draw = Callable[..., np.ndarray]


@pytest.fixture(scope="module")
def track() -> Track:
    return load_circuit("track-01")


@pytest.fixture(scope="module")
def prepared(track: Track) -> SwarmScene:
    scene = SwarmScene(Theme(), patient=True)
    scene.prepare(track, SIZE[1])
    return scene


@pytest.fixture
def scene(prepared: SwarmScene) -> SwarmScene:
    prepared.reset()
    prepared.camera.insets = Insets()
    prepared.use(Theme())
    return prepared


@pytest.fixture
def draw(scene: SwarmScene, track: Track) -> Draw:
    def drawn(options: SwarmOptions = CARS, number: int = 0) -> np.ndarray:
        surface = pygame.Surface(SIZE, depth=32)
        scene.draw(surface, track, options, number)
        return pygame.surfarray.array3d(surface).swapaxes(0, 1).astype(int)

    return drawn


def swarm(tick: int, *cars: dict[str, Any]) -> Swarm:
    """Cars on the straight at the top of the circuit, heading right, each with these values besides."""
    rows = np.zeros(len(cars), SWARM_CAR)
    rows["y"], rows["speed"], rows["quality"] = 100.0, 60.0, 0.5
    for number, values in enumerate(cars):
        for name, value in values.items():
            rows[name][number] = value
    return Swarm(tick, rows)


def show(scene: SwarmScene, shown: Swarm) -> None:
    """Tick until all cars have reached their state."""
    for _ in range(MAX_GLIDE):
        scene.tick(shown)


def around(picture: np.ndarray, scene: SwarmScene, x: float, y: float = 100.0, reach: int = 7) -> np.ndarray:
    """Return the pixels near a position of the circuit."""
    column, row = (round(at) for at in scene.camera.view.to_screen(x, y))
    return picture[max(0, row - reach) : row + reach + 1, max(0, column - reach) : column + reach + 1]


def differing(picture: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Places of pixels that differ, as x, y."""
    return np.argwhere((picture != other).any(axis=2))[:, ::-1]


def test_cars_are_where_the_state_says_and_nowhere_else(scene: SwarmScene, draw: Draw) -> None:
    empty = draw()
    show(scene, swarm(1, {"x": -100.0, "quality": 0.9}, {"x": 50.0, "quality": 0.1}))
    places = differing(draw(), empty)
    left, right = (np.array(scene.camera.view.to_screen(x, 100.0)) for x in (-100.0, 50.0))
    near = [np.hypot(*(places - place).T) < 18.0 for place in (left, right)]
    assert all(each.sum() > 20 for each in near)
    assert (near[0] | near[1]).all()


@pytest.mark.parametrize("palette", [ORDINARY, COLOUR_BLIND])
def test_a_good_car_has_another_and_a_brighter_colour_than_a_bad_one(
    scene: SwarmScene, draw: Draw, palette: Palette
) -> None:
    scene.use(Theme(palette=palette))
    show(scene, swarm(1, {"x": -100.0, "quality": 1.0}, {"x": 0.0, "quality": 0.9}, {"x": 100.0, "quality": 0.0}))
    picture = draw()
    colours = quality_colours(palette).astype(int)
    good, bad = (around(picture, scene, x, reach=5).reshape(-1, 3) for x in (0.0, 100.0))
    assert np.abs(good - colours[round(0.9 * 31)]).sum(axis=1).min() < 60
    assert np.abs(bad - colours[0]).sum(axis=1).min() < 60
    assert good.max(axis=0).sum() > bad.max(axis=0).sum() + 100


@pytest.mark.parametrize("palette", [ORDINARY, COLOUR_BLIND])
def test_the_scale_of_colours_gets_brighter_step_by_step(palette: Palette) -> None:
    linear = (quality_colours(palette) / 255.0) ** 2.2
    lightness = (linear @ (0.2126, 0.7152, 0.0722)) ** (1.0 / 3.0)
    assert (np.diff(lightness) > 0.0).all()
    assert lightness[-1] > 1.8 * lightness[0]


def test_the_best_car_has_a_ring_and_keeps_it_unless_another_is_clearly_better(scene: SwarmScene, draw: Draw) -> None:
    def ringed(x: float) -> bool:
        return (around(draw(), scene, x, reach=14).min(axis=2) > 225).sum() > 12

    show(scene, swarm(1, {"x": -100.0, "quality": 0.6}, {"x": 50.0, "quality": 0.7}))
    assert (ringed(-100.0), ringed(50.0)) == (False, True)
    show(scene, swarm(2, {"x": -100.0, "quality": 0.72}, {"x": 50.0, "quality": 0.7}))
    assert (ringed(-100.0), ringed(50.0)) == (False, True)
    show(scene, swarm(3, {"x": -100.0, "quality": 0.9}, {"x": 50.0, "quality": 0.7}))
    assert (ringed(-100.0), ringed(50.0)) == (True, False)


def test_a_car_points_where_it_is_heading(scene: SwarmScene, draw: Draw) -> None:
    empty = draw()
    pictures = []
    for tick, heading in enumerate((0.0, math.pi / 2.0, math.pi)):
        show(scene, swarm(tick + 1, {"x": 0.0, "heading": heading}))
        pictures.append(differing(draw(), empty).mean(axis=0) - scene.camera.view.to_screen(0.0, 100.0))
        scene.reset()
    east, north, west = pictures
    assert east[0] < west[0], "the tail is wider than the tip"
    assert north[1] > (east[1] + west[1]) / 2.0


def test_cars_of_other_circuits_are_not_drawn(scene: SwarmScene, draw: Draw) -> None:
    empty = draw()
    show(scene, swarm(1, {"x": -100.0, "track": 1}, {"x": 50.0, "track": 2}))
    show(scene, swarm(2, {"x": -98.0, "track": 1}, {"x": 50.0, "track": 2, "episode": 1}))
    everything = SwarmOptions(legend=False)
    np.testing.assert_array_equal(draw(everything), empty)
    assert len(differing(draw(CARS, number=2), empty)) > 20


def test_a_crash_leaves_a_cross_where_the_episode_ended_which_fades_and_goes(scene: SwarmScene, draw: Draw) -> None:
    empty = draw()
    show(scene, swarm(1, {"x": -100.0, "speed": 0.0}))
    after = swarm(2, {"x": 150.0, "episode": 1})
    seen = []
    for _ in range(MARK_LIFE):
        scene.tick(after)
        seen.append(np.abs(around(draw(ENDS), scene, -100.0) - around(empty, scene, -100.0)).sum())
    assert seen[0] > 3000
    assert seen[0] > seen[MARK_LIFE // 4] > seen[MARK_LIFE // 2] > seen[MARK_LIFE * 7 // 8] > 0
    scene.tick(after)
    assert not np.abs(around(draw(ENDS), scene, -100.0) - around(empty, scene, -100.0)).any()


def test_a_time_that_was_up_is_no_crash(scene: SwarmScene, draw: Draw) -> None:
    def mark(speed: float) -> int:
        scene.reset()
        show(scene, swarm(1, {"x": -100.0, "speed": speed}))
        show(scene, swarm(2, {"x": 150.0, "episode": 1}))
        return len(differing(around(draw(ENDS), scene, -100.0), around(draw(CARS), scene, -100.0)))

    assert 0 < mark(80.0) < mark(0.0)


def test_cars_that_scrape_along_walls_are_counted_by_circuit() -> None:
    motion = SwarmMotion()
    motion.tick(swarm(1, {"wall_contact": 1}, {"wall_contact": 1, "track": 1}, {"wall_contact": 1}, {}))
    assert [motion.at_walls(number) for number in range(3)] == [2, 1, 0]
    motion.tick(swarm(2, {}, {"wall_contact": 1, "track": 1}, {}, {}))
    assert [motion.at_walls(number) for number in range(3)] == [0, 1, 0]


def test_crashes_of_the_last_seconds_are_counted_by_circuit() -> None:
    motion = SwarmMotion()
    motion.tick(swarm(1, {"speed": 0.0}, {"speed": 0.0, "track": 1}, {"speed": 90.0}, {}))
    motion.tick(swarm(9, {"episode": 1}, {"episode": 1, "track": 1}, {"episode": 1}, {}))
    assert [motion.crashes(number) for number in range(3)] == [1, 1, 0]
    for _ in range(RECENT):
        motion.tick(None)
    assert [motion.crashes(number) for number in range(3)] == [0, 0, 0]


def test_there_are_never_more_than_so_many_marks_and_the_newest_are_the_brightest() -> None:
    motion = SwarmMotion()
    for tick in range(20):
        motion.tick(swarm(tick, *({"x": float(tick), "episode": tick} for _ in range(50))))
    ages = motion.mark_ages()
    assert len(motion.marks) == MARKS
    assert (np.diff(ages) <= 0.0).all()
    assert ages[-1] < 0.01
    assert ages[0] > 0.9, "those that go next can hardly be seen"


def test_a_car_that_drove_glides_from_state_to_state() -> None:
    motion = SwarmMotion()
    motion.tick(swarm(0, {"x": 0.0}))
    seen = []
    for tick in range(1, 4):
        state = swarm(tick * 20, {"x": tick * 20.0})
        for _ in range(4):
            motion.tick(state)
            seen.append(float(motion.cars["x"][0]))
    assert np.diff(seen[4:]) == pytest.approx(5.0, abs=0.01)
    assert seen[-1] == 60.0


def test_between_two_states_a_car_follows_its_heading_around_a_corner() -> None:
    motion = SwarmMotion()
    motion.tick(swarm(0, {"x": 0.0, "y": 0.0}))
    motion.tick(None)
    stretches = motion.tick(swarm(30, {"x": 40.0, "y": 40.0, "heading": math.pi / 2.0}))
    stretches += motion.tick(None)
    places = np.concatenate([stretch.places[:, 0] for stretch in stretches if stretch.way.any()])
    from_circle = np.hypot(places[:, 0], places[:, 1] - 40.0) - 40.0
    assert len(places) > 40
    assert np.abs(from_circle).max() < 3.0


@pytest.mark.parametrize(
    "then", [{"x": 5.0, "episode": 1}, {"x": 5.0, "track": 1}, {"x": 90.0}, {"x": 5.0, "y": -100.0}]
)
def test_a_car_that_did_not_drive_there_is_put_there_at_once_without_a_trail(then: dict[str, float]) -> None:
    motion = SwarmMotion()
    for tick in range(12):
        motion.tick(swarm(tick, {"x": 2.0 * tick - 22.0}))
    assert motion.trail_lengths[0] > 20
    motion.tick(None)
    motion.tick(None)
    motion.tick(swarm(15, then))
    assert motion.cars["x"][0] == then["x"]
    assert motion.cars["y"][0] == then.get("y", 100.0)
    assert motion.trail_lengths[0] == 0


def test_no_trail_leads_across_a_new_episode(scene: SwarmScene, draw: Draw) -> None:
    for tick in range(30):
        scene.tick(swarm(tick, {"x": 2.0 * tick - 140.0}, {"x": 0.0, "y": -100.0}))
    trail = draw(TRAILS)
    assert len(differing(around(trail, scene, -105.0, reach=10), around(draw(), scene, -105.0, reach=10))) > 10
    for tick in range(30, 36):
        scene.tick(swarm(tick, {"x": 2.0 * tick, "episode": 1}, {"x": 0.0, "y": -100.0}))
    places = differing(draw(TRAILS), draw())
    left, right = (scene.camera.view.to_screen(x, 100.0)[0] for x in (59.0, 70.0))
    assert len(places) > 4
    assert (places[:, 0] >= left - 2).all()
    assert (places[:, 0] <= right + 2).all()


def test_a_trail_is_behind_a_car_and_fades_towards_its_end(scene: SwarmScene, draw: Draw) -> None:
    for tick in range(60):
        scene.tick(swarm(tick, {"x": 2.5 * tick - 140.0}, {"x": 0.0, "y": -100.0, "quality": 1.0}))
    light = np.abs(draw(TRAILS) - draw()).sum(axis=(0, 2))
    head = round(scene.camera.view.to_screen(2.5 * 59 - 140.0, 100.0)[0])
    assert not light[head + 2 :].any()
    near, far = light[head - 14 : head - 8].mean(), light[head - 30 : head - 24].mean()
    assert near > 1.3 * far > 0


def test_trails_have_a_limit() -> None:
    motion = SwarmMotion()
    for tick in range(300):
        motion.tick(swarm(tick, {"x": 2.5 * tick}, {"x": 0.1 * tick}))
    assert len(motion.trail) == TRAIL
    assert (motion.trail_lengths == TRAIL).all()


def test_the_same_swarm_again_is_nothing_new() -> None:
    motion = SwarmMotion()
    motion.tick(swarm(0, {"x": 0.0}))
    state = swarm(4, {"x": 4.0, "episode": 1})
    for _ in range(30):
        motion.tick(state)
        motion.tick(swarm(4, {"x": 4.0, "episode": 1}))
    assert len(motion.marks) == 1
    assert motion.cars["x"][0] == 4.0


def test_another_run_begins_anew() -> None:
    motion = SwarmMotion()
    for tick in range(100, 110):
        motion.tick(swarm(tick, {"x": 2.0 * tick}, {}))
    motion.tick(swarm(3, {"x": 0.0, "episode": 5}, {}))
    assert not len(motion.marks)
    assert not motion.trail_lengths.any()
    motion.tick(swarm(4, {"x": 1.0, "episode": 7}))
    assert not len(motion.marks)
    assert len(motion.cars) == 1


def test_heat_is_shown_below_the_cars_where_they_drove(scene: SwarmScene, draw: Draw) -> None:
    cold = draw()
    for lap in range(6):
        for tick in range(60):
            scene.tick(swarm(60 * lap + tick, {"x": 2.5 * tick - 140.0, "episode": lap, "track": 0}))
    scene.tick(swarm(400, {"x": 140.0, "episode": 9}))
    places = differing(draw(HEAT), cold)
    driven = [scene.camera.view.to_screen(x, 100.0) for x in (-140.0, 10.0)]
    warm = places[places[:, 0] < scene.camera.view.to_screen(100.0, 0.0)[0]]
    assert np.abs(warm[:, 1] - driven[0][1]).max() <= 8
    assert warm[:, 0].min() >= driven[0][0] - 8
    assert warm[:, 0].max() <= driven[1][0] + 8
    assert len(warm) > 300
    scene.reset()
    np.testing.assert_array_equal(draw(HEAT), cold)


def test_heat_is_coloured_in_the_time_after_a_picture_where_there_is_any(
    track: Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, surface, coloured = SwarmScene(Theme()), pygame.Surface(SIZE, depth=32), []
    scene.prepare(track, SIZE[1])
    layer = Heat.layer
    monkeypatch.setattr(Heat, "layer", lambda *given: coloured.append(given) or layer(*given))

    def draw_later() -> int:
        """Count how often heat was coloured for a picture."""
        for tick in range(2 * REFRESHED):
            scene.tick(swarm(scene.ticks, {"x": 2.0 * tick - 140.0, "episode": scene.ticks}))
        before = len(coloured)
        scene.draw(surface, track, HEAT)
        return len(coloured) - before

    assert draw_later() == draw_later() == 1, "nobody had time before"
    while scene.draw_ahead():
        pass
    assert draw_later() == 0
    assert [scene.draw_ahead() for _ in range(3)] == [True, True, False], "coloured, and laid on the ground"
    assert len(coloured) == 3


def test_a_car_that_changes_circuits_leaves_its_heat_where_it_was(scene: SwarmScene, draw: Draw) -> None:
    draw(number=1)
    for tick in range(20):
        scene.tick(swarm(tick, {"x": 2.5 * tick - 140.0}))
    for _ in range(4):
        scene.tick(None)
    scene.tick(swarm(24, {"x": -82.5}))
    scene.tick(swarm(25, {"x": 140.0, "y": -100.0, "track": 1, "episode": 1}))
    scene.tick(swarm(26, {"x": 138.0, "y": -100.0, "track": 1, "episode": 1}))
    first, second = (scene.circuits[number].heat for number in (0, 1))
    assert first.grid.sum() == pytest.approx(57.5, rel=0.05)
    assert first.way_at(140.0, -100.0) == 0.0
    assert second.way_at(140.0, -100.0) > 0.0
    assert second.grid.sum() < 5.0


def test_nothing_is_drawn_outside_the_surface(scene: SwarmScene, track: Track) -> None:
    window = pygame.Surface((SIZE[0] + 80, SIZE[1] + 80), depth=32)
    window.fill((1, 2, 3))
    corners = [(x, y) for x in (-420.0, 270.0) for y in (-200.0, 200.0)]
    for tick in range(40):
        scene.tick(swarm(tick, *({"x": 2.5 * tick + x, "y": y, "episode": tick // 8} for x, y in corners)))
    scene.draw(window.subsurface((40, 40, *SIZE)), track)
    pixels = pygame.surfarray.array3d(window)
    pixels[40:-40, 40:-40] = (1, 2, 3)
    assert (pixels == (1, 2, 3)).all()


def test_a_car_that_is_nowhere_is_left_out(scene: SwarmScene, draw: Draw) -> None:
    empty = draw()
    for tick in range(5):
        scene.tick(swarm(tick, {"x": math.nan, "heading": math.nan, "quality": math.nan, "episode": tick // 3}))
    np.testing.assert_array_equal(draw(SwarmOptions(legend=False)), empty)


def test_before_there_are_cars_there_is_the_circuit(scene: SwarmScene, draw: Draw) -> None:
    scene.tick(None)
    bare, with_legend = draw(), draw(LEGEND)
    assert bare.std() > 5
    assert len(differing(with_legend, bare)) > 1000


def test_the_circuit_is_in_what_panels_leave(scene: SwarmScene, draw: Draw) -> None:
    show(scene, swarm(1, {"x": 0.0, "y": 0.0}))
    draw()
    middle = scene.camera.view.to_screen(0.0, 0.0)
    scene.camera.insets = Insets(right=200, bottom=60)
    draw()
    shifted = scene.camera.view.to_screen(0.0, 0.0)
    assert shifted == pytest.approx((middle[0] - 100.0, middle[1] - 30.0))
    assert scene.camera.view.to_screen(290.0, 0.0)[0] < SIZE[0] - 200


@pytest.mark.parametrize("name", ["track-01", "track-03", "track-06"])
@pytest.mark.parametrize("size", [(480, 270), (1280, 720)])
def test_the_legend_leaves_the_road_free(name: str, size: tuple[int, int]) -> None:
    circuit = load_circuit(name)
    scene = SwarmScene(Theme(0.9 if size[0] < 960 else 1.0))
    view = scene.view_of(circuit, size)
    road = circuit.centreline.points(np.linspace(0.0, circuit.length, 800))
    legend = Legend(Theme(0.9 if size[0] < 960 else 1.0), quality_colours(ORDINARY), pygame.Surface((8, 8)))
    surface = pygame.Surface(size, depth=32)
    place = legend.draw(surface, view, surface.get_rect(), road, "256 cars", "120 stopped", "40 at walls")
    assert surface.get_rect().contains(place)
    assert not any(place.collidepoint(spot) for spot in view.points_to_screen(road).tolist())


def test_a_window_gets_its_ground_little_by_little_and_in_the_end_the_same(track: Track, draw: Draw) -> None:
    window, surface = SwarmScene(Theme()), pygame.Surface(SIZE, depth=32)
    window.draw(surface, track, CARS)
    steps = 0
    while window.draw_ahead():
        steps += 1
        assert steps < 500
    window.draw(surface, track, CARS)
    assert steps > 10
    np.testing.assert_array_equal(pygame.surfarray.array3d(surface).swapaxes(0, 1), draw())


def test_a_real_swarm_is_drawn_at_every_size(track: Track) -> None:
    simulation = Simulation(track, 32, auto_reset=True, start=ANYWHERE)
    driver, scene = Driver(track), SwarmScene(Theme())
    episodes = np.zeros(32, int)
    for number, size in enumerate([(480, 270), (640, 360), (480, 270), (300, 500)] * 6):
        for _ in range(5):
            result = simulation.step(driver.act(simulation.cars))
            episodes += result.terminated | result.truncated
        rows = np.zeros(32, SWARM_CAR)
        for name in ("x", "y", "heading", "speed", "track"):
            rows[name] = simulation.cars[name]
        rows["quality"], rows["episode"] = rows["speed"] / 160.0, episodes
        scene.tick(Swarm(5 * number, rows))
        surface = pygame.Surface(size, depth=32)
        scene.draw(surface, track)
        picture = pygame.surfarray.array3d(surface)
        assert picture.std() > 5
    assert len(scene.motion.marks) == 0
    assert scene.motion.trail_lengths.min() > 0
