"""Theme: colours, fonts and sizes of everything drawn over the picture."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import pygame
import pygame.freetype

from racer_viewer.plain_text import MAX_LINE_LENGTH, plain_line

Colour = tuple[int, int, int]

EM = 0.6875
"""Height of an em as a part of the font size, as in pygame's plain font module."""


class Font:
    """pygame's built-in typeface at one size; all lines have the same height and baseline.

    Drawn by freetype, which spaces small letters more evenly than pygame's plain font module.
    """

    def __init__(self, size: int) -> None:
        pygame.freetype.init()
        self._em = EM * size
        self._font = pygame.freetype.Font(None, self._em)
        self._font.kerning = False
        self._font.pad = True

    def render(self, text: str, colour: Colour) -> pygame.Surface:
        return self._font.render(_drawable(text), colour)[0]

    def size(self, text: str) -> tuple[int, int]:
        return self._font.get_rect(_drawable(text)).size

    def get_height(self) -> int:
        return self._font.get_rect("X").height

    def get_ascent(self) -> int:
        """Return the distance from the top of a line to its baseline [px]."""
        return self._font.get_sized_ascender(self._em)


_OTHER_SPACES = {ord(space): " " for space in ("\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}")}
"""Spaces that the typeface does not have, with the one that is drawn instead."""


def _drawable(text: str) -> str:
    """Return a text of one line whose spaces the typeface has."""
    return plain_line(text).translate(_OTHER_SPACES) or " "


TEXT_SMALL, TEXT, TEXT_LARGE, TEXT_HUGE = 18, 22, 34, 84
"""Font sizes at scale 1 [px]."""
MARGIN, PADDING, CORNER = 16, 12, 10
"""Distance from the window's edge, padding within a panel, and radius of its corners, at scale 1 [px]."""
REFERENCE_HEIGHT = 720
"""Window height for scale 1 [px]."""
MIN_SCALE, MAX_SCALE = 0.9, 4.0
"""Limits of the scale that follows from the window's size; the user's own factor comes on top."""
SHRINK_STEP, MIN_SHRINK = 0.93, 0.4
"""Factor by which letters shrink until something fits, and the smallest part of the scale that remains."""
MAX_CACHED_TEXTS = 512


@dataclass(frozen=True)
class Palette:
    """Colours by meaning. `series` are those of data that is neither good nor bad."""

    colour_blind: bool = False
    """True for the palette whose colours differ for colour-blind people too."""

    text: Colour = (244, 242, 234)
    faint: Colour = (168, 176, 172)
    panel: tuple[int, int, int, int] = (14, 18, 20, 200)
    line: Colour = (62, 70, 74)
    accent: Colour = (255, 176, 46)
    """Colour of the selected item and of warnings."""
    on_accent: Colour = (24, 20, 10)
    good: Colour = (92, 214, 122)
    bad: Colour = (255, 92, 76)
    player: Colour = (226, 62, 44)
    cars: tuple[Colour, ...] = (
        (58, 134, 255), (255, 190, 11), (46, 196, 120), (186, 104, 230),
        (255, 128, 62), (48, 200, 214), (240, 98, 160), (170, 184, 60),
    )  # fmt: skip
    """Colours of opponents, in order."""
    series: tuple[Colour, ...] = (
        (92, 214, 122), (80, 168, 255), (255, 92, 76), (255, 176, 46), (200, 120, 240), (150, 160, 166),
    )  # fmt: skip


ORDINARY = Palette()
COLOUR_BLIND = Palette(
    colour_blind=True,
    accent=(240, 228, 66),
    good=(86, 180, 233),
    bad=(230, 110, 20),
    player=(213, 94, 0),
    cars=(
        (86, 180, 233), (240, 228, 66), (0, 158, 115), (204, 121, 167),
        (0, 114, 178), (230, 159, 0), (190, 190, 190), (120, 94, 240),
    ),
    series=((0, 158, 115), (86, 180, 233), (213, 94, 0), (230, 159, 0), (204, 121, 167), (150, 160, 166)),
)  # fmt: skip
"""Palette by Okabe and Ito: good and bad differ as blue and orange and in lightness, not as green and red."""


