"""The sounds themselves: no clicks, the right pitch, the same every time, and quick to make."""

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from racer_viewer.sound.drive_sound import (
    BANDS,
    FIRING_AT_LIMIT,
    GRIPS,
    RATE,
    ROUGHNESS,
    RUMBLE,
    SCRAPE,
    TYRES,
    WIND,
    Loop,
    band_revs,
)
from racer_viewer.sound.synthesis import (
    EFFECTS,
    ENGINE_PEAK,
    NOISES,
    engine_loop,
    make_effects,
    make_loops,
    stereo_16_bit,
)
from tests.sound.offline_mix import OfflineMixer


def spectrum(samples: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Frequencies and amplitudes."""
    return np.fft.rfftfreq(len(samples), 1 / RATE), np.abs(np.fft.rfft(samples))


def middle_frequency(samples: NDArray[np.float32]) -> float:
    """Return the centre of the spectrum."""
    frequencies, amplitudes = spectrum(samples)
    return float((frequencies * amplitudes).sum() / amplitudes.sum())


def test_every_sound_is_a_plain_array(mixer: OfflineMixer) -> None:
    for name, samples in [*mixer.loops.items(), *mixer.effects.items()]:
        assert samples.dtype == np.float32, name
        assert samples.ndim == 1, name
        assert np.isfinite(samples).all(), name
        assert 0.02 < np.abs(samples).max() < 0.5, name


def test_loops_go_on_without_a_click(mixer: OfflineMixer) -> None:
    for loop, samples in mixer.loops.items():
        jumps = np.abs(np.diff(samples))
        assert abs(samples[0] - samples[-1]) <= jumps.max(), loop
        bend = np.abs(np.diff(samples, 2))
        assert abs(samples[1] - 2 * samples[0] + samples[-1]) <= bend.max(), loop


def test_effects_begin_and_end_in_silence(mixer: OfflineMixer) -> None:
    for name, samples in mixer.effects.items():
        assert abs(samples[0]) < 1e-3, name
        assert abs(samples[-1]) < 1e-3, name
        assert np.abs(samples[:RATE]).max() == pytest.approx(EFFECTS[name][1], rel=0.01), name
        assert len(samples) < 2 * RATE, name


def test_every_engine_loop_has_the_pitch_of_its_band(mixer: OfflineMixer) -> None:
    heard = []
    for band in range(BANDS):
        frequencies, amplitudes = spectrum(mixer.loops[Loop("body", band)])
        heard.append(frequencies[amplitudes.argmax()])
    np.testing.assert_allclose(heard, [FIRING_AT_LIMIT * band_revs(band) for band in range(BANDS)], rtol=0.008)
    assert (np.diff(heard) > 0.0).all()


def test_the_engine_is_not_a_plain_tone() -> None:
    loop = engine_loop(300.0)
    frequencies, amplitudes = spectrum(loop.body)
    strongest = amplitudes.max()
    for order in (3, 9, 12, 18):
        near = amplitudes[np.abs(frequencies - order * loop.frequency / 6) < 4.0].max()
        assert 0.02 * strongest < near < strongest, order


def test_an_engine_that_pulls_is_brighter() -> None:
    for frequency in (110.0, 200.0, 360.0):
        loop = engine_loop(frequency)
        assert middle_frequency(loop.load) > 1.3 * middle_frequency(loop.body)


def test_all_bands_are_equally_loud(mixer: OfflineMixer) -> None:
    loudness = [float(np.sqrt(np.mean(mixer.loops[Loop("body", band)] ** 2))) for band in range(BANDS)]
    assert max(loudness) < 1.1 * min(loudness)


def test_everything_at_once_and_one_effect_do_not_clip() -> None:
    noises = {loop: peak for loop, (_, peak) in NOISES.items()}
    ground = max(grip * noises[TYRES] + rough * noises[RUMBLE] for grip, rough in zip(GRIPS, ROUGHNESS, strict=True))
    loudest = max(peak for _, peak in EFFECTS.values())
    assert np.sqrt(2.0) * ENGINE_PEAK + ground + noises[SCRAPE] + noises[WIND] + loudest <= 1.0


def test_body_and_load_stay_below_the_peak_of_the_engine(mixer: OfflineMixer) -> None:
    for band in range(BANDS):
        both = np.abs(mixer.loops[Loop("body", band)]) + np.abs(mixer.loops[Loop("load", band)])
        assert both.max() <= ENGINE_PEAK * 1.0001


def test_noises_lie_where_the_ear_expects_them(mixer: OfflineMixer) -> None:
    middles = [middle_frequency(mixer.loops[loop]) for loop in (RUMBLE, TYRES, SCRAPE)]
    frequencies, amplitudes = spectrum(mixer.loops[RUMBLE])
    assert frequencies[amplitudes.argmax()] < 200.0
    frequencies, amplitudes = spectrum(mixer.loops[TYRES])
    assert 600.0 < frequencies[amplitudes.argmax()] < 1_000.0
    assert middles[0] < middles[2]


def test_sounds_are_the_same_every_time(mixer: OfflineMixer) -> None:
    again = OfflineMixer()
    for first, second in ((mixer.loops, again.loops), (mixer.effects, again.effects)):
        assert first.keys() == second.keys()
        for name in first:
            np.testing.assert_array_equal(first[name], second[name])


def test_all_sounds_are_made_in_150_ms() -> None:
    def seconds() -> float:
        start = time.thread_time()
        for _, samples in [*make_effects(), *make_loops()]:
            stereo_16_bit(samples)
        return time.thread_time() - start

    assert min(seconds() for _ in range(3)) < 0.15


def test_16_bits_hold_the_sound_on_both_sides() -> None:
    samples = np.array([0.0, 0.5, -1.0, 1.0], np.float32)
    np.testing.assert_array_equal(stereo_16_bit(samples), [[0, 0], [16383, 16383], [-32767, -32767], [32767, 32767]])
