"""A user of the real app: posts the events that a person would cause."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pygame

from racer_viewer.app.menu import WelcomeScreen
from racer_viewer.app.window import App
from racer_viewer.modes.screen import Screen
from racer_viewer.ui.intents import Scroll

Kind = TypeVar("Kind", bound=Screen)
FRAME = 1.0 / 60.0
LIMIT = 90.0
"""Timeout of everything that is waited for [s]."""


class Person:
    """A user who presses keys, moves the mouse and sees the screen on top."""

    def __init__(self, data: Path, newcomer: bool = False) -> None:
        """Open the app; only a newcomer sees the offer of the guided tour."""
        self.data = data
        self.app = App(data)
        if isinstance(self.app.context.top, WelcomeScreen) and not newcomer:
            self.app.context.top.back()
        self.app.context.warmup.wait()

    def frames(self, count: int = 1, seconds: float = FRAME) -> None:
        """Run frames of the window, each after so much time [s]."""
        for _ in range(count):
            self.app.frame(seconds)

    def ticks(self, count: int) -> None:
        """Advance by ticks with four frames per second, which is much faster than `frames`."""
        whole, rest = divmod(count, 15)
        for ticks in [15] * whole + [rest] * bool(rest):
            self.app.frame(ticks * FRAME * 1.0000001)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Run frames until a condition is true; fail after the timeout."""
        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end, f"waited {LIMIT:g} s for {what}: {self.app.context.notice}"
            self.frames()
            pygame.time.wait(10)

    def until_top(self, kind: type[Kind]) -> Kind:
        """Wait until a screen of this kind is on top."""
        self.until(lambda: isinstance(self.app.context.top, kind), kind.__name__)
        return self.top(kind)

    def hold(self, *keys: str) -> None:
        for key in keys:
            self._post(pygame.KEYDOWN, key)

    def release(self, *keys: str) -> None:
        for key in keys:
            self._post(pygame.KEYUP, key)

    def press(self, *keys: str) -> None:
        """Press and release keys one after the other, each with a frame of its own."""
        for key in keys:
            self.hold(key)
            self.release(key)
            self.frames()

    def point(self, x: int, y: int) -> None:
        pygame.event.post(pygame.event.Event(pygame.MOUSEMOTION, pos=(x, y), rel=(0, 0), buttons=(0, 0, 0)))
        self.frames()

    def drag(self, dx: int, dy: int, to: tuple[int, int] = (600, 300)) -> None:
        pygame.event.post(pygame.event.Event(pygame.MOUSEMOTION, pos=to, rel=(dx, dy), buttons=(1, 0, 0)))
        self.frames()

    def scroll(self, steps: int, x: int, y: int) -> None:
        """Turn the mouse wheel at a position, without moving the mouse there."""
        self.app.context.top.handle(Scroll(steps, x, y))  # type: ignore[union-attr]
        self.frames()

    def click(self, x: int, y: int, button: int = pygame.BUTTON_LEFT) -> None:
        self.button_down(x, y, button)
        pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONUP, pos=(x, y), button=button))
        self.frames()

    def button_down(self, x: int, y: int, button: int = pygame.BUTTON_LEFT) -> None:
        """Press and hold a mouse button."""
        pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONDOWN, pos=(x, y), button=button))
        self.frames()

    def click_item(self, label: str) -> None:
        """Click a line of the list on top."""
        self.click(*self._item_centre(label))

    def point_at_item(self, label: str) -> None:
        """Move the mouse over a line of the list on top."""
        self.point(*self._item_centre(label))

    def _item_centre(self, label: str) -> tuple[int, int]:
        listed = self.app.context.top.list  # type: ignore[union-attr]
        rects = listed.rects_of(listed.find(label))
        assert rects is not None, f"{label} is scrolled out of view"
        return tuple(rects.row.center)

    def write(self, text: str) -> None:
        """Type text, as the keyboard layout produces it."""
        pygame.event.post(pygame.event.Event(pygame.TEXTINPUT, text=text))
        self.frames()

    def pad(self, button: int) -> None:
        pygame.event.post(pygame.event.Event(pygame.CONTROLLERBUTTONDOWN, button=button, instance_id=0))
        self.frames()

    def choose(self, label: str) -> None:
        """Select a line of the list on top with the arrow keys and press Enter."""
        self.go_to(label)
        self.press("return")

    def go_to(self, label: str) -> None:
        listed = self.app.context.top.list  # type: ignore[union-attr]
        listed.find(label)
        while listed.item.label != label:
            self.press("down")

    def top(self, kind: type[Kind]) -> Kind:
        """Return the screen on top, which must be of this class."""
        top = self.app.context.top
        assert isinstance(top, kind), f"{type(top).__name__} is on top: {self.app.context.notice}"
        return top

    def picture(self) -> pygame.Surface:
        self.app.draw(1.0)
        return self.app.surface

    def _post(self, kind: int, key: str) -> None:
        code = pygame.key.key_code(key)
        pygame.event.post(pygame.event.Event(kind, key=code, mod=0, unicode="", scancode=0))
