"""Draw the app's icon: a car on a bend.

python tools/icon.py [FILE]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.update(SDL_VIDEODRIVER="dummy", SDL_AUDIODRIVER="dummy")

import pygame

SIZE = 512
DRAWN = 4 * SIZE
"""Size of the drawing [px], which is scaled down to smooth the edges."""


def icon() -> pygame.Surface:
    big = pygame.Surface((DRAWN, DRAWN), pygame.SRCALPHA)
    tile = big.get_rect()
    pygame.draw.rect(big, (38, 70, 46), tile, border_radius=DRAWN // 5)
    _road(big)
    _car(big)
    mask = pygame.Surface((DRAWN, DRAWN), pygame.SRCALPHA)
    pygame.draw.rect(mask, (255, 255, 255), tile, border_radius=DRAWN // 5)
    big.blit(mask, (0, 0), special_flags=pygame.BLEND_RGBA_MIN)
    return pygame.transform.smoothscale(big, (SIZE, SIZE))


def _road(big: pygame.Surface) -> None:
    """Draw a bend around the lower right corner, with kerbs."""
    centre, radius, width = (1.02 * DRAWN, 1.02 * DRAWN), 0.62 * DRAWN, 0.40 * DRAWN
    pygame.draw.circle(big, (235, 235, 235), centre, radius + 0.54 * width)
    for number in range(0, 64, 2):
        start = pygame.Vector2(0, -1).rotate(-90 + number * 90 / 32)
        end = pygame.Vector2(0, -1).rotate(-90 + (number + 1) * 90 / 32)
        reach = radius + 0.6 * width
        pygame.draw.polygon(big, (205, 58, 52), [centre, centre + start * reach, centre + end * reach])
    pygame.draw.circle(big, (38, 70, 46), centre, radius + 0.60 * width, width=int(0.05 * width))
    pygame.draw.circle(big, (58, 60, 66), centre, radius + 0.46 * width)
    pygame.draw.circle(big, (235, 235, 235), centre, radius - 0.43 * width)
    pygame.draw.circle(big, (38, 70, 46), centre, radius - 0.48 * width)


def _car(big: pygame.Surface) -> None:
    """Draw the car from above."""
    length, width = 0.46 * DRAWN, 0.22 * DRAWN
    car = pygame.Surface((length * 1.2, width * 1.4), pygame.SRCALPHA)
    box = car.get_rect()
    for x in (0.22, 0.72):
        for y in (0.14, 0.86):
            wheel = pygame.Rect(0, 0, 0.17 * length, 0.26 * width)
            wheel.center = (int(x * length + 0.1 * length), int(0.2 * width + y * width))
            pygame.draw.rect(car, (18, 18, 22), wheel, border_radius=wheel.height // 3)
    body = pygame.Rect(0, 0, length, 0.72 * width)
    body.center = box.center
    nose, tail = int(0.35 * width), int(0.12 * width)
    pygame.draw.rect(car, (240, 138, 36), body, -1, -1, tail, nose, tail, nose)
    stripe = pygame.Rect(0, 0, length, 0.12 * width)
    stripe.center = box.center
    pygame.draw.rect(car, (252, 240, 224), stripe)
    cabin = pygame.Rect(0, 0, 0.34 * length, 0.52 * width)
    cabin.center = (box.centerx - int(0.04 * length), box.centery)
    pygame.draw.rect(car, (24, 30, 40), cabin, border_radius=int(0.14 * width))
    wing = pygame.Rect(0, 0, 0.07 * length, 0.92 * width)
    wing.midleft = (body.left - int(0.01 * length), box.centery)
    pygame.draw.rect(car, (30, 30, 36), wing, border_radius=int(0.03 * length))
    turned = pygame.transform.rotozoom(car, 45, 1.0)
    big.blit(turned, turned.get_rect(center=(0.565 * DRAWN, 0.565 * DRAWN)))


if __name__ == "__main__":
    target = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent.parent / "racer_viewer" / "icon.png"
    pygame.image.save(icon(), target)
