"""All sounds, as loud as they are in the mix, ready for a mixer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from racer_viewer.sound import synthesis
from racer_viewer.sound.catalogue import RUMBLE, SCRAPE, TYRES, WIND, Effect, Loop
from racer_viewer.sound.engine_note import engine_loop
from racer_viewer.sound.gearbox import BANDS, FIRING_AT_LIMIT, band_revs
from racer_viewer.sound.synthesis import Samples

ENGINE_PEAK = 0.30
"""Of one engine loop; two that crossfade reach 1.41 times that. With all noises and one effect, a mix stays below 1."""
NOISES: dict[Loop, tuple[Callable[[], Samples], float]] = {
    TYRES: (synthesis.tyre_loop, 0.20),
    RUMBLE: (synthesis.rumble_loop, 0.15),
    SCRAPE: (synthesis.scrape_loop, 0.07),
    WIND: (synthesis.wind_loop, 0.05),
}
EFFECTS: dict[Effect, tuple[Callable[[], Samples], float]] = {
    "move": (synthesis.menu_move, 0.10),
    "accept": (synthesis.menu_accept, 0.16),
    "back": (synthesis.menu_back, 0.14),
    "beep": (synthesis.countdown_beep, 0.16),
    "go": (synthesis.countdown_go, 0.20),
    "gate": (synthesis.gate_tick, 0.06),
    "lap": (synthesis.lap_chime, 0.18),
    "record": (synthesis.record_fanfare, 0.22),
    "wall": (synthesis.wall_hit, 0.25),
}
"""How each is made, and its peak in the mix."""


def make_effects() -> Iterator[tuple[Effect, Samples]]:
    for name, (make, peak) in EFFECTS.items():
        yield name, make() * np.float32(peak)


def make_loops() -> Iterator[tuple[Loop, Samples]]:
    for loop, (make, peak) in NOISES.items():
        yield loop, make() * np.float32(peak)
    for band in range(BANDS):
        engine = engine_loop(FIRING_AT_LIMIT * band_revs(band))
        yield Loop("body", band), engine.body * np.float32(ENGINE_PEAK)
        yield Loop("load", band), engine.load * np.float32(ENGINE_PEAK)


def stereo_16_bit(samples: Samples) -> NDArray[np.int16]:
    """(N, 2), the same left and right."""
    return np.repeat((samples * 32_767.0).astype(np.int16)[:, None], 2, axis=1)
