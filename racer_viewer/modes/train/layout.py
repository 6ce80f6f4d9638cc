"""Where the parts of a training are shown."""

from __future__ import annotations

from enum import Enum

import pygame

GAP = 4
"""Between two parts [px]."""
SHOWCASE_SHARE, SWARM_SHARE = 0.56, 0.46
"""Of the width that the showcase has beside the others, and of the height that the swarm has above the curves."""


class Layout(Enum):
    """In the order in which one key goes through them."""

    ALL = "everything"
    SHOWCASE = "the policy that drives"
    SWARM = "all cars that learn"
    CURVES = "curves"


def panes(layout: Layout, area: pygame.Rect) -> dict[Layout, pygame.Rect]:
    """Of each part that is shown, its place within an area."""
    if layout is not Layout.ALL:
        return {layout: area}
    left = pygame.Rect(area.topleft, (round(area.width * SHOWCASE_SHARE), area.height))
    right = pygame.Rect(left.right + GAP, area.y, area.right - left.right - GAP, area.height)
    upper = pygame.Rect(right.topleft, (right.width, round(right.height * SWARM_SHARE)))
    lower = pygame.Rect(right.x, upper.bottom + GAP, right.width, right.bottom - upper.bottom - GAP)
    return {Layout.SHOWCASE: left, Layout.SWARM: upper, Layout.CURVES: lower}


def gaps(places: dict[Layout, pygame.Rect], area: pygame.Rect) -> list[pygame.Rect]:
    """What the parts leave free of their area."""
    if Layout.CURVES not in places or len(places) < 2:
        return []
    left, upper = places[Layout.SHOWCASE], places[Layout.SWARM]
    upright = pygame.Rect(left.right, area.y, upper.x - left.right, area.height)
    return [upright, pygame.Rect(upper.x, upper.bottom, upper.width, places[Layout.CURVES].y - upper.bottom)]
