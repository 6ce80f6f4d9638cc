"""The sound device, opened quietly.

The mixer's channels: which loop is on which, and how loud.

The sound of the game, on whatever device there is, or silence where there is none."""

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

from racer_viewer.sound.drive_sound import RATE, CarSound, Effect, Heard, Loop, beginning, listen, loop_levels

SIXTEEN_BIT_SIGNED = -16
STEREO = 2
"""Not for the space: only in stereo a channel's volume has 255 steps of its own, however low the sound's is."""
BUFFER = 512
"""Samples per block, 11 ms: volumes move from block to block."""
UNHEARD_DRIVER = "dummy"
_CHATTER = b"ALSA lib "


class NoSoundError(Exception):
    """There is nothing to play sounds on. It does not leave this package."""


def open_device(unheard: bool = False) -> None:
    """Starts pygame's mixer as it is needed here, or raises `NoSoundError` or what pygame raises.

    unheard: SDL's dummy driver will do, for tests of everything but the ear.
    """
    pygame.mixer.quit()
    with without_alsa_chatter():
        pygame.mixer.init(RATE, SIXTEEN_BIT_SIGNED, STEREO, BUFFER, allowedchanges=0)
    if pygame.mixer.get_driver() == UNHEARD_DRIVER and not unheard:
        pygame.mixer.quit()
        raise NoSoundError(f"SDL_AUDIODRIVER is {UNHEARD_DRIVER}")


@contextmanager
def without_alsa_chatter() -> Iterator[None]:
    """Keeps libasound's lines about a missing card from the terminal; whatever else is written meanwhile comes after.

    The library writes to descriptor 2 itself, past Python, and pygame has no switch for that.
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
            rest = b"".join(line for line in written if not line.startswith(_CHATTER))
            if rest:
                os.write(2, rest)


def _stderr_is_descriptor_2() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.fileno() == 2
    except (OSError, ValueError, AttributeError):
        return False


LOOP_CHANNELS, EFFECT_CHANNELS = 14, 6
"""At most 8 loops sound at a time; the others fade out. Of effects, a seventh takes the place of the oldest."""
STEPS = 255
"""Of a channel's volume."""
COME_IN, GO_OUT = 12, 90
"""How a loop begins, so that it is never heard at the wrong volume, and how it ends when a drive does [ms]."""
FOREVER = -1


class Channels:
    """Plays loops at given levels, and effects. Any call may raise `pygame.error` if the device has gone."""

    def __init__(self) -> None:
        pygame.mixer.set_num_channels(LOOP_CHANNELS + EFFECT_CHANNELS)
        channels = [pygame.mixer.Channel(number) for number in range(LOOP_CHANNELS + EFFECT_CHANNELS)]
        self._free = deque(channels[:LOOP_CHANNELS])
        self._effects = deque(channels[LOOP_CHANNELS:])
        self._playing: dict[Loop, pygame.mixer.Channel] = {}
        self._steps: dict[Loop, int] = {}

    @property
    def playing(self) -> Mapping[Loop, float]:
        """The loops that sound and their gains."""
        return {loop: step / STEPS for loop, step in self._steps.items()}

    def set_levels(self, sounds: Mapping[Loop, pygame.mixer.Sound], levels: Mapping[Loop, float]) -> None:
        """Exactly these loops, each with its gain, 0 to 1."""
        for loop in [loop for loop in self._playing if loop not in levels]:
            self._release(loop).stop()
        for loop, gain in levels.items():
            if loop not in self._playing:
                self._begin(loop, sounds[loop])
            step = round(gain * STEPS)
            if step != self._steps[loop]:
                self._steps[loop] = step
                self._playing[loop].set_volume(step / STEPS, step / STEPS)

    def play(self, sound: pygame.mixer.Sound, gain: float) -> None:
        """Once, on a channel that is free or else on the one that is busy longest."""
        channel = next((each for each in self._effects if not each.get_busy()), self._effects[0])
        self._effects.remove(channel)
        self._effects.append(channel)
        channel.play(sound)
        channel.set_volume(gain, gain)

    def fade_out(self) -> None:
        """Ends all loops softly; effects play on."""
        for loop in list(self._playing):
            self._release(loop).fadeout(GO_OUT)

    def _begin(self, loop: Loop, sound: pygame.mixer.Sound) -> None:
        channel = self._free.popleft()
        channel.play(sound, FOREVER, fade_ms=COME_IN)
        self._playing[loop], self._steps[loop] = channel, FOREVER

    def _release(self, loop: Loop) -> pygame.mixer.Channel:
        """The channel goes to the end of the queue, so that one that fades out is not taken at once."""
        channel = self._playing.pop(loop)
        del self._steps[loop]
        self._free.append(channel)
        return channel


START_DELAY = 0.25
"""Before the device is opened [s]: pygame holds up all threads meanwhile, and the first pictures come first."""
LEAST_INTERVAL, LONGEST_INTERVAL = 1 / 68, 0.1
"""Between two updates of the mix [s]: more would not be heard; after a longer pause it moves on as if after this."""
LOUDNESS_POWER = 1.5
"""From the volume that is set to a gain, so that half way sounds like half."""
CLOSING_TIME = 2.0
"""How long closing waits for the device [s]."""


