"""Record of a frame's texts and plates, taken from a surface that notes what is drawn onto it.

Letters that the typeface does not have are a problem of the frame too.

A text is what `Theme.text` returned; a plate is a picture with texts, or one that was made by `Theme.panel`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pygame
import pygame.freetype
import pytest

from racer_viewer.render.scene import Scene
from racer_viewer.ui.display import WindowPicture
from racer_viewer.ui.theme import Theme

PlainSurface = pygame.Surface
FULL_SHARE = 0.95
"""Share of the frame from which a picture is a background that hides all below it on purpose."""


@dataclass
class Part:
    """A text or a plate, with its place in the frame or in its plate [px]."""

    words: str
    place: pygame.Rect

    @property
    def is_text(self) -> bool:
        return not self.words.startswith("plate")

    def __str__(self) -> str:
        return f"{self.words!r} at {tuple(self.place)}"


@dataclass
class Frame:
    """Parts of one frame, and what is wrong with it."""

    size: tuple[int, int]
    parts: list[Part] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    shortened: list[str] = field(default_factory=list)


class Ink:
    """Registry of texts and plates of a frame by the identity of their surfaces, which it keeps alive."""

    def __init__(self) -> None:
        self.words: dict[int, str] = {}
        self._kept: list[pygame.Surface] = []
        self.frame: Frame | None = None

    def name(self, surface: pygame.Surface, words: str) -> None:
        self.words[id(surface)] = words
        self._kept.append(surface)

    def clear(self) -> None:
        """Forget everything; pictures of many sizes need gigabytes."""
        self.words.clear()
        self._kept.clear()


INK = Ink()


class NotingSurface(pygame.Surface):
    """A surface that notes texts and plates drawn onto it or onto its parts."""

    def blit(self, source: pygame.Surface, dest: Any = (0, 0), area: Any = None, special_flags: int = 0) -> pygame.Rect:
        self._note(source, dest, area)
        return super().blit(source, dest, area, special_flags)

    def fblits(self, pairs: Any, special_flags: int = 0) -> None:
        pairs = list(pairs)
        for source, dest in pairs:
            if len(INK.words.get(id(source), "")) > 1:  # glyphs of numbers are noted by none
                self._note(source, dest, None)
        super().fblits(pairs, special_flags)

    def copy(self) -> pygame.Surface:
        copied = NotingSurface(self.get_size(), self.get_flags() & pygame.SRCALPHA, self.get_bitsize())
        PlainSurface.blit(copied, self, (0, 0), None, pygame.BLEND_RGBA_ADD)
        if id(self) in INK.words:
            INK.name(copied, INK.words[id(self)])
        return copied

    def _note(self, source: pygame.Surface, dest: Any, area: Any) -> None:
        words = INK.words.get(id(source))
        whole = self.get_abs_parent()
        frame = INK.frame
        if frame is None or not words or not words.strip():
            self._note_background(source, dest)
            return
        place = source.get_rect(topleft=dest[:2] if isinstance(dest, pygame.Rect | Sequence) else dest)
        if area is not None:
            place.size = pygame.Rect(area).size
        inked = source.get_bounding_rect() if area is None else source.get_rect()
        inked = inked.move(place.topleft)
        if not self.get_rect().contains(inked):
            frame.problems.append(f"{words!r} is cut: {tuple(inked)} in {self.get_size()}")
        if isinstance(whole, NotingFrame):
            offset = self.get_abs_offset()
            opaque = not source.get_flags() & pygame.SRCALPHA
            self._add(frame, Part(words, inked.move(offset)), opaque)
        elif id(whole) not in INK.words:
            INK.name(whole, "plate of " + words)

    def _note_background(self, source: pygame.Surface, dest: Any) -> None:
        frame = INK.frame
        if frame is None or not isinstance(self.get_abs_parent(), NotingFrame):
            return
        size = source.get_size()
        if size[0] >= FULL_SHARE * frame.size[0] and size[1] >= FULL_SHARE * frame.size[1]:
            frame.parts.clear()

    def _add(self, frame: Frame, part: Part, opaque: bool) -> None:
        if opaque and not part.is_text:
            frame.parts = [each for each in frame.parts if not part.place.contains(each.place)]  # replaced
        for other in frame.parts:
            both = part.place.clip(other.place)
            if both.width < 2 or both.height < 2 or part.words == other.words != "plate":  # a text with its outline
                continue
            if part.is_text and not other.is_text and other.place.contains(part.place):
                continue
            frame.problems.append(f"{part} is on {other}")
        frame.parts.append(part)


class NotingFrame(NotingSurface):
    """The picture of the window."""


class Letters(dict[str, bool]):
    """Letters that were drawn, and True for those that pygame's typeface has."""

    def __missing__(self, letter: str) -> bool:
        pygame.freetype.init()
        self[letter] = pygame.freetype.Font(None, 20).get_metrics(letter)[0] is not None
        return self[letter]


LETTERS = Letters()


@contextmanager
def noted(patch: pytest.MonkeyPatch, size: tuple[int, int]) -> Iterator[Frame]:
    """Let the app draw a picture of this size, without the world, and record its texts and plates."""
    with patch.context() as inner:
        theme_text, theme_panel, theme_truncate = Theme.text, Theme.panel, Theme.truncate

        def text(self: Theme, words: str, *args: Any, **values: Any) -> pygame.Surface:
            surface = theme_text(self, words, *args, **values)
            INK.name(surface, words)
            missing = [letter for letter in words if not letter.isspace() and not LETTERS[letter]]
            if missing and INK.frame is not None:
                INK.frame.problems.append(f"{words!r} has letters that the typeface has not: {missing}")
            return surface

        def panel(self: Theme, *args: Any) -> pygame.Surface:
            surface = theme_panel(self, *args)
            INK.name(surface, "plate")
            return surface

        def truncate(self: Theme, words: str, width: int, *args: Any) -> str:
            shown = theme_truncate(self, words, width, *args)
            if shown != words and INK.frame is not None:
                INK.frame.shortened.append(f"{words!r} is shortened to {shown!r}")
            return shown

        inner.setattr(Theme, "truncate", truncate)
        inner.setattr(pygame, "Surface", NotingSurface)
        inner.setattr(Theme, "text", text)
        inner.setattr(Theme, "panel", panel)
        inner.setattr(Scene, "draw", lambda self, *args, **values: None)
        picture = NotingFrame(size, depth=32)
        inner.setattr(WindowPicture, "surface", property(lambda self: picture))
        inner.setattr(WindowPicture, "reduction", property(lambda self: 1))
        inner.setattr(WindowPicture, "show", lambda self: None)
        INK.clear()
        frame = INK.frame = Frame(size)
        try:
            yield frame
        finally:
            INK.frame = None
