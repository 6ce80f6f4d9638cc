"""The mix of whole drives, listened to by numbers."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from racer_env.engine import Simulation, load_circuit
from racer_viewer.agents import load_agent
from racer_viewer.sound import CarSound, car_sound
from racer_viewer.sound.drive_sound import FIRING_AT_LIMIT, RATE, SoundState
from racer_viewer.sound.mixer import BUFFER
from tests.sound.offline_mix import TICK, OfflineMixer, hear

CHAMPION = Path(__file__).parents[2] / "models" / "champion.zip"
SECONDS = 10
WINDOW = 6_000
"""Samples on each side of a moment that are looked at."""
SMOOTH = 0.12
"""Jumps from sample to sample that an engine with such a peak makes by itself, with some room; a click is larger."""


@pytest.fixture(scope="module")
def good_drive() -> list[CarSound]:
    agent, simulation = load_agent(CHAMPION), Simulation(load_circuit("track-06"))
    drive = []
    for _ in range(60 * SECONDS):
        simulation.step(agent.act(simulation.result.observations))
        drive.append(car_sound(simulation.cars[0]))
    return drive


@pytest.fixture(scope="module")
def clumsy_drive() -> list[CarSound]:
    """Against walls, over grass, on and off the throttle."""
    simulation, drive = Simulation(load_circuit("track-01")), []
    for tick in range(60 * SECONDS):
        simulation.step([[np.sign(np.sin(tick / 25)), float(tick % 200 < 150), 0.0]])
        drive.append(car_sound(simulation.cars[0]))
    assert any(car.wall_contact for car in drive)
    assert {car.surface for car in drive} == {0, 1, 2}
    return drive


def loudness(samples: NDArray[np.float32]) -> float:
    return float(np.sqrt(np.mean(samples**2)))


def pitch_at(mix: NDArray[np.float32], tick: int) -> float:
    piece = mix[tick * TICK - WINDOW : tick * TICK + WINDOW]
    amplitudes = np.abs(np.fft.rfft(piece * np.hanning(len(piece)), 1 << 16))
    return float(np.fft.rfftfreq(1 << 16, 1 / RATE)[amplitudes.argmax()])


@pytest.mark.parametrize("drive", ["good_drive", "clumsy_drive"])
def test_a_drive_neither_clips_nor_clicks(drive: str, mixer: OfflineMixer, request: pytest.FixtureRequest) -> None:
    mix = mixer.mix(hear(request.getfixturevalue(drive)))
    assert 0.2 < np.abs(mix).max() <= 1.0
    jumps = np.abs(np.diff(mix))
    assert jumps.max() < SMOOTH
    between_blocks = jumps[BUFFER - 1 :: BUFFER]
    assert between_blocks.max() < 1.5 * np.delete(jumps, np.s_[BUFFER - 1 :: BUFFER]).max()


def test_there_is_no_gap_in_a_drive(good_drive: list[CarSound], mixer: OfflineMixer) -> None:
    mix = mixer.mix(hear(good_drive))
    pieces = [loudness(piece) for piece in mix[RATE // 2 :].reshape(-1)[: RATE * 9].reshape(-1, RATE // 50)]
    assert min(pieces) > 0.3 * float(np.median(pieces))


def test_the_pitch_follows_the_engine_and_in_a_gear_the_speed(good_drive: list[CarSound], mixer: OfflineMixer) -> None:
    ticks = hear(good_drive)
    mix = mixer.mix(ticks)
    steady = [tick for tick in range(20, 580, 20) if _is_steady(ticks, tick)]
    assert len(steady) > 15
    for tick in steady:
        assert pitch_at(mix, tick) == pytest.approx(ticks[tick].revs * FIRING_AT_LIMIT, rel=0.05)
    top_gear = [(good_drive[tick].speed, pitch_at(mix, tick)) for tick in steady if ticks[tick].gear == 5]
    slow, fast = min(top_gear), max(top_gear)
    assert fast[1] / slow[1] == pytest.approx(fast[0] / slow[0], rel=0.08)
    assert fast[0] / slow[0] > 1.1


def _is_steady(ticks: list[SoundState], tick: int) -> bool:
    """Revs move little within the window."""
    near = [each.revs for each in ticks[tick - 8 : tick + 9]]
    return max(near) < 1.06 * min(near)


def test_the_loudness_follows_the_throttle(mixer: OfflineMixer) -> None:
    drive = [CarSound(100.0, throttle) for throttle in (0.0, 0.5, 1.0, 0.25) for _ in range(60)]
    mix = mixer.mix(hear(drive))
    coasting, half, full, quarter = (loudness(mix[int((i + 0.5) * RATE) : int((i + 0.95) * RATE)]) for i in range(4))
    assert coasting < quarter < half < full
    assert full > 1.8 * coasting


def test_volume_zero_is_silence_and_half_is_quieter(good_drive: list[CarSound], mixer: OfflineMixer) -> None:
    ticks = hear(good_drive[:120])
    assert not mixer.mix(ticks, volume=0.0).any()
    assert 0.2 < loudness(mixer.mix(ticks, volume=0.5)) / loudness(mixer.mix(ticks)) < 0.6
