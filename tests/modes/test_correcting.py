"""Correcting an agent while it is watched: it learns what the driver does in its place, and unlearns it."""

from pathlib import Path

import numpy as np
import pytest

from racer_env.engine import Driver, Simulation
from racer_viewer.agents import Agent, bundled_models, load_agent
from racer_viewer.modes.correcting import CorrectionSession, CorrectionsScreen
from racer_viewer.modes.models import known_models
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.watch import WatchMenu, WatchScreen, open_watch
from tests.modes.person import Person

MODELS = {path.stem: path for path in bundled_models()}
WEAK = "learning-1-crashes"
"""Model that drives into the wall of the first corner and stays there."""
DRIVE_TICKS = 700


class DriverSteering:
    """Steers the watched car as the engine's driver would."""

    def __init__(self, screen: WatchScreen) -> None:
        self._screen, self._driver = screen, Driver(screen.view.after.track)

    def update(self, controls: object, speed: float) -> tuple[float, float, float]:
        cars = np.array([self._screen.view.after.car])
        steer, throttle, brake = self._driver.act(cars.view(np.recarray))[0].tolist()
        return steer, throttle, brake

    def release(self) -> None:
        """Do nothing."""


def correcting(person: Person, model: str = WEAK) -> WatchScreen:
    """Watch a weak agent with corrections switched on; the engine's driver is at the wheel when it is taken."""
    open_watch(person.app.context, [MODELS[model]], "track-01")
    screen = person.top(WatchScreen)
    screen.steering = DriverSteering(screen)  # type: ignore[assignment]
    person.press("f")
    learned(person, screen)
    return screen


def session(screen: WatchScreen) -> CorrectionSession:
    found = screen.corrections.session
    assert found is not None
    return found


def learned(person: Person, screen: WatchScreen) -> None:
    """Wait until the policy has learned everything, while the cars stand still."""
    screen.playback.paused = True
    person.until(lambda: not session(screen).learning, "the policy to learn")
    screen.playback.paused = False


def correct(person: Person, screen: WatchScreen, wait: int, ticks: int) -> None:
    """Let the agent drive, take the wheel for some ticks, hand back, and wait until it was learned."""
    person.ticks(wait)
    person.press("t")
    person.ticks(ticks)
    person.press("t")
    learned(person, screen)


def gates_of(agent: Agent, screen: WatchScreen) -> tuple[int, int]:
    """Return how many gates an agent passes, and for how many ticks it touches a wall."""
    simulation = Simulation(screen.view.after.track)
    touched = 0
    for _ in range(DRIVE_TICKS):
        simulation.step(agent.act(simulation.result.observations))
        touched += int(simulation.cars.wall_contact[0])
    return int(simulation.cars.checkpoint[0]) + 30 * (int(simulation.cars.lap[0]) - 1), touched


def driven_by(screen: WatchScreen) -> Agent:
    agent = screen.agent_of(screen.focus)
    assert agent is not None
    return agent


def test_the_policy_gets_better_where_it_was_corrected_and_forgets_it_when_undone(person: Person) -> None:
    screen = correcting(person)
    before = gates_of(driven_by(screen), screen)
    assert before[1] > 300, "the weak agent stays at a wall"
    correct(person, screen, 60, 240)
    assert session(screen).count == 1
    assert ("1 correction", person.app.context.theme.palette.good) in screen.status()
    after = gates_of(driven_by(screen), screen)
    assert after[0] >= before[0] + 10
    assert after[1] < before[1] / 2
    person.press("u")
    learned(person, screen)
    assert session(screen).count == 0
    assert gates_of(driven_by(screen), screen) == before


def test_the_corrected_policy_drives_the_car_on(person: Person) -> None:
    screen = correcting(person)
    correct(person, screen, 60, 240)
    corrected = driven_by(screen)
    observation = screen.view.after.observation
    person.ticks(1)
    np.testing.assert_allclose(screen.view.after.car["action"], corrected.act(observation), atol=1e-6)


def test_each_correction_can_be_undone_in_the_menu(person: Person) -> None:
    screen = correcting(person)
    correct(person, screen, 60, 60)
    correct(person, screen, 30, 60)
    person.press("escape")
    person.top(WatchMenu)
    person.choose("Corrections")
    first, second = session(screen).corrections
    assert 60 <= first.ticks == second.ticks <= 64
    person.top(CorrectionsScreen)
    person.press("return")
    learned(person, screen)
    assert session(screen).corrections == (second,)
    assert not first.path.exists()
    assert second.path.exists()


def test_corrections_are_there_again_the_next_time(person: Person) -> None:
    screen = correcting(person)
    correct(person, screen, 60, 60)
    with_it = driven_by(screen).act(screen.view.after.observation)
    person.app.context.pop_to_menu()
    again = correcting(person)
    assert session(again).count == 1
    np.testing.assert_array_equal(driven_by(again).act(screen.view.after.observation), with_it)


def test_a_damaged_correction_is_set_aside(person: Person) -> None:
    screen = correcting(person)
    correct(person, screen, 60, 60)
    (correction,) = session(screen).corrections
    person.app.context.pop_to_menu()
    correction.path.write_bytes(correction.path.read_bytes()[:200])
    again = correcting(person)
    assert session(again).count == 0
    assert correction.path.name in person.app.context.notice
    assert correction.path.with_name(correction.path.name + ".damaged").exists()


def saved_model(person: Person) -> Path:
    (path,) = (person.data / "models").glob("*.zip")
    return path


def test_the_corrected_policy_is_saved_as_a_model_when_leaving(person: Person) -> None:
    screen = correcting(person)
    correct(person, screen, 60, 60)
    corrected, observation = driven_by(screen), screen.view.after.observation
    person.press("escape")
    person.choose("Leave")
    assert "1 correction" in person.top(MessageScreen).text
    person.choose("Save as a model")
    assert not isinstance(person.app.context.top, MessageScreen | WatchScreen)
    model = load_agent(saved_model(person))
    np.testing.assert_array_equal(model.act(observation), corrected.act(observation))
    assert saved_model(person) in [each.path for each in known_models(person.data)]


@pytest.mark.parametrize(("answer", "files"), [("Keep for the next time", 1), ("Discard corrections", 0)])
def test_corrections_can_be_kept_or_discarded_when_leaving(person: Person, answer: str, files: int) -> None:
    screen = correcting(person)
    correct(person, screen, 60, 60)
    person.press("escape")
    person.choose("Leave")
    person.choose(answer)
    assert not isinstance(person.app.context.top, MessageScreen | WatchScreen)
    assert len(list((person.data / "corrections").rglob("*.racer"))) == files
    assert not (person.data / "models").exists()


def test_a_touch_of_the_wheel_is_not_learned(person: Person) -> None:
    screen = correcting(person)
    person.ticks(60)
    person.press("t", "t")
    assert session(screen).count == 0
    assert person.app.context.notice == "Too short to learn from"


def test_nothing_is_learned_while_it_is_off(person: Person) -> None:
    open_watch(person.app.context, [MODELS[WEAK]], "track-01")
    screen = person.top(WatchScreen)
    person.ticks(60)
    person.press("t")
    person.ticks(60)
    person.press("t")
    assert screen.corrections.session is None
    assert not (person.data / "corrections").exists()


def test_a_model_of_another_kind_says_that_it_cannot_learn(person: Person) -> None:
    open_watch(person.app.context, [MODELS["sac-track-01"]], "track-01")
    person.press("f")
    assert not person.top(WatchScreen).corrections.on
    assert "cannot be corrected" in person.app.context.notice
