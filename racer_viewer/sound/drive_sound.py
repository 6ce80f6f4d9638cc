"""The sound of a driven car: which loops play, and how loud. Pure logic without numpy, so that it loads fast.

The simulation has no gears; a gearbox here makes the engine sound as if it had.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

RATE = 48_000
"""Sample rate [Hz]; most devices use it, so nothing is resampled."""

Effect = Literal["move", "accept", "back", "beep", "go", "gate", "lap", "record", "wall"]
"""Sounds that play once: menu choice moved, accepted or left; countdown, GO; gate, lap, record; wall hit."""

LoopKind = Literal["body", "load", "tyres", "rumble", "scrape", "wind"]


class Loop(NamedTuple):
    """A sound that repeats; `body` and `load` are the engine's layers, a pair for each band of revs."""

    kind: LoopKind
    band: int = 0


TYRES, RUMBLE, SCRAPE, WIND = Loop("tyres"), Loop("rumble"), Loop("scrape"), Loop("wind")


TOP_SPEEDS = (30.0, 43.0, 61.0, 87.0, 122.0, 172.0)
"""Speed of each gear at the rev limit [units/s]; the car's top speed of 160 is just below the last."""
SHIFT_UP_AT = 0.97
SHIFT_DOWN_AT = 0.85
"""Parts of a gear's top speed: above the first the car shifts up, below the second it shifts down to that gear."""

IDLE = 0.27
REVVING = 0.38
"""Revs at rest, and revs that full throttle adds while the clutch slips; parts of the limit."""
SLIP_REV_LOSS = 1.4
MAX_LOSS_SLIP = 0.1
"""Loss of revs per slip angle [1/rad], up to this slip angle [rad]; makes bends audible at top speed."""

FIRING_AT_LIMIT = 390.0
"""Ignitions per second at the rev limit [Hz]: the audible pitch. Revs are parts of it."""
BANDS = 40
LOWEST_BAND, HIGHEST_BAND = 0.25, 1.0
"""Revs of the first and the last engine loop; each is 3.6 %, about half a semitone, above the one before."""
_BANDS_PER_E = (BANDS - 1) / math.log(HIGHEST_BAND / LOWEST_BAND)


def gear_at(speed: float, gear: int) -> int:
    """Return the gear, from 0, that follows `gear` at this speed [units/s]."""
    while gear < len(TOP_SPEEDS) - 1 and speed > SHIFT_UP_AT * TOP_SPEEDS[gear]:
        gear += 1
    while gear > 0 and speed < SHIFT_DOWN_AT * TOP_SPEEDS[gear - 1]:
        gear -= 1
    return gear


def revs_at(speed: float, gear: int, throttle: float, slip_angle: float) -> float:
    """Return the revs as a part of the limit: set by the throttle while the clutch slips, then by the wheels."""
    clutch = IDLE + REVVING * throttle
    wheels = speed / TOP_SPEEDS[gear] * (1.0 - SLIP_REV_LOSS * min(slip_angle, MAX_LOSS_SLIP))
    return min(1.0, max(wheels, clutch if gear == 0 else IDLE))


def band_revs(band: int) -> float:
    """Return the revs of an engine loop."""
    return LOWEST_BAND * math.exp(band / _BANDS_PER_E)


def place_in_bands(revs: float) -> float:
    """Return the number of the engine loop for these revs, with a fraction between two loops."""
    place = math.log(max(revs, LOWEST_BAND) / LOWEST_BAND) * _BANDS_PER_E
    return min(place, BANDS - 1.0)


FADE = 0.08
"""Crossfade from one engine loop to the next [s]; shorter sounds like steps, longer like two engines."""
BAND_REACH = 0.6
"""Distance of the revs from the middle of a band at which another band takes over [bands]."""
REVS_LAG, LOAD_LAG, NOISE_LAG, PRESENCE_LAG = 0.05, 0.06, 0.07, 0.06
"""Time constants of revs, load, noises, and of everything at the start of a drive [s]."""
SHIFT_CUT = 0.12
"""Excess of the revs over those of the new gear at which the engine is without load."""
COASTING = 0.5
"""Loudness of an engine without load, against full load."""
AT_IDLE = 0.55
"""Loudness of an engine at its lowest revs, against the rev limit."""
SQUEAL_FROM, SQUEAL_FULL = 0.012, 0.16
"""Slip angles at which tyres become audible, and are at their loudest [rad]; good drivers stay below 0.05."""
SQUEAL_SPEED, RUMBLE_SPEED, SCRAPE_SPEED, WIND_SPEED = 30.0, 70.0, 60.0, 160.0
"""Speeds at which the noises are at their loudest [units/s]."""
GRIPS = (1.0, 0.25, 0.6)
"""Loudness of squealing tyres on road, runoff and shoulder, by surface code."""
ROUGHNESS = (0.0, 1.0, 0.55)
"""Loudness of the rumble of road, runoff and shoulder, by surface code."""
HARD_HIT, FAST_HIT = 40.0, 200.0
"""Loss of speed, and speed, of the loudest wall hit [units/s]; part of the loss follows in later ticks."""
MIN_HIT = 0.3
SILENT = 0.004
"""Gain below which a loop is not played; the mixer has 255 steps."""
MIN_HIT_INTERVAL = 0.25
"""Minimum time without contact between two hits of a wall [s]."""


@dataclass(frozen=True)
class CarSound:
    """State of a car at one tick that can be state.

    Attributes:
        speed: speed [units/s]
        throttle: throttle, 0 to 1
        slip_angle: slip angle [rad]
        surface: surface code of the engine
    """

    speed: float
    throttle: float
    slip_angle: float = 0.0
    surface: int = 0
    wall_contact: bool = False


