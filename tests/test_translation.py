"""Translations: complete catalogues with the same placeholders, and screens in the chosen language."""

import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from racer_viewer.app.menu import MenuScreen
from racer_viewer.modes.settings_screen import SettingsScreen
from racer_viewer.settings import SettingsFile
from racer_viewer.translation import LANGUAGES, _, first_known, mark, ngettext, set_language
from racer_viewer.ui.display import system_language
from tests.modes.person import Person
from tools import messages

MAX_MISSING = 0.1
"""Part of the texts that may wait for a translation; they are shown in English until then."""
TRANSLATED = [language for language in LANGUAGES if language != "en"]


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    user = Person(tmp_path)
    yield user
    user.app.close()
    set_language("en")


def placeholders(text: str) -> set[tuple[str, str]]:
    """Return name and format of each placeholder."""
    return {(name, form or "") for _text, name, form, _conversion in string.Formatter().parse(text) if name}


def test_the_catalogue_has_exactly_the_marked_texts(tmp_path: Path) -> None:
    messages.write_po(tmp_path / "fresh.pot", messages.collect())
    fresh = (tmp_path / "fresh.pot").read_text(encoding="utf-8")
    assert messages.TEMPLATE.read_text(encoding="utf-8") == fresh, "run: python tools/messages.py"


@pytest.mark.parametrize("language", TRANSLATED)
def test_translations_are_complete_but_for_the_newest_texts(language: str) -> None:
    translated = messages.read_po(messages.CATALOGUES / f"{language}.po")
    assert list(translated) == list(messages.collect()), "run: python tools/messages.py"
    missing = [text for text, each in translated.items() if not all(each.translations)]
    assert len(missing) <= MAX_MISSING * len(translated), missing


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_translation_has_the_placeholders_of_its_text(language: str) -> None:
    for text, message in messages.read_po(messages.CATALOGUES / f"{language}.po").items():
        assert len(message.translations) == (2 if message.plural else 1), text
        for translation in filter(None, message.translations):
            assert placeholders(translation) == placeholders(message.plural or text), text
            assert translation.count("\n") == text.count("\n"), text
            assert re.match(r"\s*", translation)[0] == re.match(r"\s*", text)[0], text  # type: ignore[index]


@pytest.mark.parametrize("language", TRANSLATED)
def test_the_compiled_catalogue_is_that_of_the_text(language: str) -> None:
    translated = messages.read_po(messages.CATALOGUES / f"{language}.po")
    assert messages.mo_file(language).read_bytes() == messages.compiled(translated, language)


def test_texts_are_collected_from_code_and_keep_their_translations(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(
        '_("Lap")\nmark("a \\"b\\"\\n")\nngettext("{n} lap", "{n} laps", n)\nother("x")\n'
    )
    found = messages.collect(tmp_path)
    assert list(found) == ["Lap", 'a "b"\n', "{n} lap"]
    found["Lap"].translations = ["Runde"]
    found["{n} lap"].translations = ["{n} Runde", "{n} Runden"]
    messages.write_po(tmp_path / "de.po", found, "de")
    again = messages.read_po(tmp_path / "de.po")
    assert [message.translations for message in again.values()] == [["Runde"], [""], ["{n} Runde", "{n} Runden"]]
    assert list(messages.update({"Lap": found["Lap"]}, again)) == ["Lap"]


def test_translation_happens_when_a_text_is_shown() -> None:
    marked = mark("Settings")
    try:
        set_language("de")
        assert _(marked) == "Einstellungen"
        assert _("{steps:,} of {total:,} steps").format(steps=1234, total=5) == "1\N{NO-BREAK SPACE}234 von 5 Schritten"
        assert ngettext("{laps} lap", "{laps} laps", 1) == "{laps} Runde"
        assert ngettext("{laps} lap", "{laps} laps", 3) == "{laps} Runden"
        assert _("a text without a translation") == "a text without a translation"
        assert _("") == ""
    finally:
        set_language("en")
    assert _(marked) == "Settings"
    assert _("{steps:,} of {total:,} steps").format(steps=1234, total=5) == "1,234 of 5 steps"


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [(["de_AT.UTF-8"], "de"), (["pt", "fr-CH", "de"], "fr"), (["pt"], "en"), ([""], "en"), (["den"], "en")],
)
def test_the_language_of_the_system_is_the_first_that_is_known(
    preferred: list[str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert first_known(preferred) == expected
    monkeypatch.setenv("LANGUAGE", ":".join([*preferred, "en"]))
    assert system_language() == expected


def test_the_language_changes_at_once_and_is_kept(person: Person) -> None:
    person.choose("Settings")
    before = person.picture().copy()
    person.go_to("Language")
    for _step in range(2):
        person.press("right")
    screen = person.top(SettingsScreen)
    assert [item.label for item in screen.list.items[:2]] == ["Lautstärke", "Sprache"]
    assert screen.content is not None
    assert screen.content.title == "Einstellungen"
    assert person.picture().get_view("2").raw != before.get_view("2").raw
    person.press("escape")
    menu = person.top(MenuScreen)
    assert menu.list.items[0].label == "Fahren"
    assert menu.keys()[-1] == ("Esc", "beenden")
    assert SettingsFile(person.data).load().language == "de"
