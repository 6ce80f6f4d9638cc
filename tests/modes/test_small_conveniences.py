"""Questions before something is lost, and keys that work as in other games."""

from dataclasses import replace

import pygame
import pytest

from racer_viewer.app.menu import MenuScreen
from racer_viewer.modes.play import PauseScreen, PlayScreen
from racer_viewer.modes.race import PENALTY_TICKS
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.settings_screen import MAX_NAME_LENGTH, KeysScreen, NameScreen
from racer_viewer.modes.train import setup
from racer_viewer.modes.train.setup import TrainSetupScreen
from racer_viewer.optional import SB3
from racer_viewer.render.overlays.race_hud import RaceHud
from racer_viewer.training.config import RunConfig
from racer_viewer.ui.intents import Command, TextInput
from racer_viewer.ui.theme import Theme
from tests.modes.person import Person


def start_play(person: Person) -> PlayScreen:
    person.choose("Play")
    person.choose("Start")
    return person.top(PlayScreen)


class CountingTheme(Theme):
    """Theme that counts the panels it has made."""

    panels = 0

    def panel(self, width: int, height: int) -> pygame.Surface:
        self.panels += 1
        return super().panel(width, height)


def test_escape_in_the_main_menu_asks_before_the_app_is_left(person: Person) -> None:
    person.press("escape")
    assert person.top(MessageScreen).title == "Quit Racer?"
    person.press("escape")
    person.top(MenuScreen)
    person.press("escape")
    person.choose("Quit")
    assert person.app.context.top is None


def test_signs_over_a_race_are_built_once_and_not_in_every_frame(person: Person) -> None:
    play = start_play(person)
    theme, hud = CountingTheme(), RaceHud(laps=3)
    surface = pygame.Surface((640, 360))
    hud.draw(surface, theme, play.view.after, held=90)
    built = theme.panels
    for _ in range(5):
        hud.draw(surface, theme, play.view.after, held=90)
    assert built > 0
    assert theme.panels == built


def test_the_mouse_wheel_moves_the_following_view_closer_and_is_remembered(person: Person) -> None:
    play = start_play(person)
    person.frames(3)
    before = play.view.camera.view.scale
    person.scroll(1, 600, 300)
    person.ticks(30)
    person.frames(1)
    assert play.view.camera.view.scale == pytest.approx(before * 2**0.5)
    for _ in range(9):
        person.scroll(-1, 600, 300)
    assert person.app.context.settings.zoom == -2


def test_a_shoulder_button_of_a_gamepad_puts_the_car_back(person: Person) -> None:
    play = start_play(person)
    person.ticks(play.countdown + 30)
    person.pad(pygame.CONTROLLER_BUTTON_LEFTSHOULDER)
    person.frames(2)
    assert 0 < play.live.tick.followed.held <= PENALTY_TICKS


def test_a_pause_is_followed_by_a_countdown_in_which_the_car_stands(person: Person) -> None:
    play = start_play(person)
    person.ticks(play.countdown + 20)
    person.press("p")
    person.top(PauseScreen)
    person.press("p")
    assert person.top(PlayScreen) is play
    ticks = play.live.tick.followed.ticks
    assert play.countdown
    person.ticks(10)
    assert play.live.tick.followed.ticks == ticks


def test_a_key_that_is_taken_is_not_taken_away_without_a_question(person: Person) -> None:
    person.choose("Settings")
    person.choose("Keys")
    person.choose("Restart")
    person.press("c")
    question = person.top(MessageScreen)
    assert "Camera" in question.text
    person.choose("Cancel")
    assert person.app.context.settings.bindings[Command.CAMERA] == ("c",)
    person.top(KeysScreen)
    person.frames(2)
    person.choose("Restart")
    person.press("c")
    person.choose("Use C for Restart")
    assert person.app.context.settings.bindings[Command.RESTART] == ("c",)
    assert person.app.context.settings.bindings[Command.CAMERA] == ("r",)


