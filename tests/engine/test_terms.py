"""Reward terms in the simulation: sums, threads, several tracks, other configs, and recorded drives."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from racer_env.engine import ANYWHERE, CAR, REWARD_COMPONENTS, Driver, Simulation, component_colours, load_circuit
from racer_env.engine.config import Config, parse_config
from racer_env.engine.formulas import FormulaError
from racer_env.engine.rewards import MAX_TERMS, TERM_COLOUR_BLIND_COLOURS, TERM_COLOURS
from racer_env.engine.scoring import pay, record_drive, total
from racer_env.engine.terms import RESERVED
from racer_env.errors import ConfigError
from tests.engine.formula_trees import TREES, Tree

TERMS = {
    "smooth": "-0.05 * abs(steer_change)",
    "angle": "-0.002 * heading_error ** 2 if speed > 20 else 0",
    "bend": "0.001 * min(1, abs(curvature_50) * 40) * (speed / 160)",
    "lap_bonus": "(30 - last_lap_time) / 10 if lap_finished else 0",
    "still": "-0.01 * still_time",
}
CONFIG = {"weights": {"speedBonus": 0.01, "offTrackPenalty": -0.004}, "terms": TERMS}


def drive(simulation: Simulation, ticks: int, seed: int = 0) -> Any:
    """Drive with noise; yield the result of every tick."""
    chance, driver = np.random.default_rng(seed), Driver(simulation.track)
    for _ in range(ticks):
        actions = driver.act(simulation.cars) + chance.normal(size=(simulation.num_cars, 3)) * 0.2
        yield simulation.step(np.clip(actions, (-1.0, 0.0, 0.0), 1.0))


def test_rewards_are_the_six_components_and_the_terms_in_order() -> None:
    simulation = Simulation(load_circuit("track-01"), 8, CONFIG, start=ANYWHERE, seed=1)
    seen = np.zeros(len(REWARD_COMPONENTS) + len(TERMS))
    for result in drive(simulation, 1500):
        assert result.components.shape == (8, len(seen))
        assert total(result.components).tobytes() == result.rewards.tobytes()
        seen += np.abs(result.components).sum(axis=0)
    assert (seen[[0, 1, *range(6, 11)]] > 0.0).all()


def test_terms_change_nothing_but_the_reward() -> None:
    plain = Simulation(load_circuit("track-03"), 6, {"weights": CONFIG["weights"]}, start=ANYWHERE, seed=2)
    own = Simulation(load_circuit("track-03"), 6, CONFIG, start=ANYWHERE, seed=2)
    chance = np.random.default_rng(0)
    for _ in range(300):
        actions = chance.uniform((-1.0, 0.0, 0.0), 1.0, (6, 3))
        expected, actual = plain.step(actions), own.step(actions)
        assert expected.observations.tobytes() == actual.observations.tobytes()
        assert expected.components.tobytes() == np.ascontiguousarray(actual.components[:, :6]).tobytes()
        for name in CAR.names or ():
            if name not in ("components", "reward"):
                assert plain.cars[name].tobytes() == own.cars[name].tobytes(), name


@pytest.mark.parametrize("threads", [1, 2])
def test_cars_threads_and_tracks_do_not_matter(threads: int) -> None:
    tracks = [load_circuit("track-01"), load_circuit("track-02")]
    many = Simulation(tracks, 256, CONFIG, start=ANYWHERE, seed=5, threads=threads)
    alone = [Simulation(tracks[row % 2], 1, CONFIG, start=ANYWHERE, seed=5 + row) for row in (0, 1, 200)]
    chance = np.random.default_rng(0)
    for _ in range(60):
        actions = chance.uniform((-1.0, 0.0, 0.0), 1.0, (256, 3))
        together = many.step(actions)
        for row, single in zip((0, 1, 200), alone, strict=True):
            assert single.step(actions[row : row + 1]).components.tobytes() == together.components[row].tobytes()
    many.close()


def test_a_car_moved_from_outside_is_paid_for_its_own_way_only() -> None:
    config = {"terms": {"way": "advance"}}
    simulation = Simulation(load_circuit("track-01"), 1, config)
    for _ in drive(simulation, 100):
        pass
    x, y = simulation.track.centreline.points(np.array([500.0]))[0]
    simulation.cars["x"], simulation.cars["y"] = x, y
    result = simulation.step([[0.0, 0.0, 0.0]])
    assert abs(result.components[0, -1]) < 3.0
    assert result.components[0, -1] == pytest.approx(result.components[0, 0] * simulation.track.length)


def test_other_terms_apply_from_the_next_tick_on() -> None:
    simulation = Simulation(load_circuit("track-01"), 2, CONFIG)
    simulation.step(np.ones((2, 3)))
    simulation.configure({"terms": {"one": "1"}})
    assert simulation.step(np.ones((2, 3))).components[:, 6:].tolist() == [[1.0], [1.0]]
    simulation.configure(None)
    result = simulation.step(np.ones((2, 3)))
    assert result.components.shape == (2, 6)
    assert not simulation.cars["components"][:, 6:].any()
    assert result.rewards.tolist() == total(result.components).tolist()


def test_actions_that_are_not_finite_change_nothing() -> None:
    simulation = Simulation(load_circuit("track-01"), 2, CONFIG)
    before = simulation.save()
    with pytest.raises(Exception, match="finite"):
        simulation.step([[0.0, 1.0, 0.0], [np.nan, 0.0, 0.0]])
    assert simulation.cars["x"].tobytes() == before.cars["x"].tobytes()


def recorded(ticks: int, seed: int, config: Config, put_back: tuple[int, ...] = ()) -> tuple[Any, Any, Any]:
    """Return actions of a drive, and its components and rewards as the simulation paid them."""
    simulation = Simulation(load_circuit("track-01"), 1, config, start=ANYWHERE, seed=seed)
    chance, driver = np.random.default_rng(seed), Driver(simulation.track)
    actions, components, rewards = [], [], []
    for tick in range(1, ticks + 1):
        if tick in put_back:
            simulation.put_back(0)
        action = np.clip(driver.act(simulation.cars)[0] + chance.normal(size=3) * 0.3, (-1.0, 0.0, 0.0), 1.0)
        if tick % 500 > 380:
            action = np.array([0.0, 0.0, 1.0])
        result = simulation.step([action])
        actions.append(action)
        components.append(result.components[0].copy())
        rewards.append(float(result.rewards[0]))
    return np.array(actions), np.array(components), np.array(rewards)


@pytest.mark.parametrize("put_back", [(), (200, 201, 640)])
def test_a_recorded_drive_is_paid_exactly_what_it_was_paid(put_back: tuple[int, ...]) -> None:
    """Also with a config other than the one it was driven with, and with another threshold for standing still."""
    harsh = {"progress": 2.0, "wallPenalty": -0.5, "backwardPenalty": -0.1, "stillnessPenalty": -0.06}
    for content in (CONFIG, {}, {"weights": {**harsh, "stillnessSpeedThreshold": 9.5}, "terms": TERMS}):
        config = parse_config(content)
        actions, components, rewards = recorded(1200, 3, config, put_back)
        again = pay(record_drive(load_circuit("track-01"), actions, ANYWHERE, 3, put_back), config)
        np.testing.assert_array_equal(again, components)
        assert total(again).tobytes() == rewards.tobytes()


def test_a_part_of_a_drive_is_paid_like_that_part() -> None:
    actions, components, _ = recorded(900, 4, parse_config(CONFIG), (450,))
    whole = record_drive(load_circuit("track-01"), actions, ANYWHERE, 4, (450,))
    config = parse_config({**CONFIG, "terms": {name: TERMS[name] for name in ("smooth", "angle", "bend")}})
    part = pay(whole.part(300, 700), config)
    np.testing.assert_array_equal(part[:, :9], components[300:700, :9])
    assert whole.part(300, 700).put_back.tolist() == [149]


@settings(max_examples=40, deadline=None)
@given(tree=TREES, seed=st.integers(0, 1000))
def test_every_formula_is_finite_wherever_a_car_is(tree: Tree, seed: int) -> None:
    """Cars anywhere: on and off the track, at any speed, upside down, and where no car can be."""
    try:
        config = parse_config({"terms": {"own": tree.text}})
    except FormulaError:
        assume(False)
    simulation = Simulation(load_circuit("track-01"), 12, config, start=ANYWHERE, seed=seed)
    chance = np.random.default_rng(seed)
    simulation.cars["x"][:6] += chance.normal(size=6) * 10.0 ** chance.uniform(0.0, 5.0, 6)
    simulation.cars["speed"][3:9] = chance.uniform(0.0, 160.0, 6)
    simulation.cars["vx"][3:9] = chance.normal(size=6) * 100.0
    for _ in range(5):
        result = simulation.step(chance.uniform((-1.0, 0.0, 0.0), 1.0, (12, 3)))
        assert np.isfinite(result.components).all()
        assert np.isfinite(result.rewards).all()


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (["speed"], "config.terms must be an object of names and formulas, not list"),
        ("speed", "config.terms must be an object"),
        ({"": "1"}, "is not a name"),
        ({"my term": "1"}, "'my term' is not a name: use a letter, then letters, digits and _, at most 24"),
        ({"_x": "1"}, "is not a name"),
        ({"ünal": "1"}, "is not a name"),
        ({"x" * 25: "1"}, "is not a name"),
        ({"progress": "1"}, "the name progress has another meaning"),
        ({"lambda": "1"}, "the name lambda has another meaning"),
        ({"abs": "1"}, "the name abs has another meaning"),
        ({"and": "1"}, "the name and has another meaning"),
        ({"own": 3}, "config.terms.own must be a formula in quotes, not 3"),
        ({"own": None}, "config.terms.own must be a formula in quotes, not None"),
        ({"own": "sped"}, "config.terms.own: column 1: unknown quantity 'sped'; did you mean speed?"),
        ({"good": "1", "bad": "1 +"}, "config.terms.bad: column 4: "),
        ({f"t{number}": "1" for number in range(9)}, "config.terms: at most 8 terms, not 9"),
    ],
)  # fmt: skip
def test_wrong_terms_are_refused(terms: Any, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_config({"terms": terms})
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_default_rewards_are_the_six_and_no_more() -> None:
    assert Config().components == REWARD_COMPONENTS
    assert Config().formulas == {}


def test_components_of_a_config_have_names_and_distinct_colours() -> None:
    terms = {f"t{number}": str(number) for number in range(MAX_TERMS)}
    components = parse_config({"terms": terms}).components
    assert components[:6] == REWARD_COMPONENTS
    assert [each.wire_name for each in components[6:]] == [each.label for each in components[6:]] == [*terms]
    for colour_blind in (False, True):
        assert len(set(component_colours(colour_blind, components))) == len(components)
    assert len(TERM_COLOURS) == len(TERM_COLOUR_BLIND_COLOURS) == MAX_TERMS


def test_keys_of_an_info_are_no_names_of_terms() -> None:
    from racer_env.bridge.interface import RESET_KEYS, STEP_KEYS
    from racer_viewer.training.vec_env import TERMINAL_OBSERVATION, TRUNCATED

    others = {TERMINAL_OBSERVATION, "episode", "final_obs", "final_info"}
    assert {*STEP_KEYS, *RESET_KEYS, *others} <= RESERVED
    with pytest.raises(ConfigError):
        parse_config({"terms": {TRUNCATED: "1"}})
