"""The gates of a track, where laps are counted: lines across it with their numbers."""

from __future__ import annotations

import pygame

from racer_env.engine import Track
from racer_viewer.render.camera import View
from racer_viewer.ui.theme import TEXT_SMALL, Theme

FAINT = (236, 240, 244)
RIM = (18, 22, 26)
DISC = 10
"""Radius of what a number stands on, at scale 1 [px]."""


class GateLines:
    """All gates that a view shows; the one to be taken next stands out."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._discs: dict[tuple[int, bool], pygame.Surface] = {}

    def draw(self, surface: pygame.Surface, view: View, track: Track, taken: int) -> None:
        """`taken`: the gate that the followed car took last."""
        following = (taken + 1) % len(track.gates)
        ends = view.points_to_screen(track.gates[:, :4].reshape(-1, 2, 2))
        low, high = ends.min(axis=1), ends.max(axis=1)
        seen = ((high > -DISC) & (low < (view.size[0] + DISC, view.size[1] + DISC))).all(axis=1)
        for number in [*(each for each in seen.nonzero()[0].tolist() if each != following), following]:
            if seen[number]:
                self._draw_gate(surface, ends[number].tolist(), number, number == following)

    def _draw_gate(self, surface: pygame.Surface, ends: list[list[float]], number: int, following: bool) -> None:
        theme, (inner, outer) = self._theme, ends
        colour = theme.palette.accent if following else FAINT
        if following:
            pygame.draw.aaline(surface, RIM, inner, outer, theme.px(4))
        pygame.draw.aaline(surface, colour, inner, outer, theme.px(2 if following else 1))
        disc = self._disc(number, following)
        surface.fblits([(disc, disc.get_rect(center=(round(x), round(y)))) for x, y in ends])

    def _disc(self, number: int, following: bool) -> pygame.Surface:
        """What stands at both ends of a gate."""
        key = number, following
        if key not in self._discs:
            theme = self._theme
            radius = theme.px(DISC)
            disc = pygame.Surface((2 * radius + 6, 2 * radius + 6), pygame.SRCALPHA, 32)
            middle = disc.get_rect().center
            pygame.draw.aacircle(disc, RIM, middle, radius + 1.5)
            if following:
                pygame.draw.aacircle(disc, theme.palette.accent, middle, radius)
            text = theme.text(str(number), TEXT_SMALL, theme.palette.on_accent if following else theme.palette.text)
            disc.blit(text, text.get_rect(center=(middle[0], middle[1] + 1)))
            self._discs[key] = disc
        return self._discs[key]
