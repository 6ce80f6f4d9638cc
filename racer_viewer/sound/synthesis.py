"""Synthesis of all sounds as arrays: mono, float32, made from sines and seeded noise.

Loops are made from their spectrum: the result of an inverse Fourier transform repeats without a seam.

The engine has six cylinders and four strokes. Its spectrum is a stack of orders, multiples of the working cycle, which
is half the revolution: every sixth order is an ignition and the strongest, the orders between make the growl.
Resonances of exhaust and intake keep their frequency at all revs, so that all loops sound like the same engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from racer_viewer.sound.drive_sound import (
    BANDS,
    FIRING_AT_LIMIT,
    RATE,
    RUMBLE,
    SCRAPE,
    TYRES,
    WIND,
    Effect,
    Loop,
    band_revs,
)

Samples = NDArray[np.float32]
Weights = NDArray[np.float32]
"""Amplitudes by frequency."""

ATTACK, RELEASE = 0.003, 0.012
"""Fade-in and fade-out that avoid clicks [s]."""
_SEED = 5
_MAX_BINS = RATE + 1
"""Frequency bins of the longest loop, 2 s."""


def noise_loop(samples: int, shape: Callable[[Weights], Weights], seed: int = _SEED) -> Samples:
    """Return seamless noise; `shape` gives the amplitudes at frequencies [Hz]."""
    frequencies = np.fft.rfftfreq(samples, 1.0 / RATE).astype(np.float32)
    return to_peak(np.fft.irfft(shape(frequencies) * random_spectrum(len(frequencies), seed), samples))


def random_spectrum(count: int, seed: int) -> NDArray[np.complex64]:
    """Return frequency bins of white noise without frequency 0; read-only."""
    return _random_bins(seed)[:count]


@cache
def _random_bins(seed: int) -> NDArray[np.complex64]:
    bins = np.random.default_rng(seed).standard_normal(2 * _MAX_BINS, np.float32).view(np.complex64)
    bins[0] = 0.0
    return bins


def to_peak(samples: NDArray[np.floating], peak: float = 1.0) -> Samples:
    return np.asarray(samples * (peak / np.abs(samples).max()), np.float32)


def resonance(frequencies: Weights, centre: float, width: float) -> Weights:
    """Return weights: 1 at the centre, half of that one width away [Hz]."""
    return np.asarray(1.0 / (1.0 + ((frequencies - centre) / width) ** 2 * 3.0) ** 0.5, np.float32)


def band(frequencies: Weights, low: float, high: float) -> Weights:
    """Return weights: about 1 from low to high [Hz], falling on both sides."""
    rise, fall = (frequencies / low) ** 2, (frequencies / high) ** 2
    return np.asarray(rise / (1.0 + rise) / (1.0 + fall), np.float32)


def tyre_loop() -> Samples:
    """Return a squeal of a few close pitches over the hiss of rubber."""

    def shape(f: Weights) -> Weights:
        cry = (
            resonance(f, 690.0, 16.0) ** 2 + 0.7 * resonance(f, 742.0, 22.0) ** 2 + 0.5 * resonance(f, 905.0, 30.0) ** 2
        )
        overtones = 0.3 * resonance(f, 1_400.0, 60.0) ** 2 + 0.16 * resonance(f, 2_150.0, 120.0) ** 2
        return np.asarray(cry + overtones + 0.035 * band(f, 500.0, 3_500.0), np.float32)

    return noise_loop(54_000, shape)


def rumble_loop() -> Samples:
    """Return the rumble of grass and gravel: a deep shaking with grains."""
    deep = noise_loop(60_000, lambda f: band(f, 45.0, 110.0) ** 1.5)
    grains = noise_loop(60_000, lambda f: band(f, 700.0, 2_600.0), _SEED + 1)
    return to_peak(deep + 0.8 * grains * np.clip(deep, 0.0, 1.0) ** 2 + 0.05 * grains)


def scrape_loop() -> Samples:
    """Return the sound of metal along a wall."""

    def shape(f: Weights) -> Weights:
        metal = resonance(f, 1_150.0, 90.0) + 0.8 * resonance(f, 1_830.0, 120.0) + 0.6 * resonance(f, 3_070.0, 200.0)
        return np.asarray(metal * band(f, 400.0, 4_000.0) + 0.1 * band(f, 250.0, 3_000.0), np.float32)

    harsh = noise_loop(36_000, shape, _SEED + 2)
    chatter = noise_loop(36_000, lambda f: band(f, 18.0, 40.0) ** 2, _SEED + 3)
    return to_peak(harsh * (0.6 + 0.4 * chatter))


def wind_loop() -> Samples:
    """Return the sound of wind."""
    return noise_loop(96_000, lambda f: band(f, 180.0, 520.0) ** 1.5, _SEED + 4)


def note(frequency: float, seconds: float, half_life: float, overtones: Sequence[float] = ()) -> Samples:
    """Return a struck tone; `overtones` are amplitudes of its harmonics from the second on, which fade sooner."""
    time = _times(seconds)
    angle = 2.0 * np.pi * frequency * time
    before, harmonic, double_cosine = np.zeros_like(angle), np.sin(angle), 2.0 * np.cos(angle)
    fade = np.exp2(time / (-2.0 * half_life))
    decay, tone = fade.copy(), harmonic.copy()
    for amplitude in overtones:
        before, harmonic = harmonic, double_cosine * harmonic - before
        decay *= fade
        tone += amplitude * decay * harmonic
    return to_peak(_without_clicks(tone * fade * fade))


def melody(notes: Sequence[tuple[float, Samples]]) -> Samples:
    """Return sounds that start at their times [s] and may overlap."""
    ends = [round(start * RATE) + len(samples) for start, samples in notes]
    total = np.zeros(max(ends), np.float32)
    for (_, samples), end in zip(notes, ends, strict=True):
        total[end - len(samples) : end] += samples
    return to_peak(total)


def menu_move() -> Samples:
    return note(740.0, 0.06, 0.012, (0.2,))


def menu_accept() -> Samples:
    return melody([(0.0, note(587.3, 0.12, 0.03, (0.25, 0.1))), (0.065, note(880.0, 0.2, 0.045, (0.25, 0.1)))])


def menu_back() -> Samples:
    return melody([(0.0, note(587.3, 0.12, 0.03, (0.25, 0.1))), (0.065, note(392.0, 0.18, 0.04, (0.25, 0.1)))])


def countdown_beep() -> Samples:
    return _held(523.3, 0.16)


def countdown_go() -> Samples:
    return _held(1_046.5, 0.5)


def gate_tick() -> Samples:
    return note(1_568.0, 0.05, 0.008, (0.3,))


def lap_chime() -> Samples:
    bell = (0.35, 0.12, 0.08)
    return melody([(0.0, note(1_318.5, 0.6, 0.11, bell)), (0.13, note(1_760.0, 0.8, 0.15, bell))])


def record_fanfare() -> Samples:
    """Return three rising notes and a chord."""
    brass = (0.5, 0.35, 0.2, 0.1)
    rising = [(0.11 * i, note(pitch, 0.4, 0.09, brass)) for i, pitch in enumerate((523.3, 659.3, 784.0))]
    chord = [(0.33, 0.7 * note(pitch, 1.1, 0.24, brass)) for pitch in (659.3, 784.0, 1_046.5)]
    return melody([*rising, *chord])


def wall_hit() -> Samples:
    """Return a short deep thud and a scrape that fades."""
    time = _times(0.38)
    pitch = 55.0 + 70.0 * np.exp2(time / -0.025)
    thud = np.sin(2.0 * np.pi * np.cumsum(pitch) / RATE) * np.exp2(time / -0.045)
    crack = noise_loop(len(time) // 2 * 2, lambda f: band(f, 300.0, 1_800.0), _SEED + 6)
    scrape = 0.35 * scrape_loop()[: len(time)] * np.exp2(time / -0.07)
    return to_peak(_without_clicks(thud + 0.7 * crack * np.exp2(time / -0.018) + scrape))


def _held(frequency: float, seconds: float) -> Samples:
    """Return a soft tone that is held and then fades."""
    time = _times(seconds)
    tone = np.sin(2.0 * np.pi * frequency * time) + 0.2 * np.sin(4.0 * np.pi * frequency * time)
    fall = np.clip((seconds - time) / (0.6 * seconds), 0.0, 1.0) ** 2
    return to_peak(_without_clicks(tone * fall))


def _times(seconds: float) -> NDArray[np.float64]:
    return np.arange(round(seconds * RATE)) / RATE


def _without_clicks(samples: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the samples faded in and out."""
    result = samples.copy()
    attack, release = round(ATTACK * RATE), round(RELEASE * RATE)
    result[:attack] *= np.linspace(0.0, 1.0, attack)
    result[-release:] *= np.linspace(1.0, 0.0, release)
    return result


