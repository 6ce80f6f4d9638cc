"""What there is to play. Needs no numpy, so that it loads fast.

How fast the engine turns: a gearbox for the ear, since the simulation has none. Needs no numpy, so it loads fast.

What is to be heard of a driven car: which loops, how loud. Pure logic: the mixer and the tests both play by it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

RATE = 48_000
"""Samples per second: what most devices have, so nothing is resampled."""

Effect = Literal["move", "accept", "back", "beep", "go", "gate", "lap", "record", "wall"]
"""Plays once: a choice in a menu moves, is accepted, is left; 3-2-1, GO; a gate, a lap, a record; a wall is hit."""

LoopKind = Literal["body", "load", "tyres", "rumble", "scrape", "wind"]


class Loop(NamedTuple):
    """Sounds on and on. `body` and `load` are the engine and its bite when it pulls, a pair for each band of revs."""

    kind: LoopKind
    band: int = 0


TYRES, RUMBLE, SCRAPE, WIND = Loop("tyres"), Loop("rumble"), Loop("scrape"), Loop("wind")


TOP_SPEEDS = (30.0, 43.0, 61.0, 87.0, 122.0, 172.0)
"""Of each gear, where the engine turns at its limit [units/s]. At top speed, 160, there is a little left."""
SHIFT_UP_AT = 0.97
SHIFT_DOWN_AT = 0.85
"""Share of the top speed of a gear where the next is taken, and of the gear below where that is taken again."""

IDLE = 0.27
REVVING = 0.38
"""Revs at rest, and how much full throttle adds there while the clutch slips."""
LABOUR = 1.4
MOST_LABOUR = 0.1
"""What a slip angle costs in revs [1/rad], and where that ends [rad]: bends can be heard on a car at its top speed."""

FIRING_AT_LIMIT = 390.0
"""Ignitions per second at the limit [Hz]: the pitch that is heard. Revs are shares of that."""
BANDS = 40
LOWEST_BAND, HIGHEST_BAND = 0.25, 1.0
"""Revs of the first and the last engine loop; each is 3.6 % above the one before, half a semitone."""
_BANDS_PER_E = (BANDS - 1) / math.log(HIGHEST_BAND / LOWEST_BAND)


def gear_at(speed: float, gear: int) -> int:
    """The gear, from 0, after `gear` at this speed [units/s]."""
    while gear < len(TOP_SPEEDS) - 1 and speed > SHIFT_UP_AT * TOP_SPEEDS[gear]:
        gear += 1
    while gear > 0 and speed < SHIFT_DOWN_AT * TOP_SPEEDS[gear - 1]:
        gear -= 1
    return gear


def revs_at(speed: float, gear: int, throttle: float, slip_angle: float) -> float:
    """Revs as a share of the limit. From a standstill the clutch slips: the throttle decides, then the wheels."""
    clutch = IDLE + REVVING * throttle
    wheels = speed / TOP_SPEEDS[gear] * (1.0 - LABOUR * min(slip_angle, MOST_LABOUR))
    return min(1.0, max(wheels, clutch if gear == 0 else IDLE))


def band_revs(band: int) -> float:
    """Revs of an engine loop."""
    return LOWEST_BAND * math.exp(band / _BANDS_PER_E)


def place_in_bands(revs: float) -> float:
    """The number of the engine loop that sounds so, with a fraction if it lies between two."""
    place = math.log(max(revs, LOWEST_BAND) / LOWEST_BAND) * _BANDS_PER_E
    return min(place, BANDS - 1.0)


FADE = 0.08
"""From one engine loop to the next [s]: shorter is heard as steps, longer as two engines."""
BAND_REACH = 0.6
"""How far the revs go from the middle of a band, in bands, before another takes over."""
REVS_LAG, LOAD_LAG, NOISE_LAG, PRESENCE_LAG = 0.05, 0.06, 0.07, 0.06
"""How slowly revs, throttle, noises, and everything at the beginning, come and go [s]."""
SHIFT_CUT = 0.12
"""The engine pulls nothing while its revs are so far above those of the new gear."""
COASTING = 0.5
"""Loudness of an engine that pulls nothing."""
AT_IDLE = 0.55
"""Loudness of an engine at its lowest revs, against the limit."""
SQUEAL_FROM, SQUEAL_FULL = 0.012, 0.16
"""Slip angles where tyres begin to be heard, and where they get no louder [rad]. Good drivers keep below 0.05."""
SQUEAL_SPEED, RUMBLE_SPEED, SCRAPE_SPEED, WIND_SPEED = 30.0, 70.0, 60.0, 160.0
"""From where on the speed makes a noise no louder [units/s]."""
GRIPS = (1.0, 0.25, 0.6)
"""How tyres squeal on road, runoff and shoulder, by surface code."""
ROUGHNESS = (0.0, 1.0, 0.55)
"""How road, runoff and shoulder rumble."""
HARD_HIT, FAST_HIT = 40.0, 200.0
"""Loss of speed at a wall that makes the loudest hit, and speed that would [units/s]: much of the loss comes later."""
SOFTEST_HIT = 0.3
SILENT = 0.004
"""What is below is not played: the mixer has 255 steps."""
STILL_AT_WALL = 0.25
"""A car that leaves the wall for less than this is still at it [s]: one hit, not many."""


@dataclass(frozen=True)
class CarSound:
    """What there is to hear of a car at one tick.

    speed [units/s], throttle 0 to 1, slip angle [rad], surface code as in the engine's car.
    """

    speed: float
    throttle: float
    slip_angle: float = 0.0
    surface: int = 0
    wall_contact: bool = False


def car_sound(car: Mapping[str, Any]) -> CarSound:
    """From a car's row, or from anything else that gives its columns by name."""
    return CarSound(
        float(car["speed"]),
        float(car["throttle"]),
        float(car["slip_angle"]),
        int(car["surface"]),
        bool(car["wall_contact"]),
    )


