"""Every screen can be reached and left: by keys, by the mouse, by a gamepad."""

from pathlib import Path

import pygame
import pytest

from racer_viewer.app.menu import MenuScreen
from racer_viewer.modes.choose import OpponentsScreen, PlaySetupScreen, WatchSetupScreen
from racer_viewer.modes.circuits import ROAD
from racer_viewer.modes.help import HelpScreen
from racer_viewer.modes.play import PauseScreen, PlayScreen
from racer_viewer.modes.replay_lists import RecordsScreen, ReplaysScreen
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.results import ResultsScreen
from racer_viewer.modes.screen import MessageScreen, Screen
from racer_viewer.modes.settings_screen import KeysScreen, SettingsScreen
from racer_viewer.modes.train.setup import TrainSetupScreen
from racer_viewer.modes.watch import WatchScreen
from racer_viewer.render.overlays import lap_time
from racer_viewer.ui.theme import ORDINARY
from tests.modes.person import Person

ENTRIES: dict[str, type[Screen]] = {
    "Play": PlaySetupScreen,
    "Watch": WatchSetupScreen,
    "Train": TrainSetupScreen,
    "Replays": ReplaysScreen,
    "Records": RecordsScreen,
    "Settings": SettingsScreen,
}


@pytest.mark.parametrize("label", ENTRIES)
def test_each_entry_of_the_menu_opens_its_screen_and_escape_leaves_it(person: Person, label: str) -> None:
    person.choose(label)
    screen = person.top(ENTRIES[label])
    assert screen.keys()
    person.frames(3)
    person.press("escape")
    person.top(MenuScreen)