CYLINDERS = 6
LOOP_SECONDS = 0.5
MAX_FREQUENCY = 9_000.0
"""Maximum frequency of the engine [Hz]."""
BANK_STRENGTH, OTHER_STRENGTH = 0.38, 0.13
"""Strength of the orders of the two cylinder banks, and of the others, against ignition."""
WAVER = ((-7, 0.03), (-3, 0.05), (-1, 0.04), (2, 0.04), (4, 0.05), (8, 0.03))
"""Side bands of an order: offset in bins and strength; they make revolutions slightly irregular."""
BODY_NOISE, LOAD_NOISE = 0.09, 0.28
"""Loudness of noise against the orders."""
BODY_RMS, LOAD_RMS = 0.23, 0.15
"""Loudness of the two layers; reduced where their sum would exceed 1."""
_ENGINE_SEED = 11
_MAX_ORDERS = 600
_RANDOM = np.random.default_rng(_ENGINE_SEED)
_TURNS = np.exp(2j * np.pi * _RANDOM.random(_MAX_ORDERS)).astype(np.complex64)
_UNEVEN = _RANDOM.uniform(0.3, 1.0, _MAX_ORDERS).astype(np.float32)
_SIDES = _RANDOM.standard_normal((len(WAVER), 2 * _MAX_ORDERS), np.float32).view(np.complex64)
"""Phases, strengths and side bands of orders; the same at all revs, so that it sounds like one engine."""
_FACTORS = (2, 3, 5)
_CYCLES_TRIED = 3
"""Range of cycle counts to try for a pitch that fits better."""


