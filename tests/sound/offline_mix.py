"""The mix of a drive as an array, by the game's own logic, with volumes that step from block to block as SDL's do."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from racer_viewer.sound.drive_sound import RATE, CarSound, Loop, SoundState, advance, initial_state, loop_levels
from racer_viewer.sound.mixer import BUFFER, LOUDNESS_POWER, VOLUME_STEPS
from racer_viewer.sound.synthesis import make_effects, make_loops

TICKS_PER_SECOND = 60
TICK = RATE // TICKS_PER_SECOND
"""Samples per tick."""


def hear(drive: Sequence[CarSound]) -> list[SoundState]:
    """Return the sound state after every tick."""
    state, result = initial_state(drive[0]), []
    for car in drive:
        state = advance(state, car, 1 / TICKS_PER_SECOND)
        result.append(state)
    return result


class OfflineMixer:
    """Has the sounds; makes them once."""

    def __init__(self) -> None:
        self.loops = dict(make_loops())
        self.effects = dict(make_effects())

    def mix(self, ticks: list[SoundState], volume: float = 1.0) -> NDArray[np.float32]:
        blocks = len(ticks) * TICK // BUFFER
        total = np.zeros(blocks * BUFFER, np.float32)
        places: dict[Loop, int] = {}
        for block in range(blocks):
            start = block * BUFFER
            levels = loop_levels(ticks[start // TICK])
            places = {loop: places.get(loop, 0) for loop in levels}
            for loop, gain in levels.items():
                samples = np.take(self.loops[loop], np.arange(places[loop], places[loop] + BUFFER), mode="wrap")
                total[start : start + BUFFER] += samples * (round(gain * VOLUME_STEPS) / VOLUME_STEPS)
                places[loop] += BUFFER
        for number, state in enumerate(ticks):
            if state.hit:
                rest = total[number * TICK :]
                hit = self.effects["wall"][: len(rest)]
                rest[: len(hit)] += hit * state.hit
        return total * np.float32(volume**LOUDNESS_POWER)
