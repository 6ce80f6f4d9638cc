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
        text = theme.text(str(number), TEXT_SMALL, theme.palette.on_accent if following else theme.palette.text)
        for end in ends:
            pygame.draw.aacircle(surface, RIM, end, theme.px(DISC) + 1.5)
            if following:
                pygame.draw.aacircle(surface, colour, end, theme.px(DISC))
            surface.blit(text, text.get_rect(center=(round(end[0]), round(end[1]) + 1)))