def open_sound(volume: float = 1.0, *, delay: float = START_DELAY, unheard: bool = False) -> SoundStage:
    """A stage that will play as soon as its device is open and its sounds are made; it returns at once, never raises.

    volume: 0 to 1. delay: before the device is opened [s].
    unheard: play to SDL's dummy driver too, which else counts as no device.
    """
    stage = SoundStage(volume)
    stage.open(delay, unheard)
    return stage


class SoundStage:
    """Plays effects and the sound of one car. If it cannot, it is silent and all its methods do nothing.

    Its own thread opens the device, makes the sounds and closes the device again: Windows wants that in one thread.
    """

    def __init__(self, volume: float = 1.0, clock: Callable[[], float] = time.perf_counter) -> None:
        self.reason: str | None = None
        """Why it is silent; None while it plays or is about to."""
        self._volume = _within_limits(volume)
        self._clock = clock
        self._last_tick = 0.0
        self._paused = False
        self._heard: Heard | None = None
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
        """The loops that sound now and their gains before the volume."""
        channels = self._channels
        return dict(channels.playing) if channels else {}

    def open(self, delay: float = 0.0, unheard: bool = False) -> None:
        """Begins to open, in the background; as `open_sound`."""
        self._thread = threading.Thread(target=self._run, args=(delay, unheard), name="sound", daemon=True)
        self._thread.start()

    def wait_until_settled(self, timeout: float) -> bool:
        """Whether it has come to play, or to be silent for a reason, within so many seconds."""
        return self._settled.wait(timeout)

    def tick(self, car: CarSound) -> None:
        """The car as it is now, once per frame or tick; between two calls everything sounds on."""
        channels, loops = self._channels, self._loops
        now = self._clock()
        elapsed = now - self._last_tick
        if channels is None or not loops or self._paused or elapsed < LEAST_INTERVAL:
            return
        self._last_tick = now
        if self._heard is None:
            self._heard, elapsed = beginning(car), LEAST_INTERVAL
        self._heard = listen(self._heard, car, min(elapsed, LONGEST_INTERVAL))
        with self._silent_if_it_fails():
            channels.set_levels(loops, loop_levels(self._heard))
        if self._heard.hit:
            self.play("wall", self._heard.hit)

    def play(self, name: Effect, gain: float = 1.0) -> None:
        """An effect, once. One that is not made yet is left out: late it would be wrong."""
        channels, sound = self._channels, self._effects.get(name)
        if channels is not None and sound is not None:
            with self._silent_if_it_fails():
                channels.play(sound, gain)

    def set_volume(self, volume: float) -> None:
        """0 to 1, of everything, at once."""
        self._volume = _within_limits(volume)
        self._pass_volume_on()

    def pause(self) -> None:
        """Nothing more of the car until `resume`, as in a menu; effects still play."""
        self._paused = True
        self._heard = None
        channels = self._channels
        if channels is not None:
            with self._silent_if_it_fails():
                channels.fade_out()

    def resume(self) -> None:
        self._paused = False

    def close(self) -> None:
        """Silence, and the device is free; again has no effect."""
        self._fall_silent("closed")
        if self._thread is not None:
            self._thread.join(CLOSING_TIME)

    def _run(self, delay: float, unheard: bool) -> None:
        """The life of the device."""
        if self._closing.wait(delay):
            return
        try:
            open_device(unheard)
            try:
                self._make_sounds()
                self._settled.set()
                self._closing.wait()
            finally:
                self._fall_silent("closed")
                pygame.mixer.quit()
        except Exception as error:  # a race without sound is better than none, whatever the machine's sound is like
            self._fall_silent(str(error) or type(error).__name__)

    def _make_sounds(self) -> None:
        """Effects first, for the menu. What makes them is imported here: numpy is not needed for a first picture."""
        from racer_viewer.sound.synthesis import make_effects, make_loops, stereo_16_bit

        self._channels = Channels()
        self._effects = {name: pygame.mixer.Sound(buffer=stereo_16_bit(made).data) for name, made in make_effects()}
        self._pass_volume_on()
        loops: dict[Loop, pygame.mixer.Sound] = {}
        for loop, made in make_loops():
            if self._closing.is_set():
                return
            loops[loop] = pygame.mixer.Sound(buffer=stereo_16_bit(made).data)
        self._loops = loops
        self._pass_volume_on()

    def _pass_volume_on(self) -> None:
        gain = self._volume**LOUDNESS_POWER
        with self._silent_if_it_fails():
            for sound in (*self._effects.values(), *self._loops.values()):
                sound.set_volume(gain)

    @contextmanager
    def _silent_if_it_fails(self) -> Iterator[None]:
        try:
            yield
        except pygame.error as error:
            self._fall_silent(str(error))

    def _fall_silent(self, reason: str) -> None:
        """For good; the first reason counts."""
        self.reason = self.reason or reason
        self._channels, self._effects, self._loops = None, {}, {}
        self._closing.set()
        self._settled.set()


def _within_limits(volume: float) -> float:
    return min(1.0, max(0.0, volume))
