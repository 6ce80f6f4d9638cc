"""An unexpected exception closes the screens, is shown, and is written to a report."""

import pygame
import pytest

from racer_viewer.app.menu import MenuScreen
from racer_viewer.app.window import CRASH_TITLE
from racer_viewer.modes.screen import MessageScreen, Screen
from racer_viewer.ui.intents import Controls
from tests.modes.person import FRAME, Person


class BrokenScreen(Screen):
    """A screen that raises in `tick` and in `on_close`."""

    def tick(self, controls: Controls) -> None:
        raise ZeroDivisionError("the third wheel has no circumference")

    def on_close(self) -> None:
        raise ZeroDivisionError("it still has none")


class BrokenMessage(MessageScreen):
    def draw(self, surface: pygame.Surface, share: float) -> None:
        raise ZeroDivisionError("nothing can be drawn")


def test_the_report_is_named_on_screen_and_the_menu_goes_on(person: Person, capfd: pytest.CaptureFixture[str]) -> None:
    person.app.context.push(BrokenScreen(person.app.context))
    person.app.frame_or_crash(FRAME)
    message = person.app.context.top
    assert isinstance(message, MessageScreen)
    assert message.title == CRASH_TITLE
    [report] = (person.data / "logs").iterdir()
    assert str(report) in message.text
    written = report.read_text(encoding="utf-8")
    assert "third wheel" in written
    assert "test_crashed.py" in written
    assert "third wheel" in capfd.readouterr().err
    person.frames(3)
    person.press("return")
    assert isinstance(person.app.context.top, MenuScreen)


def test_a_crash_is_shown_even_if_no_report_can_be_written(person: Person) -> None:
    (person.data / "logs").write_text("a file where the folder should be")
    person.app.context.push(BrokenScreen(person.app.context))
    person.app.frame_or_crash(FRAME)
    assert isinstance(person.app.context.top, MessageScreen)
    assert "No report could be written" in person.app.context.top.text


def test_a_second_crash_at_once_ends_the_app(person: Person) -> None:
    person.app.context.push(BrokenScreen(person.app.context))
    person.app.frame_or_crash(FRAME)
    person.app.context.push(BrokenMessage(person.app.context, "", ""))
    with pytest.raises(ZeroDivisionError):
        person.app.frame_or_crash(FRAME)
