"""Where there is no display: a lap of the champion as a film in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import pygame
from PIL import Image

from racer_env.engine import TICKS_PER_SECOND
from racer_viewer.agents import CHAMPION, load_agent
from racer_viewer.folders import written_whole
from racer_viewer.modes.race import Entrant, Race
from racer_viewer.render.overlays import Overlays
from racer_viewer.render.scene import Scene
from racer_viewer.ui.theme import Theme, fitting_scale

SIZE = (720, 404)
SHOWN = ("timing", "map", "rays", "reward")
FRAME_TICKS = 3
"""Ticks from one picture to the next: 20 a second, which a GIF can say exactly."""
LONGEST = 40 * TICKS_PER_SECOND
"""Of the film [ticks]."""
COLOURS, LOOKED_AT = 64, 60
"""Colours of the film, and pictures that they are chosen from: three seconds."""


@dataclass(frozen=True)
class Film:
    """What was filmed; a lap of 0 ticks did not get round."""

    path: Path
    circuit: str
    lap_ticks: int


def film_lap(path: Path, circuit: str = "track-01") -> Film:
    """Write the champion's first lap on a circuit as a GIF."""
    theme = Theme(fitting_scale(SIZE))
    race = Race(circuit, [Entrant(CHAMPION, theme.palette.player, load_agent(CHAMPION))])
    try:
        first, *others = _in_few_colours(_pictures(race, theme))
        lap = race.laps[0].ticks if race.laps else 0
    finally:
        race.close()
    milliseconds = FRAME_TICKS * 1000 // TICKS_PER_SECOND
    with written_whole(path) as temporary:
        first.save(temporary, format="GIF", save_all=True, append_images=others, duration=milliseconds, loop=0)
    return Film(path, circuit, lap)


def _pictures(race: Race, theme: Theme) -> Iterator[Image.Image]:
    """Of one lap, each drawn in full."""
    scene, overlays = Scene(theme, patient=True), Overlays(theme, patient=True)
    surface = pygame.Surface(SIZE, depth=32)
    before = after = race.snapshot()
    while not race.laps and race.ticks < LONGEST:
        scene.tick(after)
        overlays.tick(after)
        if race.ticks % FRAME_TICKS == 0:
            scene.draw(surface, before, after, 1.0)
            overlays.draw(surface, after, SHOWN, "km/h")
            yield Image.frombytes("RGB", SIZE, pygame.image.tobytes(surface, "RGB"))
        race.step((0.0, 0.0, 0.0))
        before, after = after, race.snapshot()


def _in_few_colours(pictures: Iterator[Image.Image]) -> Iterator[Image.Image]:
    """All in the same colours, which makes a film much smaller than each in its own."""
    beginning = list(islice(pictures, LOOKED_AT))
    chosen = beginning[:: max(1, LOOKED_AT // 4)]
    sheet = Image.new("RGB", (SIZE[0], SIZE[1] * len(chosen)))
    for number, picture in enumerate(chosen):
        sheet.paste(picture, (0, SIZE[1] * number))
    palette = sheet.quantize(COLOURS)
    for picture in chain(beginning, pictures):
        yield picture.quantize(palette=palette, dither=Image.Dither.NONE)
