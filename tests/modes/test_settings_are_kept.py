"""Settings are changed at once, kept at once, and survive whatever happens to their file."""

import json
from pathlib import Path

import pygame

from racer_viewer.modes.settings_screen import KeysScreen, SettingsScreen
from racer_viewer.settings import Settings, SettingsFile
from racer_viewer.ui.intents import Command
from tests.modes.person import Person


def test_what_is_chosen_is_there_the_next_time(person: Person) -> None:
    person.choose("Settings")
    person.go_to("Speed unit")
    person.press("right")
    person.go_to("Colour-blind palette")
    person.press("right")
    saved = SettingsFile(person.data).load()
    assert (saved.units, saved.colour_blind) == ("mph", True)
    assert person.app.context.settings == saved


def test_letters_grow_with_the_window_and_with_the_wish(person: Person) -> None:
    small = person.app.context.theme.scale
    person.choose("Settings")
    person.go_to("Size of text and panels")
    person.press("right", "right")
    assert person.app.context.theme.scale > small


def test_a_new_key_counts_at_once(person: Person) -> None:
    person.choose("Settings")
    person.choose("Keys")
    person.choose("Restart")
    assert "Press the key" in person.top(KeysScreen).content.subtitle
    person.press("h")
    assert "cannot be changed" in person.app.context.notice
    person.choose("Restart")
    person.press("x")
    assert person.app.context.settings.bindings[Command.RESTART] == ("x",)
    assert person.app.input.bindings[Command.RESTART] == ("x",)
    person.choose("Camera")
    person.press("escape")
    assert person.app.context.settings.bindings[Command.CAMERA] == ("c",)
    person.choose("Reset to defaults")
    assert person.app.context.settings.bindings[Command.RESTART] == ("r",)


def test_a_name_is_typed_and_stands_beside_what_is_driven(person: Person) -> None:
    person.choose("Settings")
    person.choose("Your name")
    person.press("backspace", "backspace", "backspace")
    pygame.event.post(pygame.event.Event(pygame.TEXTINPUT, text="Ada\n Ö"))
    person.frames()
    person.press("return")
    assert person.app.context.settings.name == "Ada Ö"
    name = next(item for item in person.top(SettingsScreen).list.items if item.label == "Your name")
    assert name.value == "Ada Ö"
    person.press("return")
    person.press("h", "m", "r")
    pygame.event.post(pygame.event.Event(pygame.TEXTINPUT, text="h" * 50))
    person.press("escape")
    person.top(SettingsScreen)
    assert person.app.context.settings.name == "Ada Ö"


def test_a_damaged_file_is_renamed_with_a_notice(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{ not json")
    file = SettingsFile(tmp_path)
    assert file.load() == Settings()
    assert "damaged" in file.problem
    assert (tmp_path / "settings.damaged.json").read_text() == "{ not json"


def test_values_of_the_wrong_kind_are_reported(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps({"volume": 7}))
    file = SettingsFile(tmp_path)
    assert file.load() == Settings()
    assert "volume" in file.problem


def test_what_a_newer_version_knows_is_no_reason_to_forget_the_rest(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(
        json.dumps({"volume": 0.25, "hologram": True, "bindings": {"brake": ["b"]}})
    )
    settings = SettingsFile(tmp_path).load()
    assert settings.volume == 0.25
    assert settings.bindings["brake"] == ("b",)
    assert settings.bindings["throttle"] == ("up", "w")


def test_a_folder_that_cannot_be_written_does_not_stop_anything(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    file = SettingsFile(blocked)
    file.save(Settings(volume=0.1))
    assert "could not be saved" in file.problem