@dataclass(frozen=True, eq=False)
class EngineLoop:
    """Two layers of the engine at one speed of revolution; played together they reach peak 1.

    Attributes:
        frequency: ignitions per second [Hz]
        body: layer that always plays
        load: layer that is added under load
    """

    frequency: float
    body: Samples
    load: Samples


def engine_loop(frequency: float) -> EngineLoop:
    """Return the loop with about this many ignitions per second [Hz]; it has a whole number of cycles."""
    cycles, length = _loop_size(frequency / CYLINDERS)
    cycle = cycles * RATE / length
    bins = np.fft.rfftfreq(length, 1.0 / RATE).astype(np.float32)
    orders = np.arange(1, int(MAX_FREQUENCY / cycle))
    heights = _order_strengths(orders)
    body = _layer(orders * cycles, heights * _body(orders * cycle, frequency), band(bins, 90.0, 900.0), BODY_NOISE)
    load = _layer(orders * cycles, heights * _load(orders * cycle), band(bins, 900.0, 3_500.0), LOAD_NOISE)
    body, load = body * (BODY_RMS / _rms(body)), load * (LOAD_RMS / _rms(load))
    scale = min(1.0, 1.0 / float((np.abs(body) + np.abs(load)).max()))
    return EngineLoop(cycle * CYLINDERS, body * np.float32(scale), load * np.float32(scale))