def car_sound(car: Mapping[str, Any]) -> CarSound:
    """Return the sound state of a car row, or of any mapping with its columns."""
    return CarSound(
        float(car["speed"]),
        float(car["throttle"]),
        float(car["slip_angle"]),
        int(car["surface"]),
        bool(car["wall_contact"]),
    )


@dataclass(frozen=True)
class SoundState:
    """State of a car's sound, which changes smoothly.

    Attributes:
        revs: revs as a part of the limit
        load: load of the engine, 0 to 1
        band, next_band, fade: engine loop that fades out, the one that fades in, and the progress, 0 to 1
        presence: gain of everything, 0 to 1; rises at the start of a drive
        since_wall: time since the car touched a wall [s]
        hit: loudness of a hit in this tick, else 0
    """

    revs: float = IDLE
    gear: int = 0
    load: float = 0.0
    band: int = round(place_in_bands(IDLE))
    next_band: int = round(place_in_bands(IDLE))
    fade: float = 1.0
    presence: float = 0.0
    tyres: float = 0.0
    rumble: float = 0.0
    scrape: float = 0.0
    wind: float = 0.0
    speed: float = 0.0
    since_wall: float = MIN_HIT_INTERVAL
    hit: float = 0.0


def initial_state(car: CarSound) -> SoundState:
    """Return the silent state from which the sound of a moving car rises."""
    gear = gear_at(car.speed, 0)
    revs = revs_at(car.speed, gear, car.throttle, car.slip_angle)
    band = round(place_in_bands(revs))
    return SoundState(revs=revs, gear=gear, load=car.throttle, band=band, next_band=band, speed=car.speed)


def advance(state: SoundState, car: CarSound, seconds: float) -> SoundState:
    """Return the state after some time with the car as given."""
    gear = gear_at(car.speed, state.gear)
    wanted = revs_at(car.speed, gear, car.throttle, car.slip_angle)
    revs = _towards(state.revs, wanted, seconds, REVS_LAG)
    pull = car.throttle * max(0.0, 1.0 - max(0.0, revs - wanted) / SHIFT_CUT)
    band, next_band, fade = _bands(state, revs, seconds)
    tyres, rumble, scrape, wind = _noises(car)
    return SoundState(
        revs=revs,
        gear=gear,
        load=_towards(state.load, pull, seconds, LOAD_LAG),
        band=band,
        next_band=next_band,
        fade=fade,
        presence=_towards(state.presence, 1.0, seconds, PRESENCE_LAG),
        tyres=_towards(state.tyres, tyres, seconds, NOISE_LAG),
        rumble=_towards(state.rumble, rumble, seconds, NOISE_LAG),
        scrape=_towards(state.scrape, scrape, seconds, NOISE_LAG),
        wind=_towards(state.wind, wind, seconds, NOISE_LAG),
        speed=car.speed,
        since_wall=0.0 if car.wall_contact else state.since_wall + seconds,
        hit=_hit(state, car),
    )


def loop_levels(state: SoundState) -> dict[Loop, float]:
    """Return the gain of every audible loop, 0 to 1; the two loops of a crossfade have the power of one."""
    gains: dict[Loop, float] = {}
    loudness = state.presence * (COASTING + (1.0 - COASTING) * state.load)
    loudness *= AT_IDLE + (1.0 - AT_IDLE) * state.revs
    angle = state.fade * math.pi / 2.0
    for band, share in ((state.band, math.cos(angle)), (state.next_band, math.sin(angle))):
        gains[Loop("body", band)] = loudness * share
        gains[Loop("load", band)] = loudness * share * state.load
    for loop, gain in (
        (TYRES, state.tyres),
        (RUMBLE, state.rumble),
        (SCRAPE, state.scrape),
        (WIND, state.wind),
    ):
        gains[loop] = gain * state.presence
    return {loop: gain for loop, gain in gains.items() if gain >= SILENT}


def _towards(value: float, target: float, seconds: float, lag: float) -> float:
    return value + (target - value) * (1.0 - math.exp(-seconds / lag))


def _bands(state: SoundState, revs: float, seconds: float) -> tuple[int, int, float]:
    """Return band, next band and fade. A fade ends before the next begins; at steady revs one loop plays alone.

    Two loops that play together for long would beat against each other.
    """
    fade = state.fade + seconds / FADE
    if fade < 1.0:
        return state.band, state.next_band, fade
    place = place_in_bands(revs)
    if abs(place - state.next_band) <= BAND_REACH:
        return state.next_band, state.next_band, 1.0
    return state.next_band, round(place), 0.0


def _noises(car: CarSound) -> tuple[float, float, float, float]:
    """Return the target gains of tyres, rumble, scraping and wind."""
    slide = min(1.0, max(0.0, (car.slip_angle - SQUEAL_FROM) / (SQUEAL_FULL - SQUEAL_FROM)))
    return (
        math.sqrt(slide) * GRIPS[car.surface] * min(1.0, car.speed / SQUEAL_SPEED),
        ROUGHNESS[car.surface] * min(1.0, car.speed / RUMBLE_SPEED),
        min(1.0, car.speed / SCRAPE_SPEED) if car.wall_contact else 0.0,
        min(1.0, car.speed / WIND_SPEED) ** 2,
    )


def _hit(state: SoundState, car: CarSound) -> float:
    if not car.wall_contact or state.since_wall < MIN_HIT_INTERVAL:
        return 0.0
    return min(1.0, max(MIN_HIT, state.speed / FAST_HIT, (state.speed - car.speed) / HARD_HIT))
