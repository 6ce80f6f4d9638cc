"""Simulation: many cars, resets, starts, saving and restoring, errors."""

import sys

import numpy as np
import pytest

from racer_env.engine import ANYWHERE, Driver, Simulation, Start, Track, load_circuit
from racer_env.errors import ActionError, ConfigError, RacerError


@pytest.fixture(scope="module")
def track() -> Track:
    return load_circuit("track-03")


def random_actions(ticks: int, cars: int, seed: int = 0) -> np.ndarray:
    """Return actions that are held for a while, so that cars get somewhere and hit walls."""
    drawn = np.random.default_rng(seed).uniform((-1, 0, 0), (1, 1, 0.2), (ticks // 8 + 1, cars, 3))
    return np.repeat(drawn, 8, axis=0)[:ticks]


def differences(a: np.ndarray, b: np.ndarray) -> list[str]:
    """Return the names of the columns in which some bit differs."""
    return [name for name in a.dtype.names or () if a[name].tobytes() != b[name].tobytes()]


def test_a_new_simulation_stands_on_the_start_line(track: Track) -> None:
    cars = Simulation(track, 3).cars
    for name, value in zip(("x", "y", "heading"), track.start, strict=True):
        np.testing.assert_allclose(cars[name], value, atol=1e-12)
    assert (cars.speed == 0).all()
    assert (cars.lap == 1).all()
    assert (cars.checkpoint == 0).all()


def test_every_state_column_can_be_read_by_name(track: Track) -> None:
    names = (
        "x y heading vx vy speed yaw_rate surface steer throttle brake slip_angle lap checkpoint lap_ticks step_count"
        " wall_contact stillness arc centre_distance last_lap_ticks best_lap_ticks"
    )
    cars = Simulation(track, 4).cars
    for name in names.split():
        assert cars[name].shape == (4,)
        assert getattr(cars, name) is not None


def test_cars_do_not_influence_each_other(track: Track) -> None:
    actions = random_actions(400, 8)
    together = Simulation(track, 8)
    alone = [Simulation(track) for _ in range(8)]
    for tick in actions:
        result = together.step(tick)
        for i, simulation in enumerate(alone):
            single = simulation.step(tick[i : i + 1])
            assert single.rewards[0] == result.rewards[i]
            np.testing.assert_array_equal(single.observations[0], result.observations[i])
    for i, simulation in enumerate(alone):
        assert differences(simulation.cars, together.cars[i : i + 1]) in ([], ["random"])


def test_threads_change_nothing(track: Track) -> None:
    actions = random_actions(200, 256)
    one, two = Simulation(track, 256, auto_reset=True), Simulation(track, 256, auto_reset=True, threads=2)
    for tick in actions:
        one.step(tick)
        two.step(tick)
    assert differences(one.cars, two.cars) == []
    two.close()


def test_auto_reset_gives_the_final_observation_and_starts_anew(track: Track) -> None:
    config = {"episode": {"maxSteps": 5}}
    plain, resetting = Simulation(track, 2, config), Simulation(track, 2, config, auto_reset=True)
    first = resetting.reset().copy()
    for _ in range(5):
        expected = plain.step([[0.3, 1.0, 0.0]] * 2)
        result = resetting.step([[0.3, 1.0, 0.0]] * 2)
    assert result.truncated.all()
    assert not result.terminated.any()
    np.testing.assert_array_equal(result.final_observations, expected.observations)
    np.testing.assert_array_equal(result.final_cars.x, plain.cars.x)
    np.testing.assert_array_equal(result.observations, first)
    np.testing.assert_array_equal(result.rewards, expected.rewards)
    assert (resetting.cars.step_count == 0).all()


def test_without_auto_reset_the_car_goes_on_after_the_end(track: Track) -> None:
    simulation = Simulation(track, 1, {"episode": {"maxSteps": 3}})
    flags = [bool(simulation.step([[0, 1, 0]]).truncated[0]) for _ in range(6)]
    assert flags == [False, False, True, True, True, True]
    assert simulation.cars.step_count[0] == 6


def test_standing_still_ends_the_episode_at_the_time_out(track: Track) -> None:
    simulation = Simulation(track, 1, {"episode": {"stillnessTimeoutTicks": 10}})
    ended = [bool(simulation.step([[0, 0, 0]]).terminated[0]) for _ in range(10)]
    assert ended == [False] * 9 + [True]


def test_resetting_one_car_leaves_the_others_alone(track: Track) -> None:
    simulation = Simulation(track, 3)
    for tick in random_actions(100, 3):
        simulation.step(tick)
    before = simulation.save().cars
    simulation.reset([False, True, False])
    for i in (0, 2):
        assert differences(simulation.cars[i : i + 1], before[i : i + 1]) == []
    assert simulation.cars.step_count[1] == 0
    assert simulation.cars.x[1] == pytest.approx(track.start[0])


def test_a_restored_state_goes_on_exactly(track: Track) -> None:
    actions = random_actions(300, 16)
    simulation = Simulation(track, 16, auto_reset=True, start=ANYWHERE, seed=7)
    for tick in actions[:150]:
        simulation.step(tick)
    saved = simulation.save()
    for tick in actions[150:]:
        simulation.step(tick)
    other = Simulation(track, 16, auto_reset=True, start=ANYWHERE)
    other.restore(saved)
    for tick in actions[150:]:
        other.step(tick)
    assert differences(other.cars, simulation.cars) == []


def test_a_car_moved_from_outside_is_found_again(track: Track) -> None:
    there = Simulation(track, start=Start(arc=(0.4, 0.4)))
    moved = Simulation(track)
    for name in ("x", "y", "heading"):
        moved.cars[name] = there.cars[name]
    there.step([[0, 1, 0]])
    moved.step([[0, 1, 0]])
    assert moved.cars.arc[0] == there.cars.arc[0]
    assert moved.cars.surface[0] == there.cars.surface[0]
    np.testing.assert_array_equal(moved.cars.rays, there.cars.rays)


def test_random_starts_are_on_the_road_within_their_ranges_and_repeat_with_the_seed(track: Track) -> None:
    start = Start(arc=(0.2, 0.6), offset=(-0.5, 0.5), heading=(-0.3, 0.3), speed=(20.0, 90.0))
    simulation = Simulation(track, 500, start=start, seed=3)
    cars = simulation.save().cars
    fraction = cars.arc / track.length
    assert 0.19 < fraction.min() < 0.25
    assert 0.55 < fraction.max() < 0.61
    assert (cars.centre_distance <= 0.55 * cars.half_width).all()
    assert 20.0 <= cars.speed.min() < 30.0
    assert 80.0 < cars.speed.max() <= 90.0
    assert (cars.surface == 0).all()
    again = Simulation(track, 500, start=start, seed=3)
    assert differences(again.cars, simulation.cars) == []
    assert not np.array_equal(Simulation(track, 500, start=start, seed=4).cars.x, cars.x)


def test_a_car_draws_its_starts_as_if_it_were_alone(track: Track) -> None:
    together = Simulation(track, 6, start=ANYWHERE, seed=10)
    for i in range(6):
        assert Simulation(track, start=ANYWHERE, seed=10 + i).cars.x[0] == together.cars.x[i]


def test_a_lap_counts_only_after_every_gate(track: Track) -> None:
    """A car that starts in the middle of a lap crosses the line without completing a lap."""
    driver = Driver(track)
    simulation = Simulation(track, start=Start(arc=(0.7, 0.7), speed=(50.0, 50.0)))
    times = []
    while simulation.cars.lap[0] < 3:
        result = simulation.step(driver.act(simulation.cars))
        times.append(int(result.finished_lap_ticks[0]))
    laps = [time for time in times if time]
    assert len(laps) == 1
    assert laps[0] == simulation.cars.best_lap_ticks[0] == simulation.cars.last_lap_ticks[0]
    assert laps[0] > 1000


@pytest.mark.parametrize(
    "actions",
    [
        [[0.0, 0.0]],
        [0.0, 0.0, 0.0],
        [[0.0, 0.0, float("nan")]],
        [[float("inf"), 0.0, 0.0]],
        [["left", 0.0, 0.0]],
        np.zeros((2, 3)),
        None,
        np.array([["a", "b", "c"]]),
    ],
)
def test_an_action_that_is_not_three_finite_numbers_is_an_error_and_steps_nothing(
    track: Track, actions: object
) -> None:
    simulation = Simulation(track)
    simulation.step([[0, 1, 0]])
    before = simulation.save().cars
    with pytest.raises(ActionError, match="actions must be"):
        simulation.step(actions)  # type: ignore[arg-type]
    for name in ("x", "y", "speed", "step_count"):
        assert simulation.cars[name][0] == before[name][0]


def test_one_bad_action_of_many_steps_no_car_on_any_number_of_threads(track: Track) -> None:
    for threads in (1, 2):
        simulation = Simulation(track, 256, threads=threads)
        actions = np.zeros((256, 3))
        actions[200, 1] = np.nan
        with pytest.raises(ActionError):
            simulation.step(actions)
        assert (simulation.cars.step_count == 0).all()
        simulation.close()


def test_actions_beyond_their_ranges_are_clamped(track: Track) -> None:
    wild, tame = Simulation(track), Simulation(track)
    wild.step([[-7.0, 1e300, -3.0]])
    tame.step([[-1.0, 1.0, 0.0]])
    for name in ("steer", "throttle", "brake", "speed"):
        assert wild.cars[name][0] == tame.cars[name][0]


def test_stepping_allocates_nothing(track: Track) -> None:
    simulation = Simulation(track, 64, auto_reset=True)
    actions = list(random_actions(200, 64))
    results = {id(simulation.step(action).observations) for action in actions}
    assert len(results) == 1
    blocks = sys.getallocatedblocks()
    for action in actions:
        simulation.step(action)
    assert sys.getallocatedblocks() - blocks < 20


def test_wrong_numbers_of_cars_are_errors(track: Track) -> None:
    with pytest.raises(RacerError, match="at least one car"):
        Simulation(track, 0)
    with pytest.raises(RacerError, match="mask"):
        Simulation(track, 3).reset([True])
    with pytest.raises(RacerError, match="2 cars"):
        Simulation(track, 3).restore(Simulation(track, 2).save())


@pytest.mark.parametrize(
    ("ranges", "named"),
    [
        ({"arc": (0.5, 0.1)}, "arc"),
        ({"arc": (0.0, 1.5)}, "arc"),
        ({"speed": (-1.0, 0.0)}, "speed"),
        ({"heading": (0.0, float("nan"))}, "heading"),
    ],
)
def test_an_impossible_start_names_what_is_wrong(ranges: dict[str, tuple[float, float]], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Start(**ranges)


def test_cars_on_several_tracks_drive_as_on_each_alone(track: Track) -> None:
    tracks = [track, load_circuit("track-01"), load_circuit("random:3")]
    for threads in (1, 2):
        together = Simulation(tracks, 200, {"episode": {"maxSteps": 60}}, True, start=ANYWHERE, seed=5, threads=threads)
        alone = [
            Simulation(tracks[i % 3], 1, {"episode": {"maxSteps": 60}}, True, start=ANYWHERE, seed=5 + i)
            for i in range(200)
        ]
        for actions in random_actions(150, 200):
            result = together.step(actions)
            for i in range(0, 200, 7):
                alone[i].step(actions[i : i + 1])
        for i in range(0, 200, 7):
            assert [name for name in differences(together.cars[i : i + 1], alone[i].cars) if name != "track"] == []
            assert (result.observations[i] == alone[i].result.observations[0]).all()


def test_redraw_gives_each_episode_a_track_of_its_own_drawing(track: Track) -> None:
    tracks = [track, load_circuit("track-01"), load_circuit("random:3")]
    options = {"config": {"episode": {"maxSteps": 20}}, "auto_reset": True, "redraw": True, "start": ANYWHERE}
    together, third = Simulation(tracks, 8, seed=1, **options), Simulation(tracks, 1, seed=4, **options)
    seen = [together.cars.track.copy()]
    for actions in random_actions(200, 8):
        together.step(actions)
        third.step(actions[3:4])
        assert differences(together.cars[3:4], third.cars) == []
        seen.append(together.cars.track.copy())
    assert {tuple(np.unique(column)) for column in np.transpose(seen)} == {(0, 1, 2)}
    middle = together.save()
    restored = Simulation(tracks, 8, **options)
    restored.restore(middle)
    for actions in random_actions(30, 8):
        together.step(actions)
        restored.step(actions)
    assert differences(together.cars, restored.cars) == []


@pytest.mark.parametrize("redraw", [False, True])
def test_an_exchanged_track_is_driven_from_the_next_start_on(redraw: bool, track: Track) -> None:
    other, third = load_circuit("track-01"), load_circuit("random:3")
    tracks, beside = ([track, other], {other}) if redraw else ([track], set())
    options = {"config": {"episode": {"maxSteps": 40}}, "auto_reset": True, "start": ANYWHERE}
    cars = Simulation(tracks, 6, redraw=redraw, seed=1, **options)
    cars.cars.step_count[:3] = 20  # their episodes end earlier than those of the others
    current = track
    for tick, actions in enumerate(random_actions(200, 6)):
        if tick in (30, 70, 75, 130):
            before = [cars.tracks[number] for number in cars.cars.track]
            current = {30: third, 70: track, 75: load_circuit("random:4"), 130: third}[tick]
            number = cars.exchange_track(0, current)
            assert cars.tracks[number] is current
            assert [cars.tracks[number] for number in cars.cars.track] == before, "running episodes go on"
            assert len(cars.tracks) <= len(tracks) + 2, "a track on which nobody drives any more makes room"
        alone = [Simulation(cars.tracks[number], 1, **options) for number in cars.cars.track]
        for row, single in enumerate(alone):
            single.cars[:] = cars.cars[row : row + 1]
            single.cars.track = 0
            single.step(actions[row : row + 1])
        result = cars.step(actions)
        assert {cars.tracks[number] for number in cars.cars.track[cars.ended]} <= {current} | beside
        for row in np.setdiff1d(np.arange(6), cars.ended):
            assert (result.observations[row] == alone[row].result.observations[0]).all()
    assert {cars.tracks[number] for number in cars.cars.track} == {current} | beside


def test_an_exchange_changes_nothing_until_an_episode_ends(track: Track) -> None:
    kept, exchanged = (Simulation(track, 4, auto_reset=True, start=ANYWHERE, seed=2) for _ in range(2))
    exchanged.exchange_track(0, load_circuit("track-01"))
    for actions in random_actions(100, 4):
        kept.step(actions)
        exchanged.step(actions)
        assert differences(kept.cars, exchanged.cars) == []