@dataclass(frozen=True)
class Heard:
    """What sounds now; from here it moves on smoothly.

    revs: share of the engine's limit. load: how hard it pulls, 0 to 1.
    band, next_band, fade: the engine loop that goes, the one that comes, and how far that has got, 0 to 1.
    presence: of everything, 0 to 1; it grows when a drive begins. hit: loudness of a hit in this very tick, else 0.
    since_wall: how long ago the car touched a wall [s].
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
    since_wall: float = STILL_AT_WALL
    hit: float = 0.0


def beginning(car: CarSound) -> Heard:
    """Silence from which the sound of a car rises that is already on its way."""
    gear = gear_at(car.speed, 0)
    revs = revs_at(car.speed, gear, car.throttle, car.slip_angle)
    band = round(place_in_bands(revs))
    return Heard(revs=revs, gear=gear, load=car.throttle, band=band, next_band=band, speed=car.speed)


def listen(heard: Heard, car: CarSound, seconds: float) -> Heard:
    """What sounds a moment later, when the car does this."""
    gear = gear_at(car.speed, heard.gear)
    wanted = revs_at(car.speed, gear, car.throttle, car.slip_angle)
    revs = _towards(heard.revs, wanted, seconds, REVS_LAG)
    pull = car.throttle * max(0.0, 1.0 - max(0.0, revs - wanted) / SHIFT_CUT)
    band, next_band, fade = _bands(heard, revs, seconds)
    tyres, rumble, scrape, wind = _noises(car)
    return Heard(
        revs=revs,
        gear=gear,
        load=_towards(heard.load, pull, seconds, LOAD_LAG),
        band=band,
        next_band=next_band,
        fade=fade,
        presence=_towards(heard.presence, 1.0, seconds, PRESENCE_LAG),
        tyres=_towards(heard.tyres, tyres, seconds, NOISE_LAG),
        rumble=_towards(heard.rumble, rumble, seconds, NOISE_LAG),
        scrape=_towards(heard.scrape, scrape, seconds, NOISE_LAG),
        wind=_towards(heard.wind, wind, seconds, NOISE_LAG),
        speed=car.speed,
        since_wall=0.0 if car.wall_contact else heard.since_wall + seconds,
        hit=_hit(heard, car),
    )


def loop_levels(heard: Heard) -> dict[Loop, float]:
    """Every loop that sounds and its gain, 0 to 1; the two of a crossfade have the power of one."""
    gains: dict[Loop, float] = {}
    loudness = heard.presence * (COASTING + (1.0 - COASTING) * heard.load)
    loudness *= AT_IDLE + (1.0 - AT_IDLE) * heard.revs
    angle = heard.fade * math.pi / 2.0
    for band, share in ((heard.band, math.cos(angle)), (heard.next_band, math.sin(angle))):
        gains[Loop("body", band)] = loudness * share
        gains[Loop("load", band)] = loudness * share * heard.load
    for loop, gain in (
        (TYRES, heard.tyres),
        (RUMBLE, heard.rumble),
        (SCRAPE, heard.scrape),
        (WIND, heard.wind),
    ):
        gains[loop] = gain * heard.presence
    return {loop: gain for loop, gain in gains.items() if gain >= SILENT}


def _towards(value: float, target: float, seconds: float, lag: float) -> float:
    return value + (target - value) * (1.0 - math.exp(-seconds / lag))


def _bands(heard: Heard, revs: float, seconds: float) -> tuple[int, int, float]:
    """Band, next band, fade. A fade is finished before another begins; at steady revs one loop sounds alone.

    Two loops that go on side by side would beat against each other.
    """
    fade = heard.fade + seconds / FADE
    if fade < 1.0:
        return heard.band, heard.next_band, fade
    place = place_in_bands(revs)
    if abs(place - heard.next_band) <= BAND_REACH:
        return heard.next_band, heard.next_band, 1.0
    return heard.next_band, round(place), 0.0


def _noises(car: CarSound) -> tuple[float, float, float, float]:
    """Where tyres, rumble, scraping and wind tend to."""
    slide = min(1.0, max(0.0, (car.slip_angle - SQUEAL_FROM) / (SQUEAL_FULL - SQUEAL_FROM)))
    return (
        math.sqrt(slide) * GRIPS[car.surface] * min(1.0, car.speed / SQUEAL_SPEED),
        ROUGHNESS[car.surface] * min(1.0, car.speed / RUMBLE_SPEED),
        min(1.0, car.speed / SCRAPE_SPEED) if car.wall_contact else 0.0,
        min(1.0, car.speed / WIND_SPEED) ** 2,
    )


def _hit(heard: Heard, car: CarSound) -> float:
    if not car.wall_contact or heard.since_wall < STILL_AT_WALL:
        return 0.0
    return min(1.0, max(SOFTEST_HIT, heard.speed / FAST_HIT, (heard.speed - car.speed) / HARD_HIT))