def _order_strengths(orders: NDArray[np.int_]) -> Weights:
    uneven = OTHER_STRENGTH * _UNEVEN[orders]
    kinds = np.where(orders % CYLINDERS == 0, 1.0, np.where(orders % (CYLINDERS // 2) == 0, BANK_STRENGTH, uneven))
    return kinds.astype(np.float32)


def _body(frequencies: Weights, ignition: float) -> Weights:
    """Return weights of the body: strongest at ignition, with two resonances of the exhaust."""
    ratio = frequencies / ignition
    tilt = np.where(ratio < 1.0, ratio**0.7, ratio**-1.25)
    exhaust = 1.0 + 0.5 * resonance(frequencies, 420.0, 160.0) + 0.6 * resonance(frequencies, 980.0, 260.0)
    return np.asarray(tilt * exhaust, np.float32)


def _load(frequencies: Weights) -> Weights:
    """Return weights of the load: middle and upper frequencies of the intake."""
    intake = 0.4 + resonance(frequencies, 1_250.0, 300.0) + 0.6 * resonance(frequencies, 2_500.0, 600.0)
    return np.asarray(band(frequencies, 650.0, 2_000.0) * intake, np.float32)


def _layer(places: NDArray[np.int_], heights: Weights, noise: Weights, noisiness: float) -> Samples:
    """Return orders at their bins, with side bands, and noise."""
    strengths = heights * _TURNS[: len(places)]
    spectrum = random_spectrum(len(noise), _ENGINE_SEED) * noise
    spectrum *= noisiness * np.linalg.norm(strengths) / np.linalg.norm(spectrum)
    spectrum[places] += strengths
    for (offset, share), sides in zip(WAVER, _SIDES, strict=True):
        spectrum[places + offset] += share * strengths * sides[: len(places)]
    return np.asarray(np.fft.irfft(spectrum, 2 * (len(noise) - 1)), np.float32)


def _loop_size(cycle: float) -> tuple[int, int]:
    """Return cycles and samples of a loop with nearly the right pitch and a fast Fourier transform."""
    middle = max(_CYCLES_TRIED, round(LOOP_SECONDS * cycle))
    tried = range(middle - _CYCLES_TRIED + 1, middle + _CYCLES_TRIED)
    exact = {cycles: cycles * RATE / cycle for cycles in tried}
    pairs = [
        (cycles, size) for cycles, length in exact.items() for size in _FAST_LENGTHS if 0.98 < size / length < 1.02
    ]
    return min(pairs, key=lambda pair: abs(pair[1] / exact[pair[0]] - 1.0))


def _fast_lengths(shortest: int, longest: int) -> list[int]:
    """Return even numbers without large prime factors."""
    found = {2}
    for factor in _FACTORS:
        found |= {n * factor**k for n in found for k in range(16) if n * factor**k <= longest}
    return sorted(n for n in found if n >= shortest)


_FAST_LENGTHS = _fast_lengths(RATE // 20, RATE)


def _rms(samples: NDArray[np.floating]) -> float:
    return float(np.sqrt(np.mean(np.square(samples))))


ENGINE_PEAK = 0.30
"""Peak of one engine loop; a crossfade reaches 1.41 times that. With all noises and one effect a mix stays below 1."""
NOISES: dict[Loop, tuple[Callable[[], Samples], float]] = {
    TYRES: (tyre_loop, 0.20),
    RUMBLE: (rumble_loop, 0.15),
    SCRAPE: (scrape_loop, 0.07),
    WIND: (wind_loop, 0.05),
}
EFFECTS: dict[Effect, tuple[Callable[[], Samples], float]] = {
    "move": (menu_move, 0.10),
    "accept": (menu_accept, 0.16),
    "back": (menu_back, 0.14),
    "beep": (countdown_beep, 0.16),
    "go": (countdown_go, 0.20),
    "gate": (gate_tick, 0.06),
    "lap": (lap_chime, 0.18),
    "record": (record_fanfare, 0.22),
    "wall": (wall_hit, 0.25),
}
"""Effects: the function that makes each, and its peak in the mix."""


def make_effects() -> Iterator[tuple[Effect, Samples]]:
    """Yield all effects at their peaks in the mix."""
    for name, (make, peak) in EFFECTS.items():
        yield name, make() * np.float32(peak)


def make_loops() -> Iterator[tuple[Loop, Samples]]:
    """Yield all loops at their peaks in the mix."""
    for loop, (make, peak) in NOISES.items():
        yield loop, make() * np.float32(peak)
    for band in range(BANDS):
        engine = engine_loop(FIRING_AT_LIMIT * band_revs(band))
        yield Loop("body", band), engine.body * np.float32(ENGINE_PEAK)
        yield Loop("load", band), engine.load * np.float32(ENGINE_PEAK)


def stereo_16_bit(samples: Samples) -> NDArray[np.int16]:
    """Return the samples as 16-bit stereo, `(N, 2)`."""
    return np.repeat((samples * 32_767.0).astype(np.int16)[:, None], 2, axis=1)
