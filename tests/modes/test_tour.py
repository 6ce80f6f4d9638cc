"""The guided tour through the real screens: offered once, done with keys or a gamepad, skipped, continued, repeated."""

from collections.abc import Iterator
from pathlib import Path

import pygame
import pytest

from racer_viewer.agents import load_agent
from racer_viewer.app.menu import MenuScreen, WelcomeScreen
from racer_viewer.app.tour import PARTS, STAND_IN, Tour, TourMenu
from racer_viewer.modes.help import HelpScreen
from racer_viewer.modes.play import PlayScreen
from racer_viewer.modes.results import ResultsScreen
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.watch import WatchScreen
from racer_viewer.settings import SettingsFile
from racer_viewer.ui.bindings import rebind
from racer_viewer.ui.intents import Command
from tests.modes.person import Person
from tests.modes.test_races import model
from tests.modes.test_screens import AgentSteering


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    """A user who starts the app for the first time."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    user = Person(tmp_path, newcomer=True)
    yield user
    user.app.close()


def tour_of(person: Person) -> Tour:
    tour = person.app.context.layer
    assert isinstance(tour, Tour)
    return tour


def drive_like(person: Person, name: str) -> PlayScreen:
    play = person.top(PlayScreen)
    play.steering = AgentSteering(load_agent(model(name)), play)  # type: ignore[assignment]
    return play


def start(person: Person, part: int = 0) -> Tour:
    """Start the tour from Help, at one of its parts."""
    person.app.context.change(tour="skipped", tour_part=part)
    person.press("f1")
    person.choose("Guided tour")
    return tour_of(person)


def test_the_first_start_offers_the_tour_once(newcomer: Person) -> None:
    newcomer.top(WelcomeScreen)
    newcomer.press("escape")
    newcomer.top(MenuScreen)
    assert SettingsFile(newcomer.data).load().tour == "skipped"
    newcomer.choose("Settings")
    newcomer.press("escape")
    newcomer.top(MenuScreen)


def test_a_car_drives_beside_the_offer_of_the_tour(newcomer: Person) -> None:
    newcomer.top(WelcomeScreen)
    menu = newcomer.app.context.screens[0]
    assert isinstance(menu, MenuScreen)
    newcomer.ticks(120)
    assert menu.backdrop is not None
    assert menu.backdrop.ticks > 100
    before = pygame.surfarray.array3d(newcomer.picture())
    newcomer.ticks(30)
    moved = (pygame.surfarray.array3d(newcomer.picture()) != before).any(axis=2)
    assert moved[newcomer.app.surface.get_width() // 2 :].mean() > 0.2, "the right half shows the drive"


def test_a_newcomer_drives_the_first_lap_by_the_hints(newcomer: Person) -> None:
    newcomer.press("return")
    tour, play = tour_of(newcomer), newcomer.top(PlayScreen)
    shown = []

    def asks_for(*controls: str) -> None:
        hint = tour.hint
        assert hint is not None
        assert {name for names, _ in hint.controls for name in names} >= set(controls)
        shown.append(hint)

    asks_for("throttle")
    newcomer.ticks(play.countdown)
    newcomer.hold("up")
    newcomer.ticks(90)
    asks_for("steer_left", "steer_right")
    newcomer.release("up")
    newcomer.hold("left")
    newcomer.ticks(75)
    newcomer.release("left")
    asks_for("brake")
    newcomer.hold("down")
    newcomer.ticks(75)
    newcomer.release("down")
    asks_for(Command.RESTART)
    newcomer.press("r")
    newcomer.ticks(60)
    asks_for(Command.PUT_BACK)
    assert len(set(map(id, shown))) == 5, "each hint goes when it is done"
    drive_like(newcomer, "champion")
    for _ in range(60):
        newcomer.ticks(15)
        if tour.hint is PARTS[0].hints[-1]:
            break
    assert tour.text == "Your lap: 8.37 s. 7.26 s earns silver."
    newcomer.press("return")
    newcomer.top(WatchScreen)
    assert SettingsFile(newcomer.data).load().tour_part == 1


def test_hints_name_the_keys_as_bound_or_the_buttons_of_the_gamepad(person: Person) -> None:
    context = person.app.context
    context.change(bindings=rebind(context.settings.bindings, "throttle", "z"))
    assert context.input_label("throttle") == "Z"
    person.pad(pygame.CONTROLLER_BUTTON_DPAD_DOWN)
    assert context.input_label("throttle") == "RT"
    assert context.input_label("steer_left", "steer_right") == "Stick"
    assert context.input_label(Command.ACCEPT) == "A"


def test_the_champion_is_explained_with_one_panel_at_a_time(person: Person) -> None:
    tour = start(person, part=1)
    watch = person.top(WatchScreen)
    for overlay in ("rays", "reward", "agent"):
        assert watch.view.shown_overlays == ("timing", overlay)
        assert tour.text
        person.ticks(30)
        person.press("space")
        if overlay != "agent":
            assert person.top(WatchScreen) is watch, "Space goes on, and does not pause"
    assert "reward" not in person.app.context.settings.overlays, "the user's own overlays stay as they are"


def test_a_part_is_skipped_and_the_tour_continued_later(person: Person) -> None:
    tour = start(person)
    person.press("escape")
    person.top(TourMenu)
    person.choose("Skip this part")
    assert tour.part == 1
    person.press("escape")
    person.choose("End the tour")
    person.top(MenuScreen)
    assert person.app.context.layer is None
    assert person.app.context.settings.tour_part == 1
    person.choose("Help")
    person.top(HelpScreen)
    person.choose("Guided tour")
    assert tour_of(person).part == 1
    person.top(WatchScreen)


def test_a_part_that_cannot_begin_ends_the_tour_with_its_message(person: Person) -> None:
    (person.data / "runs").write_text("a file where the folder should be")
    person.app.context.change(tour="skipped", tour_part=2)
    person.press("f1")
    person.choose("Guided tour")
    person.top(MessageScreen)
    assert person.app.context.layer is None
    person.press("escape")
    person.top(MenuScreen)
    person.frames(2)
    assert person.app.context.settings.tour_part == 2


def test_the_tour_works_with_a_gamepad_alone(newcomer: Person) -> None:
    newcomer.pad(pygame.CONTROLLER_BUTTON_A)
    tour = tour_of(newcomer)
    newcomer.pad(pygame.CONTROLLER_BUTTON_START)
    newcomer.top(TourMenu)
    newcomer.pad(pygame.CONTROLLER_BUTTON_DPAD_DOWN)
    newcomer.pad(pygame.CONTROLLER_BUTTON_A)
    assert tour.part == 1
    newcomer.pad(pygame.CONTROLLER_BUTTON_A)
    assert tour.hint is PARTS[1].hints[1]


def test_a_click_on_a_hint_goes_on(person: Person) -> None:
    tour = start(person, part=1)
    person.frames(2)
    watch = person.top(WatchScreen)
    area = watch.view.free_area(person.app.surface)
    person.click(area.centerx, area.bottom - 4)
    assert tour.hint is PARTS[1].hints[1]


def test_the_pupil_is_raced_on_the_grid_and_the_results_end_the_tour(person: Person) -> None:
    start(person, part=3)
    play = drive_like(person, "champion")
    assert [each.name for each in play.live.setup.entrants] == ["You", STAND_IN], "no pupil was trained"
    assert play.live.setup.grid
    for _ in range(80):
        person.ticks(30)
        if isinstance(person.app.context.top, ResultsScreen):
            break
    assert len(person.top(ResultsScreen).results) == 2
    person.frames(2)
    assert person.app.context.layer is None
    assert person.app.context.settings.tour == "finished"
    assert person.app.context.settings.tour_part == 0, "Help starts it again"


def test_the_lap_of_the_player_is_there_to_compare_the_pupil_with(person: Person) -> None:
    tour = start(person)
    play = drive_like(person, "champion")
    while not play.live.tick.laps:
        person.ticks(15)
    assert tour.own_lap is not None
    assert tour.own_lap.ticks == play.live.tick.laps[0].ticks
    tour.skip_part()
    assert tour.own_lap is not None, "it is remembered"


@pytest.mark.slow
def test_the_pupil_of_the_tour_is_trained_for_real(person: Person) -> None:
    tour = start(person, part=2)
    train = person.until_top(TrainScreen)
    person.press("return", "return")
    person.until(lambda: train.run.history.best_lap("track-01") is not None, "the first lap of the pupil")
    assert "Its fastest lap so far" in tour.text
    assert "Yours" not in tour.text, "the first part was skipped"
    person.press("return")
    person.until(lambda: tour.part == 3, "the race")
    play = person.top(PlayScreen)
    assert [each.name for each in play.live.setup.entrants] == ["You", train.run.config.name]
    assert play.live.setup.entrants[1].agent is not None
    assert not train.is_live
