"""The sound player, with pygame's real mixer under SDL's dummy and disk drivers, and without a device."""

import os
import subprocess
import sys
import threading
import time
import timeit
from collections.abc import Iterator

import numpy as np
import pygame
import pytest

from racer_viewer.sound import CarSound, SoundPlayer, open_sound
from racer_viewer.sound.drive_sound import FIRING_AT_LIMIT, RATE, RUMBLE, TOP_SPEEDS, TYRES, WIND
from racer_viewer.sound.mixer import EFFECT_CHANNELS, LOOP_CHANNELS
from racer_viewer.sound.synthesis import EFFECTS
from tests.processes import wait_for

FAST = CarSound(160.0, 1.0)
LIMIT = 20.0
"""Time limit for opening the device [s]."""


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def player(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[SoundPlayer]:
    """A player on the dummy driver."""
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    player = SoundPlayer(0.8, clock)
    player.open(allow_dummy=True)
    assert player.wait_until_settled(LIMIT)
    assert player.reason is None
    yield player
    player.close()


def drive(player: SoundPlayer, clock: Clock, car: CarSound, ticks: int = 60) -> None:
    for _ in range(ticks):
        clock.now += 1 / 60
        player.tick(car)


def busy(first: int, count: int) -> int:
    """Return the number of channels that play."""
    return sum(pygame.mixer.Channel(number).get_busy() for number in range(first, first + count))


def effects_playing() -> int:
    return busy(LOOP_CHANNELS, EFFECT_CHANNELS)


def test_a_drive_plays_the_loops_that_belong_to_it(player: SoundPlayer, clock: Clock) -> None:
    assert player.playing == {}
    drive(player, clock, FAST)
    assert {loop.kind for loop in player.playing} == {"body", "load", "wind"}
    assert busy(0, LOOP_CHANNELS) == 3
    drive(player, clock, CarSound(100.0, 0.0, slip_angle=0.2, surface=1))
    assert {TYRES, RUMBLE, WIND} < set(player.playing)
    assert busy(0, LOOP_CHANNELS) == len(player.playing) == 4


def test_volumes_reach_the_channels(player: SoundPlayer, clock: Clock) -> None:
    drive(player, clock, FAST)
    channels = [pygame.mixer.Channel(number) for number in range(LOOP_CHANNELS)]
    playing = [channel for channel in channels if channel.get_busy()]
    assert len({id(channel.get_sound()) for channel in playing}) == len(player.playing) == 3
    wait_for(lambda: all(channel.get_volume() == 1.0 for channel in playing), "all loops have faded in", 10.0)
    assert player.playing[WIND] == pytest.approx(1.0, abs=0.01)


def test_channels_do_not_run_out(player: SoundPlayer, clock: Clock) -> None:
    for turn in range(20):
        for speed in range(0, 160, 4):
            drive(player, clock, CarSound(speed, turn % 2, 0.2, turn % 3, speed % 8 == 0), 1)
        player.pause()
        player.resume()
    drive(player, clock, FAST)
    assert player.reason is None
    assert len(player.playing) == 3


def test_more_ticks_than_sixty_a_second_are_left_out(player: SoundPlayer, clock: Clock) -> None:
    drive(player, clock, FAST, 1)
    levels = player.playing
    clock.now += 1 / 240
    player.tick(FAST)
    assert player.playing == levels
    clock.now += 1 / 80
    player.tick(FAST)
    assert player.playing != levels


def test_a_pause_ends_the_car_but_not_the_menu(player: SoundPlayer, clock: Clock) -> None:
    drive(player, clock, FAST)
    player.pause()
    assert player.playing == {}
    drive(player, clock, FAST)
    assert player.playing == {}
    player.play("move")
    assert effects_playing() == 1
    player.resume()
    drive(player, clock, FAST, 1)
    assert 0.0 < max(player.playing.values()) < 0.5, "it comes back softly"


def test_every_effect_can_be_played_and_many_at_once(player: SoundPlayer) -> None:
    assert len(EFFECTS) == 9
    for name in EFFECTS:
        player.play(name)
    assert effects_playing() == EFFECT_CHANNELS
    assert player.reason is None


def test_a_wall_is_heard(player: SoundPlayer, clock: Clock) -> None:
    drive(player, clock, FAST)
    assert effects_playing() == 0
    drive(player, clock, CarSound(90.0, 1.0, wall_contact=True), 3)
    assert effects_playing() == 1


def test_the_volume_is_that_of_all_sounds(player: SoundPlayer, clock: Clock) -> None:
    drive(player, clock, FAST)
    for name in EFFECTS:
        player.play(name)
    channels = [pygame.mixer.Channel(number) for number in range(LOOP_CHANNELS + EFFECT_CHANNELS)]
    sounds = [sound for channel in channels if (sound := channel.get_sound()) is not None]
    assert len(sounds) == 3 + EFFECT_CHANNELS

    def gain() -> float:
        (same,) = {sound.get_volume() for sound in sounds}
        return same

    assert gain() == pytest.approx(0.8**1.5, abs=0.01)
    player.set_volume(0.05)
    assert gain() > 0.0, "the lowest step of a slider is not silence"
    player.set_volume(0.0)
    assert gain() == 0.0
    player.set_volume(7.0)
    assert gain() == 1.0
    assert player.volume == 1.0


def test_a_tick_costs_less_than_a_tenth_of_a_millisecond(player: SoundPlayer, clock: Clock) -> None:
    speeds = iter(np.tile(np.arange(0.0, 160.0, 0.8), 20).tolist())
    costs = timeit.repeat(lambda: drive(player, clock, CarSound(next(speeds), 1.0, 0.1), 1), number=20, repeat=50)
    assert np.median(costs) / 20 < 0.1e-3


def test_a_device_that_goes_away_leaves_silence(player: SoundPlayer, clock: Clock) -> None:
    drive(player, clock, FAST)
    pygame.mixer.quit()
    drive(player, clock, FAST)
    player.play("accept")
    player.set_volume(0.5)
    player.pause()
    assert player.reason
    assert player.playing == {}


def test_a_closed_stage_is_silent_and_gives_the_device_back(player: SoundPlayer, clock: Clock) -> None:
    drive(player, clock, FAST)
    player.close()
    assert pygame.mixer.get_init() is None
    player.close()
    drive(player, clock, FAST)
    player.play("accept")
    assert player.reason == "closed"


def test_a_stage_can_be_closed_before_it_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    for delay in (LIMIT, 0.0):
        player = open_sound(delay=delay, allow_dummy=True)
        start = time.perf_counter()
        player.close()
        assert time.perf_counter() - start < 2.0
        assert "sound" not in [thread.name for thread in threading.enumerate()]
        assert pygame.mixer.get_init() is None


def test_a_mixer_that_somebody_opened_otherwise_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    pygame.mixer.init(22_050, 8, 1)
    player = open_sound(delay=0.0, allow_dummy=True)
    assert player.wait_until_settled(LIMIT)
    assert pygame.mixer.get_init() == (RATE, -16, 2)
    player.close()


@pytest.mark.parametrize("driver", ["dummy", "no-such-driver"])
def test_without_a_device_there_is_silence_and_a_reason(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_AUDIODRIVER", driver)
    assert_silent(driver)


def assert_silent(why: str) -> None:
    player = open_sound(0.5, delay=0.0)
    player.tick(FAST)
    player.play("accept")
    assert player.wait_until_settled(LIMIT)
    assert player.reason is not None
    assert why in player.reason
    player.tick(FAST)
    player.play("accept")
    player.set_volume(0.2)
    player.pause()
    player.resume()
    assert player.playing == {}
    player.close()


def python(code: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    kept = {key: value for key, value in os.environ.items() if key != "SDL_AUDIODRIVER"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=kept | environment, capture_output=True, text=True, timeout=60
    )


def test_without_a_mixer_there_is_silence_and_a_reason() -> None:
    code = """
import sys
sys.modules["pygame.mixer"] = None
from racer_viewer.sound import CarSound, open_sound
player = open_sound(delay=0.0)
assert player.wait_until_settled(20)
player.tick(CarSound(160.0, 1.0))
player.play("accept")
player.close()
print(player.reason)
"""
    result = python(code)
    assert "mixer" in result.stdout.splitlines()[-1], result.stderr
    assert "Traceback" not in result.stderr


def test_opening_imports_nothing_heavy_and_does_not_wait() -> None:
    code = """
import sys, time
import pygame
before = set(sys.modules)
from racer_viewer.sound import open_sound
start = time.perf_counter()
player = open_sound(0.8)
player.play("move")
assert time.perf_counter() - start < 0.1
assert not pygame.mixer.get_init()
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(new & {"numpy", "numba", "gymnasium", "racer_env"}))
"""
    result = python(code, SDL_AUDIODRIVER="dummy")
    assert result.stdout.splitlines()[-1] == "[]", result.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="ALSA")
def test_alsa_keeps_quiet_about_a_missing_card_and_others_are_heard() -> None:
    code = """
import os, sys
from racer_viewer.sound import open_sound
from racer_viewer.sound.mixer import without_alsa_messages
player = open_sound(delay=0.0)
assert player.wait_until_settled(20)
player.close()
with without_alsa_messages():
    os.write(2, b"ALSA lib pcm.c:2666: Unknown PCM default\\n")
    print("something else", file=sys.stderr, flush=True)
print("the end", file=sys.stderr)
"""
    result = python(code, SDL_AUDIODRIVER="alsa")
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines() == ["something else", "the end"]


RECORDING = """
import sys, time
from pathlib import Path
import pygame
from racer_viewer.sound import CarSound, SoundPlayer
file = Path(sys.argv[1])

def seconds():
    return file.stat().st_size / (48_000 * 4)

def go_on(duration):
    end = seconds() + duration
    while seconds() < end:
        player.tick(CarSound(100.0, 1.0))
        time.sleep(0.0005)

player = SoundPlayer(1.0, seconds)
player.open(allow_dummy=True)
assert player.wait_until_settled(20)
for act in (lambda: None, lambda: player.set_volume(0.0), lambda: player.set_volume(1.0), player.pause):
    act()
    while act == player.pause and pygame.mixer.get_busy():  # SDL fades by the clock on the wall
        time.sleep(0.0005)
    go_on(1.2)
    print(seconds())
player.close()
"""
"""The time is that of the recording, which runs faster than the clock on the wall."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> list[np.ndarray]:
    """Output of pygame's mixer in a drive, at volume 0, at volume 1 again, and in a pause: 0.8 s of each."""
    file = tmp_path_factory.mktemp("sound") / "recording.raw"
    result = python(RECORDING, str(file), SDL_AUDIODRIVER="disk", SDL_DISKAUDIOFILE=str(file), SDL_DISKAUDIODELAY="2")
    assert result.returncode == 0, result.stderr
    samples = np.fromfile(file, np.int16).reshape(-1, 2)
    np.testing.assert_array_equal(samples[:, 0], samples[:, 1])
    ends = [round((float(line) - 0.1) * RATE) for line in result.stdout.splitlines()[-4:]]
    return [samples[end - round(0.8 * RATE) : end, 0] / 32_768 for end in ends]


def test_the_real_mixer_gives_out_the_engine_without_clicks(recording: list[np.ndarray]) -> None:
    for samples in (recording[0], recording[2]):
        amplitudes = np.abs(np.fft.rfft(samples))
        pitch = np.fft.rfftfreq(len(samples), 1 / RATE)[amplitudes.argmax()]
        assert pitch == pytest.approx(100.0 / TOP_SPEEDS[4] * FIRING_AT_LIMIT, rel=0.03)
        assert 0.15 < np.abs(samples).max() < 1.0
        assert np.abs(np.diff(samples)).max() < 0.12


def test_the_real_mixer_gives_out_nothing_at_volume_zero_and_in_a_pause(recording: list[np.ndarray]) -> None:
    assert not recording[1].any()
    assert not recording[3].any()
