"""What happened last in a training, over its picture."""

from __future__ import annotations

from collections.abc import Sequence

import pygame

from racer_viewer.curves import Event
from racer_viewer.modes.train.shown_policy import steps_in_words
from racer_viewer.ui.theme import PADDING, TEXT_SMALL, Theme

SHOWN = 4
WIDTH = 260
"""Of a line, at scale 1 [px]."""


class EventPanel:
    """Drawn anew only when something has happened."""

    def __init__(self) -> None:
        self._drawn: tuple[object, ...] = ()
        self._panel = pygame.Surface((1, 1))

    def draw(self, surface: pygame.Surface, theme: Theme, events: Sequence[Event], midbottom: tuple[int, int]) -> None:
        last = tuple(events[-SHOWN:])
        if not last:
            return
        if (theme, last) != self._drawn:
            self._drawn, self._panel = (theme, last), _panel(theme, last)
        surface.blit(self._panel, self._panel.get_rect(midbottom=midbottom))


def _panel(theme: Theme, events: Sequence[Event]) -> pygame.Surface:
    line, padding = theme.line_height(TEXT_SMALL) + theme.px(5), theme.px(PADDING)
    words = [f"{steps_in_words(event.steps)}   {event.text}" for event in events]
    lines = [theme.fitting(each, theme.px(WIDTH), TEXT_SMALL) for each in words]
    width = max(theme.width(text, TEXT_SMALL) for text in lines) + 2 * padding
    panel = theme.panel(width, line * len(lines) + padding)
    for number, text in enumerate(lines):
        colour = theme.palette.text if number == len(lines) - 1 else theme.palette.faint
        panel.blit(theme.text(text, TEXT_SMALL, colour), (padding, padding // 2 + number * line))
    return panel