def test_a_held_arrow_key_goes_on_through_a_list_and_stops_at_its_end(person: Person) -> None:
    person.choose("Settings")
    listed = person.app.context.top.list  # type: ignore[union-attr]
    person.hold("down")
    person.frames(60)
    assert listed.chosen > 5
    person.frames(60)
    assert listed.chosen == len(listed.items) - 1, "it does not begin again at the top"
    person.release("down")
    person.press("up")
    chosen = listed.chosen
    person.frames(60)
    assert listed.chosen == chosen


def test_a_held_arrow_key_moves_a_slider_and_a_held_button_of_a_gamepad_too(person: Person) -> None:
    person.choose("Settings")
    person.go_to("Volume")
    person.hold("left")
    person.frames(90)
    person.release("left")
    assert person.app.context.settings.volume == 0.0
    pad = {"button": pygame.CONTROLLER_BUTTON_DPAD_RIGHT, "instance_id": 0}
    pygame.event.post(pygame.event.Event(pygame.CONTROLLERBUTTONDOWN, **pad))
    person.frames(90)
    pygame.event.post(pygame.event.Event(pygame.CONTROLLERBUTTONUP, **pad))
    person.frames(1)
    loud = person.app.context.settings.volume
    assert loud > 0.5
    person.frames(90)
    assert person.app.context.settings.volume == loud


def test_a_held_arrow_key_does_not_switch_on_and_off(person: Person) -> None:
    person.choose("Settings")
    person.go_to("Colour-blind palette")
    person.hold("right")
    person.frames(120)
    person.release("right")
    assert person.app.context.settings.colour_blind


def test_a_held_arrow_key_does_not_go_on_in_the_list_that_it_opened(person: Person) -> None:
    person.hold("down")
    person.choose("Settings")
    person.frames(60)
    assert person.app.context.top.list.chosen == 0  # type: ignore[union-attr]


def test_a_reset_says_what_it_resets_and_keeps_the_name(person: Person) -> None:
    person.app.context.change(name="Ada", volume=0.1)
    person.choose("Settings")
    person.choose("Reset settings")
    assert person.app.context.settings.name == "Ada"
    assert person.app.context.settings.volume == 0.6
    assert person.app.context.notice == "Settings reset to defaults. Keys and name are unchanged."
    person.choose("Keys")
    person.choose("Reset keys")
    assert person.app.context.notice == "Keys reset to defaults"


def test_the_first_letter_replaces_the_name_and_the_limit_is_said(person: Person) -> None:
    person.choose("Settings")
    person.choose("Your name")
    screen = person.top(NameScreen)
    screen.handle(TextInput("Grace"))
    screen.handle(TextInput("x" * 40))
    assert f"{MAX_NAME_LENGTH} characters" in person.app.context.notice
    person.press("return")
    assert person.app.context.settings.name == ("Grace" + "x" * 40)[:MAX_NAME_LENGTH]


def test_an_app_without_torch_trains_ppo_and_says_what_sac_needs(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = replace(SB3, modules=("torch_that_is_not_there",))
    started: list[RunConfig] = []
    monkeypatch.setattr(setup, "SB3", missing)
    monkeypatch.setattr(setup, "open_training", lambda app, config, **options: started.append(config))
    person.choose("Train")
    person.top(TrainSetupScreen)
    person.choose("Start")
    assert [each.local_engine for each in started] == ["native"]
    person.go_to("Algorithm")
    person.press("right")
    person.choose("Start")
    assert person.top(MessageScreen).title == f"{missing.title} is not installed"
    assert len(started) == 1


def test_the_engine_is_chosen_in_the_form_for_ppo(person: Person) -> None:
    person.choose("Train")
    form = person.top(TrainSetupScreen)
    assert form.config.local_engine == "native"
    person.go_to("Engine")
    person.press("right")
    assert form.config.local_engine == "sb3"
    person.go_to("Algorithm")
    person.press("right")
    assert "Engine" not in [item.label for item in form.list.items]
    assert form.config.local_engine == "sb3"
    person.press("right")
    person.go_to("Engine")
    person.press("right")
    assert form.config.local_engine == "native"