class Theme:
    """A palette at a scale, with a cache of rendered text."""

    def __init__(self, scale: float = 1.0, palette: Palette = ORDINARY) -> None:
        self.scale, self.palette = scale, palette
        self._fonts: dict[int, Font] = {}
        self._smaller: Theme | None = None
        self._texts: OrderedDict[tuple[str, int, Colour], pygame.Surface] = OrderedDict()

    @property
    def smaller(self) -> Theme:
        """The same theme with slightly smaller letters and lengths, for what would not fit otherwise."""
        if self._smaller is None:
            self._smaller = Theme(self.scale * SHRINK_STEP, self.palette)
        return self._smaller

    def fitting(self, fits: Callable[[Theme], bool], least: float = MIN_SHRINK) -> Theme:
        """Return the largest theme that fits, this one or a smaller one, but at least this part of its scale."""
        theme = self
        while not fits(theme) and theme.smaller.scale >= least * self.scale:
            theme = theme.smaller
        return theme

    def px(self, length: float) -> int:
        """Convert a length at scale 1 to pixels, at least 1."""
        return max(1, round(length * self.scale))

    def font(self, size: int = TEXT) -> Font:
        if size not in self._fonts:
            self._fonts[size] = Font(self.px(size))
        return self._fonts[size]

    def text(self, text: str, size: int = TEXT, colour: Colour | None = None) -> pygame.Surface:
        """Render a line of text. The surface is cached and shared: do not draw on it."""
        key = text, size, colour or self.palette.text
        if key in self._texts:
            self._texts.move_to_end(key)
        else:
            self._texts[key] = self.font(size).render(text, key[2])
            if len(self._texts) > MAX_CACHED_TEXTS:
                self._texts.popitem(last=False)
        return self._texts[key]

    def width(self, text: str, size: int = TEXT) -> int:
        return self.font(size).size(text)[0]

    def line_height(self, size: int = TEXT) -> int:
        return self.font(size).get_height()

    def truncate(self, text: str, width: int, size: int = TEXT) -> str:
        """Return the text, cut with an ellipsis if it is wider than `width` pixels."""
        if self.width(text, size) <= width:
            return text
        return text[: self._fitting(text, width, size, "…")].rstrip() + "…"

    def wrapped(self, text: str, width: int, size: int = TEXT) -> list[str]:
        """Return the text as lines of at most `width` pixels, broken between words and within words that are wider."""
        lines = [""]
        for word in plain_line(text).split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.width(longer, size) > width:
                lines.append(word)
            else:
                lines[-1] = longer
            while len(lines[-1]) > 1 and self.width(lines[-1], size) > width:
                count = max(1, self._fitting(lines[-1], width, size))
                lines[-1:] = [lines[-1][:count], lines[-1][count:]]
        return lines

    def _fitting(self, text: str, width: int, size: int, end: str = "") -> int:
        """Return the number of leading characters of a text that, with `end` after them, fit into `width` pixels."""
        counts = range(1, min(len(text), MAX_LINE_LENGTH) + 1)
        return bisect_right(counts, width, key=lambda count: self.width(text[:count] + end, size))

    def panel(self, width: int, height: int) -> pygame.Surface:
        """Return a translucent panel with round corners; sizes in pixels."""
        panel = pygame.Surface((width, height), pygame.SRCALPHA, 32)
        pygame.draw.rect(panel, self.palette.panel, panel.get_rect(), border_radius=self.px(CORNER))
        return panel


def fitting_scale(size: tuple[int, int], wanted: float = 1.0) -> float:
    """Return the scale for a window of this size, times the user's own factor."""
    natural = min(size[1] / REFERENCE_HEIGHT, size[0] / (REFERENCE_HEIGHT * 4 / 3))
    return min(MAX_SCALE, max(MIN_SCALE, natural)) * wanted
