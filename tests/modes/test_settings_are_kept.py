"""Settings are changed at once, kept at once, and survive whatever happens to their file."""

import json
from pathlib import Path

import pygame
import pytest

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
    person.go_to("Interface scale")
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
    person.press("j")
    assert person.app.context.settings.bindings[Command.RESTART] == ("j",)
    assert person.app.input.bindings[Command.RESTART] == ("j",)
    person.choose("Camera")
    person.press("escape")
    assert person.app.context.settings.bindings[Command.CAMERA] == ("c",)
    person.choose("Reset keys")
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


DAMAGED = {
    "deep": b'{"bindings":' * 100_000,
    "deep unknown": b'{"hologram":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "not a number": b'{"volume": NaN}',
    "infinite": b'{"ui_scale": 1e999}',
    "huge whole number": b'{"laps": ' + b"9" * 5000 + b"}",
    "huge window": b'{"window": [2000000000, 2000000000]}',
    "window without size": b'{"window": [0, -5]}',
    "window of text": b'{"window": ["a", null]}',
    "list": b"[]",
    "keys without end": b'{"bindings": {"brake": [' + b'"a",' * 50_000 + b'"b"]}}',
    "zero byte": b'{"circuit": "a\\u0000.json"}',
    "too large": b'{"volume": 0.5' + b" " * 2**20 + b"}",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_the_app_starts_with_any_settings_file(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    (tmp_path / "settings.json").write_bytes(content)
    user = Person(tmp_path, newcomer=True)
    try:
        user.frames(2)
        assert user.app.context.settings == Settings()
        assert "settings.damaged.json" in user.app.context.notice
        assert "\n" not in user.app.context.notice
        assert len(user.app.context.notice) < 200
        user.choose("Skip the tour")
        user.choose("Play")
        user.frames(2)
    finally:
        user.app.close()
    assert (tmp_path / "settings.damaged.json").read_bytes() == content


STRANGE = (
    {"name": "\x1b[2J\u202eadA", "circuit": "random:" + "9" * 300, "opponents": ["", "../../x", "\u2028"]},
    {"bindings": {"brake": ["no such key", ""], "throttle": []}, "overlays": ["", "timing", "timing", "hologram"]},
    {"circuit": "/" + "x" * 4000 + ".json", "window": [1, 8192], "frame_limit": 1000},
)


@pytest.mark.parametrize("content", STRANGE, ids=("names", "keys", "sizes"))
def test_the_app_works_with_strange_settings(
    content: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    (tmp_path / "settings.json").write_text(json.dumps(content))
    user = Person(tmp_path)
    try:
        for label in ("Play", "Watch", "Settings"):
            user.choose(label)
            user.frames(3)
            user.press("escape")
        user.choose("Play")
        user.choose("Start")
        user.frames(10)
    finally:
        user.app.close()


def test_each_damaged_file_is_kept(tmp_path: Path) -> None:
    for content in ("{", "["):
        (tmp_path / "settings.json").write_text(content)
        assert SettingsFile(tmp_path).load() == Settings()
    kept = sorted(path.read_text() for path in tmp_path.glob("settings.damaged*.json"))
    assert kept == ["[", "{"]