def test_a_circuit_is_shown_with_its_road_and_its_direction(person: Person) -> None:
    person.choose("Play")
    person.frames(2)
    beside = pygame.surfarray.array3d(person.picture())[person.app.surface.get_width() // 2 :]
    assert (beside == ROAD).all(axis=2).mean() > 0.02
    assert (beside == ORDINARY.accent).all(axis=2).sum() > 20, "an arrow"


def test_help_lists_the_keys_on_every_screen(person: Person) -> None:
    person.press("f1")
    person.top(HelpScreen)
    person.frames(2)
    person.press("h")
    person.top(MenuScreen)
    person.choose("Settings")
    person.press("h", "escape")
    person.top(SettingsScreen)


def test_quit_ends_the_app(person: Person) -> None:
    person.choose("Quit")
    assert person.app.context.top is None


def test_closing_the_window_ends_the_app_from_anywhere(person: Person) -> None:
    person.choose("Settings")
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    person.frames()
    assert person.app.context.top is None


def test_the_mouse_alone_gets_to_a_race_and_back(person: Person) -> None:
    person.frames(2)
    person.top(MenuScreen)
    person.click_item("Play")
    screen = person.top(PlaySetupScreen)
    person.frames()
    person.point_at_item("Start")
    assert screen.list.item is screen.list.find("Start")
    person.click_item("Start")
    person.top(PlayScreen)
    person.click(400, 300, pygame.BUTTON_RIGHT)
    pause = person.top(PauseScreen)
    person.frames()
    person.click_item(pause.list.items[-1].label)
    person.top(MenuScreen)


def test_a_gamepad_alone_gets_to_a_race_and_back(person: Person) -> None:
    person.pad(pygame.CONTROLLER_BUTTON_A)
    person.top(PlaySetupScreen)
    person.pad(pygame.CONTROLLER_BUTTON_A)
    person.top(PlayScreen)
    person.pad(pygame.CONTROLLER_BUTTON_START)
    person.top(PauseScreen)
    person.pad(pygame.CONTROLLER_BUTTON_B)
    person.top(PlayScreen)
    person.pad(pygame.CONTROLLER_BUTTON_START)
    person.pad(pygame.CONTROLLER_BUTTON_DPAD_UP)
    person.pad(pygame.CONTROLLER_BUTTON_A)
    person.top(MenuScreen)


def test_opponents_are_chosen_and_remembered(person: Person) -> None:
    person.choose("Play")
    person.choose("Opponents")
    screen = person.top(OpponentsScreen)
    assert screen.list.items[0].label == "champion"
    person.press("return", "escape")
    assert person.app.context.settings.opponents == ("champion",)
    against = person.top(PlaySetupScreen).list.items[-1]
    assert against.value == "champion"
    person.choose("Start")
    play = person.top(PlayScreen)
    assert [each.name for each in play.live.setup.entrants] == ["You", "champion"]


def test_a_run_that_was_finished_gives_results_a_record_and_a_replay(person: Person) -> None:
    """Let an agent steer the player's car."""
    person.app.context.change(laps=1)
    person.choose("Play")
    person.choose("Start")
    play = person.top(PlayScreen)
    agent = _champion()
    play.steering = AgentSteering(agent, play)  # type: ignore[assignment]
    person.ticks(180 + 8 * 60 + 40)
    results = person.top(ResultsScreen)
    assert len(play.live.tick.laps) == 1
    assert results.is_record
    person.frames()
    person.choose("Save replay")
    assert "Saved as" in person.app.context.notice
    person.choose("Save replay")
    (saved,) = (person.data / "replays").glob("*.racer")
    person.choose("Main menu")
    person.choose("Replays")
    assert person.top(ReplaysScreen).list.items[0].hint == saved.name
    person.press("return")
    person.top(ReplayScreen)
    person.frames(60)
    person.press("right", "left", "escape", "escape")
    person.choose("Records")
    records = person.top(RecordsScreen)
    assert [item.cells[0] for item in records.list.items[1:]] == [f"{lap_time(play.live.tick.laps[0].ticks)} s"]  # type: ignore[attr-defined]
    person.press("down", "return")
    person.top(ReplayScreen)
    person.press("escape", "delete")
    person.choose("Delete")
    assert not person.top(RecordsScreen).list.items[1].enabled


def test_the_next_race_has_the_ghost_of_the_record(person: Person) -> None:
    person.app.context.change(laps=1)
    person.choose("Play")
    person.choose("Start")
    play = person.top(PlayScreen)
    play.steering = AgentSteering(_champion(), play)  # type: ignore[assignment]
    person.ticks(180 + 8 * 60 + 40)
    lap = play.live.tick.laps[0].ticks
    person.choose("Main menu")
    person.choose("Play")
    person.choose("Start")
    again = person.top(PlayScreen)
    assert again.live.setup.ghost is not None
    assert [look.ghost for look in again.view.after.styles] == [False, True]
    person.ticks(180 + 60)
    timing = again.view.after.timing
    assert timing is not None
    assert timing.best == lap
    ghost, own = again.view.after.cars[1], again.view.after.cars[0]
    assert ghost["step_count"] == own["step_count"]
    assert ghost["speed"] > own["speed"]


def test_a_watched_agent_finishes_laps_and_its_policy_is_shown(person: Person) -> None:
    person.choose("Watch")
    person.top(WatchSetupScreen)
    person.choose("champion")
    watch = person.top(WatchScreen)
    person.frames(9 * 60)
    assert watch.live.tick.laps
    assert watch.view.after.insight is not None
    assert watch.view.after.insight.value is not None
    person.press("r")
    assert watch.live.tick.followed.ticks < 5


def test_a_broken_model_among_the_runs_gives_its_reason_and_harms_nothing(person: Person) -> None:
    run = person.data / "runs" / "broken"
    run.mkdir(parents=True)
    (run / "broken.zip").write_bytes(b"no zip at all")
    person.choose("Watch")
    person.choose("broken")
    assert "broken.zip" in person.top(MessageScreen).text
    person.press("return")
    person.top(WatchSetupScreen)


def test_overlays_are_switched_by_their_keys_and_remembered(person: Person) -> None:
    person.choose("Play")
    person.choose("Start")
    before = set(person.app.context.settings.play_overlays)
    person.press("2", "5", "1")
    assert set(person.app.context.settings.play_overlays) == before | {"reward", "physics", "rays"}
    person.frames(5)


def test_the_camera_changes_its_mode_and_can_be_dragged(person: Person) -> None:
    person.choose("Play")
    person.choose("Start")
    play = person.top(PlayScreen)
    person.frames(2)
    first = play.view.scene.car_on_screen(0)
    for _ in range(3):
        person.press("c")
        person.frames(40)
    here = play.view.scene.car_on_screen(0)
    person.drag(60, -30)
    person.frames(60)
    there = play.view.scene.car_on_screen(0)
    assert there[0] - here[0] == pytest.approx(60, abs=2)
    assert there[1] - here[1] == pytest.approx(-30, abs=2)
    person.press("c")
    person.frames(60)
    assert play.view.scene.car_on_screen(0) == pytest.approx(first, abs=3)


def test_a_screenshot_is_a_file(person: Person) -> None:
    person.press("f12")
    (shot,) = (person.data / "screenshots").glob("*.png")
    assert pygame.image.load(shot).get_size() == person.app.surface.get_size()


def _champion():  # type: ignore[no-untyped-def]
    from racer_viewer.agents import CHAMPION, load_agent

    return load_agent(CHAMPION)


class AgentSteering:
    """Steers a player's car as an agent would."""

    def __init__(self, agent, play: PlayScreen) -> None:  # type: ignore[no-untyped-def]
        self._agent, self._play = agent, play

    def update(self, controls: object, speed: float) -> tuple[float, float, float]:
        steer, throttle, brake = self._agent.act(self._play.view.after.observation).tolist()
        return steer, throttle, brake

    def release(self) -> None:
        """Do nothing."""


def test_all_screens_draw_something(person: Person, tmp_path: Path) -> None:
    for label in ENTRIES:
        person.choose(label)
        person.frames(2)
        picture = pygame.surfarray.array3d(person.picture())
        assert len({tuple(pixel) for pixel in picture[::16, ::16].reshape(-1, 3).tolist()}) > 20, label
        person.press("escape")
    person.choose("Settings")
    person.choose("Keys")
    person.top(KeysScreen)


def test_unreadable_records_do_not_prevent_driving(person: Person) -> None:
    (person.data / "records.sqlite").mkdir()
    person.choose("Play")
    person.frames(3)
    assert "records" in person.app.context.notice
    person.choose("Start")
    person.top(PlayScreen)


def test_the_backdrop_of_the_menu_stops_during_a_race(person: Person) -> None:
    person.frames(10)
    menu = person.top(MenuScreen)
    assert menu.backdrop is not None
    person.choose("Settings")
    before = menu.backdrop.ticks
    person.frames(5)
    assert menu.backdrop.ticks > before
    person.press("escape")
    person.choose("Play")
    person.choose("Start")
    before = menu.backdrop.ticks
    person.frames(5)
    assert menu.backdrop.ticks == before
