"""Playing sounds: the device, the mixer's channels, and the player that the app uses.

Without a sound device the player is silent; it never raises.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pygame

from racer_viewer.sound.drive_sound import RATE, CarSound, Effect, Loop, SoundState, advance, initial_state, loop_levels

SIXTEEN_BIT_SIGNED = -16
STEREO = 2
"""Number of output channels; only in stereo has a channel's volume 255 steps at any volume of the sound."""
BUFFER = 512
"""Samples per block, 11 ms; volumes change from block to block."""
DUMMY_DRIVER = "dummy"
_ALSA_PREFIX = b"ALSA lib "


class NoSoundError(Exception):
    """There is no sound device; not raised outside this module."""


def open_device(allow_dummy: bool = False) -> None:
    """Start pygame's mixer; raise `NoSoundError` or a pygame error if there is no device.

    Parameters:
        allow_dummy: accept SDL's dummy driver, which plays nothing
    """
    pygame.mixer.quit()
    with without_alsa_messages():
        pygame.mixer.init(RATE, SIXTEEN_BIT_SIGNED, STEREO, BUFFER, allowedchanges=0)
    if pygame.mixer.get_driver() == DUMMY_DRIVER and not allow_dummy:
        pygame.mixer.quit()
        raise NoSoundError(f"SDL_AUDIODRIVER is {DUMMY_DRIVER}")


@contextmanager
def without_alsa_messages() -> Iterator[None]:
    """Hide libasound's messages about a missing card; other output to stderr is written afterwards.

    The library writes to file descriptor 2 directly, and pygame cannot turn that off.
    """
    if sys.platform != "linux" or not _stderr_is_descriptor_2():
        yield
        return
    with tempfile.TemporaryFile() as written:
        sys.stderr.flush()
        terminal = os.dup(2)
        try:
            os.dup2(written.fileno(), 2)
            yield
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)
            written.seek(0)
            rest = b"".join(line for line in written if not line.startswith(_ALSA_PREFIX))
            if rest:
                os.write(2, rest)


def _stderr_is_descriptor_2() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.fileno() == 2
    except (OSError, ValueError, AttributeError):
        return False


LOOP_CHANNELS, EFFECT_CHANNELS = 14, 6
"""Mixer channels. At most 8 loops play at a time, the rest are fading out; a seventh effect replaces the oldest."""
VOLUME_STEPS = 255
"""Resolution of a channel's volume."""
FADE_IN_MS, FADE_OUT_MS = 12, 90
"""Fade-in of a loop, which hides the volume it starts with, and fade-out at the end of a drive."""
FOREVER = -1


class Channels:
    """Plays loops at given levels, and effects. Every call may raise `pygame.error` if the device is lost."""

    def __init__(self) -> None:
        pygame.mixer.set_num_channels(LOOP_CHANNELS + EFFECT_CHANNELS)
        channels = [pygame.mixer.Channel(number) for number in range(LOOP_CHANNELS + EFFECT_CHANNELS)]
        self._free = deque(channels[:LOOP_CHANNELS])
        self._effects = deque(channels[LOOP_CHANNELS:])
        self._playing: dict[Loop, pygame.mixer.Channel] = {}
        self._steps: dict[Loop, int] = {}

    @property
    def playing(self) -> Mapping[Loop, float]:
        """Playing loops and their gains."""
        return {loop: step / VOLUME_STEPS for loop, step in self._steps.items()}

    def set_levels(self, sounds: Mapping[Loop, pygame.mixer.Sound], levels: Mapping[Loop, float]) -> None:
        """Play exactly these loops, each with its gain, 0 to 1."""
        for loop in [loop for loop in self._playing if loop not in levels]:
            self._release(loop).stop()
        for loop, gain in levels.items():
            if loop not in self._playing:
                self._begin(loop, sounds[loop])
            step = round(gain * VOLUME_STEPS)
            if step != self._steps[loop]:
                self._steps[loop] = step
                self._playing[loop].set_volume(step / VOLUME_STEPS, step / VOLUME_STEPS)

    def play(self, sound: pygame.mixer.Sound, gain: float) -> None:
        """Play an effect once, on a free channel or on the one that started first."""
        channel = next((each for each in self._effects if not each.get_busy()), self._effects[0])
        self._effects.remove(channel)
        self._effects.append(channel)
        channel.play(sound)
        channel.set_volume(gain, gain)

    def fade_out(self) -> None:
        """Fade out all loops; effects play on."""
        for loop in list(self._playing):
            self._release(loop).fadeout(FADE_OUT_MS)

    def _begin(self, loop: Loop, sound: pygame.mixer.Sound) -> None:
        channel = self._free.popleft()
        channel.play(sound, FOREVER, fade_ms=FADE_IN_MS)
        self._playing[loop], self._steps[loop] = channel, FOREVER

    def _release(self, loop: Loop) -> pygame.mixer.Channel:
        """Return the channel and queue it last, so that one that is fading out is not reused at once."""
        channel = self._playing.pop(loop)
        del self._steps[loop]
        self._free.append(channel)
        return channel


START_DELAY = 0.25
"""Delay before the device is opened [s]; opening it blocks all threads, and the first frames come first."""
MIN_INTERVAL, MAX_INTERVAL = 1 / 68, 0.1
"""Limits of the time between two updates of the mix [s]; longer pauses count as MAX_INTERVAL."""
LOUDNESS_POWER = 1.5
"""Exponent from the volume setting to the gain, so that half the volume sounds half as loud."""
CLOSE_TIMEOUT = 2.0
"""Time for the device to close [s]."""


