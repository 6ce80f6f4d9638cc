"""The engine: six cylinders, four strokes, heard at one speed of revolution as a loop without a seam.

A stack of orders (multiples of the working cycle, half the revolution): every sixth is an ignition and strongest,
what lies between is the unevenness that makes it growl. Exhaust and intake have resonances that stay where they are
when the pitch moves, so fast and slow are one engine and not one tape at two speeds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from racer_viewer.sound.catalogue import RATE
from racer_viewer.sound.synthesis import Samples, Weights, band, random_spectrum, resonance

CYLINDERS = 6
LOOP_SECONDS = 0.5
HIGHEST_FREQUENCY = 9_000.0
"""Above, the engine has nothing [Hz]."""
OTHER_BANK, BETWEEN = 0.38, 0.13
"""Strength of orders that two banks of cylinders make, and of the others, against ignition."""
WAVER = ((-7, 0.03), (-3, 0.05), (-1, 0.04), (2, 0.04), (4, 0.05), (8, 0.03))
"""How much of an order lies so many bins beside it: turns are not quite alike."""
BODY_NOISE, LOAD_NOISE = 0.09, 0.28
"""How loud noise is against the orders."""
BODY_RMS, LOAD_RMS = 0.23, 0.15
"""Loudness of the two layers, less where their peaks would exceed 1 together."""
_SEED = 11
_MOST_ORDERS = 600
_RANDOM = np.random.default_rng(_SEED)
_TURNS = np.exp(2j * np.pi * _RANDOM.random(_MOST_ORDERS)).astype(np.complex64)
_UNEVEN = _RANDOM.uniform(0.3, 1.0, _MOST_ORDERS).astype(np.float32)
_SIDES = _RANDOM.standard_normal((len(WAVER), 2 * _MOST_ORDERS), np.float32).view(np.complex64)
"""Phase, strength and wavering of orders: the same at all revs, so that it is one engine."""
_FACTORS = (2, 3, 5)
_CYCLES_TRIED = 3
"""More and fewer cycles than wanted, to come closer to the pitch."""


@dataclass(frozen=True, eq=False)
class EngineLoop:
    """body: always heard. load: the bite on top of it when the engine pulls. Played together they reach peak 1."""

    frequency: float
    """Ignitions per second, as the loop has them [Hz]."""
    body: Samples
    load: Samples


def engine_loop(frequency: float) -> EngineLoop:
    """At about so many ignitions per second [Hz]: a loop has a whole number of cycles and a length that is quick."""
    cycles, length = _loop_size(frequency / CYLINDERS)
    cycle = cycles * RATE / length
    bins = np.fft.rfftfreq(length, 1.0 / RATE).astype(np.float32)
    orders = np.arange(1, int(HIGHEST_FREQUENCY / cycle))
    heights = _order_strengths(orders)
    body = _layer(orders * cycles, heights * _body(orders * cycle, frequency), band(bins, 90.0, 900.0), BODY_NOISE)
    load = _layer(orders * cycles, heights * _load(orders * cycle), band(bins, 900.0, 3_500.0), LOAD_NOISE)
    body, load = body * (BODY_RMS / _rms(body)), load * (LOAD_RMS / _rms(load))
    scale = min(1.0, 1.0 / float((np.abs(body) + np.abs(load)).max()))
    return EngineLoop(cycle * CYLINDERS, body * np.float32(scale), load * np.float32(scale))


def _order_strengths(orders: NDArray[np.int_]) -> Weights:
    uneven = BETWEEN * _UNEVEN[orders]
    kinds = np.where(orders % CYLINDERS == 0, 1.0, np.where(orders % (CYLINDERS // 2) == 0, OTHER_BANK, uneven))
    return kinds.astype(np.float32)


def _body(frequencies: Weights, ignition: float) -> Weights:
    """Strongest at ignition, falling above and below, with the exhaust's two resonances."""
    ratio = frequencies / ignition
    tilt = np.where(ratio < 1.0, ratio**0.7, ratio**-1.25)
    exhaust = 1.0 + 0.5 * resonance(frequencies, 420.0, 160.0) + 0.6 * resonance(frequencies, 980.0, 260.0)
    return np.asarray(tilt * exhaust, np.float32)


def _load(frequencies: Weights) -> Weights:
    """The intake: middle and upper pitches."""
    intake = 0.4 + resonance(frequencies, 1_250.0, 300.0) + 0.6 * resonance(frequencies, 2_500.0, 600.0)
    return np.asarray(band(frequencies, 650.0, 2_000.0) * intake, np.float32)


def _layer(places: NDArray[np.int_], heights: Weights, noise: Weights, noisiness: float) -> Samples:
    """Orders at their bins, each a little wavering, and noise, so loud against the orders."""
    strengths = heights * _TURNS[: len(places)]
    spectrum = random_spectrum(len(noise), _SEED) * noise
    spectrum *= noisiness * np.linalg.norm(strengths) / np.linalg.norm(spectrum)
    spectrum[places] += strengths
    for (offset, share), sides in zip(WAVER, _SIDES, strict=True):
        spectrum[places + offset] += share * strengths * sides[: len(places)]
    return np.asarray(np.fft.irfft(spectrum, 2 * (len(noise) - 1)), np.float32)


def _loop_size(cycle: float) -> tuple[int, int]:
    """Whole cycles and samples of a loop that is nearly right in pitch and whose transform is quick."""
    middle = max(_CYCLES_TRIED, round(LOOP_SECONDS * cycle))
    tried = range(middle - _CYCLES_TRIED + 1, middle + _CYCLES_TRIED)
    exact = {cycles: cycles * RATE / cycle for cycles in tried}
    pairs = [(cycles, size) for cycles, length in exact.items() for size in _QUICK if 0.98 < size / length < 1.02]
    return min(pairs, key=lambda pair: abs(pair[1] / exact[pair[0]] - 1.0))


def _quick_lengths(shortest: int, longest: int) -> list[int]:
    """Even numbers without large factors."""
    found = {2}
    for factor in _FACTORS:
        found |= {n * factor**k for n in found for k in range(16) if n * factor**k <= longest}
    return sorted(n for n in found if n >= shortest)


_QUICK = _quick_lengths(RATE // 20, RATE)


def _rms(samples: NDArray[np.floating]) -> float:
    return float(np.sqrt(np.mean(np.square(samples))))
