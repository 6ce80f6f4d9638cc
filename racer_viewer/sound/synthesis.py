"""Sounds as arrays: mono, float32, peak 1, made from sines and seeded noise. Knows numpy and nothing that plays them.

Loops are made from their spectrum: whatever comes out of an inverse Fourier transform goes on seamlessly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from racer_viewer.sound.catalogue import RATE

Samples = NDArray[np.float32]
Weights = NDArray[np.float32]
"""Amplitude by frequency."""

ATTACK, RELEASE = 0.003, 0.012
"""How a sound begins and ends without a click [s]."""
_SEED = 5
_MOST_BINS = RATE + 1
"""Of the longest loop, 2 s."""


def noise_loop(samples: int, shape: Callable[[Weights], Weights], seed: int = _SEED) -> Samples:
    """Noise without a seam, where shape gives the amplitude at frequencies [Hz]."""
    frequencies = np.fft.rfftfreq(samples, 1.0 / RATE).astype(np.float32)
    return to_peak(np.fft.irfft(shape(frequencies) * random_spectrum(len(frequencies), seed), samples))


def random_spectrum(count: int, seed: int) -> NDArray[np.complex64]:
    """Bins of noise that is equally strong at all frequencies but 0; not to be written to."""
    return _random_bins(seed)[:count]


@cache
def _random_bins(seed: int) -> NDArray[np.complex64]:
    bins = np.random.default_rng(seed).standard_normal(2 * _MOST_BINS, np.float32).view(np.complex64)
    bins[0] = 0.0
    return bins


def to_peak(samples: NDArray[np.floating], peak: float = 1.0) -> Samples:
    return np.asarray(samples * (peak / np.abs(samples).max()), np.float32)


def resonance(frequencies: Weights, centre: float, width: float) -> Weights:
    """1 at the centre, half of it one width away [Hz]."""
    return np.asarray(1.0 / (1.0 + ((frequencies - centre) / width) ** 2 * 3.0) ** 0.5, np.float32)


def band(frequencies: Weights, low: float, high: float) -> Weights:
    """About 1 from low to high [Hz], falling off gently on both sides."""
    rise, fall = (frequencies / low) ** 2, (frequencies / high) ** 2
    return np.asarray(rise / (1.0 + rise) / (1.0 + fall), np.float32)


def tyre_loop() -> Samples:
    """A squeal of a few close pitches that waver, over the hiss of rubber."""

    def shape(f: Weights) -> Weights:
        cry = (
            resonance(f, 690.0, 16.0) ** 2 + 0.7 * resonance(f, 742.0, 22.0) ** 2 + 0.5 * resonance(f, 905.0, 30.0) ** 2
        )
        overtones = 0.3 * resonance(f, 1_400.0, 60.0) ** 2 + 0.16 * resonance(f, 2_150.0, 120.0) ** 2
        return np.asarray(cry + overtones + 0.035 * band(f, 500.0, 3_500.0), np.float32)

    return noise_loop(54_000, shape)


def rumble_loop() -> Samples:
    """Grass and gravel under the car: a deep shaking with grains in it."""
    deep = noise_loop(60_000, lambda f: band(f, 45.0, 110.0) ** 1.5)
    grains = noise_loop(60_000, lambda f: band(f, 700.0, 2_600.0), _SEED + 1)
    return to_peak(deep + 0.8 * grains * np.clip(deep, 0.0, 1.0) ** 2 + 0.05 * grains)


def scrape_loop() -> Samples:
    """Metal along a wall."""

    def shape(f: Weights) -> Weights:
        metal = resonance(f, 1_150.0, 90.0) + 0.8 * resonance(f, 1_830.0, 120.0) + 0.6 * resonance(f, 3_070.0, 200.0)
        return np.asarray(metal * band(f, 400.0, 4_000.0) + 0.1 * band(f, 250.0, 3_000.0), np.float32)

    harsh = noise_loop(36_000, shape, _SEED + 2)
    chatter = noise_loop(36_000, lambda f: band(f, 18.0, 40.0) ** 2, _SEED + 3)
    return to_peak(harsh * (0.6 + 0.4 * chatter))


def wind_loop() -> Samples:
    """Air at speed."""
    return noise_loop(96_000, lambda f: band(f, 180.0, 520.0) ** 1.5, _SEED + 4)


def note(frequency: float, seconds: float, half_life: float, overtones: Sequence[float] = ()) -> Samples:
    """A struck tone: overtones are amplitudes of twice the frequency, three times, and so on; high ones die first."""
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
    """Sounds that begin at their times [s] and may overlap."""
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
    """Four notes up to a chord."""
    brass = (0.5, 0.35, 0.2, 0.1)
    rising = [(0.11 * i, note(pitch, 0.4, 0.09, brass)) for i, pitch in enumerate((523.3, 659.3, 784.0))]
    chord = [(0.33, 0.7 * note(pitch, 1.1, 0.24, brass)) for pitch in (659.3, 784.0, 1_046.5)]
    return melody([*rising, *chord])


def wall_hit() -> Samples:
    """A thud, deep and short, and a scrape that dies away."""
    time = _times(0.38)
    pitch = 55.0 + 70.0 * np.exp2(time / -0.025)
    thud = np.sin(2.0 * np.pi * np.cumsum(pitch) / RATE) * np.exp2(time / -0.045)
    crack = noise_loop(len(time) // 2 * 2, lambda f: band(f, 300.0, 1_800.0), _SEED + 6)
    scrape = 0.35 * scrape_loop()[: len(time)] * np.exp2(time / -0.07)
    return to_peak(_without_clicks(thud + 0.7 * crack * np.exp2(time / -0.018) + scrape))


def _held(frequency: float, seconds: float) -> Samples:
    """A soft tone that stays and then goes."""
    time = _times(seconds)
    tone = np.sin(2.0 * np.pi * frequency * time) + 0.2 * np.sin(4.0 * np.pi * frequency * time)
    fall = np.clip((seconds - time) / (0.6 * seconds), 0.0, 1.0) ** 2
    return to_peak(_without_clicks(tone * fall))


def _times(seconds: float) -> NDArray[np.float64]:
    return np.arange(round(seconds * RATE)) / RATE


def _without_clicks(samples: NDArray[np.floating]) -> NDArray[np.floating]:
    """Fades in and out."""
    result = samples.copy()
    attack, release = round(ATTACK * RATE), round(RELEASE * RATE)
    result[:attack] *= np.linspace(0.0, 1.0, attack)
    result[-release:] *= np.linspace(1.0, 0.0, release)
    return result