def open_sound(volume: float = 1.0, *, delay: float = START_DELAY, allow_dummy: bool = False) -> SoundPlayer:
    """Return a player at once; it plays as soon as its device is open and its sounds are made. Never raises.

    Parameters:
        volume: volume, 0 to 1
        delay: delay before the device is opened [s]
        allow_dummy: accept SDL's dummy driver, which otherwise counts as no device
    """
    player = SoundPlayer(volume)
    player.open(delay, allow_dummy)
    return player


class SoundPlayer:
    """Plays effects and the sound of one car. Without a device it is silent and its methods do nothing.

    Its own thread opens the device, makes the sounds and closes the device: Windows requires one thread for that.

    Attributes:
        reason: why it is silent; None while it plays or is about to
    """

    def __init__(self, volume: float = 1.0, clock: Callable[[], float] = time.perf_counter) -> None:
        self.reason: str | None = None
        self._volume = _clamp(volume)
        self._clock = clock
        self._last_tick = 0.0
        self._paused = False
        self._state: SoundState | None = None
        self._channels: Channels | None = None
        self._effects: dict[Effect, pygame.mixer.Sound] = {}
        self._loops: dict[Loop, pygame.mixer.Sound] = {}
        self._thread: threading.Thread | None = None
        self._settled = threading.Event()
        self._closing = threading.Event()

    @property
    def volume(self) -> float:
        return self._volume

    @property
    def playing(self) -> dict[Loop, float]:
        """Playing loops and their gains before the volume."""
        channels = self._channels
        return dict(channels.playing) if channels else {}

    def open(self, delay: float = 0.0, allow_dummy: bool = False) -> None:
        """Open the device in the background; parameters as for `open_sound`."""
        self._thread = threading.Thread(target=self._run, args=(delay, allow_dummy), name="sound", daemon=True)
        self._thread.start()

    def wait_until_settled(self, timeout: float) -> bool:
        """Wait until the player plays, or is silent for a reason; return False after the timeout [s]."""
        return self._settled.wait(timeout)

    def tick(self, car: CarSound) -> None:
        """Update the sound of the car; call once per frame or tick. Loops play on between calls."""
        channels, loops = self._channels, self._loops
        now = self._clock()
        elapsed = now - self._last_tick
        if channels is None or not loops or self._paused or elapsed < MIN_INTERVAL:
            return
        self._last_tick = now
        if self._state is None:
            self._state, elapsed = initial_state(car), MIN_INTERVAL
        self._state = advance(self._state, car, min(elapsed, MAX_INTERVAL))
        with self._silent_on_error():
            channels.set_levels(loops, loop_levels(self._state))
        if self._state.hit:
            self.play("wall", self._state.hit)

    def play(self, name: Effect, gain: float = 1.0) -> None:
        """Play an effect once; an effect that is not made yet is skipped, as it would be late."""
        channels, sound = self._channels, self._effects.get(name)
        if channels is not None and sound is not None:
            with self._silent_on_error():
                channels.play(sound, gain)

    def set_volume(self, volume: float) -> None:
        """Set the volume of everything, 0 to 1."""
        self._volume = _clamp(volume)
        self._apply_volume()

    def pause(self) -> None:
        """Fade out the car until `resume`; effects still play."""
        self._paused = True
        self._state = None
        channels = self._channels
        if channels is not None:
            with self._silent_on_error():
                channels.fade_out()

    def resume(self) -> None:
        self._paused = False

    def close(self) -> None:
        """Stop playing and release the device; may be called again."""
        self._fall_silent("closed")
        if self._thread is not None:
            self._thread.join(CLOSE_TIMEOUT)

    def _run(self, delay: float, allow_dummy: bool) -> None:
        """Open the device, make the sounds, and close the device when asked."""
        if self._closing.wait(delay):
            return
        try:
            open_device(allow_dummy)
            try:
                self._make_sounds()
                self._settled.set()
                self._closing.wait()
            finally:
                self._fall_silent("closed")
                pygame.mixer.quit()
        except Exception as error:  # no sound problem may stop the app
            self._fall_silent(str(error) or type(error).__name__)

    def _make_sounds(self) -> None:
        """Make effects first, for the menu. Synthesis needs numpy, which the menu must not import."""
        from racer_viewer.sound.synthesis import make_effects, make_loops, stereo_16_bit

        self._channels = Channels()
        self._effects = {name: pygame.mixer.Sound(buffer=stereo_16_bit(made).data) for name, made in make_effects()}
        self._apply_volume()
        loops: dict[Loop, pygame.mixer.Sound] = {}
        for loop, made in make_loops():
            if self._closing.is_set():
                return
            loops[loop] = pygame.mixer.Sound(buffer=stereo_16_bit(made).data)
        self._loops = loops
        self._apply_volume()

    def _apply_volume(self) -> None:
        gain = self._volume**LOUDNESS_POWER
        with self._silent_on_error():
            for sound in (*self._effects.values(), *self._loops.values()):
                sound.set_volume(gain)

    @contextmanager
    def _silent_on_error(self) -> Iterator[None]:
        try:
            yield
        except pygame.error as error:
            self._fall_silent(str(error))

    def _fall_silent(self, reason: str) -> None:
        """Stop playing for good; the first reason is kept."""
        self.reason = self.reason or reason
        self._channels, self._effects, self._loops = None, {}, {}
        self._closing.set()
        self._settled.set()


def _clamp(volume: float) -> float:
    return min(1.0, max(0.0, volume))
